/* test_share.c — texts about shared memory, and the command line of gpuload share. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "cli/share/share.h"

static void sizes_are_printed_in_a_suitable_unit(void **state)
{
	static const struct {
		size_t bytes;
		const char *said;
	} rows[] = {
		{ 1, "1 byte" },
		{ 1000, "1000 bytes" },
		{ 1024, "1 KiB" },
		{ 1536, "1.5 KiB" },
		{ 64 << 20, "64 MiB" },
		{ (size_t)3 << 30, "3 GiB" },
		{ SIZE_MAX, "1.678e+07 TiB" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char buf[SHARE_SIZE_BYTES];

		assert_string_equal(share_size_text(rows[i].bytes, buf), rows[i].said);
	}
}

static void shapes_are_printed_with_gpuload_types(void **state)
{
	gpul_ipc_shape shape = { .dtype = "<f4", .n_dims = 2, .dim = { 3, 1024 } };
	char buf[SHARE_SHAPE_BYTES];

	(void)state;
	assert_string_equal(share_shape_text(&shape, buf), "f32 3x1024");
	assert_int_equal(share_type(&shape), GPUL_F32);
	strcpy(shape.dtype, "<c16"); /* a type of NumPy that gpuload does not support */
	assert_string_equal(share_shape_text(&shape, buf), "<c16 3x1024");
	assert_int_equal(share_type(&shape), GPUL_TYPE_NONE);
	shape = (gpul_ipc_shape){ .dtype = "<f8", .n_dims = GPUL_IPC_MAX_DIMS };
	for (int i = 0; i < GPUL_IPC_MAX_DIMS; i++)
		shape.dim[i] = UINT64_MAX;
	assert_true(strlen(share_shape_text(&shape, buf)) < SHARE_SHAPE_BYTES - 1); /* the text is not truncated */
	shape.n_dims = 0;
	assert_string_equal(share_shape_text(&shape, buf), "bytes");
}

static void process_names_match_ps(void **state)
{
	char buf[SHARE_COMMAND_BYTES];

	(void)state;
	assert_string_equal(share_command_text(getpid(), buf), "test_share");
	assert_string_equal(share_command_text(0, buf), "-");
	assert_string_equal(share_command_text(-1, buf), "-");
}

/* Parse a command line of gpuload share. */
static gpul_status parse_request(const char **words, struct share_request *q, gpul_error *err)
{
	struct cli_args args;
	size_t n = 0;
	gpul_status st;

	while (words[n])
		n++;
	st = cli_parse(cli_share.opts, (char *const *)words, n, &args, err);
	if (st == GPUL_OK)
		st = share_request_make(&args, q, err);
	cli_args_free(&args);
	return st;
}
#define WORDS(...) ((const char *[]){ __VA_ARGS__, NULL })

static void computes_the_size_from_shape_and_type(void **state)
{
	struct share_request q;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(parse_request(WORDS("w", "--fill", "f64=ones", "--shape", "3,1K"), &q, &err), GPUL_OK);
	assert_int_equal(q.bytes, 3 * 1024 * 8);
	assert_string_equal(q.shape.dtype, "<f8");
	assert_int_equal(q.shape.n_dims, 2);
	assert_int_equal(q.shape.dim[1], 1024);
	assert_string_equal(q.fill, "ones");
	assert_null(q.data);
	share_request_free(&q);

	assert_int_equal(parse_request(WORDS("w", "--fill", "u16=iota", "--bytes", "4K"), &q, &err), GPUL_OK);
	assert_int_equal(q.shape.n_dims, 1);
	assert_int_equal(q.shape.dim[0], 2048);
	share_request_free(&q);

	assert_int_equal(parse_request(WORDS("w", "--bytes", "3G", "--kind", "device"), &q, &err), GPUL_OK);
	assert_int_equal(q.bytes, (size_t)3 << 30);
	assert_int_equal(q.shape.n_dims, 0);
	assert_string_equal(q.shape.dtype, "");
	assert_int_equal(q.node, GPUL_MEM_NODE_OF_GPU);
	assert_int_equal(q.for_ms, -1);
	share_request_free(&q);
}

static void file_sets_contents_type_and_shape(void **state)
{
	struct share_request q;
	gpul_error err = { 0 };
	char path[] = "/tmp/test_share.XXXXXX", at[sizeof path + 8];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "12345678", 8), 8);
	close(fd);
	snprintf(at, sizeof at, "u16=@%s", path);
	assert_int_equal(parse_request(WORDS("w", "--fill", at), &q, &err), GPUL_OK);
	assert_int_equal(q.bytes, 8);
	assert_int_equal(q.shape.dim[0], 4);
	assert_memory_equal(q.data, "12345678", 8);
	share_request_free(&q);
	assert_int_equal(parse_request(WORDS("w", "--from", path), &q, &err), GPUL_OK);
	assert_int_equal(q.bytes, 8);
	assert_int_equal(q.shape.n_dims, 0);
	assert_memory_equal(q.data, "12345678", 8);
	share_request_free(&q);
	assert_int_equal(parse_request(WORDS("w", "--from", path, "--bytes", "9"), &q, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "8 bytes, but --bytes is 9"));
	assert_null(q.data);
	unlink(path);
}

static void explains_why_a_name_cannot_be_attached(void **state)
{
	const gpul_error dead = { GPUL_ESYS, ECONNREFUSED, "connect: Connection refused" }, other = { GPUL_EUNSUPPORTED, 0, "refused: no" };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(share_explain("w", &dead, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "'w' is no longer shared"));
	err = (gpul_error){ 0 };
	assert_int_equal(share_explain("w", &other, &err), GPUL_EUNSUPPORTED);
	assert_string_equal(err.text, "refused: no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_printed_in_a_suitable_unit),
		cmocka_unit_test(shapes_are_printed_with_gpuload_types),
		cmocka_unit_test(process_names_match_ps),
		cmocka_unit_test(computes_the_size_from_shape_and_type),
		cmocka_unit_test(file_sets_contents_type_and_shape),
		cmocka_unit_test(explains_why_a_name_cannot_be_attached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
