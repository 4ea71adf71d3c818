/* log.c — appends the records of a thread to its ring, in memory that this process shares with the reader (calls/calls_log.h).
 *
 * Logging a call takes two reads of the clock and some stores, but no lock and no system call.  A thread claims a slot at its first call.
 * If its ring is full, it waits for the reader, so that no record is lost; if the reader has ended, the program continues without a log.
 *
 * After fork(), the child still refers to the ring of its parent.  To detect this, a page has MADV_WIPEONFORK: it is zero in the child,
 * which then claims a slot of its own. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "calls/calls_log.h"
#include "nvidia/calls/wrapper_internal.h"

enum { WAIT_NS = 50 * 1000, WAITS_PER_CHECK = 200 };

struct writer {
	struct calls_slot *slot; /* slot of this thread; NULL: not claimed yet */
	uint8_t *ring;
	uint64_t head, tail; /* copies of the slot's head and tail; the reader may have raised the slot's tail since then */
	uint16_t sequence;
	bool busy; /* true while a record is written: a signal handler then must not write another one */
};

/* The driver [0] and the runtime [1] whose calls are recorded (struct link_map *); written by bind.c. */
__attribute__((visibility("default"))) const void *gpuload_calls_owners[2];
static __thread struct writer writer __attribute__((tls_model("initial-exec")));
static struct calls_header *header;  /* NULL: there is no log */
static volatile uint8_t *not_forked; /* 0 in a child of fork() until the child claims a slot */
static pthread_key_t at_thread_end;
static const char *no_log; /* why there is no log; reported at the first call */

/* ---- start and end of the log in this process ------------------------------------------------ */

static void leave_slot(void *unused)
{
	(void)unused;
	if (writer.slot && *not_forked)
		atomic_store_explicit(&writer.slot->state, CALLS_SLOT_CLOSED, memory_order_release);
	writer.slot = NULL;
}

/* Write one line to stderr, without printf(), which may not be safe here. */
static void report(const char *text)
{
	static const char *const before = "gpuload calls: the calls of this process are not recorded: ";

	if (write(STDERR_FILENO, before, strlen(before)) < 0 || write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* stderr is closed */
}

/* Map the memory of the log.  NULL: there is no log; *why is then a line with the reason, or NULL if the reader has ended. */
static struct calls_header *map_log(const char *path, const char **why)
{
	struct calls_header *log = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		*why = errno == ENOENT ? NULL : "the shared memory of the log cannot be opened\n"; /* ENOENT: the reader has ended */
		return NULL;
	}
	if (lseek(fd, 0, SEEK_END) == (off_t)CALLS_LOG_BYTES)
		log = mmap(NULL, CALLS_LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	*why = "the shared memory of the log, 16 GiB of address space, cannot be mapped\n";
	if (log == MAP_FAILED)
		return NULL;
	if (log->magic != CALLS_MAGIC || log->table_version != calls_table_version) {
		*why = "gpuload and libcuda-calls.so.1 come from different builds\n";
		munmap(log, CALLS_LOG_BYTES);
		return NULL;
	}
	madvise(log, CALLS_LOG_BYTES, MADV_DONTDUMP);
	return log;
}

__attribute__((constructor)) static void open_log(void)
{
	const char *path = secure_getenv(CALLS_VARIABLE);
	const int before = errno;
	void *page;

	if (path && !header && !pthread_key_create(&at_thread_end, leave_slot)) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page != MAP_FAILED && !madvise(page, 4096, MADV_WIPEONFORK)) {
			not_forked = page;
			*not_forked = 1;
			header = map_log(path, &no_log);
		}
	}
	errno = before;
}

/* ---- slots: one for each thread -------------------------------------------------------------- */

static bool claim_slot(struct calls_slot *slot)
{
	uint32_t wanted = CALLS_SLOT_FREE;

	return atomic_load_explicit(&slot->state, memory_order_relaxed) == CALLS_SLOT_FREE &&
	       atomic_compare_exchange_strong(&slot->state, &wanted, CALLS_SLOT_CLAIMED);
}

static void enter_slot(uint32_t i)
{
	struct calls_slot *slot = &header->slots[i];
	uint32_t n = atomic_load(&header->n_slots);

	slot->pid = getpid();
	slot->tid = (int32_t)syscall(SYS_gettid);
	writer.slot = slot;
	writer.ring = calls_ring(header, i);
	writer.head = writer.tail = 0; /* the reader has set the slot's head and tail to 0 */
	while (n <= i && !atomic_compare_exchange_weak(&header->n_slots, &n, i + 1))
		;
	atomic_store_explicit(&slot->state, CALLS_SLOT_ACTIVE, memory_order_release);
	pthread_setspecific(at_thread_end, slot);
}

/* Claim a slot for a thread at its first call, or for the only thread of a child process after fork(). */
static __attribute__((noinline)) bool attach_thread(void)
{
	const int before = errno;

	*not_forked = 1;
	writer.slot = NULL;
	writer.busy = false;
	for (uint32_t i = 0; i < CALLS_MAX_SLOTS && !writer.slot; i++)
		if (claim_slot(&header->slots[i]))
			enter_slot(i);
	if (!writer.slot)
		atomic_fetch_add(&header->lost, 1);
	errno = before;
	return writer.slot;
}

