/* test_link.c — the contract of a link: wrong use, handles, deadlines, failures.  The simulation (../sim) tests the transfers. */
#include <errno.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "rdma/protocol/protocol_link.h"

enum { ROOM = 1 << 16 };

static gpul_rdma_control control;
static unsigned char memory[ROOM];
static gpul_rdma_area area;

static gpul_rdma_link_desc good(void)
{
	memset(&control, 0, sizeof control);
	area = (gpul_rdma_area){ .pieces = { { .at = (uintptr_t)memory, .bytes = ROOM } }, .n_pieces = 1 };
	return (gpul_rdma_link_desc){
		.n_qps = 2,
		.depth = 64,
		.segment_bytes = 4096,
		.stripe_bytes = 1024,
		.inline_bytes = 64,
		.ordered = true,
		.completes_in_order = true,
		.control = &control,
		.peer_slots = { .bytes = sizeof control.slots },
	};
}

static gpul_rdma_link *create_good(void)
{
	const gpul_rdma_link_desc d = good();
	gpul_rdma_link *l = NULL;

	assert_int_equal(gpul_rdma_link_create(&d, &l, NULL), GPUL_OK);
	return l;
}

static gpul_rdma_span span_of(size_t offset, uint64_t bytes)
{
	return (gpul_rdma_span){ .at = (uintptr_t)memory + offset, .bytes = bytes, .area = &area };
}

static void expect_refused(gpul_rdma_link_desc d, const char *text)
{
	gpul_rdma_link *l = NULL;
	gpul_error err = { 0 };

	assert_int_equal(gpul_rdma_link_create(&d, &l, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, text));
	assert_null(l);
}

static void refuses_wrong_descriptions(void **state)
{
	gpul_rdma_link_desc d;

	(void)state;
	d = good(), d.first_generation = 0x400000, expect_refused(d, "request handles is 0x400000");
	d = good(), d.n_qps = 0, expect_refused(d, "number of queue pairs is 0: expected 1 to 16");
	d = good(), d.n_qps = 17, expect_refused(d, "number of queue pairs is 17");
	d = good(), d.depth = 100, expect_refused(d, "depth of a connection is 100");
	d = good(), d.depth = 8192, expect_refused(d, "depth of a connection is 8192");
	d = good(), d.segment_bytes = 4000, expect_refused(d, "segment size is 4000 bytes");
	d = good(), d.segment_bytes = 4097, expect_refused(d, "segment size is 4097 bytes");
	d = good(), d.segment_bytes = GPUL_RDMA_MAX_SEGMENT + 128, expect_refused(d, "segment size is");
	d = good(), d.stripe_bytes = 1, expect_refused(d, "stripe size is 1 bytes");
	d = good(), d.n_stages = 7, d.stages = memory, expect_refused(d, "staging buffers is 7");
	d = good(), d.peer_slots.bytes = 32, expect_refused(d, "ring buffer for receive slots has 32 bytes");
}

