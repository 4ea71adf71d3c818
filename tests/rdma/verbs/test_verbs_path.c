/* test_verbs_path.c — paths over the fake libibverbs: transfers, queues, datagrams, flushes. */
#include "tests/rdma/verbs/ends.h"
#include "tests/support/cmocka.h"
#include <string.h>

static void data_arrives_with_its_immediate(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_event events[8];
	gpul_rdma_op op;
	struct end a, b;

	(void)state;
	fake_verbs(0);
	ends_open(&a, &b, &desc, 1);
	memset(a.memory, 7, 1000);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 1000, 42);
	op.imm = 0x12345678;
	post_all(&a, &op, 1);
	assert_int_equal(poll_once(&a, events, 8), 1);
	assert_int_equal(events[0].kind, GPUL_RDMA_EVENT_DONE);
	assert_int_equal(events[0].id, 42);
	assert_int_equal(poll_once(&b, events, 8), 1);
	assert_int_equal(events[0].kind, GPUL_RDMA_EVENT_ARRIVED);
	assert_int_equal(events[0].imm, 0x12345678);
	assert_int_equal(events[0].bytes, 1000);
	assert_memory_equal(a.memory, b.memory, END_BYTES);
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void a_batch_rings_one_doorbell_per_queue_pair(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_op ops[32];
	gpul_rdma_event events[64];
	struct end a, b;
	unsigned before;

	(void)state;
	fake_verbs(0);
	ends_open(&a, &b, &desc, 4);
	for (unsigned i = 0; i < 32; i++) {
		ops[i] = write_op(&a, &b, GPUL_RDMA_OP_WRITE, i, 1, i);
		ops[i].qp = (uint16_t)(i % 4);
		ops[i].flags = i % 8 >= 4 ? GPUL_RDMA_SIGNALED | GPUL_RDMA_INLINE : GPUL_RDMA_INLINE;
		a.memory[i] = (unsigned char)(i + 1);
	}
	before = fake_verbs_doorbells();
	post_all(&a, ops, 32);
	assert_int_equal(fake_verbs_doorbells() - before, 4);
	assert_int_equal(poll_once(&a, events, 64), 16);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(events[i].id % 4, events[i].qp);
	assert_memory_equal(a.memory, b.memory, 64);
	end_close(&a);
	end_close(&b);
}

static void a_full_queue_accepts_the_rest_later(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_failure why = { 0 };
	gpul_rdma_event events[64];
	gpul_rdma_op ops[100];
	struct end a, b;
	unsigned n_posted = 0, done = 0;

	(void)state;
	fake_verbs(0);
	ends_open(&a, &b, &desc, 2);
	for (unsigned i = 0; i < 100; i++) {
		ops[i] = write_op(&a, &b, GPUL_RDMA_OP_WRITE, i, 1, i);
		ops[i].qp = i == 3; /* operation 3 uses the other queue pair */
		ops[i].flags = i % 32 == 31 || i == 99 ? GPUL_RDMA_SIGNALED : 0;
	}
	assert_int_equal(gpul_rdma_verbs.post(a.path, ops, 100, &n_posted, &why), GPUL_OK);
	assert_int_equal(n_posted, END_DEPTH + 1);
	assert_int_equal(poll_once(&a, events, 64), 2);
	done = n_posted;
	assert_int_equal(gpul_rdma_verbs.post(a.path, ops + done, 100 - done, &n_posted, &why), GPUL_OK);
	assert_int_equal(n_posted, 100 - done);
	end_close(&a);
	end_close(&b);
}

static void receives_are_given_back_as_one_chain(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_event events[64];
	gpul_rdma_op op;
	struct end a, b;
	int calls;

	(void)state;
	fake_verbs(0);
	ends_open(&a, &b, &desc, 1);
	assert_int_equal(fake_verbs_receives(), 2 * END_RECVS);
	for (unsigned i = 0; i < END_RECVS; i++) {
		op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 0, i);
		post_all(&a, &op, 1);
	}
	assert_int_equal(fake_verbs_receives(), END_RECVS);
	assert_int_equal(poll_once(&b, events, 64), END_RECVS);
	calls = fake_verbs_calls();
	op = (gpul_rdma_op){ .kind = GPUL_RDMA_OP_RECV, .bytes = END_RECVS };
	post_all(&b, &op, 1);
	assert_int_equal(fake_verbs_calls() - calls, 1);
	assert_int_equal(fake_verbs_receives(), 2 * END_RECVS);
	end_close(&a);
	end_close(&b);
}

