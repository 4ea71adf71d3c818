/* test_table.c — files of measured choices: valid files are read, and errors are reported with the number of the line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/table.h"

#define ROW "NVIDIA H200,2,device,allreduce,8192,oneshot,ll,8,256,4.6,node7,2026-11-23\n"

static char path[] = "/tmp/test-table-XXXXXX";

static gpul_status read_text(const char *text, size_t n, gpul_comm_table *out, gpul_error *err)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	*err = (gpul_error){ 0 };
	return gpul_comm_table_read(path, out, err);
}

static void rows_are_read_in_full(void **state)
{
	static const char text[] = GPUL_COMM_TABLE_HEADER
		"\n" ROW "NVIDIA H200,2,device,allreduce,1048576,direct,simple,32,512,9,node7,2026-11-23\n"
		"NVIDIA H200,4,device,allreduce,8,oneshot,ll,1,32,0.5,x,y\n"
		"other,2,host,sendrecv,1,direct,ll128,64,1024,1e3,x,y"; /* the last line has no newline */
	gpul_comm_table t;
	gpul_error err;

	(void)state;
	assert_int_equal(read_text(text, sizeof text - 1, &t, &err), GPUL_OK);
	assert_int_equal(t.n_rows, 4);
	assert_string_equal(t.rows[0].device, "NVIDIA H200");
	assert_string_equal(t.rows[0].host, "node7");
	assert_string_equal(t.rows[0].date, "2026-11-23");
	assert_true(t.rows[0].n_ranks == 2 && t.rows[0].transport == GPUL_COMM_DEVICE && t.rows[0].call == GPUL_COMM_ALLREDUCE &&
		    t.rows[0].max_bytes == 8192 && t.rows[0].algo == GPUL_COMM_ONE_SHOT && t.rows[0].proto == GPUL_COMM_LL &&
		    t.rows[0].n_blocks == 8 && t.rows[0].n_threads == 256 && t.rows[0].us > 4.59 && t.rows[0].us < 4.61);
	assert_true(t.rows[2].n_ranks == 4 && t.rows[3].transport == GPUL_COMM_HOST && t.rows[3].proto == GPUL_COMM_LL128);
	gpul_comm_table_free(&t);
	gpul_comm_table_free(&t);
	assert_int_equal(read_text(GPUL_COMM_TABLE_HEADER "\n", sizeof GPUL_COMM_TABLE_HEADER, &t, &err), GPUL_OK);
	assert_true(t.n_rows == 0);
}