static void refuses_spans_outside_of_the_region(void **state)
{
	gpul_rdma_link *l = create_good();
	const uint32_t tag = 1, tags[2] = { 1, 1 };
	gpul_rdma_request r = 9;
	gpul_error err = { 0 };
	const struct {
		size_t offset;
		uint64_t bytes;
	} wrong[] = {
		{ ROOM, 1 }, { 0, ROOM + 1 }, { ROOM - 1, 2 }, { 1, UINT64_MAX }, { ROOM + 1, 0 }, { (size_t)-1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		const gpul_rdma_span s = span_of(wrong[i].offset, wrong[i].bytes);

		assert_int_equal(gpul_rdma_link_send(l, &s, tag, 0, &r, &err), GPUL_EINVAL);
		assert_int_equal(gpul_rdma_link_recv(l, &s, &tag, 1, 0, &r, &err), GPUL_EINVAL);
		assert_int_equal(gpul_rdma_link_flush(l, &s, 0, &r, &err), GPUL_EINVAL);
	}
	const gpul_rdma_span pair[2] = { span_of(0, 10), span_of(10, 10) }, none = { .at = 1 };

	assert_int_equal(gpul_rdma_link_send(l, &none, tag, 0, &r, &err), GPUL_EINVAL);
	assert_int_equal(gpul_rdma_link_recv(l, pair, tags, 0, 0, &r, &err), GPUL_EINVAL);
	assert_int_equal(gpul_rdma_link_recv(l, pair, tags, 9, 0, &r, &err), GPUL_EINVAL);
	memset(&err, 0, sizeof err);
	assert_int_equal(gpul_rdma_link_recv(l, pair, tags, 2, 0, &r, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "same tag"));
	assert_false(gpul_rdma_link_busy(l));
	gpul_rdma_link_destroy(l);
}

static void a_handle_is_good_for_one_end(void **state)
{
	gpul_rdma_link *l = create_good();
	const gpul_rdma_span s = span_of(0, 8);
	gpul_rdma_request first = 0, second = 0;
	gpul_error err = { 0 };
	bool done;

	(void)state; /* a flush of CPU memory ends immediately */
	assert_int_equal(gpul_rdma_link_flush(l, &s, 0, &first, NULL), GPUL_OK);
	assert_int_equal(gpul_rdma_link_test(l, first, &done, NULL, NULL), GPUL_OK);
	assert_true(done);
	assert_int_equal(gpul_rdma_link_test(l, first, &done, NULL, &err), GPUL_EINVAL);
	assert_int_equal(gpul_rdma_link_flush(l, &s, 0, &second, NULL), GPUL_OK);
	assert_int_not_equal(first, second);
	assert_int_equal(gpul_rdma_link_test(l, first, &done, NULL, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_rdma_link_test(l, 0, &done, NULL, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_rdma_link_test(l, UINT32_MAX, &done, NULL, NULL), GPUL_EINVAL);
	gpul_rdma_link_destroy(l);
}

/* No handle may be 0, because 0 means that no request has started. */
static void no_handle_is_0_where_generations_wrap(void **state)
{
	gpul_rdma_link_desc d = good();
	gpul_rdma_request r[GPUL_RDMA_REQUESTS], more;
	gpul_rdma_link *l = NULL;
	bool done;

	(void)state;
	d.first_generation = 0x3ffffd;
	d.first_counter = UINT32_MAX - 3;
	assert_int_equal(gpul_rdma_link_create(&d, &l, NULL), GPUL_OK);
	for (unsigned lap = 0; lap < 6; lap++) {
		const gpul_rdma_span s = span_of(lap, 8);

		for (unsigned i = 0; i < GPUL_RDMA_REQUESTS; i++) {
			assert_int_equal(gpul_rdma_link_flush(l, &s, 0, &r[i], NULL), GPUL_OK);
			assert_int_not_equal(r[i], 0);
		}
		assert_int_equal(gpul_rdma_link_flush(l, &s, 0, &more, NULL), GPUL_OK);
		assert_int_equal(more, 0);
		for (unsigned i = 0; i < GPUL_RDMA_REQUESTS; i++) {
			assert_int_equal(gpul_rdma_link_test(l, r[i], &done, NULL, NULL), GPUL_OK);
			assert_true(done);
			assert_int_equal(gpul_rdma_link_test(l, r[i], &done, NULL, NULL), GPUL_EINVAL);
		}
	}
	gpul_rdma_link_destroy(l);
}

static unsigned take_grants(gpul_rdma_link *l)
{
	gpul_rdma_op ops[GPUL_RDMA_MAX_QPS * GPUL_RDMA_MAX_PIECES];
	unsigned n = 0, k;

	while ((k = gpul_rdma_link_take(l, ops, sizeof ops / sizeof *ops)) != 0)
		while (k--)
			n += ops[k].kind == GPUL_RDMA_OP_WRITE ? ops[k].bytes / (unsigned)sizeof(gpul_rdma_slot) : 0;
	return n;
}

static void arrive(gpul_rdma_link *l, uint32_t sequence, bool last, uint32_t bytes)
{
	gpul_rdma_link_event(l, &(gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_ARRIVED, .imm = GPUL_RDMA_IMM(sequence, last, bytes) });
}

/* The peer reads the slots of a multi-receive until it has used all of them, so none of them may be replaced earlier. */
static void the_slots_of_a_multi_receive_are_passed_together(void **state)
{
	const uint32_t tags[2] = { 1, 2 }, tag = 3;
	gpul_rdma_link_desc d = good();
	gpul_rdma_span pair[2], s;
	gpul_rdma_link *l = NULL;
	gpul_rdma_request r;

	(void)state;
	pair[0] = span_of(0, 8), pair[1] = span_of(8, 8), s = span_of(16, 2 * 4096);
	d.n_qps = 1;
	d.depth = 4096;
	d.first_counter = UINT32_MAX - 1; /* the slots of the multi-receive have the numbers UINT32_MAX and 0 */
	assert_int_equal(gpul_rdma_link_create(&d, &l, NULL), GPUL_OK);
	assert_int_equal(gpul_rdma_link_recv(l, pair, tags, 2, 0, &r, NULL), GPUL_OK);
	for (unsigned i = 0; i < 200; i++) /* each of these receives needs two slots */
		assert_int_equal(gpul_rdma_link_recv(l, &s, &tag, 1, 0, &r, NULL), GPUL_OK);
	assert_int_equal(take_grants(l), GPUL_RDMA_SLOTS);
	arrive(l, UINT32_MAX, true, 8);
	assert_int_equal(take_grants(l), 0);
	arrive(l, 0, true, 8);
	arrive(l, 1, false, 4096);
	assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_OK);
	for (uint32_t i = 2; i < 40; i++)
		arrive(l, i, i % 2 == 0, 4096);
	assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_OK);
	assert_true(take_grants(l) >= 8);
	gpul_rdma_link_destroy(l);
}

/* Write a slot into the ring, as the peer does. */
static void land(unsigned k, gpul_rdma_slot slot)
{
	slot.check = gpul_rdma_slot_check(&slot);
	control.slots[k] = slot;
}

/* The words of a slot may land in any order: it counts as arrived when all have landed. */
static void a_slot_that_lands_in_parts_is_not_used_too_early(void **state)
{
	const gpul_rdma_slot whole = { .address = 4096, .key = 5, .bytes = 8, .tag = 7, .order = 1u << 16 | 1u << 24, .sequence = 1 };
	enum { WORDS = 5 };
	gpul_rdma_link *l = create_good();

	(void)state;
	land(1, whole);
	for (unsigned landed = 0; landed < 1u << WORDS; landed++) {
		memset(&control.slots[0], 0, sizeof control.slots[0]);
		control.slots[0].sequence = 1u - GPUL_RDMA_SLOTS; /* as gpul_rdma_link_create() leaves it */
		for (unsigned i = 0; i < WORDS; i++)
			if (landed >> i & 1)
				memcpy((char *)&control.slots[0] + 8 * i, (const char *)&control.slots[1] + 8 * i, 8);
		assert_int_equal(gpul_rdma_link_may_send(l, 7), landed == (1u << WORDS) - 1);
		assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_OK);
	}
	control.slots[0].sequence = 0xff01; /* a fabric may even copy the four bytes one by one */
	assert_false(gpul_rdma_link_may_send(l, 7));
	assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_OK);
	memset(&control.slots[1], 0, sizeof control.slots[1]);
	gpul_rdma_link_destroy(l);
}

