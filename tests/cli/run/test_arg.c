/* test_arg.c — kernel arguments, fills and .npy files as written on the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "cli/run/arg.h"
#include "cli/lib/npy.h"
#include "cli/lib/value.h"

static char folder[] = "/tmp/gpuload-test-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	return system(command);
}

static const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(in_folder(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Parse an ARG and compare its first n elements, printed as text. */
static void expect_elements(const char *text, size_t n, const char *elements)
{
	struct arg a;
	gpul_error err = { 0 };
	char all[512] = "", one[VALUE_TEXT_BYTES];

	if (arg_parse(text, folder, &a, &err))
		fail_msg("%s: %s", text, err.text);
	for (size_t i = 0; i < n; i++) {
		if (i)
			strcat(all, " ");
		strcat(all, value_print(a.type, a.data + i * gpul_type_bytes(a.type), one));
	}
	assert_string_equal(all, elements);
	arg_free(&a);
}

static void expect_refused(const char *text, gpul_status status, const char *why)
{
	struct arg a;
	gpul_error err = { 0 };

	if (arg_parse(text, folder, &a, &err) != status)
		fail_msg("%s: status %d, text '%s'", text, (int)err.status, err.text);
	if (!strstr(err.text, why))
		fail_msg("%s: expected '%s' in: %s", text, why, err.text);
	assert_null(a.data);
}

static void parses_scalars(void **state)
{
	struct arg a;

	(void)state;
	expect_elements("i32=1024", 1, "1024");
	expect_elements("f32=0.5", 1, "0.5");
	expect_elements("u64=0xff", 1, "255");
	expect_elements("i8=-5", 1, "-5");
	assert_int_equal(arg_parse("i16=7", NULL, &a, NULL), GPUL_OK);
	assert_int_equal(a.kind, ARG_SCALAR);
	assert_int_equal(a.bytes, 2);
	arg_free(&a);
}

static void parses_buffers_with_every_fill(void **state)
{
	(void)state;
	expect_elements("f64[4]=zeros", 4, "0 0 0 0");
	expect_elements("i8[3]=ones", 3, "1 1 1");
	expect_elements("f32[2]=-1.5", 2, "-1.5 -1.5");
	expect_elements("u16[2]=0xffff", 2, "65535 65535");
	expect_elements("in:i32[4]=iota", 4, "0 1 2 3");
	expect_elements("i32[4]=iota:-1", 4, "-1 0 1 2");
	expect_elements("f32[4]=iota:1:0.25", 4, "1 1.25 1.5 1.75");
	expect_elements("i32[3]=iota:10:-5", 3, "10 5 0");
	expect_elements("inout:u8[258]=iota:254", 4, "254 255 0 1"); /* integers wrap around */
}

static void rand_gives_the_same_numbers_on_every_machine(void **state)
{
	(void)state;
	/* The published first outputs of splitmix64 for seed 0: e220a8397b1dcdaf 6e789e6aa1b965f4 ... */
	expect_elements("u64[3]=rand", 3, "16294208416658607535 7960286522194355700 487617019471545679");
	expect_elements("u64[1]=rand:0", 1, "16294208416658607535");
	expect_elements("f64[2]=rand", 2, "0.8833108082136426 0.43152799704850997");
	expect_elements("u8[2]=rand", 2, "175 244");
	expect_elements("u64[2]=rand:1", 2, "10451216379200822465 13757245211066428519");
}

/* Describes what a kernel does to byte i of a buffer: returns true if it writes the value *to. */
typedef bool writes_byte(size_t i, unsigned char *to);

static bool writes_none(size_t i, unsigned char *to)
{
	(void)i;
	(void)to;
	return false;
}

static bool writes_first(size_t i, unsigned char *to)
{
	*to = 7;
	return i == 0;
}

static bool writes_all_but_a_pair(size_t i, unsigned char *to)
{
	*to = 7;
	return i / 2 != 5;
}

static bool writes_constant(size_t i, unsigned char *to)
{
	(void)i;
	*to = 0xA5;
	return true;
}

static bool writes_index(size_t i, unsigned char *to)
{
	*to = (unsigned char)i;
	return true;
}

