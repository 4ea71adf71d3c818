/* test_put.c — the proxy's handler of puts: a CPU thread pushes triggers as a kernel would, and both ends of the connections are in one
 * process.  $GPULOAD_TEST_BACKEND chooses the fabric. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "rdma/put/put.h"
#include "rdma/rdma_internal.h"
#include "tests/proxy/fifo/pusher.h"
#include "tests/rdma/two_ends.h"

enum { LANES = 4, ROOM = 8 << 20, STEPS = 16, MOST_ROUTES = 2, PATIENCE_S = 20 };

/* Two connected ends: one has a FIFO and routes, the other (the target) a thread that makes progress. */
struct rig {
	struct two_ends ends;
	gpul_rdma_conn *conns[MOST_ROUTES][2]; /* for each route: the target's end [0] and the FIFO's end [1] */
	unsigned n_routes;
	unsigned char *source, *targets[MOST_ROUTES];
	uint64_t *steps[MOST_ROUTES];
	gpul_rdma_region *from, *to[MOST_ROUTES], *step_regions[MOST_ROUTES];
	gpul_rdma_put_route routes[MOST_ROUTES];
	void *area;
	gpul_fifo *fifo;
	struct pusher pushers[LANES];
	gpul_rdma_putter *putter;
	gpul_proxy *proxy;
	pthread_t thread;
	atomic_bool end, deaf; /* end: the thread must end; deaf: the thread makes no progress */
};

static struct rig *rig;

/* ---- the rig --------------------------------------------------------------------------------------- */

static void *make_progress(void *context)
{
	struct rig *r = context;

	while (!atomic_load(&r->end))
		for (unsigned i = 0; i < r->n_routes && !atomic_load(&r->deaf); i++)
			(void)gpul_rdma_progress(r->conns[i][0], NULL, NULL);
	return NULL;
}

static void *zeroed(size_t bytes)
{
	void *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	assert_non_null(at);
	memset(at, 0, bytes);
	return at;
}

static void must(gpul_status st, const gpul_error *err)
{
	if (st)
		fail_msg("%s", err->text);
}

static void open_route(struct rig *r, unsigned i)
{
	gpul_error err = { 0 };
	gpul_rdma_put_route *route = &r->routes[i];

	r->targets[i] = zeroed(ROOM);
	r->steps[i] = zeroed(STEPS * sizeof(uint64_t));
	must(gpul_rdma_register(r->ends.r[0], r->targets[i], ROOM, GPUL_RDMA_DATA, &r->to[i], &err), &err);
	must(gpul_rdma_register(r->ends.r[0], r->steps[i], STEPS * sizeof(uint64_t), GPUL_RDMA_STEPS, &r->step_regions[i], &err), &err);
	*route = (gpul_rdma_put_route){ .conn = r->conns[i][1], .from = r->from, .n_steps = STEPS };
	must(gpul_rdma_offer(r->to[i], (uintptr_t)r->targets[i], ROOM, &route->to, &err), &err);
	must(gpul_rdma_offer(r->step_regions[i], (uintptr_t)r->steps[i], STEPS * sizeof(uint64_t), &route->steps, &err), &err);
}

