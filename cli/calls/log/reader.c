/* reader.c — reads the records that programs write into the rings of calls/calls_log.h.
 *
 * A faulty program may overwrite its rings, so every number that is read from them is checked. */
#include "cli/calls/log/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "cli/calls/log/calls_join.h"
#include "core/clock.h"

enum { CALIBRATION_NS = 5 * 1000 * 1000, KEPT_BYTES = 64 * 1024 };

/* ---- the clock ------------------------------------------------------------------------------- */

/* Returns true if the time stamp counters of all CPUs count at one constant rate.  Source: Intel SDM, CPUID 80000007H, EDX bit 8. */
static bool has_constant_tsc(void)
{
#ifdef __x86_64__
	unsigned a = 0, b = 0, c = 0, d = 0;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#else
	return false;
#endif
}

static uint64_t read_ticks(const struct calls_header *log)
{
#ifdef __x86_64__
	if (log->use_tsc)
		return __builtin_ia32_rdtsc();
#endif
	(void)log;
	return gpul_clock_ns();
}

static void start_clock(struct reader *r)
{
	const struct timespec pause = { 0, CALIBRATION_NS };
	uint64_t ticks;

	r->log->use_tsc = has_constant_tsc();
	r->first_ns = gpul_clock_ns();
	r->first_ticks = read_ticks(r->log);
	r->ns_per_tick = 1;
	if (!r->log->use_tsc)
		return;
	nanosleep(&pause, NULL);
	ticks = read_ticks(r->log);
	r->ns_per_tick = (double)(gpul_clock_ns() - r->first_ns) / (double)(ticks - r->first_ticks);
}

/* ---- open ------------------------------------------------------------------------------------ */

gpul_status reader_open(const uint8_t *wishes, struct sink *sink, struct reader *out, gpul_error *err)
{
	*out = (struct reader){ .sink = sink, .log = MAP_FAILED, .fd = memfd_create("gpuload-calls", MFD_CLOEXEC) };
	if (out->fd < 0 || ftruncate(out->fd, (off_t)CALLS_LOG_BYTES))
		goto fail;
	out->log = mmap(NULL, CALLS_LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, out->fd, 0);
	out->threads = calloc(CALLS_MAX_SLOTS, sizeof *out->threads);
	out->heap = calloc(CALLS_MAX_SLOTS, sizeof *out->heap);
	if (out->log == MAP_FAILED || !out->threads || !out->heap)
		goto fail;
	memcpy(out->log->wishes, wishes, n_calls_rows < CALLS_MAX_ROWS ? n_calls_rows : CALLS_MAX_ROWS);
	out->log->table_version = calls_table_version;
	out->log->reader_pid = getpid();
	start_clock(out);
	out->log->magic = CALLS_MAGIC;
	sink->names = &out->names;
	return GPUL_OK;
fail:
	gpul_fail(err, GPUL_ESYS, errno, "cannot create the shared memory for the log of calls: %s", strerror(errno));
	if (out->log != MAP_FAILED)
		munmap(out->log, CALLS_LOG_BYTES);
	if (out->fd >= 0)
		close(out->fd);
	free(out->threads);
	free(out->heap);
	return GPUL_ESYS;
}

/* ---- merging --------------------------------------------------------------------------------- */

static bool is_earlier(const struct reader *r, uint32_t a, uint32_t b)
{
	return r->threads[a].ticks < r->threads[b].ticks;
}

static void sift_down(struct reader *r, size_t i)
{
	for (;;) {
		size_t least = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < r->n_heap; child++)
			if (is_earlier(r, r->heap[child], r->heap[least]))
				least = child;
		if (least == i)
			return;
		uint32_t moved = r->heap[i];

		r->heap[i] = r->heap[least];
		r->heap[least] = moved;
		i = least;
	}
}

/* Find the next record of a slot, after any padding.  NULL: there is no record, or it is damaged. */
static const struct calls_record *next_record(struct reader *r, uint32_t slot)
{
	struct reader_thread *t = &r->threads[slot];
	const uint8_t *ring = calls_ring(r->log, slot);

	t->damaged |= t->at < r->heads[slot] && r->heads[slot] - t->at > CALLS_RING_BYTES;
	while (t->at < r->heads[slot] && !t->damaged) {
		const size_t offset = t->at % CALLS_RING_BYTES, left = CALLS_RING_BYTES - offset;
		const struct calls_record *record = (const struct calls_record *)(ring + offset);

		if (record->kind == CALLS_PAD) {
			t->at += left;
			continue;
		}
		t->damaged = record->kind > CALLS_PAD || record->n_bytes < sizeof *record || record->n_bytes % 16 ||
			     record->n_bytes > left || record->n_bytes > r->heads[slot] - t->at || record->row >= n_calls_rows;
		if (!t->damaged)
			return record;
	}
	return NULL;
}

/* Build the heap of the slots that have unread records. */
static void fill_heap(struct reader *r)
{
	uint32_t n_slots = atomic_load(&r->log->n_slots);

	r->n_heap = 0;
	for (uint32_t i = 0; i < n_slots && i < CALLS_MAX_SLOTS; i++) {
		const uint32_t state = atomic_load_explicit(&r->log->slots[i].state, memory_order_acquire);
		const struct calls_record *record;

		if (state != CALLS_SLOT_ACTIVE && state != CALLS_SLOT_CLOSED)
			continue;
		r->heads[i] = atomic_load_explicit(&r->log->slots[i].head, memory_order_acquire);
		record = next_record(r, i);
		if (r->threads[i].damaged) { /* skip all records, so that the program does not wait for space in a ring that nobody reads */
			r->threads[i].at = r->heads[i];
			atomic_store(&r->log->slots[i].tail, r->heads[i]);
		}
		if (!record)
			continue;
		r->threads[i].ticks = record->ticks;
		r->heap[r->n_heap++] = i;
	}
	for (size_t i = r->n_heap / 2; i > 0; i--)
		sift_down(r, i - 1);
}

