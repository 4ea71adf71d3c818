/* test_trace_kernels.c — the events of the library's kernels: their kinds and their nesting. */
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include <pthread.h>

#include "comm/trace.h"
#include "tests/comm/collectives.h"

enum { MOST_EVENTS = 4096, RANKS = 3, BLOCKS = 2, THREADS = 96, COUNT = 12000, BUFFER_BYTES = 256 << 10, N_KINDS = 10 };
#define BIT(kind) (1u << GPUL_COMM_EVENT_##kind)

struct expected {
	gpul_comm_call call;
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	unsigned kinds; /* mask of the events that each rank must have besides KERNEL, without waits, which may be absent */
};

enum { MEETS = BIT(WAIT_GREETING) | BIT(WAIT_GOODBYE) };

static const struct expected all[] = {
	{ GPUL_COMM_ALLREDUCE, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, BIT(SEND) | BIT(REDUCE) | BIT(WAIT_DATA) | BIT(WAIT_GREETING) },
	{ GPUL_COMM_ALLGATHER, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, BIT(SEND) | BIT(RECV) | BIT(WAIT_DATA) | BIT(WAIT_GREETING) },
	{ GPUL_COMM_ALLREDUCE, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, BIT(REDUCE) | MEETS },
	{ GPUL_COMM_ALLGATHER, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, BIT(COPY) | MEETS },
	{ GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, GPUL_COMM_SIMPLE,
	  BIT(SEND) | BIT(REDUCE) | BIT(COPY) | BIT(POST) | BIT(RECV) | BIT(WAIT_DATA) | BIT(WAIT_CREDIT) },
	{ GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, GPUL_COMM_LL, BIT(SEND) | BIT(REDUCE) | BIT(COPY) | BIT(RECV) },
	{ GPUL_COMM_ALLREDUCE, GPUL_COMM_RING, GPUL_COMM_LL128, BIT(SEND) | BIT(REDUCE) | BIT(COPY) | BIT(RECV) },
};

static bool contains(const gpul_comm_event *outer, const gpul_comm_event *inner)
{
	return outer->begin_ns <= inner->begin_ns && inner->end_ns <= outer->end_ns;
}

/* Check that any two events of a block are nested or disjoint. */
static void check_nesting(const gpul_comm_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++) {
			const gpul_comm_event *a = &events[i], *b = &events[k];

			if (a->block == b->block)
				assert_true(contains(a, b) || contains(b, a) || a->end_ns <= b->begin_ns || b->end_ns <= a->begin_ns);
		}
}

static void check_events(const struct expected *x, const gpul_comm_event *events, size_t n)
{
	const gpul_comm_event *kernels[BLOCKS] = { NULL };
	unsigned kinds = 0;

	for (size_t i = 0; i < n; i++) {
		assert_true(events[i].block < BLOCKS && events[i].kind < N_KINDS && events[i].begin_ns <= events[i].end_ns);
		kinds |= 1u << events[i].kind;
		if (events[i].kind == GPUL_COMM_EVENT_KERNEL) {
			assert_null(kernels[events[i].block]); /* exactly one KERNEL event for each block */
			kernels[events[i].block] = &events[i];
		}
	}
	for (int b = 0; b < BLOCKS; b++)
		assert_non_null(kernels[b]);
	for (size_t i = 0; i < n; i++)
		assert_true(contains(kernels[events[i].block], &events[i]));
	if ((kinds & x->kinds) != x->kinds)
		fail_msg("%s, algorithm %s, protocol %s: kinds of events 0x%x, expected 0x%x", gpul_comm_call_name(x->call),
			 gpul_comm_algo_name(x->algo), gpul_comm_proto_name(x->proto), kinds, x->kinds);
	check_nesting(events, n);
}

/* Check the bytes that a rank receives in a ring all-reduce: 2 (n - 1) chunks of 1/n of the data, whatever the blocks and slots. */
static void check_ring_bytes(struct rank *r, const gpul_comm_event *events, size_t n)
{
	uint64_t received = 0, all_ranks = 0;

	for (size_t i = 0; i < n; i++)
		if (events[i].kind == GPUL_COMM_EVENT_REDUCE || events[i].kind == GPUL_COMM_EVENT_COPY ||
		    events[i].kind == GPUL_COMM_EVENT_RECV)
			received += events[i].bytes;
	for (int k = 0; k < r->n_ranks; k++)
		all_ranks += 2 * (uint64_t)(r->n_ranks - 1) * COUNT * sizeof(float) / (uint64_t)r->n_ranks;
	assert_true(received * (uint64_t)r->n_ranks + 4096 > all_ranks && received * (uint64_t)r->n_ranks < all_ranks + 4096);
}

/* No kernel may run while a rank starts or stops a trace: both wait for all kernels of the ranks' common context. */
static pthread_barrier_t meeting;

static void trace_all(struct rank *r, void *arg)
{
	gpul_comm_event *events = calloc(MOST_EVENTS, sizeof *events);
	struct buffers b;
	size_t n = 0, n_lost = 0;
	gpul_error err = { 0 };

	(void)arg;
	assert_non_null(events);
	new_buffers(r, BUFFER_BYTES, true, &b);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		must(gpul_comm_trace_start(r->comm, MOST_EVENTS, &err), &err, "start");
		(void)pthread_barrier_wait(&meeting);
		run_collective(r, &b,
			       &(struct collective){ .call = all[i].call,
						     .algo = all[i].algo,
						     .proto = all[i].proto,
						     .dtype = GPUL_COMM_F32,
						     .op = GPUL_COMM_SUM,
						     .in_windows = true,
						     .count = all[i].algo == GPUL_COMM_RING ? COUNT : 300,
						     .n_blocks = BLOCKS,
						     .n_threads = THREADS });
		(void)pthread_barrier_wait(&meeting);
		must(gpul_comm_trace_stop(r->comm, &err), &err, "stop");
		must(gpul_comm_trace_read(r->comm, events, MOST_EVENTS, &n, &n_lost, &err), &err, "read");
		assert_int_equal(n_lost, 0);
		check_events(&all[i], events, n);
		if (all[i].algo == GPUL_COMM_RING)
			check_ring_bytes(r, events, n);
	}
	free_buffers(r, &b);
	free(events);
}

static void each_kernel_records_what_it_does(void **state)
{
	(void)state;
	assert_int_equal(pthread_barrier_init(&meeting, NULL, RANKS), 0);
	run_ranks(RANKS, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, trace_all, NULL);
	(void)pthread_barrier_destroy(&meeting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kernel_records_what_it_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