/* The peer grants slots for a multi-receive of tags 7 and 9, then for a receive of tag 8. */
static void a_send_may_wait_for_a_slot_with_its_tag(void **state)
{
	gpul_rdma_link *l = create_good();
	const gpul_rdma_slot slots[3] = {
		{ .bytes = 8, .tag = 7, .order = 2u << 16 | 1u << 24, .sequence = 1 },
		{ .bytes = 8, .tag = 9, .order = 1 | 2u << 16 | 1u << 20 | 1u << 24, .sequence = 2 },
		{ .bytes = 8, .tag = 8, .order = 2 | 1u << 16 | 1u << 24, .sequence = 3 },
	};
	const gpul_rdma_span s = span_of(0, 8);
	gpul_rdma_request r;

	(void)state;
	assert_false(gpul_rdma_link_may_send(l, 7)); /* no slot has been granted yet */
	land(0, slots[0]);
	assert_true(gpul_rdma_link_may_send(l, 7));
	assert_false(gpul_rdma_link_may_send(l, 9));
	land(1, slots[1]);
	land(2, slots[2]);
	assert_true(gpul_rdma_link_may_send(l, 9));
	assert_false(gpul_rdma_link_may_send(l, 8)); /* tag 8 must wait until the whole multi-receive has its sends */
	assert_int_equal(gpul_rdma_link_send(l, &s, 9, 0, &r, NULL), GPUL_OK);
	assert_false(gpul_rdma_link_may_send(l, 7)); /* the earlier send of tag 9 has not taken its slot yet */
	(void)take_grants(l);
	assert_false(gpul_rdma_link_may_send(l, 9));
	assert_true(gpul_rdma_link_may_send(l, 7));
	assert_int_equal(gpul_rdma_link_send(l, &s, 7, 0, &r, NULL), GPUL_OK);
	(void)take_grants(l);
	assert_true(gpul_rdma_link_may_send(l, 8));
	assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_OK);
	land(2, (gpul_rdma_slot){ .bytes = 4097, .tag = 8, .order = 2 | 1u << 16 | 1u << 24, .sequence = 3 });
	assert_false(gpul_rdma_link_may_send(l, 8));
	assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_EFORMAT);
	gpul_rdma_link_destroy(l);
}

