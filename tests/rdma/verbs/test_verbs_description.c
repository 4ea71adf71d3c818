/* test_verbs_description.c — a damaged or forged description of the peer's path is refused. */
#include "tests/rdma/verbs/ends.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

static struct end a, b;
static unsigned char good[GPUL_RDMA_MAX_DESCRIPTION];
static size_t good_bytes;

static void open_pair(void)
{
	gpul_rdma_device_desc desc = plain_desc();
	gpul_error err = { 0 };

	fake_verbs(0);
	desc.control_datagrams = true;
	assert_int_equal(end_open(&a, &desc, 2, &err), GPUL_OK);
	assert_int_equal(end_open(&b, &desc, 2, &err), GPUL_OK);
	good_bytes = gpul_rdma_verbs.describe(b.path, good);
}

static void close_pair(void)
{
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void expect_refusal(size_t at, unsigned char value, gpul_status status, const char *text)
{
	unsigned char bad[GPUL_RDMA_MAX_DESCRIPTION];
	gpul_error err = { 0 };

	memcpy(bad, good, good_bytes);
	bad[at] = value;
	assert_int_equal(gpul_rdma_verbs.connect_path(a.path, bad, good_bytes, &err), status);
	if (!strstr(err.text, text))
		fail_msg("'%s' is not in '%s'", text, err.text);
}

static void a_hostile_description_is_refused(void **state)
{
	(void)state;
	open_pair();
	assert_int_equal(good_bytes, 40 + 2 * 8);
	expect_refusal(0, 'X', GPUL_EFORMAT, "not in the format of verbs");
	expect_refusal(4, 2, GPUL_EFORMAT, "not in the format of verbs, version 1");
	expect_refusal(5, 7, GPUL_EFORMAT, "byte 5");
	expect_refusal(6, 3, GPUL_EFORMAT, "byte 6");
	expect_refusal(7, 0, GPUL_EFORMAT, "byte 7");
	expect_refusal(7, 6, GPUL_EFORMAT, "byte 7");
	expect_refusal(8, 3, GPUL_EFORMAT, "byte 8");
	expect_refusal(9, 0, GPUL_EFORMAT, "byte 9");
	expect_refusal(9, 17, GPUL_EFORMAT, "byte 9");
	expect_refusal(9, 3, GPUL_EFORMAT, "byte 9");
	expect_refusal(10, 0x80, GPUL_EFORMAT, "byte 10");
	expect_refusal(16, 0xff, GPUL_EFORMAT, "byte 16");
	expect_refusal(35, 1, GPUL_EFORMAT, "byte 32");
	expect_refusal(43, 1, GPUL_EFORMAT, "byte 40");
	expect_refusal(55, 1, GPUL_EFORMAT, "byte 48");
	close_pair();
}

static void a_different_kind_of_path_is_refused_with_both_sides(void **state)
{
	(void)state;
	open_pair();
	expect_refusal(5, IBV_LINK_LAYER_INFINIBAND, GPUL_EUNSUPPORTED, "the link layer of the peer's port is InfiniBand");
	expect_refusal(6, IBV_GID_TYPE_ROCE_V1, GPUL_EUNSUPPORTED,
		       "the peer's GID 10.9.0.1 is RoCE v1, but this side's GID 10.9.0.1 is RoCE v2");
	expect_refusal(16, 0x20, GPUL_EUNSUPPORTED, "is IPv4, the other IPv6");
	expect_refusal(8, GPUL_RDMA_UC, GPUL_EINVAL, "2 UC queue pairs and datagrams, but this side has 2 RC queue pairs and datagrams");
	close_pair();
}

static void no_bytes_of_a_stranger_do_harm(void **state)
{
	unsigned char bytes[GPUL_RDMA_MAX_DESCRIPTION];

	(void)state;
	open_pair();
	srand(1);
	for (int i = 0; i < 200000; i++) {
		const size_t n_bytes = (size_t)rand() % (good_bytes + 8);
		/* Allocate exactly n_bytes, so that a sanitizer detects a read beyond the end. */
		unsigned char *exact = malloc(n_bytes ? n_bytes : 1);
		gpul_error err = { 0 };

		memcpy(bytes, good, sizeof bytes);
		for (int n = rand() % 4; n >= 0; n--)
			bytes[(size_t)rand() % (good_bytes + 8)] = (unsigned char)rand();
		memcpy(exact, bytes, n_bytes);
		gpul_rdma_verbs.connect_path(a.path, exact, n_bytes, &err);
		free(exact);
	}
	close_pair();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hostile_description_is_refused),
		cmocka_unit_test(a_different_kind_of_path_is_refused_with_both_sides),
		cmocka_unit_test(no_bytes_of_a_stranger_do_harm),
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	gpul_verbs_use(fake_verbs(0));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