static void rig_open(unsigned n_routes, unsigned slots, int timeout_ms, gpul_rdma_put_observer *observer)
{
	const gpul_rdma_desc desc = { .device = { .gpu = -1, .gid_index = -1 } };
	const gpul_fifo_shape shape = { .slots = slots, .lanes = LANES };
	const size_t area_bytes = gpul_fifo_area_bytes(&shape);
	gpul_error err = { 0 };

	rig = calloc(1, sizeof *rig);
	two_ends_open(&desc, &rig->ends);
	rig->n_routes = n_routes;
	memcpy(rig->conns[0], rig->ends.conn, sizeof rig->conns[0]);
	if (n_routes > 1)
		two_ends_connect(&rig->ends, rig->conns[1]);
	rig->source = zeroed(ROOM);
	for (size_t i = 0; i < ROOM; i++)
		rig->source[i] = (unsigned char)(i * 7 + i / 253);
	must(gpul_rdma_register(rig->ends.r[1], rig->source, ROOM, GPUL_RDMA_DATA, &rig->from, &err), &err);
	for (unsigned i = 0; i < n_routes; i++)
		open_route(rig, i);
	rig->area = zeroed(area_bytes);
	must(gpul_fifo_area_format(rig->area, area_bytes, &shape, &err), &err);
	must(gpul_fifo_open(rig->area, area_bytes, &rig->fifo, &err), &err);
	for (unsigned i = 0; i < LANES; i++)
		rig->pushers[i] = pusher_of(rig->area, i);
	must(gpul_rdma_putter_create(&(gpul_rdma_putter_desc){ .routes = rig->routes,
							       .n_routes = n_routes,
							       .timeout_ms = timeout_ms,
							       .observer = observer,
							       .observer_context = rig },
				     &rig->putter, &err),
	     &err);
	assert_int_equal(pthread_create(&rig->thread, NULL, make_progress, rig), 0);
}

static int rig_close(void **state)
{
	(void)state;
	if (!rig)
		return 0;
	(void)gpul_proxy_stop(rig->proxy, NULL);
	gpul_rdma_putter_destroy(rig->putter);
	atomic_store(&rig->end, true);
	if (rig->thread)
		pthread_join(rig->thread, NULL);
	gpul_fifo_close(rig->fifo);
	if (rig->n_routes > 1)
		for (int i = 0; i < 2; i++)
			gpul_rdma_conn_close(rig->conns[1][i]);
	for (int i = 0; i < 2; i++) {
		gpul_rdma_conn_close(rig->ends.conn[i]);
		rig->ends.conn[i] = NULL;
	}
	for (unsigned i = 0; i < rig->n_routes; i++) {
		gpul_rdma_unregister(rig->to[i]);
		gpul_rdma_unregister(rig->step_regions[i]);
	}
	gpul_rdma_unregister(rig->from);
	two_ends_close(&rig->ends);
	for (unsigned i = 0; i < rig->n_routes; i++) {
		free(rig->targets[i]);
		free(rig->steps[i]);
	}
	free(rig->source);
	free(rig->area);
	free(rig);
	rig = NULL;
	return 0;
}

static void push(unsigned lane, uint64_t from, uint64_t to, uint64_t bytes, unsigned route, unsigned step)
{
	assert_true(pusher_push(&rig->pushers[lane], GPUL_RDMA_PUT_WORD0(from, to), GPUL_RDMA_PUT_WORD1(0, route, step, bytes)));
}

/* Do one iteration of a proxy's loop, with a batch of at most n triggers. */
static gpul_status turn(unsigned n, gpul_error *err)
{
	static gpul_fifo_item items[4096];
	const unsigned got = gpul_fifo_poll(rig->fifo, items, n);
	bool busy = false;
	gpul_status st = got ? gpul_rdma_put_handle(rig->putter, rig->fifo, items, got, err) : GPUL_OK;

	return st ? st : gpul_rdma_put_progress(rig->putter, &busy, err);
}

static uint64_t tail_of(unsigned lane)
{
	return __atomic_load_n(&rig->pushers[lane].line->tail, __ATOMIC_ACQUIRE);
}

static void serve_until(uint64_t n_ended)
{
	const uint64_t end = gpul_clock_ns() + PATIENCE_S * 1000000000ull;
	gpul_error err = { 0 };

	while (gpul_rdma_putter_ended(rig->putter) < n_ended) {
		if (turn(4096, &err))
			fail_msg("%s", err.text);
		if (gpul_clock_ns() > end)
			fail_msg("%llu of %llu puts have ended", (unsigned long long)gpul_rdma_putter_ended(rig->putter),
				 (unsigned long long)n_ended);
	}
}

static void await_step(unsigned route, unsigned step, uint64_t value)
{
	const uint64_t end = gpul_clock_ns() + PATIENCE_S * 1000000000ull;

	while (__atomic_load_n(&rig->steps[route][step], __ATOMIC_ACQUIRE) != value)
		if (gpul_clock_ns() > end)
			fail_msg("step %u of route %u is %llu: expected %llu", step, route,
				 (unsigned long long)__atomic_load_n(&rig->steps[route][step], __ATOMIC_ACQUIRE),
				 (unsigned long long)value);
}