static void only_data_may_be_written_in_any_order(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_memory strict = { .bytes = 64, .dmabuf_fd = -1 };
	gpul_rdma_piece piece;
	gpul_error err = { 0 };
	struct end a, b;
	void *token;

	(void)state;
	fake_verbs(0);
	ends_open(&a, &b, &desc, 1);
	assert_true(fake_verbs_access((uint32_t)a.piece.local_key) & IBV_ACCESS_RELAXED_ORDERING);
	strict.at = (uintptr_t)a.memory;
	assert_int_equal(gpul_rdma_verbs.reg(a.device, &strict, &piece, &token, &err), GPUL_OK);
	assert_false(fake_verbs_access((uint32_t)piece.local_key) & IBV_ACCESS_RELAXED_ORDERING);
	gpul_rdma_verbs.dereg(a.device, token);
	end_close(&a);
	end_close(&b);
}

/* The peer can write to regions that are not sources, and can read nothing; only this end's flush reads GPU memory back. */
static void memory_has_no_more_rights_than_its_use_needs(void **state)
{
	const struct {
		gpul_rdma_flush policy;
		bool source, flushed;
		unsigned rights;
	} all[] = {
		{ GPUL_RDMA_FLUSH_NONE, false, false, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
		{ GPUL_RDMA_FLUSH_NONE, true, false, IBV_ACCESS_LOCAL_WRITE },
		{ GPUL_RDMA_FLUSH_NONE, false, true, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
		{ GPUL_RDMA_FLUSH_READ, false, false, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
		{ GPUL_RDMA_FLUSH_READ, false, true, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ },
		{ GPUL_RDMA_FLUSH_ATOMIC, true, false, IBV_ACCESS_LOCAL_WRITE },
		{ GPUL_RDMA_FLUSH_ATOMIC, false, true,
		  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC },
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		gpul_rdma_device_desc desc = plain_desc();
		gpul_rdma_memory memory = { .bytes = 64, .dmabuf_fd = -1, .source = all[i].source, .flushed = all[i].flushed };
		gpul_rdma_piece piece;
		gpul_error err = { 0 };
		struct end a, b;
		void *token;

		desc.flush = all[i].policy;
		fake_verbs(0);
		ends_open(&a, &b, &desc, 1);
		memory.at = (uintptr_t)a.memory;
		assert_int_equal(gpul_rdma_verbs.reg(a.device, &memory, &piece, &token, &err), GPUL_OK);
		assert_int_equal(fake_verbs_access((uint32_t)piece.local_key), all[i].rights);
		gpul_rdma_verbs.dereg(a.device, token);
		end_close(&a);
		end_close(&b);
	}
}

/* Flush with a policy, whose description by about() must be `text`. */
static void flush_once(gpul_rdma_flush policy, const char *text)
{
	gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_device_info info;
	gpul_rdma_event events[8];
	struct end a, b;

	desc.flush = policy;
	ends_open(&a, &b, &desc, 1);
	gpul_rdma_verbs.about(a.device, &info);
	assert_string_equal(info.flush, text);
	memset(a.memory, 5, 64);
	for (uint32_t n_bytes = 0; n_bytes <= 8; n_bytes++) {
		const gpul_rdma_op op = { .kind = GPUL_RDMA_OP_FLUSH,
					  .flags = GPUL_RDMA_SIGNALED,
					  .bytes = n_bytes,
					  .id = 77,
					  .local = a.piece.at + 8,
					  .local_key = a.piece.local_key,
					  .remote = a.piece.remote + 8,
					  .remote_key = a.piece.remote_key };

		post_all(&a, &op, 1);
		assert_int_equal(poll_once(&a, events, 8), 1);
		assert_int_equal(events[0].kind, GPUL_RDMA_EVENT_DONE);
		assert_int_equal(events[0].id, 77);
	}
	assert_int_equal(a.memory[8], 5);
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void each_policy_of_a_flush_completes(void **state)
{
	(void)state;
	fake_verbs(0);
	flush_once(GPUL_RDMA_FLUSH_AUTO, "none: no GPU memory");
	flush_once(GPUL_RDMA_FLUSH_NONE, "none: user's choice");
	flush_once(GPUL_RDMA_FLUSH_READ, "loop-back read: user's choice");
	flush_once(GPUL_RDMA_FLUSH_ATOMIC, "loop-back atomic on null MR");
	fake_verbs_behave()->no_null_mr = true;
	flush_once(GPUL_RDMA_FLUSH_ATOMIC, "loop-back read: no null MR");
	fake_verbs_behave()->attr.atomic_cap = IBV_ATOMIC_NONE;
	flush_once(GPUL_RDMA_FLUSH_ATOMIC, "loop-back read: no atomics");
}

static void slots_travel_as_datagrams(void **state)
{
	gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_event events[8];
	struct end a, b;

	(void)state;
	fake_verbs(0);
	desc.control_datagrams = true;
	ends_open(&a, &b, &desc, 1);
	for (unsigned round = 0; round < 1000; round++) {
		const gpul_rdma_op op = { .kind = GPUL_RDMA_OP_CONTROL, .bytes = 96, .local = a.piece.at };

		memset(a.memory, (int)(round & 0xff), 96);
		post_all(&a, &op, 1);
		memset(a.memory, 0xee, 96); /* has no effect, because post has copied the datagram */
		assert_int_equal(poll_once(&b, events, 8), 1);
		assert_int_equal(events[0].kind, GPUL_RDMA_EVENT_CONTROL);
		assert_int_equal(events[0].bytes, 96);
		memset(a.memory, (int)(round & 0xff), 96);
		assert_memory_equal(events[0].data, a.memory, 96);
		assert_int_equal(poll_once(&a, events, 8), 0);
	}
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void a_datagram_of_a_stranger_is_ignored(void **state)
{
	gpul_rdma_device_desc desc = plain_desc();
	unsigned char description[GPUL_RDMA_MAX_DESCRIPTION];
	gpul_rdma_op op = { .kind = GPUL_RDMA_OP_CONTROL, .bytes = 32 };
	gpul_rdma_event events[8];
	struct end a, b, stranger;
	gpul_error err = { 0 };
	size_t n_bytes;

	(void)state;
	fake_verbs(0);
	desc.control_datagrams = true;
	ends_open(&a, &b, &desc, 1);
	assert_int_equal(end_open(&stranger, &desc, 1, &err), GPUL_OK);
	n_bytes = gpul_rdma_verbs.describe(b.path, description);
	assert_int_equal(gpul_rdma_verbs.connect_path(stranger.path, description, n_bytes, &err), GPUL_OK);
	op.local = stranger.piece.at;
	for (int i = 0; i < 500; i++) { /* more datagrams than there are receive buffers */
		post_all(&stranger, &op, 1);
		poll_once(&stranger, events, 8);
		assert_int_equal(poll_once(&b, events, 8), 0);
	}
	op.local = a.piece.at;
	post_all(&a, &op, 1);
	assert_int_equal(poll_once(&b, events, 8), 1);
	end_close(&stranger);
	end_close(&a);
	end_close(&b);
}

static void nothing_arrives_in_a_broken_path(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_failure why = { 0 };
	gpul_rdma_op op;
	struct end a, b;
	unsigned n;

	(void)state;
	fake_verbs(0);
	ends_open(&a, &b, &desc, 2);
	gpul_rdma_verbs.break_path(b.path);
	a.memory[0] = 9;
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 1, 0);
	post_all(&a, &op, 1);
	assert_int_equal(b.memory[0], 0);
	assert_int_equal(poll_failure(&a).native, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(gpul_rdma_verbs.post(b.path, &op, 1, &n, &why), GPUL_EVERBS);
	assert_string_equal(why.what, "this side has already closed the connection after a failure");
	gpul_rdma_verbs.break_path(b.path);
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void use_fake(void)
{
	gpul_verbs_use(fake_verbs(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_arrives_with_its_immediate),       cmocka_unit_test(a_batch_rings_one_doorbell_per_queue_pair),
		cmocka_unit_test(a_full_queue_accepts_the_rest_later),   cmocka_unit_test(receives_are_given_back_as_one_chain),
		cmocka_unit_test(only_data_may_be_written_in_any_order), cmocka_unit_test(memory_has_no_more_rights_than_its_use_needs),
		cmocka_unit_test(each_policy_of_a_flush_completes),      cmocka_unit_test(slots_travel_as_datagrams),
		cmocka_unit_test(a_datagram_of_a_stranger_is_ignored),   cmocka_unit_test(nothing_arrives_in_a_broken_path),
	};

	use_fake();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
