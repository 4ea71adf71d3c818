/* test_watched_copies.c — memcheck and trace observe the reads and writes of tensor copies, wgmma and surfaces. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES = 400000, WORDS = 16 * 8 };

/* Thread 0 copies a box of 32 words from tensor map `from`; all threads read the box; thread 0 stores it to map `to`, then adds it
 * there. */
#define COPIES(name, rank, coordinates) \
	".visible .entry " name "(.param .align 128 .b8 from[128], .param .align 128 .b8 to[128], .param .u64 out) {\n" \
	".reg .b64 %d<5>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 128 .b8 s[128]; .shared .align 8 .b64 m;\n" \
	"mov.b64 %d1, from; cvta.param.u64 %d1, %d1; mov.b64 %d4, to; cvta.param.u64 %d4, %d4; ld.param.u64 %d2, [out];\n" \
	"mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s; mov.u32 %r3, m; mov.u32 %r4, 4; mov.u32 %r5, 1;\n" \
	"@%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0; @!%p1 bra WAIT;\n" \
	"fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n" \
	"cp.async.bulk.tensor." rank ".shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1, {" coordinates "}], [%r3];\n" \
	"WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT; shl.b32 %r6, %r1, 2; add.u32 %r6, %r2, %r6;\n" \
	"ld.shared.u32 %r7, [%r6]; mad.wide.u32 %d3, %r1, 4, %d2; st.global.u32 [%d3], %r7; bar.sync 0; @!%p1 bra END;\n" \
	"cp.async.bulk.tensor." rank ".global.shared::cta.bulk_group [%d4, {" coordinates "}], [%r2];\n" \
	"cp.reduce.async.bulk.tensor." rank ".global.shared::cta.add.bulk_group [%d4, {" coordinates "}], [%r2];\n" \
	"cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n" \
	"END: ret; }\n"

static const char tensor_ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n" COPIES("k", "2d", "%r4, %r5")
	COPIES("slices", "3d", "%r4, %r5, 0")
	/* Reads the box that COPIES has stored to map `to`. */
	".visible .entry read(.param .u64 in, .param .u64 out) {\n"
	".reg .b64 %d<5>; .reg .b32 %r<9>; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x;\n"
	"and.b32 %r2, %r1, 7; shr.u32 %r3, %r1, 3; add.u32 %r3, %r3, 1; mad.lo.u32 %r2, %r3, 16, %r2; add.u32 %r2, %r2, 4;\n"
	"mad.wide.u32 %d3, %r2, 4, %d1; ld.global.u32 %r4, [%d3]; mad.wide.u32 %d3, %r1, 4, %d2; st.global.u32 [%d3], %r4; ret; }\n"
	".visible .entry read_slices(.param .u64 in, .param .u64 out) {\n"
	".reg .b64 %d<5>; .reg .b32 %r<9>; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x;\n"
	"mad.wide.u32 %d3, %r1, 4, %d1; ld.global.u32 %r4, [%d3+320]; mad.wide.u32 %d3, %r1, 4, %d2; st.global.u32 [%d3], %r4; ret; }\n";

static const char surface_ptx[] =
	".version 8.0\n.target sm_75\n.address_size 64\n"
	".visible .entry k(.param .u64 surface) {\n"
	".reg .b64 %d; .reg .b32 %x, %v; .reg .pred %p; ld.param.u64 %d, [surface]; mov.u32 %x, %tid.x; shl.b32 %x, %x, 2;\n"
	"suld.b.1d.b32.zero {%v}, [%d, {%x}]; sust.b.1d.b32.zero [%d, {%x}], {%v}; sured.b.add.1d.u32.zero [%d, {%x}], %v; ret; }\n";

static CUfunction load(const char *ptx, const char *name)
{
	CUmodule module;
	CUfunction f;

	if (cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&f, module, name))
		_exit(98);
	return f;
}

static void run_warp(CUfunction f, void **arguments)
{
	if (cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL) || cuCtxSynchronize())
		_exit(97);
}

