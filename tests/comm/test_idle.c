/* test_idle.c — the threads of a communicator that is not used sleep, and the next call wakes them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/ranks.h"

enum { MOST_RANKS = 16, PAUSE_S = 2, N_LOOKS = 5, WAKES_PER_S = 20, COUNT = 100 };

static pthread_barrier_t all;
static int n_ranks;

/* Return the number of voluntary context switches of the process so far, most of which are sleeps. */
static long n_sleeps(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u))
		abort();
	return u.ru_nvcsw;
}

static void sum(struct rank *r, CUdeviceptr at)
{
	uint32_t words[COUNT];
	gpul_error err = { 0 };

	for (unsigned i = 0; i < COUNT; i++)
		words[i] = i + (unsigned)r->rank;
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(at, words, sizeof words)), &err, "cuMemcpyHtoD");
	must(gpul_comm_allreduce(r->comm, at, at, COUNT, GPUL_COMM_I32, GPUL_COMM_SUM, r->stream, &err), &err, "allreduce");
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "wait");
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(words, at, sizeof words)), &err, "cuMemcpyDtoH");
	for (unsigned i = 0; i < COUNT; i++)
		if (words[i] != (unsigned)n_ranks * i + (unsigned)(n_ranks * (n_ranks - 1) / 2)) {
			(void)fprintf(stderr, "rank %d: element %u is %u\n", r->rank, i, words[i]);
			abort();
		}
}

/* Check that the threads sleep in at least one of several seconds: other processes may delay a heartbeat, which causes extra wake-ups,
 * but a thread that polls would wake often in every second. */
static void check_sleep(void)
{
	const long most = (long)n_ranks * WAKES_PER_S;
	long slept = 0;

	(void)sleep(PAUSE_S);
	for (int k = 0; k < N_LOOKS; k++) {
		const long before = n_sleeps();

		(void)sleep(1);
		slept = n_sleeps() - before;
		if (slept <= most)
			return;
	}
	(void)fprintf(stderr, "%ld wakes in the last of %d seconds: expected at most %d for each of %d ranks\n", slept, N_LOOKS,
		      WAKES_PER_S, n_ranks);
	abort();
}

static void call_pause_call(struct rank *r, void *arg)
{
	gpul_error err = { 0 };
	CUdeviceptr at;

	(void)arg;
	must(gpul_cu(r->drv, &err, cuMemAlloc(&at, COUNT * 4)), &err, "cuMemAlloc");
	sum(r, at);
	(void)pthread_barrier_wait(&all);
	if (r->rank == 0)
		check_sleep();
	(void)pthread_barrier_wait(&all);
	sum(r, at);
	(void)pthread_barrier_wait(&all);
	must(gpul_cu(r->drv, &err, cuMemFree(at)), &err, "cuMemFree");
}

static void sleep_with(int n, gpul_comm_transport transport)
{
	n_ranks = n;
	(void)pthread_barrier_init(&all, NULL, (unsigned)n);
	run_ranks(n, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000, .transport = transport }, call_pause_call, NULL);
	(void)pthread_barrier_destroy(&all);
}

static void with_memory(void **state)
{
	(void)state;
	sleep_with(2, GPUL_COMM_TRANSPORT_AUTO);
}

static void with_a_network(void **state)
{
	(void)state;
	sleep_with(2, GPUL_COMM_NET);
}

/* Each rank has a connection to every other rank, and sends heartbeats on all of them. */
static void with_a_network_of_many_ranks(void **state)
{
	(void)state;
	sleep_with(MOST_RANKS, GPUL_COMM_NET);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(with_memory), cmocka_unit_test(with_a_network),
					    cmocka_unit_test(with_a_network_of_many_ranks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
