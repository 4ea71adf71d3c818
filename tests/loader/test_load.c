/* test_load.c — loads files with several images: the image and options that the driver receives, and the
 * error if no image suits.  The test writes the files byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/image/images.h"
#include "loader/loader.h"
#include "loader/link/ptxas_options.h"
#include "tests/fake/fake_driver.h"
#include "tests/loader/image/forge.h"

#define STO_ENTRY 0x10 /* value of st_other in a kernel's symbol */
#define NV_INFO   0x70000000u

/* ---- forged files --------------------------------------------------------------------- */

struct bytes {
	unsigned char at[1 << 18];
	size_t n;
};

static struct bytes file;

static void append_bytes(struct bytes *b, const void *from, size_t n)
{
	assert_true(b->n + n <= sizeof b->at);
	memcpy(b->at + b->n, from, n);
	b->n += n;
}

/* Write a cubin with one kernel, whose n parameters have these sizes. */
static const forge *make_cubin(unsigned sm, const char *kernel, const uint32_t *sizes, unsigned n)
{
	static forge f;
	char section[200];
	unsigned symbol, text, info;
	uint32_t offset = 0;

	forge_start(&f, false, sm, false);
	text = forge_kernel(&f, kernel, &symbol);
	snprintf(section, sizeof section, ".nv.info.%s", kernel);
	info = forge_section(&f, section, NV_INFO, text, 0);
	for (unsigned i = 0; i < n; i++) {
		uint32_t param[3] = { 0, i | offset << 16, sizes[i] << 18 };

		forge_numbers(&f, info, 0x17, 3, param);
		offset += sizes[i];
	}
	forge_finish(&f);
	return &f;
}

/* Append an entry to a fatbin, between fatbin_begin() and fatbin_end(). */
static void fatbin_entry(struct bytes *b, unsigned kind, unsigned sm, const void *content, size_t n, const char *options)
{
	size_t n_options = options ? strlen(options) : 0, padded = (n + 7) / 8 * 8;
	uint32_t header_bytes = 64 + (options ? 8 + (uint32_t)(n_options + 7) / 8 * 8 : 0);
	unsigned char header[256] = { 0 };
	uint32_t at[2] = { 72, (uint32_t)n_options };

	header[0] = (unsigned char)kind;
	memcpy(header + 2, (uint16_t[]){ 0x0101 }, 2);
	memcpy(header + 4, &header_bytes, 4);
	memcpy(header + 8, &padded, 8);
	memcpy(header + 28, &sm, 4);
	header[40] = 0x11; /* fatbin flags: 64-bit, Linux */
	if (options) {
		header[20] = 64;
		memcpy(header + 64, at, sizeof at);
		memcpy(header + 72, options, n_options);
	}
	append_bytes(b, header, header_bytes);
	append_bytes(b, content, n);
	append_bytes(b, (char[8]){ 0 }, padded - n);
}

static void fatbin_begin(struct bytes *b)
{
	b->n = 0;
	append_bytes(b, "\x50\xed\x55\xba\x01\0\x10\0", 8);
	append_bytes(b, (uint64_t[]){ 0 }, 8);
}

static void fatbin_end(struct bytes *b)
{
	memcpy(b->at + 8, (uint64_t[]){ b->n - 16 }, 8);
}

static void add_cubin(unsigned sm, const char *kernel)
{
	const forge *f = make_cubin(sm, kernel, (uint32_t[]){ 8, 4 }, 2);

	fatbin_entry(&file, GPUL_IMAGE_CUBIN, sm, f->bytes, f->n_bytes, NULL);
}

/* Append PTX with one kernel, including its terminating NUL, to the fatbin. */
static void add_ptx(unsigned sm, const char *kernel, const char *options)
{
	char text[400];
	int n = snprintf(text, sizeof text,
			 ".version 8.0\n.target sm_%u\n.address_size 64\n"
			 ".visible .entry %s(.param .u64 a) { ret; }\n",
			 sm, kernel);

	fatbin_entry(&file, GPUL_IMAGE_PTX, sm, text, (size_t)n + 1, options);
}

/* Append a member to the archive in b. */
static void add_member(struct bytes *b, const char *name, const struct bytes *content)
{
	char header[61];

	if (b->n == 0)
		append_bytes(b, "!<arch>\n", 8);
	snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644, content->n);
	append_bytes(b, header, 60);
	append_bytes(b, content->at, content->n);
	if (b->n % 2)
		append_bytes(b, "\n", 1);
}

static char path[64];