/* ---- slots that end -------------------------------------------------------------------------- */

static void free_slot(struct reader *r, uint32_t i)
{
	struct calls_slot *slot = &r->log->slots[i];
	struct reader_thread *t = &r->threads[i];

	calls_join_end(r, i);
	r->n_lost += atomic_exchange(&slot->lost, 0) + t->damaged;
	gpul_array_free(&t->calls);
	free(t->bytes);
	if (t->at > KEPT_BYTES)
		fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(calls_ring(r->log, i) - (uint8_t *)r->log),
			  CALLS_RING_BYTES);
	*t = (struct reader_thread){ 0 };
	r->heads[i] = 0;
	atomic_store(&slot->head, 0);
	atomic_store(&slot->tail, 0);
	atomic_store_explicit(&slot->state, CALLS_SLOT_FREE, memory_order_release);
}

/* True if a process has ended; a zombie counts as ended. */
static bool has_ended(const struct reader_process *p)
{
	struct pollfd ended = { .fd = p->fd, .events = POLLIN };

	return p->fd < 0 ? kill(p->pid, 0) && errno == ESRCH : poll(&ended, 1, 0) == 1;
}

static void watch_process(struct reader *r, int pid)
{
	struct reader_process *p;

	for (size_t i = 0; i < r->processes.n; i++)
		if (r->processes.at[i].pid == pid)
			return;
	p = gpul_array_push(&r->processes);
	if (p)
		*p = (struct reader_process){ pid, (int)syscall(SYS_pidfd_open, pid, 0) };
}

static void end_process(struct reader *r, int pid)
{
	const uint32_t n_slots = atomic_load(&r->log->n_slots);

	for (uint32_t i = 0; i < n_slots && i < CALLS_MAX_SLOTS; i++)
		if (r->log->slots[i].pid == pid && atomic_load(&r->log->slots[i].state) == CALLS_SLOT_ACTIVE)
			atomic_store(&r->log->slots[i].state, CALLS_SLOT_CLOSED);
}

/* Free the slots of threads that have ended, once all their records have been read. */
static void free_slots(struct reader *r)
{
	const uint32_t n_slots = atomic_load(&r->log->n_slots);

	for (uint32_t i = 0; i < n_slots && i < CALLS_MAX_SLOTS; i++) {
		const uint32_t state = atomic_load_explicit(&r->log->slots[i].state, memory_order_acquire);

		if (state == CALLS_SLOT_ACTIVE && r->log->slots[i].pid > 0)
			watch_process(r, r->log->slots[i].pid);
		else if (state == CALLS_SLOT_CLOSED && r->threads[i].at == atomic_load(&r->log->slots[i].head))
			free_slot(r, i);
	}
}

bool reader_drain(struct reader *r)
{
	bool any;

	fill_heap(r);
	any = r->n_heap;
	while (r->n_heap) {
		const uint32_t slot = r->heap[0];
		struct reader_thread *t = &r->threads[slot];
		const struct calls_record *record = next_record(r, slot);

		if (record) {
			calls_join_record(r, slot, record);
			t->at += record->n_bytes;
			record = next_record(r, slot);
		}
		atomic_store_explicit(&r->log->slots[slot].tail, t->at, memory_order_release);
		if (record)
			t->ticks = record->ticks;
		else
			r->heap[0] = r->heap[--r->n_heap];
		sift_down(r, 0);
		if (r->sink->json.out.n > KEPT_BYTES)
			sink_flush(r->sink);
	}
	free_slots(r);
	sink_flush(r->sink);
	return any;
}

bool reader_has_processes(struct reader *r)
{
	for (size_t i = 0; i < r->processes.n;) {
		struct reader_process *p = &r->processes.at[i];

		if (!has_ended(p)) {
			i++;
			continue;
		}
		end_process(r, p->pid);
		if (p->fd >= 0)
			close(p->fd);
		*p = r->processes.at[--r->processes.n];
	}
	return r->processes.n > 0;
}

void reader_close(struct reader *r)
{
	atomic_store(&r->log->closed, 1);
	while (reader_drain(r))
		;
	for (uint32_t i = 0; i < CALLS_MAX_SLOTS; i++) {
		const uint32_t state = atomic_load(&r->log->slots[i].state);

		if (state == CALLS_SLOT_ACTIVE || state == CALLS_SLOT_CLOSED) {
			calls_join_end(r, i);
			r->n_lost += atomic_load(&r->log->slots[i].lost) + r->threads[i].damaged;
			gpul_array_free(&r->threads[i].calls);
			free(r->threads[i].bytes);
		}
	}
	r->sink->n_lost = r->n_lost + atomic_load(&r->log->lost);
	for (size_t i = 0; i < r->processes.n; i++)
		if (r->processes.at[i].fd >= 0)
			close(r->processes.at[i].fd);
	gpul_array_free(&r->processes);
	kernel_names_free(&r->names);
	munmap(r->log, CALLS_LOG_BYTES);
	close(r->fd);
	free(r->threads);
	free(r->heap);
}
