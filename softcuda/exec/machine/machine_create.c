#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/thread/parallel.h"
#include "softcuda/exec/guard_internal.h"
#include "softcuda/exec/machine/nest_internal.h"

enum {
	DEFAULT_HEAP = 8 << 20,
	DEFAULT_TURN = 1000,
	DEFAULT_STUCK_MS = 10000,
	MAX_TURN = 1 << 30,
};

static void print_to_stdout(void *user, const char *text, size_t text_bytes)
{
	(void)user;
	fwrite(text, 1, text_bytes, stdout);
}

/* ---- %globaltimer -----------------------------------------------------------------------------------
 *
 * %globaltimer starts with the wall-clock time, as on a GPU, and then follows the monotonic clock, so that a change of the wall clock does
 * not disturb time-outs of kernels. All machines of a process add the same offset to the monotonic clock. */

static uint64_t wall_minus_monotonic;
static pthread_once_t wall_once = PTHREAD_ONCE_INIT;

/* Compute the offset by reading the wall clock between two reads of the monotonic clock.  The trial with the shortest time between
 * these two reads is used, because in a longer one the thread may have been interrupted. */
static void read_wall_clock(void)
{
	uint64_t shortest = UINT64_MAX;

	for (int trial = 0; trial < 8; trial++) {
		uint64_t before = gpul_clock_ns(), wall, between;
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		wall = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
		between = gpul_clock_ns() - before;
		if (between < shortest) {
			shortest = between;
			wall_minus_monotonic = wall - (before + between / 2);
		}
	}
}

static const struct nest_calls nests = {
	.call_device_runtime = gpul_call_device_runtime,
	.stop_children = gpul_nest_stop,
	.blocks_ended = gpul_nest_blocks_ended,
	.begins_again = gpul_nest_begins_again,
	.block_ends = gpul_nest_block_ends,
	.destroy = gpul_nest_destroy,
};

gpul_status gpul_exec_machine_create(gpul_exec_memory *memory, const gpul_exec_machine_options *options, gpul_exec_machine **out,
				     gpul_error *err)
{
	gpul_exec_machine *m = calloc(1, sizeof *m);

	if (!m)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the interpreter");
	pthread_once(&wall_once, read_wall_clock);
	m->globaltimer_offset = wall_minus_monotonic;
	gpul_guard_install();
	m->memory = memory;
	m->nests = &nests;
	if (options)
		m->options = *options;
	if (!m->options.heap_bytes)
		m->options.heap_bytes = DEFAULT_HEAP;
	if (!m->options.turn || m->options.turn > MAX_TURN)
		m->options.turn = DEFAULT_TURN;
	if (!m->options.stuck_ms)
		m->options.stuck_ms = DEFAULT_STUCK_MS;
	if (!m->options.pending_launches)
		m->options.pending_launches = PENDING_LAUNCHES;
	if (!m->options.print)
		m->options.print = print_to_stdout;
	if (!m->options.n_workers)
		m->options.n_workers = gpul_cpus();
	for (struct observer *o = gpul_exec_memory_observers(memory); o; o = o->next)
		if (o->serial)
			m->options.n_workers = 1;
	m->n_workers = m->options.n_workers;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, NULL);
	*out = m;
	return GPUL_OK;
}