/* Return the number of unwritten elements of out:TYPE[COUNT] after a kernel; check that each element is classified correctly. */
static size_t count_unwritten(const char *text, writes_byte *writes)
{
	struct arg a;
	size_t n = 0, bytes;

	assert_int_equal(arg_parse(text, NULL, &a, NULL), GPUL_OK);
	bytes = gpul_type_bytes(a.type);
	for (size_t i = 0; i < a.bytes; i++) {
		unsigned char to;

		if (writes(i, &to))
			a.data[i] = to;
	}
	arg_examine(&a);
	for (size_t i = 0; i < a.count; i++) {
		bool is_unwritten = arg_unwritten(&a, i);
		unsigned char to;

		if (is_unwritten && writes(i * bytes, &to))
			fail_msg("%s: element %zu was written", text, i);
		n += is_unwritten;
	}
	arg_free(&a);
	return n;
}

static void unwritten_elements_are_found_by_element(void **state)
{
	static const char *const texts[] = { "out:u8[1]",   "out:u8[1000]",  "out:i16[1]",   "out:f16[1000]",
					     "out:bf16[3]", "out:f32[1000]", "out:f64[1000]" };
	static const size_t counts[] = { 1, 1000, 1, 1000, 3, 1000, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(count_unwritten(texts[i], writes_none), counts[i]);
		assert_int_equal(count_unwritten(texts[i], writes_first), counts[i] - 1);
		assert_int_equal(count_unwritten(texts[i], writes_constant), 0);
		assert_int_equal(count_unwritten(texts[i], writes_index), 0);
	}
	assert_int_equal(count_unwritten("out:u8[64]", writes_all_but_a_pair), 2);
	assert_int_equal(count_unwritten("out:i16[1000]", writes_all_but_a_pair), 1);
	assert_int_equal(count_unwritten("out:u8[1000000]", writes_constant), 0);
	assert_int_equal(count_unwritten("out:u16[1000000]", writes_index), 0);
}

static void every_second_byte_is_unwritten(void **state)
{
	struct arg a;

	(void)state;
	assert_int_equal(arg_parse("out:u8[64]", NULL, &a, NULL), GPUL_OK);
	for (size_t i = 0; i < a.bytes; i++)
		if (i % 2 == 0)
			a.data[i] = (unsigned char)(arg_poison(i) ^ 1);
	arg_examine(&a);
	for (size_t i = 0; i < a.count; i++)
		assert_int_equal(arg_unwritten(&a, i), i % 2);
	arg_free(&a);
}

static void parses_structs_as_bytes(void **state)
{
	struct arg a;

	(void)state;
	assert_int_equal(arg_parse("hex:00ffA0", NULL, &a, NULL), GPUL_OK);
	assert_int_equal(a.kind, ARG_BYTES);
	assert_int_equal(a.bytes, 3);
	assert_memory_equal(a.data, "\x00\xff\xa0", 3);
	arg_free(&a);
	write_file("struct", "abcde", 5);
	assert_int_equal(arg_parse("bytes=@struct", folder, &a, NULL), GPUL_OK);
	assert_int_equal(a.bytes, 5);
	arg_free(&a);
	expect_refused("hex:0", GPUL_EINVAL, "even number");
	expect_refused("hex:", GPUL_EINVAL, "even number");
	expect_refused("hex:0g", GPUL_EINVAL, "even number");
	expect_refused("bytes=12", GPUL_EINVAL, "needs @FILE");
	expect_refused("bytes=@nothing", GPUL_ESYS, "no such file");
}

static void refuses_malformed_arguments(void **state)
{
	static const char *const bad[] = { "",
					   "1024",
					   "out:",
					   "f64",
					   "[4]",
					   "=",
					   "out:f64=3",
					   "f64[4",
					   "f64[4]x",
					   "f64[4]=iota:",
					   "f64[4]=iota:1:2:3",
					   "f64[4]=rand:x",
					   "f64[4]=",
					   "f64[]",
					   "f64[]=iota",
					   "f64[0]=ones",
					   "f64[-1]=ones",
					   "out:f64[]",
					   "f64[4]",
					   "out:f64[4]=ones",
					   "i8[4]=300",
					   "i8[4]=iota:300",
					   "f65[4]=ones",
					   "int=4",
					   "inout:out:f32[4]=1",
					   "f32[4]=nonsense" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct arg a;
		gpul_error err = { 0 };

		if (arg_parse(bad[i], NULL, &a, &err) != GPUL_EINVAL)
			fail_msg("'%s' gave status %d (%s)", bad[i], (int)err.status, err.text);
		assert_true(strlen(err.text) > 20);
		assert_null(strchr(err.text, '\n'));
	}
	expect_refused("i8=300", GPUL_EINVAL, "-128 to 127");
	expect_refused("q8=3", GPUL_EINVAL, "unknown type 'q8'");
	expect_refused("f64[900000000000]=zeros", GPUL_ENOMEM, "memory");
}

