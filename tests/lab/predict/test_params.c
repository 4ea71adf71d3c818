/* test_params.c — reads files with measured costs, and looks up links such as nvlink4 by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "lab/predict/params.h"

static char path[] = "/tmp/test-params-XXXXXX";

static void write_lines(const char *lines)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	(void)fputs(lines, f);
	assert_int_equal(fclose(f), 0);
}

static void rows_are_read_and_applied(void **state)
{
	gpul_comm_machine m = { .n_ranks = 8, .ranks_per_host = 8 };
	gpul_comm_params p;
	gpul_error err = { 0 };

	(void)state;
	write_lines(GPUL_COMM_PARAMS_HEADER "\n"
					    "soft GPU,device,ll,2,10,3.5,1,0.5,3,4096,node,2026-11-23\n"
					    "soft GPU,device,simple,2,11,4,2,0.25,3,32768,node,2026-11-23\n"
					    "soft GPU,host,simple,2,12,5,3,0.125,3,32768,node,2026-11-23\n");
	assert_int_equal(gpul_comm_params_read(path, &p, &err), GPUL_OK);
	assert_int_equal(p.n_rows, 3);
	assert_string_equal(p.rows[1].device, "soft GPU");
	assert_true(gpul_comm_params_apply(&p, GPUL_COMM_DEVICE, &m));
	assert_int_equal((int)m.cores, 2);
	assert_true(fabs(m.inside[GPUL_COMM_SIMPLE].us_per_byte - 4e-3) < 1e-12);
	assert_true(fabs(m.inside[GPUL_COMM_LL].latency_us - 3.5) < 1e-12);
	assert_true(m.inside[GPUL_COMM_LL128].step_bytes <= 0);
	assert_true(gpul_comm_params_apply(&p, GPUL_COMM_HOST, &m));
	assert_true(fabs(m.inside[GPUL_COMM_SIMPLE].overhead_us - 12) < 1e-12);
	assert_false(gpul_comm_params_apply(gpul_comm_params_built_in(), GPUL_COMM_HOST, &m));
}

static void errors_name_the_line_the_column_and_what_is_expected(void **state)
{
	static const struct {
		const char *row, *text;
	} cases[] = {
		{ "G,device,ll,2,10,3,1,0.5,3,4096,node\n", ":2: the line has 11 columns instead of 12" },
		{ "G,disk,ll,2,10,3,1,0.5,3,4096,node,d\n", ":2: transport 'disk'" },
		{ "G,device,l,2,10,3,1,0.5,3,4096,node,d\n", ":2: protocol 'l': expected ll, ll128 or simple" },
		{ "G,device,ll,-2,10,3,1,0.5,3,4096,node,d\n", ":2: cores '-2'" },
		{ "G,device,ll,2x,10,3,1,0.5,3,4096,node,d\n", ":2: cores '2x'" },
		{ "G,device,ll,2,0,3,1,0.5,3,4096,node,d\n", ":2: overhead_us '0': expected a positive number" },
		{ "G,device,ll,2,1,nan,1,0.5,3,4096,node,d\n", ":2: latency_us 'nan'" },
		{ "G,device,ll,2,1,3,-1,0.5,3,4096,node,d\n", ":2: gap_us '-1'" },
		{ "G,device,ll,2,1,3,1,inf,3,4096,node,d\n", ":2: gb_per_s 'inf'" },
		{ "G,device,ll,2,1,3,1,1,0,4096,node,d\n", ":2: reduce_gb_per_s '0'" },
		{ "G,device,ll,2,1,3,1,1,3,4k,node,d\n", ":2: step_bytes '4k'" },
		{ "G,device,ll,2,1,3,1,1,3,4,node,d\nG,device,ll,2,1,3,1,1,3,4,node,d\n",
		  ":3: there is already a row for transport device and protocol ll" },
		{ "", "has no parameters" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[1024];
		gpul_comm_params p;
		gpul_error err = { 0 };

		(void)snprintf(text, sizeof text, GPUL_COMM_PARAMS_HEADER "\n%s", cases[i].row);
		write_lines(text);
		assert_int_equal(gpul_comm_params_read(path, &p, &err), GPUL_EFORMAT);
		if (!strstr(err.text, cases[i].text))
			fail_msg("'%s' instead of '%s'", err.text, cases[i].text);
		assert_int_equal(p.n_rows, 0);
	}
	write_lines("device,ranks\n");
	gpul_comm_params p;
	gpul_error err = { 0 };

	assert_int_equal(gpul_comm_params_read(path, &p, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, ":1: the first line must be this header: device,transport"));
	assert_int_equal(gpul_comm_params_read("/nowhere/at/all", &p, NULL), GPUL_ESYS);
}

static void links_have_names_or_two_numbers(void **state)
{
	static const char *const wrong[] = { "",      "warp",  "2.5",     "2.5:",  ":45",   "0:45",
					     "2.5:0", "-1:45", "2.5:45x", "nan:1", "1:inf", "2:1e10" };
	gpul_comm_link link = { 0 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_comm_link_parse("ndr", true, &link, &err), GPUL_OK);
	assert_string_equal(link.name, "ndr");
	assert_false(link.memory);
	assert_int_equal(gpul_comm_link_parse("2.5:45", true, &link, &err), GPUL_OK);
	assert_true(link.memory && fabs(link.latency_us - 2.5) < 1e-12 && fabs(link.gb_per_s - 45) < 1e-12);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		err = (gpul_error){ 0 };
		assert_int_equal(gpul_comm_link_parse(wrong[i], false, &link, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, "nvlink4"));
	}
}

/* Compared with the link, protocol LL has half the bandwidth; Simple between GPUs has twice the latency, because of its fence; a network
 * has only Simple. */
static void the_costs_of_a_link_follow_from_its_two_numbers(void **state)
{
	const gpul_comm_costs like[GPUL_COMM_N_PROTOS] = { { 0 }, { 1, 9, 2, 9, 0, 100 }, { 1, 9, 2, 9, 0, 100 }, { 1, 9, 3, 9, 0, 200 } };
	gpul_comm_costs out[GPUL_COMM_N_PROTOS];
	gpul_comm_link link = { "", 4, 2, true };

	(void)state;
	gpul_comm_link_costs(&link, like, out);
	assert_true(fabs(out[GPUL_COMM_LL].us_per_byte - 1e-3) < 1e-12 && fabs(out[GPUL_COMM_LL].latency_us - 4) < 1e-12);
	assert_true(fabs(out[GPUL_COMM_SIMPLE].us_per_byte - 5e-4) < 1e-12 && fabs(out[GPUL_COMM_SIMPLE].latency_us - 8) < 1e-12);
	assert_true(fabs(out[GPUL_COMM_SIMPLE].gap_us - 3) < 1e-12 && fabs(out[GPUL_COMM_SIMPLE].step_bytes - 200) < 1e-12);
	link.memory = false;
	gpul_comm_link_costs(&link, like, out);
	assert_true(out[GPUL_COMM_LL].step_bytes <= 0 && out[GPUL_COMM_LL128].step_bytes <= 0);
	assert_true(fabs(out[GPUL_COMM_SIMPLE].latency_us - 4) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read_and_applied),
		cmocka_unit_test(errors_name_the_line_the_column_and_what_is_expected),
		cmocka_unit_test(links_have_names_or_two_numbers),
		cmocka_unit_test(the_costs_of_a_link_follow_from_its_two_numbers),
	};
	const int fd = mkstemp(path);
	int failed;

	if (fd < 0)
		return 1;
	(void)close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