static void a_wrong_arrival_is_named(void **state)
{
	const struct {
		uint32_t sequence, last, bytes;
		const char *why;
	} wrong[] = {
		{ 1, true, 4096, "this side has not granted that slot" },
		{ 3, false, 4096, "that slot is already full" },
		{ 2, true, 4096, "it is marked as last, but a later segment has arrived" },
		{ 2, true, 0, "it is marked as last, but a later segment has arrived" },
		{ 2, false, 4095, "it is not the last segment, but is too short" },
		{ 4, true, 0, "it is the last segment, but is empty" },
		{ 4, false, 4096, "it fills the buffer, but is not marked as last" },
		{ 4, true, 4097, "that slot is too small" },
		{ 5, true, 8, "this side has not granted that slot" },
		{ 0, true, 8, "this side has not granted that slot" },
	};
	const uint32_t tag = 3;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		gpul_rdma_link_desc d = good();
		const gpul_rdma_span s = span_of(0, 4 * 4096);
		gpul_rdma_link *l = NULL;
		gpul_rdma_request r;
		bool done;

		d.n_qps = 1;
		assert_int_equal(gpul_rdma_link_create(&d, &l, NULL), GPUL_OK);
		assert_int_equal(gpul_rdma_link_recv(l, &s, &tag, 1, 0, &r, NULL), GPUL_OK);
		assert_int_equal(take_grants(l), 4);
		arrive(l, 1, false, 4096);
		arrive(l, 3, false, 4096);
		assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_OK);
		arrive(l, wrong[i].sequence, wrong[i].last, wrong[i].bytes);
		assert_non_null(strstr(gpul_rdma_link_failed(l)->what, wrong[i].why));
		assert_int_equal(gpul_rdma_link_test(l, r, &done, NULL, NULL), GPUL_EFORMAT);
		assert_false(done);
		gpul_rdma_link_destroy(l);
	}
}

