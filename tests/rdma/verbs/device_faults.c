/* device_faults.c — errors on a real device (in tests/vm, rxe in a virtual machine): each produces the expected failure on both sides.
 *
 * Not part of `ninja check`: it needs a device.  Exits 77 where there is none. */
#include "tests/rdma/verbs/ends.h"
#include "tests/support/cmocka.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"

static struct end a, b;

static void open_pair(unsigned n_qps)
{
	gpul_rdma_device_desc desc = plain_desc();

	desc.timeout = 14; /* a dead peer is noticed after (3 + 1) * 67 ms */
	desc.retry = 3;
	ends_open(&a, &b, &desc, n_qps);
}

static void close_pair(void)
{
	end_close(&a);
	end_close(&b);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Read the pending asynchronous events, as the watch thread does. */
static void read_events(struct end *e)
{
	struct pollfd fd = { .fd = gpul_rdma_verbs.async_fd(e->device), .events = POLLIN };
	gpul_rdma_failure why = { 0 };

	while (poll(&fd, 1, 0) > 0)
		assert_false(gpul_rdma_verbs.async_read(e->device, &why));
}

static gpul_rdma_failure failure_of(struct end *e, const char *name)
{
	const uint64_t begin = gpul_clock_ns();
	gpul_rdma_failure why = { 0 };
	gpul_rdma_event events[8];
	gpul_error err = { 0 };
	unsigned n;

	while (gpul_rdma_verbs.poll(e->path, events, 8, &n, &why) == GPUL_OK) {
		read_events(e);
		if (gpul_clock_ns() - begin > UINT64_C(20000000000))
			fail_msg("no failure in 20 s");
	}
	why.after_ns = gpul_clock_ns() - begin;
	gpul_rdma_failure_error(&why, &err);
	printf("%s: %s\n", name, err.text);
	return why;
}

static void a_wrong_key_fails_both_sides(void **state)
{
	gpul_rdma_op op;
	int native;

	(void)state;
	open_pair(1);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 8, 1);
	op.remote_key += 0x100;
	post_all(&a, &op, 1);
	assert_int_equal(failure_of(&a, "sender").native, IBV_WC_REM_ACCESS_ERR);
	native = failure_of(&b, "receiver").native; /* depends on the NIC: an event, a flushed receive, or a receive with an error (rxe) */
	assert_true(native == IBV_WC_WR_FLUSH_ERR || native == IBV_EVENT_QP_ACCESS_ERR || native == IBV_WC_LOC_ACCESS_ERR ||
		    native == IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

static void a_write_beyond_the_end_fails(void **state)
{
	gpul_rdma_op op;

	(void)state;
	open_pair(1);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	op.remote += END_BYTES - 4;
	post_all(&a, &op, 1);
	assert_int_equal(failure_of(&a, "sender").native, IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

static void wrong_local_memory_fails(void **state)
{
	gpul_rdma_op op;
	int native;

	(void)state;
	open_pair(1);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	op.local_key += 0x100;
	post_all(&a, &op, 1);
	native = failure_of(&a, "sender").native;
	/* rxe of Linux 6.1 reports QP_OP_ERR; rxe of Linux 6.12 reports only WR_FLUSH_ERR, without the reason */
	assert_true(native == IBV_WC_LOC_PROT_ERR || native == IBV_WC_LOC_QP_OP_ERR || native == IBV_WC_WR_FLUSH_ERR);
	close_pair();
}

static void a_peer_without_receives_fails_instead_of_waiting_for_ever(void **state)
{
	gpul_rdma_event events[32];
	gpul_rdma_op op;

	(void)state;
	open_pair(1);
	for (unsigned i = 0; i < END_RECVS; i++) {
		op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 8, i);
		post_all(&a, &op, 1);
	}
	for (unsigned n = 0; n < END_RECVS;)
		n += poll_once(&a, events, 32);
	post_all(&a, &op, 1);
	assert_int_equal(failure_of(&a, "sender").native, IBV_WC_RNR_RETRY_EXC_ERR);
	close_pair();
}

static void a_dead_peer_is_noticed_in_the_announced_time(void **state)
{
	gpul_rdma_op op;

	(void)state;
	open_pair(2);
	gpul_rdma_verbs.break_path(b.path);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 8, 1);
	op.qp = 1;
	post_all(&a, &op, 1);
	assert_int_equal(failure_of(&a, "sender").native, IBV_WC_RETRY_EXC_ERR);
	close_pair();
}

/* A sender writes all the time; after the receiver has broken the path, its memory must no longer change. */
static void nothing_is_written_after_a_break(void **state)
{
	static unsigned char after[END_BYTES];

	(void)state;
	for (int round = 0; round < 20; round++) {
		gpul_rdma_op ops[END_DEPTH];
		unsigned n_posted;
		gpul_rdma_failure why = { 0 };

		open_pair(2);
		for (unsigned i = 0; i < END_DEPTH; i++) { /* each write fills the whole memory; two queue pairs alternate */
			ops[i] = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, END_BYTES, i);
			ops[i].qp = (uint16_t)(i % 2);
		}
		memset(a.memory, round + 1, END_BYTES);
		assert_int_equal(gpul_rdma_verbs.post(a.path, ops, END_DEPTH, &n_posted, &why), GPUL_OK);
		while (((volatile unsigned char *)b.memory)[round * 997] == 0) /* wait until the first write arrives */
			;
		gpul_rdma_verbs.break_path(b.path);
		memcpy(after, b.memory, END_BYTES);
		memset(a.memory, 0xaa, END_BYTES);
		memset(b.memory, 0x55, END_BYTES / 2);
		memset(after, 0x55, END_BYTES / 2);
		sleep_ms(30);
		assert_memory_equal(after, b.memory, END_BYTES);
		close_pair();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_key_fails_both_sides),
		cmocka_unit_test(a_write_beyond_the_end_fails),
		cmocka_unit_test(wrong_local_memory_fails),
		cmocka_unit_test(a_peer_without_receives_fails_instead_of_waiting_for_ever),
		cmocka_unit_test(a_dead_peer_is_noticed_in_the_announced_time),
		cmocka_unit_test(nothing_is_written_after_a_break),
	};
	const gpul_rdma_device_desc desc = plain_desc();
	gpul_error err = { 0 };
	void *device;

	if (gpul_rdma_verbs.open(&desc, &device, &err)) {
		printf("skipped: %s\n", err.text);
		return 77;
	}
	gpul_rdma_verbs.close(device);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