/* ---- puts --------------------------------------------------------------------------------------------- */

static void a_put_arrives_before_its_step(void **state)
{
	(void)state;
	rig_open(1, 64, 0, NULL);
	for (unsigned round = 1; round <= 50; round++) {
		push(round % LANES, 16 * round, 4096 * round, 1 + 37 * round, 0, 3);
		await_step(0, 3, round - 1);
		serve_until(round);
		await_step(0, 3, round);
		assert_memory_equal(rig->targets[0] + 4096 * round, rig->source + 16 * round, 1 + 37 * round);
		assert_int_equal(rig->targets[0][4096 * round + 1 + 37 * round], 0);
	}
}

static void puts_without_data_or_without_a_step(void **state)
{
	(void)state;
	rig_open(1, 64, 0, NULL);
	push(0, 0, 0, 0, 0, 5);                        /* no data, only a step */
	push(1, 0, 64, 100, 0, GPUL_RDMA_PUT_NO_STEP); /* data without a step */
	push(2, 0, 0, 0, 0, GPUL_RDMA_PUT_NO_STEP);    /* neither data nor a step */
	push(1, 0, 0, 0, 0, 6);                        /* this step signals that the earlier data has arrived */
	serve_until(4);
	await_step(0, 5, 1);
	await_step(0, 6, 1);
	assert_memory_equal(rig->targets[0] + 64, rig->source, 100);
	for (unsigned lane = 0; lane < 3; lane++)
		assert_int_equal(tail_of(lane), lane == 1 ? 2 : 1);
}

static void more_puts_than_requests_can_be_in_flight(void **state)
{
	const unsigned each = 1500;

	(void)state;
	rig_open(1, 8192, 0, NULL);
	for (unsigned i = 0; i < each; i++)
		for (unsigned lane = 0; lane < LANES; lane++)
			push(lane, 16 * i, 16 * (i + 2048 * lane), 16, 0, lane);
	serve_until(LANES * each);
	for (unsigned lane = 0; lane < LANES; lane++) {
		await_step(0, lane, each);
		assert_int_equal(tail_of(lane), each);
		assert_memory_equal(rig->targets[0] + 16 * 2048 * lane, rig->source, 16 * each);
	}
}

/* Two routes have a connection each, and the puts of each lane alternate between them. */
static void two_routes_have_their_own_memory_and_steps(void **state)
{
	(void)state;
	rig_open(2, 1024, 0, NULL);
	for (unsigned i = 0; i < 200; i++)
		for (unsigned lane = 0; lane < LANES; lane++)
			push(lane, 64 * i, 64 * (i + 256 * lane), 64, (i + lane) % 2, lane);
	serve_until(800);
	for (unsigned route = 0; route < 2; route++)
		for (unsigned lane = 0; lane < LANES; lane++) {
			await_step(route, lane, 100);
			for (unsigned i = 0; i < 200; i++) {
				const unsigned char *at = rig->targets[route] + 64 * (i + 256 * lane);

				if ((i + lane) % 2 == route)
					assert_memory_equal(at, rig->source + 64 * i, 64);
				else
					assert_int_equal(at[17], 0);
			}
		}
}

/* ---- the order of releases ------------------------------------------------------------------------------- */

static uint64_t next_position[LANES];
static unsigned n_observed;

static void observe(void *context, const gpul_rdma_put_event *event)
{
	const struct rig *r = context;

	assert_int_equal(event->position, next_position[event->lane]);
	assert_true(__atomic_load_n(&r->pushers[event->lane].line->tail, __ATOMIC_ACQUIRE) <= event->position);
	assert_true(event->popped_ns && event->popped_ns <= event->posted_ns && event->posted_ns <= event->ended_ns);
	next_position[event->lane]++;
	n_observed++;
}