static void a_wrong_slot_is_named(void **state)
{
	/* clang-format off */
	const struct { gpul_rdma_slot slots[2]; const char *why; } wrong[] = {
		{ { { .bytes = 4097, .tag = 7, .order = 1u << 16 | 1u << 24, .sequence = 1 } }, "it is larger than a segment" },
		{ { { .bytes = 8, .tag = 7, .order = 1u << 24, .sequence = 1 } }, "its order is out of range" },
		{ { { .bytes = 8, .tag = 7, .order = 1u << 16 | 1u << 25, .sequence = 1 } }, "its order is out of range" },
		{ { { .bytes = 0, .tag = 7, .order = 1u << 16, .sequence = 1 } }, "it is not the last slot of its buffer" },
		{ { { .bytes = 8, .tag = 7, .order = 2u << 16, .sequence = 1 } }, "it is not the last slot of its buffer" },
		{ { { .bytes = 8, .tag = 7, .order = 1u << 16 | 1u << 24, .sequence = 257 } }, "its sequence number is wrong" },
		{ { { .bytes = 8, .tag = 7, .order = 1u << 16 | 1u << 24, .sequence = 2 } }, "its sequence number is wrong" },
		{ { { .bytes = 8, .tag = 9, .order = 2u << 16 | 1u << 24, .sequence = 1 },
		    { .bytes = 8, .tag = 7, .order = 2 | 2u << 16 | 1u << 20 | 1u << 24, .sequence = 2 } },
		  "not the next part of its multi-receive" },
		{ { { .bytes = 8, .tag = 7, .order = 1u << 16, .sequence = 1 },
		    { .bytes = 8, .tag = 7, .order = 1 | 1u << 16 | 1u << 24, .sequence = 2 } }, "it is not part of the current message" },
		{ { { .bytes = 16, .tag = 7, .order = 1u << 16 | 1u << 24, .sequence = 1 },
		    { .bytes = 16, .tag = 7, .order = 2 | 1u << 16 | 1u << 24, .sequence = 2 } }, "it is not part of the next message" },
		{ { { .bytes = 16, .tag = 7, .order = 1u << 16 | 1u << 24, .sequence = 1 },
		    { .bytes = 16, .tag = 7, .order = 1u << 16 | 1u << 24, .sequence = 2 } }, "it is not part of the next message" },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		gpul_rdma_link *l = create_good();
		const gpul_rdma_span s = span_of(0, 16);
		gpul_rdma_request r;

		for (unsigned k = 0; k < 2; k++) {
			assert_int_equal(gpul_rdma_link_send(l, &s, 7, 0, &r, NULL), GPUL_OK);
			if (wrong[i].slots[k].sequence)
				land(k, wrong[i].slots[k]);
		}
		(void)take_grants(l);
		if (!strstr(gpul_rdma_link_failed(l)->what, wrong[i].why))
			fail_msg("%zu: '%s', expected '%s'", i, gpul_rdma_link_failed(l)->what, wrong[i].why);
		gpul_rdma_link_destroy(l);
	}
}

static void too_many_requests_are_refused_for_now(void **state)
{
	gpul_rdma_link *l = create_good();
	const gpul_rdma_span s = span_of(0, 8);
	const uint32_t tag = 1;
	gpul_rdma_request r;

	(void)state;
	for (unsigned i = 0; i < GPUL_RDMA_SLOTS; i++) {
		assert_int_equal(gpul_rdma_link_recv(l, &s, &tag, 1, 0, &r, NULL), GPUL_OK);
		assert_int_not_equal(r, 0);
	}
	assert_int_equal(gpul_rdma_link_recv(l, &s, &tag, 1, 0, &r, NULL), GPUL_OK);
	assert_int_equal(r, 0);
	for (unsigned i = GPUL_RDMA_SLOTS; i < GPUL_RDMA_REQUESTS; i++) {
		assert_int_equal(gpul_rdma_link_send(l, &s, tag, 0, &r, NULL), GPUL_OK);
		assert_int_not_equal(r, 0);
	}
	assert_int_equal(gpul_rdma_link_send(l, &s, tag, 0, &r, NULL), GPUL_OK);
	assert_int_equal(r, 0);
	gpul_rdma_link_destroy(l);
}

