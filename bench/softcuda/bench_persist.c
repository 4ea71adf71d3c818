/* bench_persist.c — measures how fast a persistent kernel pushes messages to a CPU thread and receives
 * acknowledgements.
 *
 *     bench_persist [--pushes N]
 *
 * Runs the kernel of tests/corpus/persist.cu with 1, 4 and 16 blocks: first on all CPUs, then with both the
 * kernel and the CPU thread on the same CPU. */
#include <getopt.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/softcuda/session.h"
#include "bench/timed.h"

enum { SLOTS = 128 };

struct ring {
	struct {
		_Atomic uint64_t word[2];
	} slots[SLOTS];
	_Atomic uint64_t head, tail, tailcache, stop;
};

/* Read and acknowledge every push.  On one CPU, the interpreter's worker yields while its kernel waits,
 * and this thread yields while no push has arrived. */
static void acknowledge_pushes(struct ring *r, uint64_t pushes)
{
	for (uint64_t h = 0, idle = 0; h < pushes;) {
		uint64_t first = atomic_load_explicit(&r->slots[h % SLOTS].word[0], memory_order_acquire);
		if (first == ((h << 16) | 1)) {
			atomic_store_explicit(&r->tail, ++h, memory_order_release);
			idle = 0;
		} else if (++idle % 64 == 0) {
			sched_yield();
		}
	}
}

static _Bool measure_blocks(const char *where, uint32_t blocks, uint64_t pushes)
{
	struct session s;
	struct session_shape shape = { { blocks, 1, 1 }, { 32, 1, 1 } };
	uint64_t each = pushes / blocks;

	if (session_open(&s, "tests/corpus/ptx/persist.sm_90.ptx", "persist", 0)) {
		struct ring *r = session_buffer(&s, sizeof *r);
		uint64_t params[7] = { (uintptr_t)r->slots,
				       (uintptr_t)&r->head,
				       (uintptr_t)&r->tail,
				       (uintptr_t)&r->tailcache,
				       SLOTS,
				       (uintptr_t)&r->stop,
				       each };
		session_param(&s, params, sizeof params, 8);
		double start = now_ms();
		gpul_exec_launch *l = session_start(&s, &shape);
		if (l)
			acknowledge_pushes(r, each * blocks);
		session_finish(&s, l);
		double us = (now_ms() - start) * 1e3 / (double)(each * blocks);
		if (!s.err.status)
			printf("| %-8s | %6u | %8.2f |\n", where, blocks, us);
	}
	if (s.err.status)
		fprintf(stderr, "bench_persist: %s\n", s.err.text);
	fflush(stdout);
	session_close(&s);
	return s.err.status == GPUL_OK;
}

static _Bool stay_on_one_cpu(void)
{
	cpu_set_t now, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof now, &now))
		return 0;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &now)) {
			CPU_SET(cpu, &one);
			break;
		}
	return sched_setaffinity(0, sizeof one, &one) == 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "pushes", required_argument, NULL, 'p' }, { NULL, 0, NULL, 0 } };
	static const uint32_t blocks[] = { 1, 4, 16 };
	uint64_t pushes = 20000;
	int failed = 0;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'p')
			pushes = strtoull(optarg, NULL, 10);
		if (opt == '?' || pushes < 16) {
			fprintf(stderr, "usage: bench_persist [--pushes 16...]\n");
			return 2;
		}
	}
	printf("| CPUs     | blocks | us each  |\n|----------|-------:|---------:|\n");
	for (size_t i = 0; i < 3; i++)
		failed |= !measure_blocks("all", blocks[i], pushes);
	if (!stay_on_one_cpu())
		return 1;
	for (size_t i = 0; i < 3; i++)
		failed |= !measure_blocks("one", blocks[i], pushes);
	return failed;
}
