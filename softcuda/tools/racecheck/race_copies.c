/* race_copies.c — checks the driver's copies and fills, such as cuMemcpyAsync and cuMemsetAsync, as accesses in stream order.
 *
 * A copy counts as a launch of one thread. Its accesses are strong with system scope, because programs copy counters while kernels
 * increment them atomically; but two unordered copies race. Memory that kernels cannot access has no shadow. A kernel's acquire with
 * system scope orders the kernel after all copies that were started earlier: the host may have waited for them and then signalled the
 * kernel. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

enum { HOW_BY_COPY = HOW_COPY | HOW_STRONG | SCOPE_SYS << HOW_SCOPE_AT };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watcher *watcher;
static struct watched_block block;
static struct watched_warp warp;
static gpul_exec_memory *memory;
static char copy_text[] = "a copy", fill_text[] = "a fill";
static struct site copy_site = { .number = UINT32_MAX, .place = copy_text, .line = copy_text };
static struct site fill_site = { .number = UINT32_MAX - 1, .place = fill_text, .line = fill_text };

void race_copies_begin(gpul_exec_memory *m)
{
	memory = m;
}

/* Initialise the state of the single thread of the launch that represents the copy. */
static void begin_thread(uint32_t launch)
{
	block = (struct watched_block){ .watcher = watcher,
					.key = block_key(launch, 0),
					.launch = launch,
					.time = 1,
					.n_warps = 1,
					.warps = &warp,
					.knows_cpu = race_cpu_knows_some() };
	warp = (struct watched_warp){ .block = &block, .stamp = 1 };
}

static void access_row(struct now *n, uint64_t at, uint64_t bytes)
{
	gpul_exec_range range;

	if (at && bytes && gpul_exec_memory_find(memory, at, &range))
		race_check_span(n, at, at + bytes);
}

static void access_rows(const struct host_move *m, struct site *site)
{
	struct now reads = { .w = &warp, .site = site, .how = HOW_READS | HOW_BY_COPY }, writes = reads;

	writes.how = HOW_WRITES | HOW_BY_COPY;
	reads.record = m->from ? race_record_new(&warp, site, reads.how) : 0;
	writes.record = race_record_new(&warp, site, writes.how);
	for (uint64_t z = 0; z < m->n_slices; z++) {
		for (uint64_t y = 0; y < m->n_rows; y++) {
			if (reads.record)
				access_row(&reads, m->from + z * m->from_slice + y * m->from_pitch, m->row_bytes);
			if (writes.record)
				access_row(&writes, m->to + z * m->to_slice + y * m->to_pitch, m->row_bytes);
		}
	}
}

void race_host_moves(const struct host_move *m)
{
	uint32_t launch;

	if (!m->order) {
		for (uint64_t z = 0; z < m->n_slices; z++)
			for (uint64_t y = 0; y < m->n_rows; y++)
				race_shadow_forget(m->to + z * m->to_slice + y * m->to_pitch, m->row_bytes);
		return;
	}
	pthread_mutex_lock(&lock);
	launch = race_copy_number(m);
	if (!watcher)
		watcher = race_watcher_new();
	if (watcher && launch) {
		begin_thread(launch);
		race_enter(watcher);
		access_rows(m, m->fill ? &fill_site : &copy_site);
		race_leave(watcher);
	}
	pthread_mutex_unlock(&lock);
}
