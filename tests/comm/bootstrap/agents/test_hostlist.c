/* test_hostlist.c — lists of hosts, and errors in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/agents/hostlist.h"

/* Format a parsed list as "HOST:SLOTS,...", such as "a:2,b:1". */
static const char *text_of(const gpul_comm_hosts *hosts)
{
	static char text[1024];
	size_t n = 0;
	int sum = 0;

	for (int i = 0; i < hosts->n; i++) {
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%d", i ? " " : "", hosts->at[i].name, hosts->at[i].n_ranks);
		sum += hosts->at[i].n_ranks;
	}
	assert_int_equal(sum, hosts->n_ranks);
	return text;
}

static void parses_lists(void **state)
{
	static const char *const cases[][2] = {
		{ "a", "a=1" },
		{ "a:2,b:30", "a=2 b=30" },
		{ "me@node-1.x,10.0.0.1:3", "me@node-1.x=1 10.0.0.1=3" },
		{ "fd00::1,[fd00::2]:4,[fd00::3]", "fd00::1=1 fd00::2=4 fd00::3=1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_hosts hosts;
		gpul_error err = { 0 };

		if (gpul_comm_hosts_parse(cases[i][0], &hosts, &err))
			fail_msg("%s: %s", cases[i][0], err.text);
		assert_string_equal(text_of(&hosts), cases[i][1]);
	}
}

static void refuses_malformed_lists(void **state)
{
	static const char *const cases[][2] = {
		{ "", "invalid host name ''" },
		{ "a,,b", "invalid host name ''" },
		{ "-oProxyCommand=x", "invalid host name '-oProxyCommand=x'" },
		{ "a b", "invalid host name 'a b'" },
		{ "$(id)", "invalid host name" },
		{ "a:", "invalid number of ranks '' for host a: expected 1 to 32" },
		{ "a:0", "invalid number of ranks '0' for host a" },
		{ "a:33", "invalid number of ranks '33' for host a" },
		{ "a:2x", "invalid number of ranks '2x' for host a" },
		{ "a:2,b,a:3", "host a is listed twice" },
		{ "a:32,b", "more than 32 ranks" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_hosts hosts = { .n = 77 };
		gpul_error err = { 0 };

		if (!gpul_comm_hosts_parse(cases[i][0], &hosts, &err) || !strstr(err.text, cases[i][1]))
			fail_msg("%s: expected '%s': %s", cases[i][0], cases[i][1], err.text);
		assert_int_equal(hosts.n, 77);
	}
}

/* Write a text to a file, and read it as a list. */
static gpul_status read_text(const char *text, gpul_comm_hosts *out, gpul_error *err)
{
	char path[] = "/tmp/gpul-hosts-XXXXXX";
	const int fd = mkstemp(path);
	gpul_status st;

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	st = gpul_comm_hosts_read(path, out, err);
	unlink(path);
	return st;
}

static void reads_host_files(void **state)
{
	gpul_comm_hosts hosts;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(read_text("# two hosts\nnode1 slots=2\n\n  node2\tslots=3  # big\nnode3:4\nnode4", &hosts, &err), GPUL_OK);
	assert_string_equal(text_of(&hosts), "node1=2 node2=3 node3=4 node4=1");
	assert_int_equal(read_text("node1\nnode2 max=3\n", &hosts, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "line 2: invalid line 'max=3'"));
	err = (gpul_error){ 0 };
	assert_int_equal(read_text("#\n", &hosts, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "contains no host"));
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_comm_hosts_read("/nowhere/hosts", &hosts, &err), GPUL_ESYS);
	assert_string_equal(err.text, "/nowhere/hosts: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_lists),
		cmocka_unit_test(refuses_malformed_lists),
		cmocka_unit_test(reads_host_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
