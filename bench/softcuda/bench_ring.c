/* bench_ring.c — measures a hop in a ring of processes whose persistent kernels poll, when there are more kernels than CPUs.
 *
 *     bench_ring [--ranks N] [--steps N] [--only KERNEL]
 *
 * Each process runs a kernel of 2 blocks.  A block waits for the token of its predecessor in shared memory and passes it on.
 * The token is passed `ranks * steps` times; the time of a hop is the mean time of a pass. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/softcuda/session.h"
#include "bench/timed.h"

enum { BLOCKS = 2, WORDS = 16, MAX_RANKS = 64, THREADS = 512 };

struct shared {
	uint64_t flags[(BLOCKS * MAX_RANKS + 1) * WORDS]; /* a flag for each block and rank; the last element is the abort word */
	uint64_t lines[BLOCKS * MAX_RANKS * THREADS * 2];
	int n_ready, n_failed;
};

static void wait_for_all(struct shared *shared, int n)
{
	__atomic_fetch_add(&shared->n_ready, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&shared->n_ready, __ATOMIC_ACQUIRE) < n)
		usleep(1000);
}

static int run_rank(struct shared *shared, const char *kernel, int rank, int n_ranks, int steps)
{
	struct session_shape shape = { { BLOCKS, 1, 1 }, { THREADS, 1, 1 } };
	struct gpul_exec_range range = { .base = (uintptr_t)shared, .bytes = sizeof *shared, .label = "shared" };
	uint64_t flags = (uintptr_t)shared->flags;
	struct session s;

	if (session_open(&s, GPUL_KERNELS "/bench/kernels/ring.ptx", kernel, 0) &&
	    gpul_exec_memory_add(s.memory, &range, &s.err) == GPUL_OK) {
		session_param(&s, &flags, sizeof flags, sizeof flags);
		session_param_i32(&s, rank);
		session_param_i32(&s, n_ranks);
		session_param_i32(&s, steps);
		wait_for_all(shared, n_ranks);
		session_finish(&s, session_start(&s, &shape));
		gpul_exec_memory_remove(s.memory, range.base);
	}
	if (s.err.status) {
		fprintf(stderr, "bench_ring: rank %d: %s\n", rank, s.err.text);
		__atomic_store_n(&shared->flags[BLOCKS * n_ranks * WORDS], 1, __ATOMIC_RELEASE);
	}
	session_close(&s);
	return s.err.status != GPUL_OK;
}

static int measure(const char *kernel, int n_ranks, int steps)
{
	struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double start, us;
	int failed = 0, status;

	if (shared == MAP_FAILED)
		return 1;
	for (int rank = 0; rank < n_ranks; rank++) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child)
			_exit(run_rank(shared, kernel, rank, n_ranks, steps));
	}
	while (__atomic_load_n(&shared->n_ready, __ATOMIC_ACQUIRE) < n_ranks && waitpid(-1, &status, WNOHANG) <= 0)
		usleep(1000);
	start = now_ms();
	while (wait(&status) > 0)
		failed |= status;
	us = (now_ms() - start) * 1e3 / ((double)n_ranks * steps);
	if (!failed)
		printf("| %-10s | %5d | %10.2f |\n", kernel, n_ranks, us);
	fflush(stdout);
	munmap(shared, sizeof *shared);
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "ranks", required_argument, NULL, 'r' },
					       { "steps", required_argument, NULL, 's' },
					       { "only", required_argument, NULL, 'o' },
					       { NULL, 0, NULL, 0 } };
	static const char *const kernels[] = { "ring_bare", "ring_abort", "ring_timed", "ring_ll" };
	const char *only = NULL;
	int ranks = 8, steps = 500, failed = 0;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'r')
			ranks = atoi(optarg);
		if (opt == 's')
			steps = atoi(optarg);
		if (opt == 'o')
			only = optarg;
		if (opt == '?' || ranks < 1 || ranks > MAX_RANKS || steps < 1) {
			fprintf(stderr, "usage: bench_ring [--ranks 1..%d] [--steps N] [--only KERNEL]\n", MAX_RANKS);
			return 2;
		}
	}
	printf("| kernel     | ranks | us per hop |\n|------------|------:|-----------:|\n");
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (!only || strcmp(only, kernels[i]) == 0)
			failed |= measure(kernels[i], ranks, steps);
	return failed;
}