static void lanes_are_released_in_order_after_their_puts(void **state)
{
	(void)state;
	memset(next_position, 0, sizeof next_position);
	n_observed = 0;
	rig_open(2, 1024, 0, observe);
	for (unsigned i = 0; i < 150; i++) /* long and short puts, which end at different times */
		for (unsigned lane = 0; lane < LANES; lane++)
			push(lane, 0, 0, lane ? 64 : 30000, lane % 2, lane);
	serve_until(600);
	assert_int_equal(n_observed, 600);
	for (unsigned lane = 0; lane < LANES; lane++)
		assert_int_equal(tail_of(lane), 150);
}

/* ---- wrong triggers ---------------------------------------------------------------------------------------- */

static void start_proxy(void)
{
	gpul_error err = { 0 };

	must(gpul_proxy_start(&(gpul_proxy_desc){ .fifos = &rig->fifo,
						  .n_fifos = 1,
						  .kinds = { { gpul_rdma_put_handle, rig->putter } },
						  .progress = gpul_rdma_put_progress,
						  .progress_context = rig->putter,
						  .pin = GPUL_PROXY_PIN_NONE,
						  .release_later = true },
			      &rig->proxy, &err),
	     &err);
}

/* Check that the proxy ends with an error that contains the text, and that the FIFO's abort code is the status of the error. */
static void expect_end(gpul_status status, const char *text)
{
	const uint64_t end = gpul_clock_ns() + PATIENCE_S * 1000000000ull;
	gpul_error err = { 0 };

	while (!gpul_proxy_failed(rig->proxy, &err))
		assert_true(gpul_clock_ns() < end);
	if (err.status != status || !strstr(err.text, text))
		fail_msg("status %d, '%s': expected status %d, '%s'", (int)err.status, err.text, (int)status, text);
	for (unsigned lane = 0; lane < LANES; lane++)
		assert_int_equal(pusher_aborted(&rig->pushers[lane]), status);
}

static void expect_refusal(uint64_t from, uint64_t to, uint64_t bytes, unsigned route, unsigned step, const char *text)
{
	rig_open(1, 64, 0, NULL);
	start_proxy();
	push(1, 0, 0, 64, 0, 0);
	push(1, from, to, bytes, route, step);
	expect_end(GPUL_EINVAL, text);
	assert_int_equal(rig->targets[0][to % ROOM], 0);
	rig_close(NULL);
}

static void a_wrong_trigger_ends_the_proxy_and_the_kernels(void **state)
{
	(void)state;
	expect_refusal(0, 64, 64, 1, 0, "a put pushed in lane 1 uses route 1, but there are only 1 routes");
	expect_refusal(0, 64, 64, 0, STEPS, "a put pushed in lane 1 increments step counter 16, but route 0 has only 16");
	expect_refusal(ROOM - 16, 64, 17, 0, 0, "17 bytes at offset 8388592 are not inside the source region of 8388608 bytes");
	expect_refusal(ROOM + 16, 64, 0, 0, 0, "not inside the source region");
	expect_refusal(0, ROOM - 16, 17, 0, 0, "17 bytes at offset 8388592 are not inside the peer's memory of 8388608 bytes");
	expect_refusal(0, ROOM + 16, 1, 0, 0, "not inside the peer's");
}

/* A value that does not fit its field is marked by the macros, and does not overflow into another field; the proxy then ends. */
static void a_value_that_does_not_fit_ends_the_proxy(void **state)
{
	static const char text[] = "is out of range: offsets must be multiples of 16";
	const uint64_t gib = 1ull << 30;

	(void)state;
	expect_refusal(8, 64, 64, 0, 0, text);
	expect_refusal(0, 65, 64, 0, 0, text);
	expect_refusal(64 * gib, 64, 64, 0, 0, text);
	expect_refusal(64 * gib - 16, 64, 0, 0, 0, text);
	expect_refusal(0, 32 * gib + 64, 64, 0, 0, text);
	expect_refusal(0, 64 * gib + 64, 64, 0, 0, text);
	expect_refusal(0, 64, 2 * gib, 0, 0, text);
	expect_refusal(0, 64, 2 * gib - 1, 0, 0, text);
	expect_refusal(0, 64, 64, GPUL_RDMA_PUT_ROUTES, 0, text);
	expect_refusal(0, 64, 64, 0, GPUL_RDMA_PUT_NO_STEP + 1, text);
}

