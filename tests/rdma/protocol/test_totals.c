/* test_totals.c — a closing end tells its peer how many messages it has received and sent, which ends the peer's sends.  A send must
 * not end before all its operations were posted, whatever the peer claims. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "rdma/protocol/protocol_link.h"

enum { ROOM = 1 << 16, OPS = 128 };
static const uint32_t FIRST = 0xfffffffe; /* the counters wrap after two messages */

static gpul_rdma_control control;
static unsigned char memory[ROOM];
static gpul_rdma_area area;
static gpul_rdma_op ops[OPS];

static gpul_rdma_link *create(unsigned n_stages)
{
	gpul_rdma_link *l = NULL;
	gpul_error err = { 0 };

	memset(&control, 0, sizeof control);
	area = (gpul_rdma_area){ .pieces = { { .at = (uintptr_t)memory, .bytes = ROOM } }, .n_pieces = 1, .staged = n_stages > 0 };
	/* clang-format off */
	const gpul_rdma_link_desc d = {
		.n_qps = 1, .depth = 64, .segment_bytes = 4096, .stripe_bytes = 1024, .ordered = true, .completes_in_order = true,
		.control = &control, .peer_slots = { .bytes = sizeof control.slots },
		.stages = n_stages ? memory : NULL, .n_stages = n_stages, .first_counter = FIRST,
	};
	/* clang-format on */
	if (gpul_rdma_link_create(&d, &l, &err))
		fail_msg("%s", err.text);
	return l;
}

/* The peer grants slot n, counted from 0, for message m; `of` is the number of parts of the receive, and i the part. */
static void grant(uint32_t n, uint32_t m, unsigned i, unsigned of, uint32_t bytes, bool end)
{
	control.slots[(FIRST + n) % GPUL_RDMA_SLOTS] = (gpul_rdma_slot){
		.bytes = bytes,
		.tag = m,
		.order = ((FIRST + m) & 0xffff) | of << 16 | i << 20 | (uint32_t)end << 24,
		.sequence = FIRST + n + 1,
	};
	control.slots[(FIRST + n) % GPUL_RDMA_SLOTS].check = gpul_rdma_slot_check(&control.slots[(FIRST + n) % GPUL_RDMA_SLOTS]);
}

static gpul_rdma_request send_message(gpul_rdma_link *l, uint32_t tag, uint64_t bytes)
{
	const gpul_rdma_span s = { .at = (uintptr_t)memory, .bytes = bytes, .area = &area };
	gpul_rdma_request r = 0;

	assert_int_equal(gpul_rdma_link_send(l, &s, tag, 0, &r, NULL), GPUL_OK);
	return r;
}

static bool has_ended(gpul_rdma_link *l, gpul_rdma_request r)
{
	bool done = false;

	assert_int_equal(gpul_rdma_link_test(l, r, &done, NULL, NULL), GPUL_OK);
	return done;
}

/* The peer closes, and claims to have received n messages. */
static void peer_closes(gpul_rdma_link *l, uint32_t n, const gpul_rdma_op *unposted, unsigned n_unposted)
{
	const gpul_rdma_totals peer = { .received = FIRST + n, .sent = FIRST };

	gpul_rdma_link_peer_closed(l, &peer, unposted, n_unposted);
}

static void sends_that_the_peer_has_received_end(void **state)
{
	for (uint32_t claimed = 0; claimed <= 5; claimed++) {
		gpul_rdma_link *l = create(0);
		gpul_rdma_request sent[5];

		(void)state;
		for (uint32_t i = 0; i < 4; i++)
			grant(i, i, 0, 1, 100, true);
		for (uint32_t i = 0; i < 5; i++) /* the last send has no slot */
			sent[i] = send_message(l, i, 100);
		assert_int_equal(gpul_rdma_link_take(l, ops, OPS), 4);
		peer_closes(l, claimed, NULL, 0);
		for (uint32_t i = 0; i < 5; i++) /* 5 is more than was sent, so this claim is ignored */
			assert_int_equal(has_ended(l, sent[i]), i < claimed && claimed <= 4);
		gpul_rdma_link_destroy(l);
	}
}

static void a_claim_behind_what_is_known_ends_nothing(void **state)
{
	gpul_rdma_link *l = create(0);
	gpul_rdma_request sent;

	(void)state;
	grant(0, 0, 0, 1, 100, true);
	sent = send_message(l, 0, 100);
	assert_int_equal(gpul_rdma_link_take(l, ops, OPS), 1);
	peer_closes(l, (uint32_t)-5, NULL, 0);
	peer_closes(l, 0x80000000, NULL, 0);
	peer_closes(l, 0x7fffffff, NULL, 0);
	assert_false(has_ended(l, sent));
	gpul_rdma_link_destroy(l);
}

