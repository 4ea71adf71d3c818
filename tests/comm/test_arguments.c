/* test_arguments.c — what the collectives and groups refuse, by a communicator of one rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/comm/ranks.h"

enum { AT = 1 << 20 };  /* an address that no call uses */

static void refused(gpul_status st, gpul_error *err, const char *text)
{
	assert_int_equal(st, GPUL_EINVAL);
	if (!strstr(err->text, text))
		fail_msg("'%s' does not contain '%s'", err->text, text);
	*err = (gpul_error){ 0 };
}

static void try_collectives(struct rank *r, void *arg)
{
	gpul_comm *c = r->comm;
	gpul_error err = { 0 };

	(void)arg;
	refused(gpul_comm_allreduce(c, AT, AT, 4, (gpul_comm_dtype)17, GPUL_COMM_SUM, r->stream, &err), &err, "17 is not an element type");
	refused(gpul_comm_allreduce(c, AT, AT, 4, GPUL_COMM_F32, (gpul_comm_op)9, r->stream, &err), &err, "9 is not an operation");
	refused(gpul_comm_allreduce(c, AT + 2, AT, 4, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, &err), &err, "not aligned");
	refused(gpul_comm_allreduce(c, 0, AT, 4, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, &err), &err, "send buffer is NULL");
	refused(gpul_comm_allreduce(c, AT, AT + 8, 4, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, &err), &err, "overlap");
	refused(gpul_comm_allgather(c, AT, AT, SIZE_MAX / 4, GPUL_COMM_F64, r->stream, &err), &err, "exceed the address space");
	refused(gpul_comm_alltoall(c, AT, AT, 4, GPUL_COMM_U8, r->stream, &err), &err, "overlap");
	refused(gpul_comm_broadcast(c, AT, AT, 4, GPUL_COMM_U8, 1, r->stream, &err), &err, "root 1 does not exist");
	assert_int_equal(gpul_comm_allreduce(c, 0, 0, 0, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, &err), GPUL_OK);
}

static void try_groups(struct rank *r, void *arg)
{
	gpul_comm *c = r->comm;
	gpul_error err = { 0 };

	(void)arg;
	refused(gpul_comm_group_end(c, &err), &err, "no group has begun");
	refused(gpul_comm_send(c, AT, 4, GPUL_COMM_U8, 1, r->stream, &err), &err, "rank 1 does not exist");
	refused(gpul_comm_send(c, AT, 4, GPUL_COMM_U8, 0, r->stream, &err), &err, "does not receive them");
	refused(gpul_comm_recv(c, AT, 4, GPUL_COMM_U8, 0, r->stream, &err), &err, "does not send them");
	assert_int_equal(gpul_comm_group_begin(c, &err), GPUL_OK);
	refused(gpul_comm_group_begin(c, &err), &err, "begun already");
	assert_int_equal(gpul_comm_send(c, AT, 4, GPUL_COMM_U8, 0, r->stream, &err), GPUL_OK);
	refused(gpul_comm_recv(c, AT, 8, GPUL_COMM_U8, 0, NULL, &err), &err, "different streams");
	assert_int_equal(gpul_comm_recv(c, AT, 8, GPUL_COMM_U8, 0, r->stream, &err), GPUL_OK);
	refused(gpul_comm_group_end(c, &err), &err, "sends 4 bytes to itself, but receives 8");
}

static void collectives_refuse_bad_arguments(void **state)
{
	(void)state;
	run_ranks(1, NULL, try_collectives, NULL);
}

static void groups_refuse_calls_that_cannot_work(void **state)
{
	(void)state;
	run_ranks(1, NULL, try_groups, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_refuse_bad_arguments),
		cmocka_unit_test(groups_refuse_calls_that_cannot_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
