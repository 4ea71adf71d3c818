/* test_lossy.c — the backend reliable-verbs over the fake libibverbs, whose UC and UD queue pairs lose messages. */
#include "tests/rdma/verbs/ends.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

enum { OPS = 200, HALF = END_BYTES / 2 };

static gpul_rdma_device_desc desc_of(gpul_rdma_qp_type type, unsigned n_paths)
{
	gpul_rdma_device_desc d = plain_desc();

	end_backend = &gpul_rdma_verbs_reliable;
	d.qp_type = type;
	d.n_paths = n_paths;
	d.mtu = 1024;
	return d;
}

/* The peer's copy of an operation: each end sends from its first half into the peer's second half. */
static gpul_rdma_op op_of(const struct end *from, const struct end *to, uint64_t i)
{
	static const uint32_t sizes[] = { 0, 1, 64, 960, 961, 4096, 4097, 9000, HALF };
	gpul_rdma_op op = write_op(from, to, i % 3 ? GPUL_RDMA_OP_WRITE_IMM : GPUL_RDMA_OP_WRITE, 0, sizes[i % 9], i);

	op.imm = (uint32_t)i;
	op.remote += HALF;
	return op;
}

/* Count the events of one poll; arrivals and completions may come in any order. */
static void count_events(struct end *e, bool done[OPS], bool arrived[OPS])
{
	gpul_rdma_event events[16];

	for (unsigned n = poll_once(e, events, 16), i = 0; i < n; i++) {
		bool *seen = events[i].kind == GPUL_RDMA_EVENT_DONE ? &done[events[i].id] : &arrived[events[i].imm];

		assert_false(*seen);
		*seen = true;
	}
}

static void transfer(struct end *a, struct end *b)
{
	for (uint64_t i = 0; i < OPS; i++) {
		static bool done_a[OPS], done_b[OPS], arrived_a[OPS], arrived_b[OPS];
		const gpul_rdma_op to_b = op_of(a, b, i), to_a = op_of(b, a, i);

		if (!i)
			memset(done_a, 0, OPS), memset(done_b, 0, OPS), memset(arrived_a, 0, OPS), memset(arrived_b, 0, OPS);
		for (uint32_t k = 0; k < to_b.bytes; k++) {
			a->memory[k] = (unsigned char)(k * 7 + i);
			b->memory[k] = (unsigned char)(k * 5 + i);
		}
		post_all(a, &to_b, 1);
		post_all(b, &to_a, 1);
		while (!done_a[i] || !done_b[i] || (i % 3 && (!arrived_a[i] || !arrived_b[i]))) {
			count_events(a, done_a, arrived_a);
			count_events(b, done_b, arrived_b);
		}
		assert_memory_equal(a->memory, b->memory + HALF, to_b.bytes);
		assert_memory_equal(b->memory, a->memory + HALF, to_b.bytes);
	}
}