static void a_deadline_names_what_was_waited_for(void **state)
{
	gpul_rdma_link *l = create_good();
	const gpul_rdma_span s = span_of(0, 8);
	gpul_rdma_request first, second;
	gpul_error err = { 0 };
	bool done;

	(void)state;
	gpul_rdma_link_tick(l, 1000);
	assert_int_equal(gpul_rdma_link_send(l, &s, 7, 5000, &first, NULL), GPUL_OK);
	assert_int_equal(gpul_rdma_link_send(l, &s, 8, 3000, &second, NULL), GPUL_OK);
	gpul_rdma_link_tick(l, 2999);
	assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_OK);
	gpul_rdma_link_tick(l, 3000);
	assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_ESYS);
	assert_int_equal(gpul_rdma_link_failed(l)->native, ETIMEDOUT);
	assert_int_equal(gpul_rdma_link_failed(l)->after_ns, 2000);
	assert_non_null(strstr(gpul_rdma_link_failed(l)->what, "not posted a receive for a send (tag 8, 8 bytes)"));
	assert_int_equal(gpul_rdma_link_test(l, first, &done, NULL, &err), GPUL_ESYS);
	assert_false(done);
	assert_int_equal(gpul_rdma_link_send(l, &s, 7, 0, &first, NULL), GPUL_ESYS);
	gpul_rdma_link_destroy(l);
}

static void refuses_events_that_cannot_be(void **state)
{
	const gpul_rdma_event wrong[] = {
		{ .kind = GPUL_RDMA_EVENT_DONE, .id = 0 },
		{ .kind = GPUL_RDMA_EVENT_DONE, .id = UINT64_MAX },
		{ .kind = GPUL_RDMA_EVENT_DONE, .id = (uint64_t)1 << 48 | 5 },
		{ .kind = GPUL_RDMA_EVENT_DONE, .id = (uint64_t)2 << 48 },
		{ .kind = GPUL_RDMA_EVENT_DONE, .id = (uint64_t)3 << 48 | 63 },
		{ .kind = GPUL_RDMA_EVENT_ARRIVED, .imm = GPUL_RDMA_IMM(1, 1, 8) },
		{ .kind = GPUL_RDMA_EVENT_ARRIVED, .qp = 99 },
		{ .kind = 77 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		gpul_rdma_link *l = create_good();
		gpul_rdma_op op;

		gpul_rdma_link_event(l, &wrong[i]);
		assert_int_equal(gpul_rdma_link_failed(l)->status, GPUL_EFORMAT);
		assert_int_equal(gpul_rdma_link_take(l, &op, 1), 0);
		gpul_rdma_link_destroy(l);
	}
}

static void one_write_carries_several_grants(void **state)
{
	gpul_rdma_link *l = create_good();
	const gpul_rdma_span s = span_of(0, 8);
	const uint32_t tag = 3;
	gpul_rdma_request r;
	gpul_rdma_op ops[8];

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(gpul_rdma_link_recv(l, &s, &tag, 1, 0, &r, NULL), GPUL_OK);
	assert_int_equal(gpul_rdma_link_take(l, ops, 8), 1);
	assert_int_equal(ops[0].kind, GPUL_RDMA_OP_WRITE);
	assert_int_equal(ops[0].bytes, 5 * sizeof(gpul_rdma_slot));
	assert_int_equal(ops[0].flags & GPUL_RDMA_SIGNALED, 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(control.grants[i].sequence, i + 1);
		assert_int_equal(control.grants[i].tag, 3);
		assert_int_equal(control.grants[i].bytes, 8);
	}
	gpul_rdma_link_destroy(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_wrong_descriptions),
		cmocka_unit_test(refuses_spans_outside_of_the_region),
		cmocka_unit_test(a_handle_is_good_for_one_end),
		cmocka_unit_test(no_handle_is_0_where_generations_wrap),
		cmocka_unit_test(the_slots_of_a_multi_receive_are_passed_together),
		cmocka_unit_test(a_slot_that_lands_in_parts_is_not_used_too_early),
		cmocka_unit_test(a_send_may_wait_for_a_slot_with_its_tag),
		cmocka_unit_test(a_wrong_arrival_is_named),
		cmocka_unit_test(a_wrong_slot_is_named),
		cmocka_unit_test(too_many_requests_are_refused_for_now),
		cmocka_unit_test(a_deadline_names_what_was_waited_for),
		cmocka_unit_test(refuses_events_that_cannot_be),
		cmocka_unit_test(one_write_carries_several_grants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