static const char *write_file(const void *bytes, size_t n, const char *suffix)
{
	int fd;

	snprintf(path, sizeof path, P_tmpdir "/test_load_XXXXXX%s", suffix);
	fd = mkstemps(path, (int)strlen(suffix));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	return path;
}

static const char *write_fatbin(void)
{
	fatbin_end(&file);
	return write_file(file.at, file.n, ".fatbin");
}

/* ---- what the driver received ------------------------------------------------------------ */

static struct {
	int loads;
	char kind[8]; /* "cubin" or "ptx" */
	unsigned sm;  /* architecture of the code */
	unsigned long max_registers;
} received;

static void remember_image(const void *image, unsigned n, const CUjit_option *keys, void **values)
{
	const unsigned char *p = image;

	received.loads++;
	received.sm = 0;
	if (memcmp(p, "\177ELF", 4) == 0) {
		strcpy(received.kind, "cubin");
		received.sm = p[49];
	} else {
		const char *target = strstr(image, ".target sm_");

		strcpy(received.kind, "ptx");
		received.sm = target ? (unsigned)strtoul(target + 11, NULL, 10) : 0;
	}
	for (unsigned i = 0; i < n; i++)
		if (keys[i] == CU_JIT_MAX_REGISTERS)
			received.max_registers = (unsigned long)(uintptr_t)values[i];
}

static const gpul_driver *driver(int fail_at)
{
	const gpul_driver *drv = fake_driver(fail_at);

	memset(&received, 0, sizeof received);
	fake_behave()->loading = remember_image;
	return drv;
}

static const gpul_driver *soft_driver(void)
{
	static gpul_driver soft;

	soft = *driver(0);
	soft.name = "soft";
	soft.runs_machine_code = false;
	return &soft;
}

static gpul_status load(const gpul_driver *drv, const char *kernel, gpul_module **m, gpul_error *err)
{
	const gpul_load_options options = { .kernel = kernel };
	gpul_status st = gpul_module_load_file(drv, path, &options, m, err);

	unlink(path);
	return st;
}

static void expect_load(const gpul_driver *drv, const char *kernel, const char *kind, unsigned sm)
{
	gpul_module *m = NULL;
	gpul_error err = { 0 };

	if (load(drv, kernel, &m, &err))
		fail_msg("%s", err.text);
	gpul_module_unload(m);
	assert_int_equal(fake_alive(), 0);
	assert_string_equal(received.kind, kind);
	assert_int_equal(received.sm, sm);
}

static void expect_failure(const gpul_driver *drv, const char *kernel, gpul_status status, const char *message)
{
	gpul_module *m = NULL;
	gpul_error err = { 0 };

	assert_int_equal(load(drv, kernel, &m, &err), status);
	assert_null(m);
	if (!strstr(err.text, message))
		fail_msg("'%s' does not contain '%s'", err.text, message);
	assert_int_equal(received.loads, 0);
	assert_int_equal(fake_alive(), 0);
}

/* ---- machine code ------------------------------------------------------------------------- */

static void machine_code_releases_everything_if_any_driver_call_fails(void **state)
{
	const forge *f = make_cubin(90, "k", NULL, 0);

	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv = driver(n);
		gpul_module *m = NULL;
		gpul_error err = { 0 };
		gpul_status st;

		write_file(f->bytes, f->n_bytes, ".cubin");
		st = load(drv, NULL, &m, &err);
		gpul_module_unload(m);
		assert_int_equal(fake_alive(), 0);
		if (st == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1); /* each call has failed once */
			return;
		}
		assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
		assert_true(n < 100);
	}
}

