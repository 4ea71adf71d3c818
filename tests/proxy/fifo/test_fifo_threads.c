/* test_fifo_threads.c — several threads push, one polls, and one aborts; checks the order, and that ThreadSanitizer finds no race. */
#include <pthread.h>
#include <sched.h>

#include "tests/support/cmocka.h"
#include "proxy/fifo.h"
#include "tests/proxy/fifo/pusher.h"

enum { N_PUSHERS = 3, MOST_LANES = 64, ITEMS = 48 };

static _Alignas(512) unsigned char area[1 << 16];

struct worker {
	pthread_t thread;
	gpul_fifo *f;
	unsigned lanes, first; /* the worker pushes to lanes first, first + N_PUSHERS ... */
	uint64_t n;            /* number of pushes per lane, unless aborted */
	uint64_t *written;     /* words that the worker writes before its pushes; each trigger has its word's index */
	uint64_t aborted_with; /* abort code that the last lane returned */
	uint32_t code;
};

/* Thread function: push to the worker's lanes in turn, and write data before each push. */
static void *push_to_lanes(void *context)
{
	struct worker *w = context;
	struct pusher pushers[MOST_LANES];

	for (unsigned lane = w->first; lane < w->lanes; lane += N_PUSHERS)
		pushers[lane] = pusher_of(area, lane);
	for (uint64_t i = 0; i < w->n; i++)
		for (unsigned lane = w->first; lane < w->lanes; lane += N_PUSHERS) {
			while (pusher_full(&pushers[lane])) {
				w->aborted_with = pusher_aborted(&pushers[lane]);
				if (w->aborted_with)
					return NULL;
				sched_yield();
			}
			w->written[lane] = i; /* not atomic: the trigger publishes the word, and the tail permits the next store */
			pusher_push(&pushers[lane], i, lane);
		}
	return NULL;
}

static void start(struct worker *w, void *(*what)(void *))
{
	assert_int_equal(pthread_create(&w->thread, NULL, what, w), 0);
}

/* Each lane has one slot, so the written data belong to its only trigger until that is released. */
static void triggers_arrive_in_lane_order_after_earlier_writes(void **state)
{
	(void)state;
	enum { LANES = 8, EACH = 3000 };
	const gpul_fifo_shape shape = { .slots = LANES, .lanes = LANES };
	static uint64_t written[LANES];
	struct worker workers[N_PUSHERS];
	uint64_t seen[LANES] = { 0 };
	gpul_fifo_item items[ITEMS];
	gpul_fifo *f = NULL;

	assert_int_equal(gpul_fifo_area_format(area, sizeof(area), &shape, NULL), GPUL_OK);
	assert_int_equal(gpul_fifo_open(area, sizeof(area), &f, NULL), GPUL_OK);
	for (unsigned i = 0; i < N_PUSHERS; i++) {
		workers[i] = (struct worker){ .f = f, .lanes = LANES, .first = i, .n = EACH, .written = written };
		start(&workers[i], push_to_lanes);
	}
	for (uint64_t n = 0; n < (uint64_t)LANES * EACH;) {
		const unsigned took = gpul_fifo_poll(f, items, 1 + (unsigned)(n % ITEMS));

		for (unsigned i = 0; i < took; i++) {
			const unsigned lane = items[i].lane;

			assert_int_equal(items[i].position, seen[lane]);
			assert_int_equal(items[i].word[0], seen[lane]++);
			assert_int_equal(items[i].word[1], lane);
			assert_int_equal(written[lane], items[i].word[0]);
		}
		gpul_fifo_release(f);
		n += took;
		if (!took)
			sched_yield();
	}
	for (unsigned i = 0; i < N_PUSHERS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		assert_int_equal(workers[i].aborted_with, 0);
	}
	gpul_fifo_close(f);
}

static void *give_up(void *context)
{
	struct worker *w = context;

	gpul_fifo_abort(w->f, w->code);
	return NULL;
}

/* All lanes get the code of the first thread that aborts, and every pusher stops waiting. */
static void concurrent_aborts_end_all_waits_with_one_code(void **state)
{
	(void)state;
	const gpul_fifo_shape shape = { .slots = 2 * MOST_LANES, .lanes = MOST_LANES };
	static uint64_t written[MOST_LANES];

	for (unsigned round = 0; round < 20; round++) {
		struct worker workers[N_PUSHERS + 2];
		gpul_fifo_item items[ITEMS];
		gpul_fifo *f = NULL;

		assert_int_equal(gpul_fifo_area_format(area, sizeof(area), &shape, NULL), GPUL_OK);
		assert_int_equal(gpul_fifo_open(area, sizeof(area), &f, NULL), GPUL_OK);
		for (unsigned i = 0; i < N_PUSHERS + 2; i++) {
			workers[i] = (struct worker){
				.f = f, .lanes = MOST_LANES, .first = i, .n = UINT64_MAX, .written = written, .code = i
			};
			start(&workers[i], i < N_PUSHERS ? push_to_lanes : give_up);
		}
		while (!gpul_fifo_aborted(f))
			if (gpul_fifo_poll(f, items, ITEMS))
				gpul_fifo_release(f);
		for (unsigned i = 0; i < N_PUSHERS + 2; i++)
			assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		const uint32_t code = gpul_fifo_aborted(f);

		assert_true(code == N_PUSHERS || code == N_PUSHERS + 1);
		for (unsigned i = 0; i < N_PUSHERS; i++)
			assert_int_equal(workers[i].aborted_with, code);
		for (unsigned lane = 0; lane < MOST_LANES; lane++) {
			const struct pusher p = pusher_of(area, lane);

			assert_int_equal(pusher_aborted(&p), code);
		}
		gpul_fifo_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(triggers_arrive_in_lane_order_after_earlier_writes),
		cmocka_unit_test(concurrent_aborts_end_all_waits_with_one_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
