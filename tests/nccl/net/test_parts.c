/* test_parts.c — functions of the plug-in that do no I/O: handles, grouped receives, selection of network interfaces, settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "core/sha256.h"
#include "nccl/net/handle.h"
#include "nccl/net/interfaces.h"
#include "nccl/net/options.h"
#include "nccl/net/requests.h"

/* ---- handles --------------------------------------------------------------------------------------------------- */

static void write_handle(const char *address, unsigned backend, unsigned char out[GPUL_NCCL_HANDLE_BYTES])
{
	gpul_net_handle h = { .backend = (gpul_net_backend)backend, .secret = { 1, 2, 3 } };

	snprintf(h.address, sizeof h.address, "%s", address);
	gpul_net_handle_write(&h, out);
}

static void a_handle_is_read_as_written(void **state)
{
	static const char *const good[] = { "10.9.0.1:40123", "[fd00::2]:1", "[::1]:65535" };
	unsigned char bytes[GPUL_NCCL_HANDLE_BYTES];
	gpul_net_handle h;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		write_handle(good[i], GPUL_NET_LIBFABRIC, bytes);
		assert_int_equal(gpul_net_handle_read(bytes, &h, NULL), GPUL_OK);
		assert_string_equal(h.address, good[i]);
		assert_int_equal(h.backend, GPUL_NET_LIBFABRIC);
		assert_int_equal(h.secret[2], 3);
	}
}

static void a_handle_cannot_name_a_host_or_a_path(void **state)
{
	static const char *const wrong[] = {
		"",         "localhost:40123", "unix:/tmp/x", "10.9.0.1",     "10.9.0.1:0", "10.9.0.1:70000",
		"10.9.0:1", "[fd00::2",        ":40123",      "[::1%a%b]x:3", "%:1",        "[fe80::1%eth0]:1"
	};
	unsigned char bytes[GPUL_NCCL_HANDLE_BYTES];
	gpul_error err;
	gpul_net_handle h;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		err = (gpul_error){ 0 };
		write_handle(wrong[i], GPUL_NET_VERBS, bytes);
		if (gpul_net_handle_read(bytes, &h, &err) != GPUL_EINVAL &&
		    strcmp(wrong[i], "10.9.0.1")) /* "10.9.0.1" is valid, because the default port is added */
			fail_msg("'%s' is accepted", wrong[i]);
	}
}

/* Compute the checksum again after a change. */
static void sign(unsigned char bytes[GPUL_NCCL_HANDLE_BYTES])
{
	unsigned char digest[GPUL_SHA256_BYTES];
	gpul_sha256 s;

	gpul_sha256_begin(&s);
	gpul_sha256_add(&s, bytes, 112);
	gpul_sha256_end(&s, digest);
	memcpy(bytes + 112, digest, 8);
}

