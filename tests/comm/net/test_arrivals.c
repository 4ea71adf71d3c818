/* test_arrivals.c — steps that arrive in device memory: the kernel sees them only after the flush.
 *
 * Two proxies in one process are connected by rdma/; the test's thread does what kernels do.  CPU memory is registered as device memory
 * that needs a flush, and the test replaces functions of the backend (rdma/backend/backend.h) to delay flushes, to observe them, or to
 * make them fail.  $GPULOAD_TEST_BACKEND chooses the fabric. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/net/net_proxy.h"
#include "rdma/rdma_internal.h"
#include "tests/rdma/two_ends.h"

enum { BLOCKS = 2, SLOT_BYTES = 256, SLOTS_BYTES = GPUL_COMM_STEPS * (SLOT_BYTES + GPUL_COMM_LINE_BYTES), STEPS = 600, LIMIT_S = 120 };

/* The memory of one end, with the layout of comm/network.c. */
struct memory {
	gpul_comm_inbox inboxes[BLOCKS], mirror_inboxes[BLOCKS];
	gpul_comm_outbox outboxes[BLOCKS], mirror_outboxes[BLOCKS];
	uint64_t asks[BLOCKS], grants[BLOCKS], announced[BLOCKS];
};

struct end {
	struct memory *m;
	unsigned char *slots; /* [2][BLOCKS] of SLOTS_BYTES: slots of the inboxes, slots of the mirror */
	bool direct;
	gpul_rdma_region *words, *data;
	gpul_comm_proxy *proxy;
	uint64_t sent[BLOCKS], received[BLOCKS];
	atomic_int n_failures;
	gpul_rdma_failure failure;
};

static struct two_ends ends;
static struct end end[2];

/* ---- functions that replace the backend's, to delay, count or fail the flushes of end 0 --------------------------------- */

static struct {
	gpul_rdma_backend table;
	const gpul_rdma_backend *real;
	atomic_bool hold, fail;
	atomic_uint n_held, n_polls, n_flushes, n_too_early;
	uint64_t id;                             /* id of the flush that the test holds back; at most one */
	uint64_t covered[BLOCKS], shown[BLOCKS]; /* steps announced when the flush in flight, and the last ended flush, was posted */
} front;

/* Check that no tail counts a step whose flush has not ended. */
static void check_tails(void)
{
	for (unsigned b = 0; b < BLOCKS; b++)
		if (__atomic_load_n(&end[0].m->inboxes[b].tail, __ATOMIC_RELAXED) > front.shown[b])
			atomic_fetch_add(&front.n_too_early, 1);
}

static gpul_status post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why)
{
	gpul_status st = GPUL_OK;
	unsigned done = 0;

	check_tails();
	for (*n_posted = 0; !st && *n_posted < n; *n_posted += done) {
		done = 1;
		if (ops[*n_posted].kind != GPUL_RDMA_OP_FLUSH) {
			st = front.real->post(path, &ops[*n_posted], 1, &done, why);
			if (!done)
				break;
			continue;
		}
		front.id = ops[*n_posted].id;
		for (unsigned b = 0; b < BLOCKS; b++)
			front.covered[b] = __atomic_load_n(&end[0].m->announced[b], __ATOMIC_RELAXED);
		atomic_store(&front.n_held, 1);
		atomic_fetch_add(&front.n_flushes, 1);
	}
	return st;
}

/* Poll the real backend, but report the end of a flush only after some more polls. */
static gpul_status poll_events(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	const unsigned n = atomic_fetch_add(&front.n_polls, 1);

	check_tails();
	if (!atomic_load(&front.n_held) || atomic_load(&front.hold) || n % 7)
		return front.real->poll(path, events, max, n_events, why);
	*n_events = 0;
	atomic_store(&front.n_held, 0);
	if (atomic_load(&front.fail))
		return gpul_rdma_fail(why, GPUL_EVERBS, 11, "completion", "an advice", "the flush has failed");
	memcpy(front.shown, front.covered, sizeof front.shown);
	events[(*n_events)++] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = front.id };
	return GPUL_OK;
}

static void put_in_front(gpul_rdma *r)
{
	front.real = r->backend;
	front.table = *front.real;
	front.table.post = post;
	front.table.poll = poll_events;
	r->backend = &front.table;
}

/* ---- two ends --------------------------------------------------------------------------------------------------------- */

static void failed(void *context, int rank, unsigned conn, const gpul_rdma_failure *why)
{
	(void)conn;
	struct end *e = context;

	(void)rank;
	e->failure = *why;
	atomic_fetch_add(&e->n_failures, 1);
}

static void *zeroed(size_t n_bytes)
{
	void *at = aligned_alloc(4096, (n_bytes + 4095) / 4096 * 4096);

	assert_non_null(at);
	return memset(at, 0, n_bytes);
}