static void reads_raw_files_and_checks_their_size(void **state)
{
	float f[] = { 1, 2.5f, -3 };

	(void)state;
	write_file("raw", f, sizeof f);
	expect_elements("f32[3]=@raw", 3, "1 2.5 -3");
	expect_elements("f32[]=@raw", 3, "1 2.5 -3");
	expect_refused("f32[4]=@raw", GPUL_EFORMAT, "contains 3 elements of type f32, but the buffer has 4");
	expect_refused("f64[]=@raw", GPUL_EFORMAT, "size 12 is not a multiple of 8 bytes (f64)");
	expect_refused("f32[3]=@nothing", GPUL_ESYS, "no such file");
	expect_refused("f32[3]=@.", GPUL_ESYS, "is a directory");
	write_file("empty", "", 0);
	expect_refused("f32[]=@empty", GPUL_EFORMAT, "is empty");
}

static void reads_the_npy_files_that_it_writes(void **state)
{
	struct arg a, b;
	char text[64];

	(void)state;
	for (int t = GPUL_I8; t < GPUL_N_TYPES; t++) {
		snprintf(text, sizeof text, "%s[37]=rand:%d", gpul_type_name((gpul_type)t), t);
		assert_int_equal(arg_parse(text, NULL, &a, NULL), GPUL_OK);
		assert_int_equal(npy_write(in_folder("a.npy"), a.type, a.data, a.count, NULL), GPUL_OK);
		snprintf(text, sizeof text, "%s[]=@a.npy", gpul_type_name((gpul_type)t));
		assert_int_equal(arg_parse(text, folder, &b, NULL), GPUL_OK);
		assert_int_equal(b.count, 37);
		assert_memory_equal(a.data, b.data, a.bytes);
		arg_free(&a);
		arg_free(&b);
	}
	expect_refused("f32[37]=@a.npy", GPUL_EFORMAT, "dtype <f8");
	expect_refused("f64[36]=@a.npy", GPUL_EFORMAT, "contains 37 elements");
}

/* Write a version 1.0 .npy file with this header and n_bytes zero bytes of data. */
static void write_npy_header(const char *header, size_t n_bytes)
{
	unsigned char file[512] = "\x93NUMPY\x01";
	size_t n = strlen(header);

	file[8] = (unsigned char)n;
	memcpy(file + 10, header, n);
	write_file("h.npy", file, 10 + n + n_bytes);
}

static void explains_why_an_npy_file_does_not_fit(void **state)
{
	(void)state;
	write_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 48);
	expect_elements("f64[]=@h.npy", 6, "0 0 0 0 0 0");
	write_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8);
	expect_elements("f64[]=@h.npy", 1, "0");
	write_npy_header("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", 48);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "Fortran order");
	write_npy_header("{'descr': '<f8', 'fortran_order': True, 'shape': (6,), }", 48);
	expect_elements("f64[]=@h.npy", 1, "0");
	write_npy_header("{'descr': '>f8', 'fortran_order': False, 'shape': (6,), }", 48);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "big-endian");
	write_npy_header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (6,), }", 48);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "a structured type");
	write_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }", 47);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "the file has 47 bytes of data");
	write_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, "
			 "99999999999), }",
			 8);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "not a .npy header");
	write_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", 0);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "contains 0 elements");
	write_npy_header("{'descr': '<f8', 'fortran_order'", 0);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "not a .npy header");
	write_file("h.npy", "\x93NUMPY\x01", 7);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "the .npy file is truncated");
	write_file("h.npy", "\x93NUMPY\x01\x00\xff\xff{}", 12);
	expect_refused("f64[]=@h.npy", GPUL_EFORMAT, "the .npy header is truncated");
}

static void reports_a_file_that_cannot_be_written(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(npy_write("/nonexistent/a.npy", GPUL_F32, "abcd", 1, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "/nonexistent/a.npy"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_scalars),
		cmocka_unit_test(parses_buffers_with_every_fill),
		cmocka_unit_test(rand_gives_the_same_numbers_on_every_machine),
		cmocka_unit_test(unwritten_elements_are_found_by_element),
		cmocka_unit_test(every_second_byte_is_unwritten),
		cmocka_unit_test(parses_structs_as_bytes),
		cmocka_unit_test(refuses_malformed_arguments),
		cmocka_unit_test(reads_raw_files_and_checks_their_size),
		cmocka_unit_test(reads_the_npy_files_that_it_writes),
		cmocka_unit_test(explains_why_an_npy_file_does_not_fit),
		cmocka_unit_test(reports_a_file_that_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