static void encode(CUtensorMap *map, CUdeviceptr tensor, bool swizzled)
{
	const cuuint64_t dims[2] = { 16, 8 }, stride = 64;
	const cuuint32_t boxes[2] = { 8, 4 }, steps[2] = { 1, 1 };

	if (cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, (void *)(uintptr_t)tensor, dims, &stride, boxes, steps,
				   CU_TENSOR_MAP_INTERLEAVE_NONE, swizzled ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE,
				   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
		_exit(96);
}

/* Copy a box; the host has written only the first n_written words of each row. */
static void copy_boxes(unsigned n_written, bool swizzled)
{
	static uint32_t words[WORDS];
	CUtensorMap from, to;
	CUdeviceptr source, target, out;

	if (cuMemAlloc(&source, sizeof words) || cuMemAlloc(&target, sizeof words) || cuMemAlloc(&out, 128))
		_exit(95);
	for (unsigned row = 0; row < 8; row++)
		if (n_written && cuMemcpyHtoD(source + row * 64, words, n_written * 4))
			_exit(94);
	encode(&from, source, swizzled);
	encode(&to, target, swizzled);
	run_warp(load(tensor_ptx, "k"), (void *[]){ &from, &to, &out });
	run_warp(load(tensor_ptx, "read"), (void *[]){ &target, &out });
}

/* Images of 2 rows with 16 slices of 16 bytes each.  Copy 8 slices of row 1 of image 0, from slice 4 on; only some of them were written. */
static void copy_slices(size_t written_bytes)
{
	static const uint32_t words[16 * 4 * 4];
	const cuuint64_t dims[3] = { 16, 2, 2 }, strides[2] = { 256, 512 };
	const cuuint32_t boxes[3] = { 8, 2, 1 }, steps[3] = { 1, 1, 1 };
	CUtensorMap map[2];
	CUdeviceptr tensor[2], out;

	if (cuMemAlloc(&tensor[0], sizeof words) || cuMemAlloc(&tensor[1], sizeof words) || cuMemAlloc(&out, 128))
		_exit(95);
	if (cuMemcpyHtoD(tensor[0] + 256 + 64, words, written_bytes) || cuMemsetD8(tensor[1], 0, 256))
		_exit(94);
	for (unsigned n = 0; n < 2; n++)
		if (cuTensorMapEncodeTiled(&map[n], CU_TENSOR_MAP_DATA_TYPE_UINT32, 3, (void *)(uintptr_t)tensor[n], dims, strides, boxes,
					   steps, CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
					   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
			_exit(96);
	run_warp(load(tensor_ptx, "slices"), (void *[]){ &map[0], &map[1], &out });
	run_warp(load(tensor_ptx, "read_slices"), (void *[]){ &tensor[1], &out });
}

static void use_surface(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 32, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST
	};
	CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUsurfObject surface;

	if (cuArray3DCreate(&r.res.array.hArray, &d) || cuSurfObjectCreate(&surface, &r))
		_exit(93);
	run_warp(load(surface_ptx, "k"), (void *[]){ &surface });
}

enum work { BOXES, SWIZZLED_BOXES, UNWRITTEN_BOXES, SLICES, UNWRITTEN_SLICES, SURFACE };

static _Noreturn void work_in_child(const char *tools, int to, enum work work)
{
	CUdevice dev;
	CUcontext ctx;

	dup2(to, STDERR_FILENO);
	setenv("GPULOAD_SOFT_TOOLS", tools, 1);
	if (cuInit(0) || cuDeviceGet(&dev, 0) || cuCtxCreate(&ctx, NULL, 0, dev))
		_exit(99);
	if (work == SURFACE)
		use_surface();
	else if (work == SLICES || work == UNWRITTEN_SLICES)
		copy_slices(work == SLICES ? 128 : 96);
	else
		copy_boxes(work == UNWRITTEN_BOXES ? 6 : 16, work == SWIZZLED_BOXES);
	exit(0);
}

/* Return what the tools print on stderr while `work` runs. */
static const char *output_of(const char *tools, enum work work)
{
	static char text[TEXT_BYTES];
	size_t used = 0;
	ssize_t n;
	int end[2], s;
	pid_t child;

	assert_int_equal(pipe(end), 0);
	child = fork();
	if (!child)
		work_in_child(tools, end[1], work);
	close(end[1]);
	while ((n = read(end[0], text + used, sizeof text - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(end[0]);
	assert_int_equal(waitpid(child, &s, 0), child);
	assert_int_equal(s, 0);
	return text;
}

static void expect_text(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void memcheck_knows_what_tensor_copies_write(void **state)
{
	(void)state;
	expect_text(output_of("memcheck:leaks=no", BOXES), "memcheck: no errors");
	expect_text(output_of("memcheck:leaks=no", SWIZZLED_BOXES), "memcheck: no errors");
	expect_text(output_of("memcheck:leaks=no", SLICES), "memcheck: no errors");
}

/* The box has columns 4 to 11, of which only 4 and 5 were written: the first 8 of the 32 bytes in each row. */
static void what_was_not_written_is_not_written_after_a_tensor_copy(void **state)
{
	const char *text = output_of("memcheck:leaks=no", UNWRITTEN_BOXES);

	(void)state;
	expect_text(text, "4-byte shared read at 0x8 of memory that was not written");
	expect_text(text, "24 reads of memory that was not written");
	text = output_of("memcheck:leaks=no", UNWRITTEN_SLICES); /* 2 of 8 slices were written */
	expect_text(text, "4-byte shared read at 0x60 of memory that was not written");
	expect_text(text, "8 reads of memory that was not written");
}

/* Return the trace of `work`, read from the file that the trace tool writes. */
static const char *trace_of(enum work work)
{
	static char text[TEXT_BYTES];
	char path[] = "/tmp/gpuload-watched-XXXXXX.txt", tools[200];
	const int fd = mkstemps(path, 4);
	FILE *f;

	assert_true(fd >= 0);
	close(fd);
	snprintf(tools, sizeof tools, "trace:file=%s", path);
	output_of(tools, work);
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	unlink(path);
	return text;
}

static void a_trace_has_the_accesses_of_tensor_copies_and_surfaces(void **state)
{
	const char *text = trace_of(BOXES);

	(void)state;
	expect_text(text, "  reads 128 bytes of global at 0x");
	expect_text(text, "  writes 128 bytes of shared at 0\n");
	expect_text(text, "  reads 128 bytes of shared at 0  writes 128 bytes of global at 0x");
	expect_text(text, "  reads 128 bytes of shared at 0  changes 128 bytes of global at 0x");
	text = trace_of(SURFACE);
	expect_text(text, "  reads 4 bytes of surface at 0x");
	expect_text(text, "  writes 4 bytes of surface at 0x");
	expect_text(text, "  changes 4 bytes of surface at 0x");
}

static void surfaces_are_no_error_of_memcheck(void **state)
{
	(void)state;
	expect_text(output_of("memcheck:leaks=no", SURFACE), "memcheck: no errors");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memcheck_knows_what_tensor_copies_write),
		cmocka_unit_test(what_was_not_written_is_not_written_after_a_tensor_copy),
		cmocka_unit_test(a_trace_has_the_accesses_of_tensor_copies_and_surfaces),
		cmocka_unit_test(surfaces_are_no_error_of_memcheck),
	};

	if (!on_software_driver())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