static void a_claim_of_a_message_that_is_not_posted_ends_nothing(void **state)
{
	gpul_rdma_link *l = create(0);
	gpul_rdma_request sent[2];

	(void)state;
	grant(0, 0, 0, 1, 100, true);
	grant(1, 1, 0, 1, 4096, false); /* message 1 needs two slots, but the second one is not granted yet */
	sent[0] = send_message(l, 0, 100);
	sent[1] = send_message(l, 1, 5000);
	assert_int_equal(gpul_rdma_link_take(l, ops, OPS), 2);
	peer_closes(l, 2, NULL, 0);
	assert_false(has_ended(l, sent[0]));
	peer_closes(l, 1, ops, 2); /* the backend has not posted the two operations */
	assert_false(has_ended(l, sent[0]));
	peer_closes(l, 1, ops + 1, 1);
	assert_true(has_ended(l, sent[0]));
	assert_false(has_ended(l, sent[1]));
	gpul_rdma_link_destroy(l);
}

static void a_staged_message_counts_when_it_is_posted(void **state)
{
	gpul_rdma_link *l = create(8);
	gpul_rdma_request sent;

	(void)state;
	grant(0, 0, 0, 1, 100, true);
	sent = send_message(l, 0, 100);
	peer_closes(l, 1, NULL, 0);
	assert_false(has_ended(l, sent));
	assert_int_equal(gpul_rdma_link_take(l, ops, 1), 1);
	assert_int_equal(ops[0].kind, GPUL_RDMA_OP_COPY_OUT);
	peer_closes(l, 1, NULL, 0);
	assert_false(has_ended(l, sent));
	gpul_rdma_link_event(l, &(gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = ops[0].id });
	peer_closes(l, 1, NULL, 0);
	assert_false(has_ended(l, sent));
	assert_int_equal(gpul_rdma_link_take(l, ops, OPS), 1);
	peer_closes(l, 1, ops, 1);
	assert_false(has_ended(l, sent));
	peer_closes(l, 1, NULL, 0);
	assert_true(has_ended(l, sent));
	gpul_rdma_link_destroy(l);
}

/* A part of a multi-receive counts only if all parts before it have been sent. */
static void parts_of_a_multi_receive_are_counted_in_order(void **state)
{
	gpul_rdma_link *l = create(0);
	gpul_rdma_request sent[3];

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		grant(i, i, i, 3, 100, true);
	sent[2] = send_message(l, 2, 100);
	assert_int_equal(gpul_rdma_link_take(l, ops, OPS), 1);
	peer_closes(l, 3, NULL, 0); /* parts 0 and 1 have not been sent */
	assert_false(has_ended(l, sent[2]));
	assert_int_equal(gpul_rdma_link_totals(l).sent, FIRST);
	sent[0] = send_message(l, 0, 100);
	assert_int_equal(gpul_rdma_link_take(l, ops, OPS), 1);
	gpul_rdma_link_event(l, &(gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = ops[0].id });
	assert_int_equal(gpul_rdma_link_totals(l).sent, FIRST + 1);
	assert_true(has_ended(l, sent[0]));
	sent[1] = send_message(l, 1, 100);
	assert_int_equal(gpul_rdma_link_take(l, ops, OPS), 1);
	peer_closes(l, 3, NULL, 0);
	assert_true(has_ended(l, sent[1]));
	assert_int_equal(gpul_rdma_link_totals(l).sent, FIRST + 3);
	gpul_rdma_link_destroy(l);
}

static void arrive(gpul_rdma_link *l, uint32_t n)
{
	gpul_rdma_link_event(l, &(gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_ARRIVED, .imm = GPUL_RDMA_IMM(FIRST + n + 1, true, 8) });
}

static void received_messages_are_counted_in_order(void **state)
{
	gpul_rdma_link *l = create(0);
	gpul_rdma_totals peer = { .sent = FIRST + 2 };
	gpul_rdma_request r;

	(void)state;
	assert_false(gpul_rdma_link_lacks(l, &peer)); /* this end has no receive for the two messages */
	for (uint32_t i = 0; i < 3; i++) {
		const gpul_rdma_span s = { .at = (uintptr_t)memory + 8 * i, .bytes = 8, .area = &area };
		const uint32_t tag = i;

		assert_int_equal(gpul_rdma_link_recv(l, &s, &tag, 1, 0, &r, NULL), GPUL_OK);
	}
	assert_true(gpul_rdma_link_take(l, ops, OPS) > 0);
	assert_true(gpul_rdma_link_lacks(l, &peer));
	arrive(l, 1);
	assert_int_equal(gpul_rdma_link_totals(l).received, FIRST);
	assert_true(gpul_rdma_link_lacks(l, &peer));
	arrive(l, 0);
	assert_int_equal(gpul_rdma_link_totals(l).received, FIRST + 2);
	assert_false(gpul_rdma_link_lacks(l, &peer));
	peer.sent = FIRST + 4; /* the peer claims four messages, but this end has granted slots for three */
	assert_false(gpul_rdma_link_lacks(l, &peer));
	gpul_rdma_link_destroy(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_that_the_peer_has_received_end),
		cmocka_unit_test(a_claim_behind_what_is_known_ends_nothing),
		cmocka_unit_test(a_claim_of_a_message_that_is_not_posted_ends_nothing),
		cmocka_unit_test(a_staged_message_counts_when_it_is_posted),
		cmocka_unit_test(parts_of_a_multi_receive_are_counted_in_order),
		cmocka_unit_test(received_messages_are_counted_in_order),
	};

	return cmocka_run_group_tests_name("totals", tests, NULL, NULL);
}