static void errors_name_the_file_the_line_and_what_is_expected(void **state)
{
	static const struct {
		const char *row, *expected;
	} wrong[] = {
		{ "\n", ":3: the line has 1 columns instead of 12" },
		{ "H200,2,device,allreduce,8192,oneshot,ll,8,256,4.6,node7\n", ":3: the line has 11 columns instead of 12" },
		{ "H200,2,device,allreduce,8192,oneshot,ll,8,256,4.6,node7,d,\n", ":3: the line has 13 columns instead of 12" },
		{ ",2,device,allreduce,8192,oneshot,ll,8,256,4.6,node7,d\n", ":3: device '': the column is empty" },
		{ "H200,two,device,allreduce,8192,oneshot,ll,8,256,4.6,node7,d\n", ":3: ranks 'two': expected a decimal number" },
		{ "H200,1,device,allreduce,8192,oneshot,ll,8,256,4.6,node7,d\n", ":3: ranks '1': expected a number from 2 to 32" },
		{ "H200,33,device,allreduce,8192,oneshot,ll,8,256,4.6,node7,d\n", ":3: ranks '33': expected a number from 2 to 32" },
		{ "H200,2,auto,allreduce,8192,oneshot,ll,8,256,4.6,node7,d\n", ":3: transport 'auto': expected device, host or net" },
		{ "H200,2,device,reduce,8192,oneshot,ll,8,256,4.6,node7,d\n", ":3: call 'reduce': sendrecv, alltoall" },
		{ "H200,2,device,allreduce,-1,oneshot,ll,8,256,4.6,node7,d\n", ":3: up_to_bytes '-1': expected a decimal number" },
		{ "H200,2,device,allreduce,99999999999999999999,oneshot,ll,8,256,4.6,node7,d\n", ":3: up_to_bytes" },
		{ "H200,2,device,allreduce,9216,auto,ll,8,256,4.6,node7,d\n",
		  ":3: algorithm 'auto': expected ring, oneshot, direct, tree or twolevel" },
		{ "H200,2,device,allreduce,9216,oneshot,LL,8,256,4.6,node7,d\n", ":3: protocol 'LL': expected ll, ll128 or simple" },
		{ "H200,2,device,sendrecv,9216,oneshot,ll,8,256,4.6,node7,d\n",
		  ":3: there is no sendrecv with algorithm oneshot and protocol ll" },
		{ "H200,2,device,allreduce,9216,oneshot,ll,0,256,4.6,node7,d\n", ":3: blocks '0': expected a number from 1 to 64" },
		{ "H200,2,device,allreduce,9216,oneshot,ll,8,1056,4.6,node7,d\n", ":3: threads '1056': expected a number from 32 to 1024" },
		{ "H200,2,device,allreduce,9216,oneshot,ll,8,100,4.6,node7,d\n", ":3: threads '100': expected a multiple of 32" },
		{ "H200,2,device,allreduce,9216,oneshot,ll,8,256,-4,node7,d\n", ":3: us '-4': expected a number of at least 0" },
		{ "H200,2,device,allreduce,9216,oneshot,ll,8,256,4us,node7,d\n", ":3: us '4us': expected a number of at least 0" },
		{ "H200,2,device,allreduce,9216,oneshot,ll,8,256,4.6,,d\n", ":3: host '': the column is empty" },
		{ "H200,2,device,allreduce,9216,oneshot,ll,8,256,4.6,x,23rd of November\n",
		  ":3: date '23rd of November': the text is too long" },
		{ ROW, ":3: up_to_bytes 8192 of allreduce is not greater than the 8192 of an earlier row" },
	};
	char text[1024];
	gpul_comm_table t;
	gpul_error err;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const int n = snprintf(text, sizeof text, "%s\n" ROW "%s", GPUL_COMM_TABLE_HEADER, wrong[i].row);

		assert_int_equal(read_text(text, (size_t)n, &t, &err), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, wrong[i].expected));
		assert_true(strncmp(err.text, path, strlen(path)) == 0);
		assert_true(t.n_rows == 0 && !t.rows);
	}
}

static void other_files_are_refused(void **state)
{
	static const char line[] = GPUL_COMM_TABLE_HEADER "\n" ROW;
	char big[4096];
	gpul_comm_table t;
	gpul_error err;

	(void)state;
	memset(big, 'x', sizeof big);
	assert_int_equal(read_text(big, sizeof big, &t, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, ":1: the line is longer than"));
	assert_int_equal(read_text("a,b\n", 4, &t, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, ":1: the first line must be this header: device,ranks,"));
	memcpy(big, line, sizeof line); /* the copy includes the NUL */
	assert_int_equal(read_text(big, sizeof line + 9, &t, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, ":3: the line is longer than"));
	assert_int_equal(read_text("", 0, &t, &err), GPUL_EFORMAT);
	assert_int_equal(gpul_comm_table_read("/no/such/file", &t, &err), GPUL_ESYS);
}

/* No row is lost when the list grows by doubling. */
static void many_rows_are_read(void **state)
{
	enum { N = 1000 };
	static char text[N * 100];
	size_t n = (size_t)snprintf(text, sizeof text, "%s\n", GPUL_COMM_TABLE_HEADER);
	gpul_comm_table t;
	gpul_error err;

	(void)state;
	for (unsigned i = 1; i <= N; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "d,2,host,allreduce,%u,oneshot,ll,1,32,1,h,d\n", i);
	assert_int_equal(read_text(text, n, &t, &err), GPUL_OK);
	assert_int_equal(t.n_rows, N);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(t.rows[i].max_bytes, i + 1);
	gpul_comm_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read_in_full),
		cmocka_unit_test(errors_name_the_file_the_line_and_what_is_expected),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(many_rows_are_read),
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