/* Arbitrary trigger words cause either a put inside the memory of a route, or an error, but never a write elsewhere. */
static void odd_words_never_write_outside_of_the_route(void **state)
{
	uint64_t x = 88172645463325252ull;
	gpul_error err = { 0 };

	(void)state;
	rig_open(1, 64, 0, NULL);
	for (unsigned i = 0; i < 20000; i++) {
		gpul_fifo_item item = { .lane = i % LANES };
		gpul_status st;

		for (int k = 0; k < 2; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			item.word[k] = x >> 1;
		}
		item.word[0] |= 1ull << 40; /* the put ends past the end of the destination */
		item.word[1] |= i % 2 ? 1ull << 49 : 0;
		st = gpul_rdma_put_handle(rig->putter, rig->fifo, &item, 1, &err);
		assert_int_equal(st, GPUL_EINVAL);
		assert_non_null(strstr(err.text, "a put pushed in lane"));
		err = (gpul_error){ 0 };
	}
	push(0, 0, 64, 64, 0, 0); /* the putter still works */
	serve_until(1);
	await_step(0, 0, 1);
	assert_memory_equal(rig->targets[0] + 64, rig->source, 64);
}

static void a_wrong_key_fails_the_connection(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	rig_open(1, 64, 0, NULL);
	gpul_rdma_putter_destroy(rig->putter);
	rig->putter = NULL;
	rig->routes[0].to.key ^= 0x5500;
	must(gpul_rdma_putter_create(&(gpul_rdma_putter_desc){ .routes = rig->routes, .n_routes = 1, .timeout_ms = 1000 }, &rig->putter,
				     &err),
	     &err);
	start_proxy();
	push(0, 0, 0, 64, 0, 0);
	const uint64_t end = gpul_clock_ns() + PATIENCE_S * 1000000000ull;

	while (!gpul_proxy_failed(rig->proxy, &err))
		assert_true(gpul_clock_ns() < end);
	assert_int_equal(pusher_aborted(&rig->pushers[0]), err.status);
	assert_int_equal(rig->steps[0][0], 0);
}

/* ---- failures ---------------------------------------------------------------------------------------------- */

static void the_end_of_the_peer_ends_the_proxy_and_the_kernels(void **state)
{
	(void)state;
	rig_open(1, 64, 0, NULL);
	start_proxy();
	push(0, 0, 0, 64, 0, 0);
	await_step(0, 0, 1);
	atomic_store(&rig->end, true);
	pthread_join(rig->thread, NULL);
	rig->thread = 0;
	gpul_rdma_conn_close(rig->ends.conn[0]);
	rig->ends.conn[0] = NULL;
	expect_end(GPUL_ESYS, "closed");
}

/* Push large puts while the peer makes no progress, so that they stay in flight. */
static void push_large_ones(void)
{
	atomic_store(&rig->deaf, true);
	for (unsigned i = 0; i < 4096 / LANES; i++)
		for (unsigned lane = 0; lane < LANES; lane++)
			push(lane, 0, 0, ROOM, 0, 0);
}

static bool fabric_stalls(void)
{
	return strcmp(two_ends_backend(), "verbs") != 0; /* with verbs, the peer's NIC acknowledges, even if the peer makes no progress */
}

static void a_put_has_a_deadline(void **state)
{
	(void)state;
	if (!fabric_stalls())
		skip();
	rig_open(1, 4096, 300, NULL);
	push_large_ones();
	start_proxy();
	expect_end(GPUL_ESYS, "(put) has not been acknowledged");
}

static void an_abort_ends_the_handler_that_waits_for_room(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	if (!fabric_stalls())
		skip();
	rig_open(1, 4096, -1, NULL);
	push_large_ones();
	gpul_fifo_abort(rig->fifo, 77);
	assert_int_equal(turn(4096, &err), GPUL_ESYS);
	assert_int_equal(err.native, ECANCELED);
	if (!strstr(err.text, "1024 puts in flight: a handler failed with status 77"))
		fail_msg("%s", err.text);
}