static void allocate(struct end *e, gpul_rdma *r, bool direct)
{
	const size_t n_bytes = 2 * BLOCKS * SLOTS_BYTES;
	gpul_error err = { 0 };

	*e = (struct end){ .m = zeroed(sizeof *e->m), .slots = zeroed(n_bytes), .direct = direct };
	const gpul_rdma_memory slots = { .at = (uintptr_t)e->slots, .bytes = n_bytes, .dmabuf_fd = -1, .relaxed = true };

	if (gpul_rdma_register(r, e->m, sizeof *e->m, GPUL_RDMA_STEPS, &e->words, &err) ||
	    gpul_rdma_register_pieces(r, &slots, 1, direct, &e->data, &err))
		fail_msg("%s", err.text);
}

static gpul_rdma_remote offered(const gpul_rdma_region *region, const void *at, size_t n_bytes)
{
	gpul_rdma_remote out = { 0 };

	assert_int_equal(gpul_rdma_offer(region, (uintptr_t)at, n_bytes, &out, NULL), GPUL_OK);
	return out;
}

static void start_proxy(struct end *e, const struct end *there, gpul_rdma_conn *conn)
{
	const gpul_comm_arrivals_desc arrivals = {
		.conn = conn,
		.announced = e->m->announced,
		.inboxes = e->m->inboxes,
		.n_blocks = BLOCKS,
		.slots = { .region = e->data, .at = (uintptr_t)e->slots, .bytes = BLOCKS * SLOTS_BYTES },
	};
	/* clang-format off */
	const gpul_comm_proxy_route route = {
		.rank = (int)(there - end), .region = e->data, .conn = conn, .inboxes = e->m->mirror_inboxes, .outboxes = e->m->mirror_outboxes,
		.slots = (uintptr_t)e->slots + BLOCKS * SLOTS_BYTES,
		.data = offered(there->data, there->slots, BLOCKS * SLOTS_BYTES),
		.steps = there->direct ? offered(there->words, there->m->announced, sizeof there->m->announced)
				       : offered(there->words, there->m->inboxes, sizeof there->m->inboxes),
		.step_stride = there->direct ? sizeof(uint64_t) : sizeof(gpul_comm_inbox),
		.heads = offered(there->words, there->m->outboxes, sizeof there->m->outboxes),
		.arrived = e->m->inboxes, .asks = e->m->asks, .grants = e->m->grants,
		.to_asks = offered(there->words, there->m->asks, sizeof there->m->asks),
		.to_grants = offered(there->words, there->m->grants, sizeof there->m->grants),
		.free_bytes = UINT64_MAX, .arrivals = e->direct ? &arrivals : NULL,
	};
	/* clang-format on */
	/* clang-format off */
	const gpul_comm_proxy_desc desc = {
		.routes = &route, .n_routes = 1, .n_blocks = BLOCKS, .slots_bytes = SLOTS_BYTES,
		.data_at = GPUL_COMM_LINE_BYTES, .slot_bytes = SLOT_BYTES, .spin_ns = 20000, .failed = failed, .context = e,
	};
	/* clang-format on */
	gpul_error err = { 0 };

	if (gpul_comm_proxy_start(&desc, &e->proxy, &err))
		fail_msg("%s", err.text);
}

static void open_ends(bool direct, bool direct_there)
{
	memset(&front, 0, sizeof front);
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &ends);
	allocate(&end[0], ends.r[0], direct);
	allocate(&end[1], ends.r[1], direct_there);
	put_in_front(ends.r[0]);
	for (int i = 0; i < 2; i++)
		start_proxy(&end[i], &end[!i], ends.conn[i]);
	(void)alarm(LIMIT_S);
}

static void close_ends(void)
{
	(void)alarm(0);
	for (int i = 0; i < 2; i++)
		gpul_comm_proxy_leave(end[i].proxy);
	for (int i = 0; i < 2; i++)
		gpul_comm_proxy_stop(end[i].proxy);
	for (int i = 0; i < 2; i++) {
		gpul_rdma_conn_close(ends.conn[i]);
		ends.conn[i] = NULL;
	}
	for (int i = 0; i < 2; i++) {
		gpul_rdma_unregister(end[i].words);
		gpul_rdma_unregister(end[i].data);
		free(end[i].m);
		free(end[i].slots);
	}
	two_ends_close(&ends);
}

/* ---- what the kernels do ---------------------------------------------------------------------------------------------- */

static unsigned char *slot_of(unsigned char *slots, unsigned block, uint64_t step)
{
	return slots + block * SLOTS_BYTES + GPUL_COMM_LINE_BYTES + step % GPUL_COMM_STEPS * (SLOT_BYTES + GPUL_COMM_LINE_BYTES);
}

static uint32_t size_of(unsigned block, uint64_t step)
{
	return (uint32_t)(1 + (step * 37 + block * 11) % SLOT_BYTES);
}

