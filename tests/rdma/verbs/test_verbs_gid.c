/* test_verbs_gid.c — the choice of a GID from a table. */

#include <arpa/inet.h>
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <string.h>

#include "rdma/verbs/gid.h"

enum { V1 = IBV_GID_TYPE_ROCE_V1, V2 = IBV_GID_TYPE_ROCE_V2, IB = IBV_GID_TYPE_IB };

struct line {
	uint32_t port, index, type;
	const char *address;
};

/* Choose a GID from a table that ends with a NULL address. */
static gpul_status choose(const struct line *lines, bool ethernet, int wish, uint32_t *index, char why[160], gpul_error *err)
{
	struct ibv_gid_entry entries[16] = { 0 }, out;
	gpul_status st;
	size_t n = 0;

	for (; lines[n].address; n++) {
		entries[n] = (struct ibv_gid_entry){ .gid_index = lines[n].index, .port_num = lines[n].port, .gid_type = lines[n].type };
		assert_int_equal(inet_pton(AF_INET6, lines[n].address, entries[n].gid.raw), 1);
	}
	st = gpul_verbs_gid_choose(entries, n, 1, ethernet, wish, &out, why, 160, err);
	if (!st)
		*index = out.gid_index;
	return st;
}

static void expect(const struct line *lines, uint32_t index, const char *reason)
{
	gpul_error err = { 0 };
	char why[160];
	uint32_t got = 999;

	if (choose(lines, true, -1, &got, why, &err))
		fail_msg("%s", err.text);
	assert_int_equal(got, index);
	if (!strstr(why, reason))
		fail_msg("'%s' is not in '%s'", reason, why);
}

static void ipv4_with_roce_v2_comes_first(void **state)
{
	const struct line usual[] = {
		{ 1, 0, V1, "fe80::1" },         { 1, 1, V2, "fe80::1" },     { 1, 2, V1, "::ffff:10.9.0.1" },
		{ 1, 3, V2, "::ffff:10.9.0.1" }, { 1, 4, V2, "2001:db8::1" }, { 0 },
	};
	const struct line six_first[] = {
		{ 1, 0, V2, "2001:db8::1" }, { 1, 7, V2, "::ffff:10.9.0.1" }, { 1, 8, V2, "::ffff:10.9.0.2" }, { 0 }
	};

	(void)state;
	expect(usual, 3, "GID 3 10.9.0.1, RoCE v2: first IPv4 address");
	expect(six_first, 7, "first IPv4 address");
}

static void without_ipv4_a_global_ipv6_address_is_used(void **state)
{
	const struct line table[] = {
		{ 1, 0, V2, "fe80::1" },
		{ 1, 1, V2, "::ffff:169.254.3.4" },
		{ 1, 2, V1, "2001:db8::1" },
		{ 1, 3, V2, "2001:db8::1" },
		{ 0 },
	};

	(void)state;
	expect(table, 3, "2001:db8::1, RoCE v2: no IPv4 address");
}

static void roce_v1_is_the_last_resort(void **state)
{
	const struct line table[] = { { 1, 0, V1, "fe80::1" }, { 1, 1, V1, "::ffff:10.9.0.1" }, { 0 } };

	(void)state;
	expect(table, 1, "RoCE v1 reaches only peers on the same Ethernet segment");
}

static void entries_of_other_ports_and_empty_ones_are_skipped(void **state)
{
	const struct line table[] = { { 2, 0, V2, "::ffff:10.0.0.1" }, { 1, 1, V2, "::" }, { 1, 2, V2, "::ffff:10.9.0.1" }, { 0 } };

	(void)state;
	expect(table, 2, "10.9.0.1");
}

static void link_local_addresses_are_refused_unless_the_user_wants_one(void **state)
{
	const struct line table[] = { { 1, 0, V1, "fe80::1" }, { 1, 1, V2, "fe80::1" }, { 0 } };
	gpul_error err = { 0 };
	uint32_t index = 999;
	char why[160];

	(void)state;
	assert_int_equal(choose(table, true, -1, &index, why, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "2 entries, of which 2 are link-local"));
	assert_int_equal(index, 999);
	memset(&err, 0, sizeof err);
	assert_int_equal(choose(table, true, 1, &index, why, &err), GPUL_OK);
	assert_int_equal(index, 1);
	assert_non_null(strstr(why, "chosen by the user"));
	assert_int_equal(choose(table, true, 2, &index, why, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "no GID with index 2"));
}

static void an_empty_table_is_an_error(void **state)
{
	const struct line table[] = { { 0 } };
	gpul_error err = { 0 };
	uint32_t index;
	char why[160];

	(void)state;
	assert_int_equal(choose(table, true, -1, &index, why, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "0 entries"));
}

static void infiniband_uses_the_first_gid(void **state)
{
	const struct line table[] = { { 1, 1, IB, "fe80::2" }, { 1, 0, IB, "fe80::1" }, { 0 } };
	gpul_error err = { 0 };
	uint32_t index = 999;
	char why[160];

	(void)state;
	assert_int_equal(choose(table, false, -1, &index, why, &err), GPUL_OK);
	assert_int_equal(index, 0);
	assert_non_null(strstr(why, "fe80::1, InfiniBand"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_with_roce_v2_comes_first),
		cmocka_unit_test(without_ipv4_a_global_ipv6_address_is_used),
		cmocka_unit_test(roce_v1_is_the_last_resort),
		cmocka_unit_test(entries_of_other_ports_and_empty_ones_are_skipped),
		cmocka_unit_test(link_local_addresses_are_refused_unless_the_user_wants_one),
		cmocka_unit_test(an_empty_table_is_an_error),
		cmocka_unit_test(infiniband_uses_the_first_gid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