/* ---- create ------------------------------------------------------------------------------------------------- */

static void expect_no_putter(const gpul_rdma_putter_desc *desc, gpul_status status, const char *text)
{
	gpul_rdma_putter *p = NULL;
	gpul_error err = { 0 };

	assert_int_equal(gpul_rdma_putter_create(desc, &p, &err), status);
	assert_null(p);
	assert_non_null(strstr(err.text, text));
}

static void create_refuses_wrong_routes(void **state)
{
	gpul_rdma_put_route route;
	gpul_rdma_region staged;
	const gpul_rdma_putter_desc desc = { .routes = &route, .n_routes = 1 };

	(void)state;
	rig_open(1, 64, 0, NULL);
	route = rig->routes[0];
	expect_no_putter(&(gpul_rdma_putter_desc){ .routes = &route }, GPUL_EINVAL, "number of routes is 0: expected 1 to 1024");
	expect_no_putter(&(gpul_rdma_putter_desc){ .routes = &route, .n_routes = 1025 }, GPUL_EINVAL, "number of routes is 1025");
	route.conn = NULL;
	expect_no_putter(&desc, GPUL_EINVAL, "route 0 has no connection or no region");
	route = rig->routes[0];
	route.n_steps = STEPS + 1;
	expect_no_putter(&desc, GPUL_EINVAL, "17 step counters of 8 bytes do not fit into 128 bytes");
	route = rig->routes[0];
	route.steps.address += 4;
	expect_no_putter(&desc, GPUL_EINVAL, "expected a multiple of 8");
	route = rig->routes[0];
	route.to.bytes = GPUL_RDMA_PUT_TO_END + 1;
	expect_no_putter(&desc, GPUL_EUNSUPPORTED, "the peer's memory has 34359738353 bytes, but a put can address only 34359738352");
	route = rig->routes[0];
	route.to.address = UINT64_MAX - 100;
	expect_no_putter(&desc, GPUL_EINVAL, "beyond the address space");
	route = rig->routes[0];
	staged = *rig->from;
	staged.area.n_pieces = 1;
	staged.area.pieces[0].bytes = GPUL_RDMA_PUT_FROM_END + 1;
	route.from = &staged;
	expect_no_putter(&desc, GPUL_EUNSUPPORTED, "the region has 68719476721 bytes");
	route = rig->routes[0];
	staged = *rig->from;
	staged.area.staged = true;
	route.from = &staged;
	expect_no_putter(&desc, GPUL_EUNSUPPORTED, "cannot read this GPU memory");
	gpul_rdma_putter_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_put_arrives_before_its_step, rig_close),
		cmocka_unit_test_teardown(puts_without_data_or_without_a_step, rig_close),
		cmocka_unit_test_teardown(more_puts_than_requests_can_be_in_flight, rig_close),
		cmocka_unit_test_teardown(two_routes_have_their_own_memory_and_steps, rig_close),
		cmocka_unit_test_teardown(lanes_are_released_in_order_after_their_puts, rig_close),
		cmocka_unit_test_teardown(a_wrong_trigger_ends_the_proxy_and_the_kernels, rig_close),
		cmocka_unit_test_teardown(a_value_that_does_not_fit_ends_the_proxy, rig_close),
		cmocka_unit_test_teardown(odd_words_never_write_outside_of_the_route, rig_close),
		cmocka_unit_test_teardown(a_wrong_key_fails_the_connection, rig_close),
		cmocka_unit_test_teardown(the_end_of_the_peer_ends_the_proxy_and_the_kernels, rig_close),
		cmocka_unit_test_teardown(a_put_has_a_deadline, rig_close),
		cmocka_unit_test_teardown(an_abort_ends_the_handler_that_waits_for_room, rig_close),
		cmocka_unit_test_teardown(create_refuses_wrong_routes, rig_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