/* Send a step as a kernel does; false: no slot is free. */
static bool send_step(struct end *e, unsigned block)
{
	const uint64_t step = e->sent[block];
	gpul_comm_inbox *inbox = &e->m->mirror_inboxes[block];

	if (step - __atomic_load_n(&e->m->outboxes[block].head, __ATOMIC_ACQUIRE) >= GPUL_COMM_STEPS)
		return false;
	memset(slot_of(e->slots + BLOCKS * SLOTS_BYTES, block, step), (int)(step + block * 100), size_of(block, step));
	inbox->sizes[step % GPUL_COMM_STEPS] = size_of(block, step);
	__atomic_store_n(&inbox->tail, ++e->sent[block], __ATOMIC_RELEASE);
	return true;
}

/* Receive a step as a kernel does; false: no step has arrived. */
static bool receive_step(struct end *e, unsigned block)
{
	const uint64_t step = e->received[block];
	const unsigned char *data = slot_of(e->slots, block, step);

	if (__atomic_load_n(&e->m->inboxes[block].tail, __ATOMIC_ACQUIRE) <= step)
		return false;
	for (uint32_t i = 0; i < size_of(block, step); i++)
		assert_int_equal(data[i], (unsigned char)(step + block * 100));
	__atomic_store_n(&e->m->mirror_outboxes[block].head, ++e->received[block], __ATOMIC_RELEASE);
	return true;
}

static void pause_a_moment(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 }, NULL);
}

/* Wait until the proxy of end 0 has polled n times. */
static void await_polls(unsigned n)
{
	for (const unsigned before = atomic_load(&front.n_polls); atomic_load(&front.n_polls) - before < n;)
		pause_a_moment();
}

static uint64_t tail_of(unsigned block)
{
	return __atomic_load_n(&end[0].m->inboxes[block].tail, __ATOMIC_ACQUIRE);
}

static void await_tail(unsigned block, uint64_t steps)
{
	while (tail_of(block) != steps)
		pause_a_moment();
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void a_tail_waits_for_its_flush(void **state)
{
	(void)state;
	open_ends(true, false);
	atomic_store(&front.hold, true);
	assert_true(send_step(&end[1], 0));
	while (!atomic_load(&front.n_held))
		pause_a_moment();
	assert_true(send_step(&end[1], 1)); /* this step arrives during the flush */
	while (__atomic_load_n(&end[0].m->announced[1], __ATOMIC_ACQUIRE) != 1)
		pause_a_moment();
	await_polls(200);
	assert_int_equal(tail_of(0), 0);
	assert_int_equal(tail_of(1), 0);
	atomic_store(&front.hold, false);
	await_tail(0, 1);
	await_tail(1, 1);
	assert_int_equal(atomic_load(&front.n_flushes), 2); /* two, because the first flush does not cover the second step */
	assert_true(receive_step(&end[0], 0) && receive_step(&end[0], 1));
	assert_int_equal(atomic_load(&front.n_too_early), 0);
	close_ends();
}

/* Send many steps in both directions; direct, direct_there: whether the slots of end 0 and end 1 are in device memory. */
static void exchange(bool direct, bool direct_there)
{
	open_ends(direct, direct_there);
	for (unsigned n_left = 1; n_left;) {
		n_left = 0;
		for (unsigned i = 0; i < 2 * BLOCKS; i++) {
			struct end *e = &end[i % 2];

			while (e->received[i / 2] < STEPS && receive_step(e, i / 2))
				;
			while (e->sent[i / 2] < STEPS && send_step(e, i / 2))
				;
			n_left += 2 * STEPS - (unsigned)(e->received[i / 2] + e->sent[i / 2]);
		}
		pause_a_moment();
	}
	if (direct)
		assert_int_equal(atomic_load(&front.n_too_early), 0);
	assert_int_equal(atomic_load(&front.n_flushes) > 0, direct);
	assert_int_equal(atomic_load(&end[0].n_failures) + atomic_load(&end[1].n_failures), 0);
	close_ends();
}

static void every_step_comes_after_its_flush_whatever_memory_the_ends_have(void **state)
{
	(void)state;
	exchange(true, true);
	exchange(true, false);
	exchange(false, true);
	exchange(false, false);
}

static void a_failing_flush_fails_the_route_and_shows_nothing(void **state)
{
	(void)state;
	open_ends(true, true);
	atomic_store(&front.fail, true);
	assert_true(send_step(&end[1], 1));
	while (!atomic_load(&end[0].n_failures))
		pause_a_moment();
	assert_int_equal(end[0].failure.status, GPUL_EVERBS);
	assert_string_equal(end[0].failure.what, "the flush has failed");
	while (!atomic_load(&end[1].n_failures)) /* wait until the peer has been notified */
		pause_a_moment();
	assert_int_equal(tail_of(1), 0);
	close_ends();
	assert_int_equal(atomic_load(&end[0].n_failures), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_waits_for_its_flush),
		cmocka_unit_test(every_step_comes_after_its_flush_whatever_memory_the_ends_have),
		cmocka_unit_test(a_failing_flush_fails_the_route_and_shows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