static void all_data_arrives_whatever_is_lost(void **state)
{
	static const struct {
		gpul_rdma_qp_type type;
		unsigned n_paths, loss_permille, every_path;
	} rows[] = {
		{ GPUL_RDMA_UC, 1, 0, 0 },    { GPUL_RDMA_UC, 8, 0, 0 }, { GPUL_RDMA_UC, 1, 20, 0 }, { GPUL_RDMA_UC, 8, 20, 0 },
		{ GPUL_RDMA_UC, 16, 200, 0 }, { GPUL_RDMA_UC, 8, 0, 3 }, { GPUL_RDMA_UD, 1, 0, 0 },  { GPUL_RDMA_UD, 8, 20, 0 },
		{ GPUL_RDMA_UD, 16, 200, 0 }, { GPUL_RDMA_UD, 8, 0, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const gpul_rdma_device_desc desc = desc_of(rows[i].type, rows[i].n_paths);
		struct end a, b;

		fake_verbs(0);
		fake_verbs_behave()->loss_permille = rows[i].loss_permille;
		ends_open(&a, &b, &desc, 1);
		fake_verbs_behave()->every_path = rows[i].every_path;
		transfer(&a, &b);
		end_close(&a);
		end_close(&b);
		assert_int_equal(fake_verbs_alive(), 0);
	}
}

static void the_smaller_number_of_paths_is_used(void **state)
{
	const gpul_rdma_device_desc few = desc_of(GPUL_RDMA_UC, 2), many = desc_of(GPUL_RDMA_UC, 16);
	gpul_error err = { 0 };
	struct end a, b;

	(void)state;
	fake_verbs(0);
	if (end_open(&a, &few, 1, &err) || end_open(&b, &many, 1, &err) || ends_connect(&a, &b, &err))
		fail_msg("%s", err.text);
	transfer(&a, &b);
	end_close(&a);
	end_close(&b);
}

/* Any call of libibverbs may fail: while two ends open, nothing stays behind; later, the path fails. */
static void every_failing_call_is_an_error(void **state)
{
	(void)state;
	for (unsigned type = GPUL_RDMA_UC; type <= GPUL_RDMA_UD; type++) {
		const gpul_rdma_device_desc desc = desc_of((gpul_rdma_qp_type)type, 2);
		bool opened = false;

		for (int n = 1; !opened; n++) {
			gpul_error err = { 0 };
			struct end a, b = { 0 };

			fake_verbs(n);
			opened = !end_open(&a, &desc, 1, &err) && !end_open(&b, &desc, 1, &err) && !ends_connect(&a, &b, &err);
			assert_true(opened || err.status);
			end_close(&a);
			end_close(&b);
			assert_int_equal(fake_verbs_alive(), 0);
		}
	}
}

static void a_failing_completion_ends_the_path(void **state)
{
	(void)state;
	for (unsigned type = GPUL_RDMA_UC; type <= GPUL_RDMA_UD; type++) {
		const gpul_rdma_device_desc desc = desc_of((gpul_rdma_qp_type)type, 2);
		gpul_rdma_failure why;
		gpul_rdma_op op;
		struct end a, b;

		fake_verbs(0);
		ends_open(&a, &b, &desc, 1);
		fake_verbs_complete(1, IBV_WC_LOC_PROT_ERR, 7);
		op = op_of(&a, &b, 5);
		post_all(&a, &op, 1);
		why = poll_failure(&a);
		assert_int_equal(why.status, GPUL_EVERBS);
		assert_int_equal(why.native, IBV_WC_LOC_PROT_ERR);
		end_close(&a);
		end_close(&b);
	}
}

static void memory_that_was_deregistered_is_not_written(void **state)
{
	(void)state;
	for (unsigned type = GPUL_RDMA_UC; type <= GPUL_RDMA_UD; type++) {
		const gpul_rdma_device_desc desc = desc_of((gpul_rdma_qp_type)type, 2);
		gpul_rdma_op op;
		struct end a, b;

		fake_verbs(0);
		ends_open(&a, &b, &desc, 1);
		op = op_of(&a, &b, 1); /* one byte: a datagram */
		a.memory[0] = 1;
		end_backend->dereg(b.device, b.token);
		b.token = NULL;
		post_all(&a, &op, 1);
		assert_non_null(strstr(poll_failure(&b).what, "its key does not grant"));
		assert_int_equal(b.memory[HALF], 0);
		end_close(&a);
		end_close(&b);
	}
}

static void wrong_wishes_and_peers_are_refused(void **state)
{
	gpul_rdma_device_desc desc = desc_of(GPUL_RDMA_UC, 17);
	unsigned char data[GPUL_RDMA_MAX_DESCRIPTION];
	gpul_error err = { 0 };
	struct end a, b;
	size_t n_bytes;

	(void)state;
	fake_verbs(0);
	assert_int_equal(end_open(&a, &desc, 1, NULL), GPUL_EINVAL);
	desc = desc_of(GPUL_RDMA_UC, 2);
	desc.mtu = 256;
	assert_int_equal(end_open(&a, &desc, 1, NULL), GPUL_EINVAL);
	desc = desc_of(GPUL_RDMA_UC, 2);
	desc.control_datagrams = true;
	assert_int_equal(end_open(&a, &desc, 1, NULL), GPUL_EUNSUPPORTED);
	desc = desc_of(GPUL_RDMA_UC, 2);
	assert_int_equal(end_open(&a, &desc, 1, NULL), GPUL_OK);
	n_bytes = end_backend->describe(a.path, data);
	for (size_t i = 0; i < n_bytes; i++)
		assert_int_not_equal(end_backend->connect_path(a.path, data, i, NULL), GPUL_OK);
	desc = desc_of(GPUL_RDMA_UD, 2);
	assert_int_equal(end_open(&b, &desc, 1, NULL), GPUL_OK);
	assert_int_equal(end_backend->connect_path(b.path, data, n_bytes, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "UC"));
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_data_arrives_whatever_is_lost),
		cmocka_unit_test(the_smaller_number_of_paths_is_used),
		cmocka_unit_test(every_failing_call_is_an_error),
		cmocka_unit_test(a_failing_completion_ends_the_path),
		cmocka_unit_test(memory_that_was_deregistered_is_not_written),
		cmocka_unit_test(wrong_wishes_and_peers_are_refused),
	};

	gpul_verbs_use(fake_verbs(0));
	return cmocka_run_group_tests_name("lossy", tests, NULL, NULL);
}