static void a_damaged_or_foreign_handle_is_refused(void **state)
{
	unsigned char bytes[GPUL_NCCL_HANDLE_BYTES], changed[GPUL_NCCL_HANDLE_BYTES];
	gpul_net_handle h;
	gpul_error err = { 0 };

	(void)state;
	write_handle("10.9.0.1:40123", GPUL_NET_LIBFABRIC, bytes);
	for (unsigned bit = 0; bit < 8 * 120; bit++) {
		memcpy(changed, bytes, sizeof changed);
		changed[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(gpul_net_handle_read(changed, &h, NULL), GPUL_EFORMAT);
	}
	memset(changed, 0, sizeof changed);
	assert_int_equal(gpul_net_handle_read(changed, &h, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "same NCCL network plug-in"));
	write_handle("10.9.0.1:40123", 9, changed);
	assert_int_equal(gpul_net_handle_read(changed, &h, NULL), GPUL_EFORMAT);
	memcpy(changed, bytes, sizeof changed);
	memset(changed + 16, '1', 64); /* the address text has no NUL */
	sign(changed);
	assert_int_equal(gpul_net_handle_read(changed, &h, NULL), GPUL_EINVAL);
}

/* Random bytes with a valid beginning and checksum must not cause a crash; an accepted handle must contain a numeric address. */
static void random_handles_do_no_harm(void **state)
{
	unsigned char bytes[GPUL_NCCL_HANDLE_BYTES];
	unsigned accepted = 0;
	gpul_net_handle h;

	(void)state;
	srand(1);
	for (unsigned i = 0; i < 200000; i++) {
		static const char alphabet[] = "0123456789.:[]%/abcfu\0ix";

		write_handle("1.2.3.4:5", 1 + i % 2, bytes);
		for (unsigned k = 0, n = (unsigned)rand() % 40; k < n; k++)
			bytes[16 + rand() % (i % 3 ? 12 : 64)] = (unsigned char)(i % 5 ? alphabet[(unsigned)rand() % sizeof alphabet]
										       : (char)rand());
		sign(bytes);
		if (gpul_net_handle_read(bytes, &h, NULL))
			continue;
		accepted++;
		assert_int_equal(strspn(h.address, "0123456789.:[]abcdefABCDEF"), strlen(h.address));
	}
	assert_true(accepted > 100);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static void a_group_is_one_receive_if_its_tags_differ_and_it_is_small(void **state)
{
	const int same[3] = { 4, 5, 4 }, differ[3] = { 4, 5, 6 };
	const size_t small[3] = { 0, 100, 100 }, large[3] = { 1, 101, 1 };

	(void)state;
	assert_true(gpul_net_fits_together(small, differ, 3, 100));
	assert_false(gpul_net_fits_together(small, same, 3, 100));
	assert_true(gpul_net_fits_together(small, same, 2, 100));
	assert_false(gpul_net_fits_together(large, differ, 3, 100));
	assert_true(gpul_net_fits_together(large + 1, differ, 1, 100)); /* a message longer than the limit is only allowed alone */
}

static void requests_are_limited_and_used_again(void **state)
{
	gpul_net_requests *table = calloc(1, sizeof *table);
	gpul_net_request *r[GPUL_NET_REQUESTS];

	(void)state;
	assert_non_null(table);
	for (int i = 0; i < GPUL_NET_REQUESTS; i++) {
		r[i] = gpul_net_request_take(table, table, 3, i % 2);
		assert_non_null(r[i]);
		assert_int_equal(gpul_net_request_parts(r[i]), i % 2 ? 1 : 3);
		assert_false(gpul_net_request_ended(r[i]));
	}
	assert_null(gpul_net_request_take(table, table, 1, true));
	gpul_net_request_free(r[17]);
	assert_ptr_equal(gpul_net_request_take(table, table, 1, true), r[17]);
	assert_null(gpul_net_request_take(table, table, 1, true));
	r[17]->n_ended = 1;
	assert_true(gpul_net_request_ended(r[17]));
	free(table);
}

/* ---- interfaces and settings ----------------------------------------------------------------------------------- */

static void interfaces_are_selected_as_nccl_does(void **state)
{
	/* clang-format off */
	static const struct { const char *rule, *name; bool matches; } cases[] = {
		{ "eth", "eth0", true }, { "eth", "veth0", false }, { "=eth", "eth0", false }, { "=eth0", "eth0", true },
		{ "ib,eth1", "eth1", true }, { "ib,eth1", "eth0", false }, { "^docker,lo", "lo", false }, { "^docker,lo", "docker0", false },
		{ "^docker,lo", "eth0", true }, { "^=eth0", "eth0", false }, { "^=eth0", "eth01", true }, { "eth0:3,ib", "ib2", true },
		{ "eth0:3,ib", "eth0", true }, { "", "eth0", false }, { "^", "eth0", true }, { ",,", "eth0", false }, { ":", "eth0", false },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (gpul_net_interface_matches(cases[i].rule, cases[i].name) != cases[i].matches)
			fail_msg("'%s' and %s", cases[i].rule, cases[i].name);
}

static void the_loop_back_interface_can_be_chosen(void **state)
{
	gpul_net_interface all[GPUL_NET_MAX_INTERFACES];
	gpul_error err = { 0 };
	unsigned n = 0;

	(void)state;
	assert_int_equal(gpul_net_interfaces_read("=lo", AF_INET, all, &n, NULL), GPUL_OK);
	assert_int_equal(n, 1);
	assert_string_equal(all[0].name, "lo");
	assert_string_equal(all[0].address, "127.0.0.1");
	assert_int_equal(gpul_net_interfaces_read("none-such", 0, all, &n, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "NCCL_SOCKET_IFNAME=none-such selects no interface"));
}

static void wrong_settings_are_named(void **state)
{
	gpul_net_options o;
	gpul_error err = { 0 };

	(void)state;
	setenv("GPULOAD_NET_QPS", "17", 1);
	assert_int_equal(gpul_net_options_read(&o, &err), GPUL_EINVAL);
	assert_string_equal(err.text, "GPULOAD_NET_QPS=17: expected a number from 1 to 16");
	setenv("GPULOAD_NET_QPS", "4", 1);
	setenv("GPULOAD_NET_LEASE_MS", "", 1);
	setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
	assert_int_equal(gpul_net_options_read(&o, NULL), GPUL_OK);
	assert_int_equal(o.n_qps, 4);
	assert_int_equal(o.lease_ms, 10000);
	assert_int_equal(o.family, AF_INET6);
	unsetenv("GPULOAD_NET_QPS");
	unsetenv("NCCL_SOCKET_FAMILY");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_is_read_as_written),
		cmocka_unit_test(a_handle_cannot_name_a_host_or_a_path),
		cmocka_unit_test(a_damaged_or_foreign_handle_is_refused),
		cmocka_unit_test(random_handles_do_no_harm),
		cmocka_unit_test(a_group_is_one_receive_if_its_tags_differ_and_it_is_small),
		cmocka_unit_test(requests_are_limited_and_used_again),
		cmocka_unit_test(interfaces_are_selected_as_nccl_does),
		cmocka_unit_test(the_loop_back_interface_can_be_chosen),
		cmocka_unit_test(wrong_settings_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