static void takes_the_types_of_machine_code_from_cpp_names(void **state)
{
	static const struct {
		const char *name, *printed;
	} rows[] = {
		{ "_Z3addPKfPfi", "_Z3addPKfPfi(f32 *, f32 *, i32)" },
		{ "add", "add(8 bytes, 8 bytes, 4 bytes)" },
		{ "_Z3addPKfPfd", "_Z3addPKfPfd(8 bytes, 8 bytes, 4 bytes)" }, /* the types in the name do not fit the parameter sizes */
		{ "_Z3addPKf", "_Z3addPKf(8 bytes, 8 bytes, 4 bytes)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const forge *f = make_cubin(90, rows[i].name, (uint32_t[]){ 8, 8, 4 }, 3);
		const gpul_signature *s;
		gpul_module *m = NULL;
		gpul_error err = { 0 };
		char printed[80];

		write_file(f->bytes, f->n_bytes, ".cubin");
		if (load(driver(0), NULL, &m, &err))
			fail_msg("%s", err.text);
		s = gpul_kernel_signature(gpul_module_kernel(m, 0));
		gpul_signature_print(s, printed, sizeof printed);
		assert_string_equal(printed, rows[i].printed);
		assert_false(s->complete);
		if (i == 0) {
			assert_true(s->params[0].loaded && !s->params[0].stored);
			assert_true(s->params[1].loaded && s->params[1].stored);
			assert_int_equal(s->params[2].offset, 16);
		}
		gpul_module_unload(m);
	}
}

/* PTX as nvcc writes it for b[i] = a[i] if i < n. */
static const char copy_ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
			       ".visible .entry _Z4copyPKfPfi(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
			       ".reg .pred %p<2>; .reg .f32 %f<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
			       "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];\n"
			       "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
			       "mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.s32 %p1, %r5, %r1; @%p1 bra end;\n"
			       "cvta.to.global.u64 %rd3, %rd1; mul.wide.s32 %rd4, %r5, 4; add.s64 %rd5, %rd3, %rd4;\n"
			       "ld.global.f32 %f1, [%rd5]; cvta.to.global.u64 %rd6, %rd2; add.s64 %rd7, %rd6, %rd4;\n"
			       "st.global.f32 [%rd7], %f1;\nend: ret;\n}\n";

static void infers_a_signature_of_machine_code_from_ptx_of_the_same_unit(void **state)
{
	(void)state;
	for (int fits = 0; fits < 2; fits++) {
		const uint32_t sizes[] = { 8, 8, fits ? 4 : 8 };
		const forge *f = make_cubin(90, "_Z4copyPKfPfi", sizes, 3);
		const gpul_signature *s;
		gpul_module *m = NULL;
		gpul_error err = { 0 };

		fatbin_begin(&file);
		fatbin_entry(&file, GPUL_IMAGE_CUBIN, 90, f->bytes, f->n_bytes, NULL);
		fatbin_entry(&file, GPUL_IMAGE_PTX, 75, copy_ptx, sizeof copy_ptx, NULL);
		write_fatbin();
		if (load(driver(0), NULL, &m, &err))
			fail_msg("%s", err.text);
		assert_string_equal(received.kind, "cubin");
		assert_null(gpul_module_ptx(m));
		s = gpul_kernel_signature(gpul_module_kernel(m, 0));
		assert_int_equal(s->complete, fits); /* false if the PTX is for a kernel with other parameter sizes */
		if (fits) {
			assert_int_equal(s->params[0].role, GPUL_ROLE_BUFFER);
			assert_false(s->params[0].stored);
			assert_int_equal(s->params[1].type, GPUL_F32);
			assert_int_equal(s->params[2].role, GPUL_ROLE_COUNT);
		}
		gpul_module_unload(m);
		assert_int_equal(fake_alive(), 0);
	}
}

static void never_passes_a_truncated_cubin_to_the_driver(void **state)
{
	const forge *f = make_cubin(90, "k", (uint32_t[]){ 8 }, 1);

	(void)state;
	for (size_t n = 20; n < f->n_bytes; n += 7) {
		gpul_module *m = NULL;
		gpul_error err = { 0 };

		write_file(f->bytes, n, ".cubin");
		assert_int_equal(load(driver(0), NULL, &m, &err), GPUL_EFORMAT);
		assert_null(m);
		assert_true(strlen(err.text) > 20);
		assert_int_equal(received.loads, 0);
	}
}

/* ---- choosing ------------------------------------------------------------------------------- */

static void loads_the_image_that_suits_the_device(void **state)
{
	const gpul_driver *drv;

	(void)state;
	fatbin_begin(&file);
	add_cubin(75, "k");
	add_cubin(80, "k");
	add_ptx(75, "k", NULL);
	add_ptx(80, "k", NULL);
	write_fatbin();
	expect_load(driver(0), "k", "ptx", 80);

	fatbin_begin(&file);
	add_ptx(80, "k", NULL);
	add_cubin(90, "k");
	write_fatbin();
	expect_load(driver(0), "k", "cubin", 90);
	write_fatbin();
	expect_load(soft_driver(), "k", "ptx", 80);
	write_fatbin();
	drv = driver(0);
	fake_behave()->major = 8;
	expect_load(drv, "k", "ptx", 80);
}

static void loads_the_unit_that_has_the_kernel(void **state)
{
	static struct bytes archive;

	(void)state;
	archive.n = 0;
	for (unsigned i = 0; i < 3; i++) {
		fatbin_begin(&file);
		add_ptx(70 + i, (const char *[]){ "first", "_Z6secondPi", "third" }[i], NULL);
		add_cubin(100, (const char *[]){ "first", "_Z6secondPi", "third" }[i]);
		fatbin_end(&file);
		add_member(&archive, (const char *[]){ "a.fb/", "b.fb/", "c.fb/" }[i], &file);
	}
	write_file(archive.at, archive.n, ".a");
	expect_load(driver(0), "third", "ptx", 72);
	write_file(archive.at, archive.n, ".a");
	expect_load(driver(0), "_Z6secondPi", "ptx", 71);
	write_file(archive.at, archive.n, ".a");
	expect_load(driver(0), "second", "ptx", 71);
	write_file(archive.at, archive.n, ".a");
	expect_failure(driver(0), NULL, GPUL_EINVAL, "has several kernels: name one of first, second, third");
	for (int i = 0; i < 20; i++) {
		char name[100];

		snprintf(name, sizeof name, "a_kernel_with_a_name_that_takes_much_room_%d", i);
		fatbin_begin(&file);
		add_ptx(75, name, NULL);
		fatbin_end(&file);
		add_member(&archive, "d.fb/", &file);
	}
	write_file(archive.at, archive.n, ".a");
	expect_failure(driver(0), NULL, GPUL_EINVAL,
		       "name one of first, second, third, a_kernel_with_a_name_that_takes_much_room_0, "
		       "a_kernel_with_a_name_that_takes_much_room_1, "
		       "a_kernel_with_a_name_that_takes_much_room_2, ...");
	write_file(archive.at, archive.n, ".a");
	expect_failure(driver(0), "thirt", GPUL_EINVAL, "did you mean 'third'?");
	write_file(archive.at, archive.n, ".a");
	expect_failure(driver(0), "something", GPUL_EINVAL, "no kernel 'something' in ");
}

static void lists_the_kernels_that_an_ambiguous_name_matches(void **state)
{
	static struct bytes archive;

	(void)state;
	archive.n = 0;
	for (int i = 0; i < 3; i++) { /* two fatbins contain the same instance of a template */
		fatbin_begin(&file);
		add_ptx(75, i < 2 ? "_Z4copyIiEvPT_" : "_Z4copyIfEvPT_", NULL);
		fatbin_end(&file);
		add_member(&archive, (const char *[]){ "a/", "b/", "c/" }[i], &file);
		write_file(archive.at, archive.n, ".a");
		if (i < 2)
			expect_load(driver(0), NULL, "ptx", 75);
	}
	expect_failure(driver(0), "copy", GPUL_EINVAL, "2 kernels match 'copy': void copy<int>(int*), void copy<float>(float*)");
	write_file(archive.at, archive.n, ".a");
	expect_load(driver(0), "copy<float>", "ptx", 75);
}

static void names_the_device_and_the_nvcc_option_if_no_image_suits(void **state)
{
	(void)state;
	fatbin_begin(&file);
	add_cubin(75, "k");
	add_cubin(100, "k");
	add_ptx(100, "k", NULL);
	write_fatbin();
	expect_failure(driver(0), "k", GPUL_EUNSUPPORTED,
		       "has no image for this device, sm_90, only cubin sm_75, cubin sm_100, ptx sm_100: "
		       "nvcc -gencode arch=compute_90,code=sm_90 adds it");
	fatbin_begin(&file);
	add_cubin(90, "k");
	write_fatbin();
	expect_failure(soft_driver(), "k", GPUL_EUNSUPPORTED, "has machine code only (cubin sm_90): the software driver runs PTX only");
	write_file(make_cubin(90, "k", NULL, 0)->bytes, make_cubin(90, "k", NULL, 0)->n_bytes, ".cubin");
	expect_failure(soft_driver(), "k", GPUL_EUNSUPPORTED, "is a cubin (GPU machine code): the software driver runs PTX only");
}

static void names_the_device_of_a_kernel_for_another_device(void **state)
{
	static struct bytes archive;

	(void)state;
	archive.n = 0;
	fatbin_begin(&file);
	add_cubin(90, "here");
	fatbin_end(&file);
	add_member(&archive, "a/", &file);
	fatbin_begin(&file);
	add_cubin(80, "elsewhere");
	fatbin_end(&file);
	add_member(&archive, "b/", &file);
	write_file(archive.at, archive.n, ".a");
	expect_failure(driver(0), "elsewhere", GPUL_EUNSUPPORTED,
		       "for sm_80, not for this device, sm_90: nvcc -gencode arch=compute_90,code=sm_90");
}

static void links_only_if_the_result_will_have_the_kernel(void **state)
{
	static struct bytes archive;

	(void)state;
	archive.n = 0;
	for (int i = 0; i < 2; i++) { /* --compile-only marks relocatable code of nvcc -dc */
		fatbin_begin(&file);
		add_ptx(75, i ? "second" : "first", "--compile-only");
		fatbin_end(&file);
		add_member(&archive, i ? "b/" : "a/", &file);
	}
	write_file(archive.at, archive.n, ".a");
	expect_load(soft_driver(), "second", "ptx", 75);
	write_file(archive.at, archive.n, ".a");
	expect_failure(soft_driver(), "secont", GPUL_EINVAL, "did you mean 'second'?");
	write_file(archive.at, archive.n, ".a");
	expect_load(soft_driver(), NULL, "ptx", 75);
}

static void considers_only_the_images_that_the_caller_allows(void **state)
{
	const gpul_load_options ptx = { .only_kind = GPUL_IMAGE_PTX };
	const gpul_load_options sm80 = { .only_sm = 80 };
	gpul_module *m = NULL;
	gpul_error err = { 0 };

	(void)state;
	fatbin_begin(&file);
	add_cubin(90, "k");
	add_ptx(75, "k", NULL);
	write_fatbin();
	assert_int_equal(gpul_module_load_file(driver(0), path, &ptx, &m, &err), GPUL_OK);
	assert_string_equal(received.kind, "ptx");
	gpul_module_unload(m);
	assert_int_equal(gpul_module_load_file(driver(0), path, &sm80, &m, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "has no image selected by --sm or --kind that runs on sm_90"));
	unlink(path);
}

/* ---- options and reports ---------------------------------------------------------------------- */

static void passes_ptxas_options_to_the_driver(void **state)
{
	static const char text[] = GPUL_PTX_OPTIONS " -O2 -maxrregcount=40\n.version 8.0\n.target sm_75\n"
						    ".address_size 64\n.entry k() { ret; }\n";

	(void)state;
	fatbin_begin(&file);
	add_ptx(75, "k", "-v -maxrregcount=96 ");
	write_fatbin();
	expect_load(driver(0), "k", "ptx", 75);
	assert_int_equal(received.max_registers, 96);
	write_file(text, sizeof text - 1, ".ptx");
	expect_load(driver(0), "k", "ptx", 75);
	assert_int_equal(received.max_registers, 40);
}

static char reported[4096];

static void add_line(void *context, const char *line)
{
	(void)context;
	strcat(strcat(reported, line), "\n");
}

static void reports_the_verdict_on_each_image(void **state)
{
	const gpul_load_options options = { .explain = add_line };
	gpul_module *m = NULL;
	gpul_error err = { 0 };

	(void)state;
	*reported = '\0';
	fatbin_begin(&file);
	add_cubin(80, "k");
	add_cubin(90, "k");
	add_ptx(90, "k", NULL);
	write_fatbin();
	assert_int_equal(gpul_module_load_file(driver(0), path, &options, &m, &err), GPUL_OK);
	gpul_module_unload(m);
	unlink(path);
	assert_non_null(strstr(reported, "cubin sm_80, "));
	assert_non_null(strstr(reported, " bytes: machine code for another generation of GPUs\n"));
	assert_non_null(strstr(reported, " bytes: taken\n"));
	assert_non_null(strstr(reported, "ptx sm_90, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_code_releases_everything_if_any_driver_call_fails),
		cmocka_unit_test(takes_the_types_of_machine_code_from_cpp_names),
		cmocka_unit_test(infers_a_signature_of_machine_code_from_ptx_of_the_same_unit),
		cmocka_unit_test(never_passes_a_truncated_cubin_to_the_driver),
		cmocka_unit_test(loads_the_image_that_suits_the_device),
		cmocka_unit_test(loads_the_unit_that_has_the_kernel),
		cmocka_unit_test(lists_the_kernels_that_an_ambiguous_name_matches),
		cmocka_unit_test(names_the_device_and_the_nvcc_option_if_no_image_suits),
		cmocka_unit_test(names_the_device_of_a_kernel_for_another_device),
		cmocka_unit_test(links_only_if_the_result_will_have_the_kernel),
		cmocka_unit_test(considers_only_the_images_that_the_caller_allows),
		cmocka_unit_test(passes_ptxas_options_to_the_driver),
		cmocka_unit_test(reports_the_verdict_on_each_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