/* ---- records --------------------------------------------------------------------------------- */

static uint64_t read_ticks(void)
{
	struct timespec now;

#ifdef __x86_64__
	if (header->use_tsc)
		return __builtin_ia32_rdtsc();
#endif
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Wait until n_bytes fit; false: the reader has ended. */
static __attribute__((noinline)) bool wait_for_reader(size_t n_bytes)
{
	const struct timespec pause = { 0, WAIT_NS };
	const int before = errno;

	for (unsigned n = 1;; n++) {
		writer.tail = atomic_load_explicit(&writer.slot->tail, memory_order_acquire);
		if (writer.head + n_bytes - writer.tail <= CALLS_RING_BYTES)
			break;
		if (atomic_load(&header->closed))
			return false;
		if (n % WAITS_PER_CHECK == 0 && kill(header->reader_pid, 0) && errno == ESRCH)
			atomic_store(&header->closed, 1);
		nanosleep(&pause, NULL);
	}
	errno = before;
	return true;
}

/* Reserve room for a record of up to n_bytes that is not split at the end of the ring; NULL: the
 * reader has ended. */
static inline uint8_t *reserve(size_t n_bytes)
{
	const size_t left = CALLS_RING_BYTES - writer.head % CALLS_RING_BYTES;
	const size_t skip = left < n_bytes ? left : 0;

	if (writer.head + skip + n_bytes - writer.tail > CALLS_RING_BYTES && !wait_for_reader(skip + n_bytes))
		return NULL;
	if (skip) {
		*(struct calls_record *)(writer.ring + writer.head % CALLS_RING_BYTES) = (struct calls_record){ .kind = CALLS_PAD };
		writer.head += skip;
	}
	return writer.ring + writer.head % CALLS_RING_BYTES;
}

static inline void publish(uint8_t *record, const uint8_t *end, struct calls_record head)
{
	size_t n_bytes = ((size_t)(end - record) + 15) / 16 * 16;

	head.n_bytes = (uint16_t)n_bytes;
	*(struct calls_record *)record = head;
	writer.head += n_bytes;
	atomic_store_explicit(&writer.slot->head, writer.head, memory_order_release);
}

unsigned calls_enter(unsigned row, const uint64_t *words, unsigned n_words)
{
	const size_t known = sizeof(struct calls_record) + n_words * sizeof *words;
	uint8_t *record, *end;

	if (!header) {
		if (no_log)
			report(no_log);
		no_log = NULL;
		return 0;
	}
	if (header->wishes[row] == CALLS_IGNORED || atomic_load_explicit(&header->closed, memory_order_relaxed))
		return 0;
	if ((!writer.slot || !*not_forked) && !attach_thread())
		return 0;
	if (writer.busy) {
		atomic_fetch_add(&writer.slot->lost, 1);
		return 0;
	}
	writer.busy = true;
	record = reserve(calls_rows[row].captures_in ? CALLS_MAX_RECORD : known + 16);
	if (!record) {
		writer.busy = false;
		return 0;
	}
	memcpy(record + sizeof(struct calls_record), words, n_words * sizeof *words);
	end = record + known;
	if (calls_rows[row].captures_in)
		end = calls_capture_in(&calls_rows[row], words, end);
	if (!++writer.sequence)
		writer.sequence = 1;
	publish(record, end,
		(struct calls_record){ .kind = CALLS_ENTER, .row = (uint16_t)row, .sequence = writer.sequence, .ticks = read_ticks() });
	writer.busy = false;
	return writer.sequence;
}

void calls_exit(unsigned row, unsigned sequence, const uint64_t *words, uint64_t result)
{
	const struct calls_row *r = &calls_rows[row];
	const bool is_error = r->result && r->result->kind == CALLS_ENUM && (uint32_t)result;
	const bool is_text = r->result && r->result->kind == CALLS_TEXT;
	const uint64_t ticks = read_ticks();
	uint8_t *record, *end;

	/* A callback of the driver may have forked: then the child does not log the EXIT, because the ENTER is in the parent's ring. */
	if (!writer.slot || !*not_forked || writer.busy)
		return;
	writer.busy = true;
	record = reserve(is_error || is_text || r->captures_out ? CALLS_MAX_RECORD : sizeof(struct calls_record) + 16);
	if (record) {
		memcpy(record + sizeof(struct calls_record), &result, sizeof result);
		end = record + sizeof(struct calls_record) + sizeof result;
		if (is_error)
			end = calls_capture_error(r, result, end);
		else if (is_text)
			end = calls_capture_text((const char *)(uintptr_t)result, end);
		else if (r->captures_out)
			end = calls_capture_out(r, words, end);
		publish(record, end,
			(struct calls_record){ .kind = CALLS_EXIT, .row = (uint16_t)row, .sequence = (uint16_t)sequence, .ticks = ticks });
	}
	writer.busy = false;
}
