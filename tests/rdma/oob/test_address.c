/* test_address.c — addresses as users write them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "tests/support/cmocka.h"
#include "rdma/oob/address.h"

static void reads_every_form(void **state)
{
	static const struct {
		const char *text, *host, *path;
		unsigned port;
		const char *printed;
	} cases[] = {
		{ "", "", "", 18515, ":18515" },
		{ "n1", "n1", "", 18515, "n1:18515" },
		{ "n1:80", "n1", "", 80, "n1:80" },
		{ ":0", "", "", 0, ":0" },
		{ "10.9.0.2:65535", "10.9.0.2", "", 65535, "10.9.0.2:65535" },
		{ "::1", "::1", "", 18515, "[::1]:18515" },
		{ "fe80::1%eth0", "fe80::1%eth0", "", 18515, "[fe80::1%eth0]:18515" },
		{ "[::1]", "::1", "", 18515, "[::1]:18515" },
		{ "[::1]:7", "::1", "", 7, "[::1]:7" },
		{ "unix:/run/x:1", "", "/run/x:1", 18515, "unix:/run/x:1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		gpul_rdma_address a;
		gpul_error err = { 0 };
		char printed[GPUL_RDMA_ADDRESS_BYTES];

		if (gpul_rdma_address_parse(cases[i].text, &a, &err))
			fail_msg("%s", err.text);
		assert_string_equal(a.host, cases[i].host);
		assert_string_equal(a.path, cases[i].path);
		assert_int_equal(a.port, cases[i].port);
		gpul_rdma_address_print(&a, printed);
		assert_string_equal(printed, cases[i].printed);
	}
}

static void refuses_wrong_addresses_with_the_reason(void **state)
{
	static const char *const cases[][2] = {
		{ "n1:", "address 'n1:': the port '' is not a number from 0 to 65535" },
		{ "n1:x", "the port 'x' is not a number" },
		{ "n1:-1", "the port '-1' is not a number" },
		{ "n1:65536", "the port '65536' is not a number from 0 to 65535" },
		{ "n1:99999999999999999999", "is not a number" },
		{ "[::1", "write an IPv6 address and its port as [ADDRESS]:PORT" },
		{ "[::1]7", "write an IPv6 address and its port as [ADDRESS]:PORT" },
		{ "[::1]:", "the port ''" },
		{ "unix:", "the path is missing" },
	};
	char text[400] = "unix:/";

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		gpul_rdma_address a = { .port = 1 };
		gpul_error err = { 0 };

		assert_int_equal(gpul_rdma_address_parse(cases[i][0], &a, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, cases[i][1]));
		assert_int_equal(a.port, 1);
	}
	for (int unix_form = 0; unix_form < 2; unix_form++) {
		gpul_rdma_address a;
		gpul_error err = { 0 };

		memset(text + 6, 'x', sizeof text - 7);
		assert_int_equal(gpul_rdma_address_parse(text + 6 * unix_form, &a, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, unix_form ? "the host has 393 characters, but the limit is 255"
							   : "the path has 394 characters, but the limit is 107"));
	}
}

static void prints_socket_addresses(void **state)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(8) };
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/run/x" };
	char out[GPUL_RDMA_ADDRESS_BYTES];

	(void)state;
	v4.sin_addr.s_addr = htonl(0x0a090002);
	gpul_rdma_sockaddr_print((struct sockaddr *)&v4, sizeof v4, out);
	assert_string_equal(out, "10.9.0.2:7");
	assert_int_equal(inet_pton(AF_INET6, "::ffff:10.9.0.2", &v6.sin6_addr), 1);
	gpul_rdma_sockaddr_print((struct sockaddr *)&v6, sizeof v6, out);
	assert_string_equal(out, "10.9.0.2:8");
	assert_int_equal(inet_pton(AF_INET6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1", &v6.sin6_addr), 1);
	v6.sin6_scope_id = UINT32_MAX;
	v6.sin6_port = htons(65535);
	gpul_rdma_sockaddr_print((struct sockaddr *)&v6, sizeof v6, out);
	assert_string_equal(out, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1%4294967295]:65535");
	gpul_rdma_sockaddr_print((struct sockaddr *)&un, sizeof un, out);
	assert_string_equal(out, "unix:/run/x");
	memset(un.sun_path, 'y', sizeof un.sun_path);
	gpul_rdma_sockaddr_print((struct sockaddr *)&un, sizeof un, out);
	assert_int_equal(strlen(out), sizeof out - 1);
	gpul_rdma_sockaddr_print((struct sockaddr *)&un, sizeof un.sun_family, out);
	assert_string_equal(out, "unix:");
	gpul_rdma_sockaddr_print(&(struct sockaddr){ .sa_family = 99 }, sizeof(struct sockaddr), out);
	assert_string_equal(out, "?");
}

static void resolves_names_and_numbers(void **state)
{
	gpul_rdma_address a = { .host = "127.0.0.1", .port = 9 };
	gpul_rdma_resolved r;
	gpul_error err = { 0 };
	char out[GPUL_RDMA_ADDRESS_BYTES];

	(void)state;
	assert_int_equal(gpul_rdma_address_resolve(&a, false, &r, &err), GPUL_OK);
	assert_int_equal(r.n, 1);
	gpul_rdma_sockaddr_print((struct sockaddr *)&r.sockaddrs[0].at, r.sockaddrs[0].bytes, out);
	assert_string_equal(out, "127.0.0.1:9");
	a.host[0] = '\0';
	assert_int_equal(gpul_rdma_address_resolve(&a, true, &r, &err), GPUL_OK);
	gpul_rdma_sockaddr_print((struct sockaddr *)&r.sockaddrs[0].at, r.sockaddrs[0].bytes, out);
	assert_string_equal(out, "[::]:9");
	assert_int_equal(gpul_rdma_address_resolve(&a, false, &r, &err), GPUL_OK);
	assert_true(r.n >= 1);
	strcpy(a.host, "fe80::1%nosuchif");
	r.n = 99;
	assert_int_equal(gpul_rdma_address_resolve(&a, false, &r, &err), GPUL_ESYS);
	assert_int_equal(r.n, 99);
	assert_non_null(strstr(err.text, "host name 'fe80::1%nosuchif': "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_form),
		cmocka_unit_test(refuses_wrong_addresses_with_the_reason),
		cmocka_unit_test(prints_socket_addresses),
		cmocka_unit_test(resolves_names_and_numbers),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
