/* test_signature.c — infers the signatures of the kernels of tests/corpus, which nvcc compiled for several targets,
 * and of small kernels that test one case each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/file/file.h"
#include "loader/signature/signature.h"

/* The expected signature of one kernel, for every target.  shape has a letter for each parameter: s scalar, n
 * count, r buffer that is only read, w only written, b read and written, S struct, f function, ? unknown. */
static const struct row {
	const char *file, *kernel, *printed, *shape;
	bool complete;
} rows[] = {
	{ "vecadd", "vecadd", "vecadd(f64 *, f64 *, f64 *, i32)", "rrwn", true },
	{ "saxpy", "saxpy", "saxpy(f32, f32 *, f32 *, i32)", "srbn", true },
	{ "hist", "hist", "hist(u8 *, u32 *, u64)", "rbn", true },
	{ "reduce", "reduce", "reduce(f32 *, f32 *, i32)", "rbn", true },
	{ "reduce", "reduce_i64", "reduce_i64(i64 *, u64 *, i32)", "rbn", true },
	{ "warp", "warpops", "warpops(i32 *, i32 *, i32)", "rwn", true },
	/* The barriers of namedbar wait for 64 and 128 threads. */
	{ "warp", "namedbar", "namedbar(i32 *)", "b", false },
	{ "intops", "intops", "intops(i32 *, i32 *, i32 *, i64 *, i64 *)", "rrwrw", true },
	{ "intops", "local", "local(i32 *, i32 *, i32)", "rws", true },
	{ "fnptr", "recurse", "recurse(i32 *)", "w", true },
	{ "fnptr", "virt", "virt(i32 *, i32)", "ws", true },
	/* n is the stride of a matrix row, so the sizes are known for an assumed launch only. */
	{ "matmul", "matmul", "matmul(f32 *, f32 *, f32 *, i32)", "rrws", true },
	{ "transpose", "transpose", "transpose(f32 *, f32 *, i32, i32)", "rwss", true },
	/* The size of the dynamic shared memory is unknown. */
	{ "const", "poly", "poly(f32 *, f32 *, i32)", "rwn", false },
	{ "const", "bigparam", "bigparam(struct of 256 bytes, i32 *)", "Sw", false },
	/* The kernel calls op[i]: if op had generated contents, it would jump to a random address. */
	{ "fnptr", "fnptr", "fnptr(f32 *, f32 *, f32 *, i32 *, i32)", "rrwrn", false },
	{ "fnptr", "fnptr2", "fnptr2(function, f32 *, f32 *, f32 *, i32)", "frrwn", false },
	/* The kernel waits for a host thread to write its flag. */
	{ "persist", "flagwait", "flagwait(i32 *, i32, i64 *)", "rsw", false },
	{ "printf", "pf", "pf(i32, f64, 8 bytes)", "ss?", false },
};

static const char *const targets[] = {
	"sm_75", "sm_80", "sm_90", "sm_100", "sm_90.debug", "sm_90.lineinfo",
};

static gpul_signature *infer(const gpul_ptx_module *m, const char *kernel)
{
	const gpul_ptx_func *f = gpul_ptx_find_func(m, kernel);
	gpul_signature *s = NULL;
	gpul_error err = { 0 };

	assert_non_null(f);
	if (gpul_signature_infer(m, f, &s, &err))
		fail_msg("%s: %s", kernel, err.text);
	return s;
}

static gpul_ptx_module *parse(const char *text, size_t text_bytes, const char *name)
{
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	if (gpul_ptx_parse(text, text_bytes, name, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

static void shape_of(const gpul_signature *s, char *out)
{
	for (size_t i = 0; i < s->n_params; i++) {
		const gpul_param *p = &s->params[i];

		out[i] = "?snbSf"[p->role];
		if (p->role == GPUL_ROLE_BUFFER)
			out[i] = p->loaded && p->stored ? 'b' : p->loaded ? 'r' : 'w';
	}
	out[s->n_params] = '\0';
}

static void check_row(const struct row *row, const gpul_ptx_module *m, const char *path)
{
	gpul_signature *s = infer(m, row->kernel);
	char printed[256], shape[80];

	gpul_signature_print(s, printed, sizeof printed);
	shape_of(s, shape);
	if (strcmp(printed, row->printed) || strcmp(shape, row->shape) || s->complete != row->complete)
		fail_msg("%s: the signature of %s is %s, %s, %s", path, row->kernel, printed, shape, s->complete ? "complete" : s->why_not);
	assert_int_equal(s->complete, s->why_not == NULL);
	gpul_signature_destroy(s);
}

static void infers_the_signatures_of_the_corpus_for_every_target(void **state)
{
	int n = 0;

	(void)state;
	for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++)
		for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
			char path[512];
			gpul_file file = { 0 };
			gpul_ptx_module *m;

			snprintf(path, sizeof path, "tests/corpus/ptx/%s.%s.ptx", rows[i].file, targets[t]);
			if (gpul_file_open(path, &file, NULL)) { /* the file is not in the repository, but in the build folder */
				snprintf(path, sizeof path, GPUL_KERNELS "/tests/corpus/%s.%s.ptx", rows[i].file, targets[t]);
				if (gpul_file_open(path, &file, NULL))
					continue; /* not every kernel was compiled with -G and -lineinfo */
			}
			m = parse(file.bytes, file.n_bytes, path);
			check_row(&rows[i], m, path);
			gpul_ptx_module_destroy(m);
			gpul_file_close(&file);
			n++;
		}
	assert_true(n >= 4 * (int)(sizeof rows / sizeof rows[0])); /* every kernel was compiled for four targets */
}

/* ---- small kernels for one case each --------------------------------------------- */

#define ASSUMED "assumed"
#define HEAD    ".version 8.0\n.target sm_80\n.address_size 64\n"
#define INDEX \
	"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n" \
	"mad.lo.s32 %r4, %r1, %r2, %r3;\n"
#define REGS ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<19>; .reg .b64 %rd<19>;\n"

static const struct small_case {
	const char *about, *params, *body, *printed;
	const char *why_not; /* part of the expected reason; NULL: the signature is complete; ASSUMED: complete for an assumed launch */
	uint32_t vector;     /* expected .vector of parameter 0; 0: not checked */
} small_cases[] = {
	{ "the type of an untyped load follows from the uses of its value", ".param .u64 a, .param .u64 b",
	  INDEX "ld.param.b64 %rd1, [a]; ld.param.b64 %rd2, [b]; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; ld.global.b32 %r5, [%rd4];\n"
		"add.f32 %r6, %r5, %r5; st.global.b32 [%rd5], %r6;\n",
	  "k(f32 *, f32 *)", NULL, 1 },
	{ "a value that is only copied has an unknown type", ".param .u64 a, .param .u64 b",
	  INDEX "ld.param.b64 %rd1, [a]; ld.param.b64 %rd2, [b]; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; ld.global.b32 %r5, [%rd4];\n"
		"st.global.b32 [%rd5], %r5;\n",
	  "k(? *, ? *)", "element type of parameter 0", 0 },
	{ "a scalar's type follows from its use in a called function", ".param .u64 a, .param .b32 x",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.b32 %r5, [x]; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd4, %rd1, %rd3;\n"
		"{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r5; call (q0), half, (p0);\n"
		"ld.param.b32 %r6, [q0]; }\n st.global.b32 [%rd4], %r6;\n",
	  "k(f32 *, f32)", NULL, 1 },
	{ "pairs of halves are two elements per thread", ".param .u64 a",
	  INDEX "ld.param.u64 %rd1, [a]; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;\n"
		"ld.global.b32 %r5, [%rd4]; fma.rn.f16x2 %r6, %r5, %r5, %r5; st.global.b32 "
		"[%rd4], %r6;\n",
	  "k(f16 *)", NULL, 2 },
	{ "a structure of three floats is three elements per thread", ".param .u64 a, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u32 %r5, [n]; setp.ge.s32 %p1, %r4, %r5; "
		"@%p1 ret;\n"
		"mul.wide.s32 %rd3, %r4, 12; add.s64 %rd4, %rd1, %rd3; st.global.f32 [%rd4+8], "
		"0f00000000;\n",
	  "k(f32 *, i32)", NULL, 3 },
	{ "in a sum of two parameters, the pointer is the parameter that is an address elsewhere", ".param .u64 a, .param .u64 off",
	  "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [off]; ld.u32 %r5, [%rd1];\n"
	  "add.s64 %rd3, %rd2, %rd1; st.u32 [%rd3], %r5;\n",
	  "k(i32 *, i64)", ASSUMED, 0 },
	{ "in the sum of two 64-bit parameters, either may be the pointer", ".param .u64 a, .param .u64 off",
	  "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [off];\n"
	  "add.s64 %rd3, %rd2, %rd1; st.u32 [%rd3], 1;\n",
	  "k(i32 *, i32 *)", "sum of parameter", 0 },
	{ "a selected address may be based on either pointer", ".param .u64 a, .param .u64 b",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; setp.eq.s32 %p1, %r4, 0;\n"
		"selp.b64 %rd3, %rd1, %rd2, %p1; mul.wide.s32 %rd4, %r4, 8; add.s64 %rd5, "
		"%rd3, %rd4;\n"
		"st.global.f64 [%rd5], 0d0000000000000000;\n",
	  "k(f64 *, f64 *)", NULL, 1 },
	{ "a pointer to pointers makes the signature incomplete", ".param .u64 a",
	  "ld.param.u64 %rd1, [a]; ld.u64 %rd2, [%rd1]; ld.f32 %r5, [%rd2]; st.f32 [%rd2], "
	  "%r5;\n",
	  "k(i64 *)", "points to pointers", 0 },
	{ "an index that is read from memory is 0 in an assumed launch", ".param .u64 a, .param .u64 b",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r5, [%rd4]; mul.wide.s32 %rd5, %r5, 4;\n"
		"add.s64 %rd6, %rd2, %rd5; st.global.f32 [%rd6], 0f00000000;\n",
	  "k(i32 *, f32 *)", ASSUMED, 0 },
	{ "the bound of a loop over a buffer is its element count", ".param .u64 a, .param .u64 b, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r5, [n];\n"
		"mov.b32 %r6, 0; mov.b32 %r7, 0; L: ld.global.f32 %r8, [%rd1]; add.f32 %r7, %r7, "
		"%r8;\n"
		"add.s64 %rd1, %rd1, 4; add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r5; @%p1 bra L;\n"
		"mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3; st.global.f32 [%rd4], %r7;\n",
	  "k(f32 *, f32 *, i32)", NULL, 1 },
	{ "a loop without a known limit makes the signature incomplete", ".param .u64 a",
	  "ld.param.u64 %rd1, [a]; L: ld.global.u32 %r8, [%rd1]; add.s64 %rd1, %rd1, 4;\n"
	  "setp.ne.s32 %p1, %r8, 0; @%p1 bra L;\n",
	  "k(i32 *)", "a loop advances", 0 },
	{ "an index that grows with the square of the launch is known in an assumed launch", ".param .u64 a",
	  INDEX "ld.param.u64 %rd1, [a]; mul.lo.s32 %r5, %r4, %r2; mul.wide.s32 %rd3, %r5, 4;\n"
		"add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], 1;\n",
	  "k(i32 *)", ASSUMED, 0 },
	{ "an index bounded by a product of two parameters is bounded in an assumed launch", ".param .u64 a, .param .u32 w, .param .u32 h",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u32 %r5, [w]; ld.param.u32 %r6, [h];\n"
		"mul.lo.s32 %r7, %r5, %r6; setp.ge.s32 %p1, %r4, %r7; @%p1 ret; mul.wide.s32 "
		"%rd3, %r4, 4;\n"
		"add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], 1;\n",
	  "k(i32 *, i32, i32)", ASSUMED, 0 },
	{ "an unused 64-bit parameter may have any value", ".param .u64 a, .param .u64 unused",
	  INDEX "ld.param.u64 %rd1, [a]; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;\n"
		"st.global.u32 [%rd4], 1;\n",
	  "k(i32 *, i64)", NULL, 1 },
	{ "an unused parameter too small for an address is a scalar", ".param .u32 unused", "", "k(i32)", NULL, 0 },
	{ "the message names an instruction that is not analysed", ".param .u64 a",
	  "ld.param.u64 %rd1, [a]; .shared .align 16 .b8 s[16]; mov.u32 %r5, s;\n"
	  "cp.async.ca.shared.global [%r5], [%rd1], 16;\n",
	  "k(? *)", "used by cp", 0 },
	{ "a parameter that is compared with an address is the end of a buffer", ".param .u64 a, .param .u64 end",
	  "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [end]; L: setp.ge.u64 %p1, %rd1, %rd2; "
	  "@%p1 ret;\n"
	  "st.u32 [%rd1], 1; add.s64 %rd1, %rd1, 4; bra L;\n",
	  "k(i32 *, 8 bytes)", "the end of a buffer", 0 },
	{ "a signed division n / 4 keeps n as the bound", ".param .u64 a, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u32 %r5, [n]; shr.s32 %r6, %r5, 31; shr.u32 %r7, "
		"%r6, 30;\n"
		"add.s32 %r8, %r5, %r7; shr.s32 %r9, %r8, 2; setp.ge.s32 %p1, %r4, %r9; @%p1 ret;\n"
		"mul.wide.s32 %rd3, %r4, 16; add.s64 %rd4, %rd1, %rd3;\n"
		"st.global.v4.f32 [%rd4], {0f00000000, 0f00000000, 0f00000000, 0f00000000};\n",
	  "k(f32 *, i32)", NULL, 4 },
	{ "a bf16 is recognised by its conversion to a float", ".param .u64 a",
	  INDEX "ld.param.u64 %rd1, [a]; mul.wide.s32 %rd3, %r4, 2; add.s64 %rd4, %rd1, %rd3;\n"
		"ld.global.u16 %rs1, [%rd4]; mov.b32 %r5, {0, %rs1}; add.f32 %r6, %r5, %r5;\n"
		"cvt.rn.bf16.f32 %rs2, %r6; st.global.u16 [%rd4], %rs2;\n",
	  "k(bf16 *)", NULL, 1 },
	{ "bits used both as float and as integer have an unknown type", ".param .u64 a",
	  INDEX ".reg .f64 %fd<4>; ld.param.u64 %rd1, [a]; ld.u64 %rd5, [%rd1]; L: mov.b64 "
		"%fd1, %rd5;\n"
		"add.f64 %fd2, %fd1, %fd1; mov.b64 %rd6, %fd2; atom.cas.b64 %rd7, [%rd1], "
		"%rd5, %rd6;\n"
		"setp.ne.s64 %p1, %rd5, %rd7; mov.u64 %rd5, %rd7; @%p1 bra L;\n",
	  "k(? *)", "element type of parameter 0", 0 },
	{ "an integer stored to local memory that also holds floats has an unknown type", ".param .u64 a, .param .u64 b",
	  INDEX ".local .align 16 .b8 t[16]; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n"
		"ld.global.u32 %r5, [%rd1]; st.local.u32 [t], %r5; ld.local.f32 %r6, [t];\n"
		"st.global.f32 [%rd2], %r6;\n",
	  "k(? *, f32 *)", "element type of parameter 0", 0 },
	{ "a value used only by bitwise operations is unsigned", ".param .u64 a, .param .u64 key",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [key]; mul.wide.s32 %rd3, %r4, 8;\n"
		"add.s64 %rd4, %rd1, %rd3; ld.global.u64 %rd5, [%rd4]; xor.b64 %rd6, %rd5, %rd2;\n"
		"st.global.u64 [%rd4], %rd6;\n",
	  "k(u64 *, u64)", NULL, 1 },
	{ "a register assigned twice holds two separate values", ".param .u64 a, .param .u64 b, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r5, [n];\n"
		"setp.ge.s32 %p1, %r4, %r5; @%p1 ret; mul.wide.s32 %rd3, %r4, 4;\n"
		"cvta.to.global.u64 %rd1, %rd1; add.s64 %rd1, %rd1, %rd3; ld.global.f32 %r5, "
		"[%rd1];\n"
		"cvta.to.global.u64 %rd2, %rd2; mov.u64 %rd1, %rd2; add.s64 %rd1, %rd1, %rd3;\n"
		"st.global.f32 [%rd1], %r5;\n",
	  "k(f32 *, f32 *, i32)", NULL, 1 },
	{ "a pointer that only some threads advance is joined where the paths join", ".param .u64 a, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u32 %r5, [n]; setp.ge.s32 %p1, %r4, %r5; @%p1 "
		"ret;\n"
		"mul.wide.s32 %rd3, %r4, 8; add.s64 %rd1, %rd1, %rd3; setp.lt.s32 %p2, %r3, 5;\n"
		"@%p2 bra L; add.s64 %rd1, %rd1, 4; L: @%p2 add.s64 %rd1, %rd1, 4;\n"
		"st.global.u32 [%rd1], 1;\n",
	  "k(i32 *, i32)", NULL, 2 },
	{ "a grid-stride loop may update its index in place", ".param .u64 a, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u32 %r5, [n]; mov.u32 %r6, %nctaid.x;\n"
		"mul.lo.u32 %r2, %r2, %r6; bra T; L: mul.wide.s32 %rd3, %r4, 4; add.s64 %rd3, %rd1, "
		"%rd3;\n"
		"st.global.u32 [%rd3], 1; add.s32 %r4, %r4, %r2; T: setp.lt.s32 %p1, %r4, %r5;\n"
		"@%p1 bra L;\n",
	  "k(i32 *, i32)", NULL, 1 },
	{ "one register may hold first a float, then an integer", ".param .u64 a, .param .u64 b",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3; ld.global.b32 %r5, [%rd1];\n"
		"add.f32 %r5, %r5, %r5; st.global.b32 [%rd1], %r5; ld.global.b32 %r5, [%rd2];\n"
		"min.s32 %r5, %r5, 7; st.global.b32 [%rd2], %r5;\n",
	  "k(f32 *, i32 *)", NULL, 1 },
	{ "a jump by a table may go to each of its labels", ".param .u64 a",
	  INDEX "ld.param.u64 %rd1, [a]; mul.wide.s32 %rd3, %r4, 4; and.b32 %r5, %r3, 1;\n"
		"ts: .branchtargets X, Y; brx.idx %r5, ts; X: mov.b64 %rd3, 0; Y: add.s64 "
		"%rd1, %rd1, "
		"%rd3;\n"
		"st.global.u32 [%rd1], 1;\n",
	  "k(i32 *)", NULL, 1 },
	{ "an element past a thread's own does not need more than its row", ".param .u64 a, .param .u64 b, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r5, [n];\n"
		"setp.ge.s32 %p1, %r4, %r5; @%p1 ret; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd4, %rd1, %rd3; ld.global.f32 %r6, [%rd4+4]; shl.b32 %r7, %r4, 2;\n"
		"mul.wide.s32 %rd5, %r7, 4; add.s64 %rd6, %rd1, %rd5; ld.global.f32 %r8, [%rd6];\n"
		"add.f32 %r9, %r6, %r8; add.s64 %rd7, %rd2, %rd3; st.global.f32 [%rd7], %r9;\n",
	  "k(f32 *, f32 *, i32)", NULL, 4 },
	{ "a buffer that needs more than 64 MiB is not assumed", ".param .u64 a, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u32 %r5, [n]; setp.ge.s32 %p1, %r4, %r5; @%p1 ret;\n"
		"mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; mov.u64 %rd5, 17179869184;\n"
		"add.s64 %rd6, %rd4, %rd5; st.global.u32 [%rd6], 1;\n",
	  "k(i32 *, i32)", "would need more than 64 MiB", 0 },
	{ "a loop over every second element needs two elements per iteration", ".param .u64 a, .param .u64 b, .param .u32 n",
	  INDEX "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r5, [n];\n"
		"mov.b32 %r6, 0; mov.b32 %r7, 0; L: shl.b32 %r9, %r6, 1; mul.wide.s32 %rd3, %r9, 4;\n"
		"add.s64 %rd4, %rd1, %rd3; ld.global.f32 %r8, [%rd4]; add.f32 %r7, %r7, %r8;\n"
		"add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r5; @%p1 bra L;\n"
		"mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3; st.global.f32 [%rd4], %r7;\n",
	  "k(f32 *, f32 *, i32)", NULL, 2 },
	{ "the members of a struct have their own roles and types", ".param .align 8 .b8 s[24], .param .u64 b",
	  INDEX "ld.param.u64 %rd1, [s]; ld.param.v2.u32 {%r5, %r6}, [s+16]; ld.param.u64 %rd2, [b];\n"
		"setp.ge.s32 %p1, %r4, %r6; @%p1 ret; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;\n"
		"ld.global.f32 %r7, [%rd4]; add.s32 %r8, %r5, 1; add.s64 %rd5, %rd2, %rd3;\n"
		"st.global.f32 [%rd5], %r7;\n",
	  "k(struct of 24 bytes {0: f32 *, 16: i32, 20: i32}, f32 *)", NULL, 0 },
	{ "a struct whose address is taken is not split into members", ".param .align 8 .b8 s[24]",
	  "mov.b64 %rd1, s; ld.param.u32 %r2, [%rd1];\n", "k(struct of 24 bytes)", "struct of 24 bytes", 0 },
	{ "an index beyond an array in shared memory is not assumed", ".param .u64 a, .param .u64 b, .param .u32 n",
	  INDEX ".shared .align 4 .b8 t[64]; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r5, [n];\n"
		"mov.u32 %r6, t; ld.global.u32 %r7, [%rd2]; shl.b32 %r8, %r7, 2; add.s32 %r9, %r6, %r8;\n"
		"ld.shared.u32 %r10, [%r9]; mad.lo.s32 %r11, %r4, %r5, %r10; mul.wide.s32 %rd3, %r4, 4;\n"
		"st.global.u32 [%rd2], %r11; mul.lo.s32 %r12, %r4, %r5; mul.wide.s32 %rd4, %r12, 4;\n"
		"add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], 1;\n",
	  "k(i32 *, i32 *, i32)", "depends on parameter 2", 0 },
	{ "a buffer accessed with several sizes has an unknown element type", ".param .u64 a",
	  "ld.param.u64 %rd1, [a]; st.global.f32 [%rd1], 0f00000000; st.global.u8 [%rd1+4], "
	  "1;\n",
	  "k(? *)", "several sizes", 0 },
};

static bool is_as_expected(const gpul_signature *s, const char *why_not)
{
	if (why_not && strcmp(why_not, ASSUMED) == 0)
		return s->complete && s->assumed;
	if (why_not)
		return !s->complete && strstr(s->why_not, why_not);
	return s->complete && !s->assumed;
}

static void infers_the_signatures_of_small_kernels(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof small_cases / sizeof small_cases[0]; i++) {
		const struct small_case *q = &small_cases[i];
		char text[4096], printed[256];
		gpul_ptx_module *m;
		gpul_signature *s;
		int n = snprintf(text, sizeof text,
				 HEAD ".func (.param .b32 r) half(.param .b32 v) { .reg .b32 %%r<9>;\n"
				      "ld.param.b32 %%r1, [v]; mul.f32 %%r2, %%r1, 0f3F000000;\n"
				      "st.param.b32 [r], %%r2; ret; }\n"
				      ".entry k(%s) { %s %s ret; }\n",
				 q->params, REGS, q->body);

		assert_in_range(n, 1, sizeof text - 1);
		m = parse(text, (size_t)n, q->about);
		s = infer(m, "k");
		gpul_signature_print(s, printed, sizeof printed);
		if (strcmp(printed, q->printed) || !is_as_expected(s, q->why_not))
			fail_msg("%s: inferred %s, %s", q->about, printed, s->complete ? "complete" : s->why_not);
		if (q->vector && q->vector != s->params[0].vector)
			fail_msg("%s: %u elements per thread", q->about, s->params[0].vector);
		gpul_signature_destroy(s);
		gpul_ptx_module_destroy(m);
	}
}

/* A kernel, and the expected limits of its launches. */
static const struct launch {
	const char *about, *directives, *body, *why_not;
	bool reads_tid, reads_ctaid;
	uint32_t shared_threads, beyond; /* beyond: expected .beyond of parameter 0 */
} launches[] = {
	{ "only %tid is read: one block does all the work", "",
	  "mov.u32 %r4, %tid.x; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd1, %rd1, %rd3;\n"
	  "st.u32 [%rd1], 1;\n",
	  NULL, true, false, 0, 0 },
	{ "only %ctaid is read: one thread per block does all the work", "",
	  "mov.u32 %r4, %ctaid.x; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd1, %rd1, %rd3;\n"
	  "st.u32 [%rd1], 1;\n",
	  NULL, false, true, 0, 0 },
	{ "neither %tid nor %ctaid is read", "", "st.u32 [%rd1], 1;\n", NULL, false, false, 0, 0 },
	{ "a barrier with a thread count assumes a block size", "", "bar.sync 1, 64; st.u32 [%rd1], 1;\n", "a barrier waits for 64 threads",
	  false, false, 0, 0 },
	{ ".reqntid gives the block size that a barrier needs", ".reqntid 64", "bar.sync 1, 64; st.u32 [%rd1], 1;\n", NULL, false, false, 0,
	  0 },
	{ "a barrier may wait for %ntid threads", "", "mov.u32 %r4, %ntid.x; bar.sync 1, %r4; st.u32 [%rd1], 1;\n", NULL, false, false, 0,
	  0 },
	{ "a barrier without a count waits for the block", "", "bar.sync 1; st.u32 [%rd1], 1;\n", NULL, false, false, 0, 0 },
	{ "a row of shared memory for each thread limits the block size", "",
	  ".shared .align 8 .b8 s[640]; mov.u32 %r4, %tid.x; mov.u32 %r5, s; shl.b32 %r4, %r4, "
	  "3;\n"
	  "add.u32 %r5, %r5, %r4; st.shared.u64 [%r5], 0; st.u32 [%rd1], 1;\n",
	  NULL, true, false, 80, 0 },
	{ "a row of shared memory for each warp does not limit the block size", "",
	  ".shared .align 8 .b8 s[256]; mov.u32 %r4, %tid.x; mov.u32 %r5, s; shr.u32 %r4, %r4, "
	  "5;\n"
	  "shl.b32 %r4, %r4, 3; add.u32 %r5, %r5, %r4; st.shared.u64 [%r5], 0; st.u32 [%rd1], "
	  "1;\n",
	  NULL, true, false, 0, 0 },
	{ "an index of 128 * block + thread assumes a block size", "",
	  "mov.u32 %r4, %ctaid.x; shl.b32 %r4, %r4, 7; mov.u32 %r5, %tid.x; add.u32 %r4, %r4, "
	  "%r5;\n"
	  "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd1, %rd1, %rd3; st.u32 [%rd1], 1;\n",
	  ASSUMED, true, true, 0, 0 },
	{ "an access past the thread's own element needs a larger buffer", "",
	  INDEX "setp.ge.s32 %p1, %r4, %r9; @%p1 ret; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd1, %rd1, %rd3; st.u32 [%rd1+8], 1;\n",
	  NULL, true, true, 0, 2 },
	{ "a vector past the thread's own element needs all of its elements", "",
	  INDEX "setp.ge.s32 %p1, %r4, %r9; @%p1 ret; mul.wide.s32 %rd3, %r4, 8;\n"
		"add.s64 %rd1, %rd1, %rd3; st.v2.u32 [%rd1+8], {%r1, %r2};\n",
	  NULL, true, true, 0, 2 },
	{ "an index that may equal the bound needs a larger buffer", "",
	  INDEX "setp.gt.s32 %p1, %r4, %r9; @%p1 ret; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd1, %rd1, %rd3; st.u32 [%rd1], 1;\n",
	  NULL, true, true, 0, 1 },
	{ "an access before the thread's own element makes the signature incomplete", "",
	  INDEX "setp.ge.s32 %p1, %r4, %r9; @%p1 ret; mul.wide.s32 %rd3, %r4, 4;\n"
		"add.s64 %rd1, %rd1, %rd3; st.u32 [%rd1+-4], 1;\n",
	  "elements before their own", true, true, 0, 1 },
};

static void infers_which_launches_a_kernel_supports(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
		const struct launch *l = &launches[i];
		char text[4096];
		gpul_ptx_module *m;
		gpul_signature *s;
		int n = snprintf(text, sizeof text,
				 HEAD ".entry k(.param .u64 a, .param .u32 n) %s { %s\n"
				      "ld.param.u64 %%rd1, [a]; ld.param.u32 %%r9, [n]; %s ret; }\n",
				 l->directives, REGS, l->body);

		assert_in_range(n, 1, sizeof text - 1);
		m = parse(text, (size_t)n, l->about);
		s = infer(m, "k");
		if (!is_as_expected(s, l->why_not))
			fail_msg("%s: %s", l->about, s->complete ? "complete" : s->why_not);
		if (s->reads_tid != l->reads_tid || s->reads_ctaid != l->reads_ctaid || s->shared_threads != l->shared_threads ||
		    s->params[0].beyond != l->beyond)
			fail_msg("%s: tid %d, ctaid %d, %u threads, %u beyond", l->about, s->reads_tid, s->reads_ctaid, s->shared_threads,
				 s->params[0].beyond);
		gpul_signature_destroy(s);
		gpul_ptx_module_destroy(m);
	}
}

/* The kernel writes c[y * ld + rows[x]], where ld is a parameter; the assumed launch has 2 x 2 blocks of 16 x 16 threads. */
static void an_assumed_launch_has_sizes_and_values(void **state)
{
	static const char text[] = HEAD ".entry k(.param .u64 c, .param .u32 ld, .param .u64 rows) { " REGS
					"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;\n"
					"mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ntid.y; mov.u32 %r7, %tid.y; mad.lo.s32 %r8, %r5, %r6, %r7;\n"
					"ld.param.u64 %rd1, [c]; ld.param.u32 %r9, [ld]; ld.param.u64 %rd2, [rows];\n"
					"mul.wide.s32 %rd3, %r4, 4; add.s64 %rd3, %rd2, %rd3; ld.global.u32 %r10, [%rd3];\n"
					"mad.lo.s32 %r11, %r8, %r9, %r10; mul.wide.s32 %rd4, %r11, 4; add.s64 %rd5, %rd1, %rd4;\n"
					"st.global.u32 [%rd5], 1; ret; }\n";
	gpul_ptx_module *m = parse(text, sizeof text - 1, "matrix");
	gpul_signature *s = infer(m, "k");

	(void)state;
	assert_true(s->complete && s->assumed);
	assert_int_equal(s->grid[0] * 100 + s->grid[1] * 10 + s->grid[2], 221);
	assert_int_equal(s->block[0] * 100 + s->block[1], 1616);
	assert_int_equal(s->params[1].value, 1);
	assert_true(s->params[2].zeros); /* filled with zeros, because its elements are used as indexes */
	assert_int_equal(s->params[2].elements, 32);
	assert_int_equal(s->params[0].elements, 32); /* the index y * ld + rows[x] is below 32: y <= 31, ld == 1, rows[x] == 0 */
	gpul_signature_destroy(s);
	gpul_ptx_module_destroy(m);
}

static void reports_launch_bounds_and_parameter_offsets(void **state)
{
	static const char text[] = HEAD ".extern .shared .align 4 .b8 dyn[];\n"
					".entry k(.param .align 8 .b8 s[24], .param .u16 x, .param .u64 y) .reqntid 8, "
					"4\n{ " REGS "mov.u32 %r1, %tid.z; mov.u32 %r2, dyn; st.shared.u32 [%r2], %r1; ret; }\n";
	gpul_ptx_module *m = parse(text, sizeof text - 1, "shape");
	gpul_signature *s = infer(m, "k");

	(void)state;
	assert_int_equal(s->grid_dims, 3);
	assert_true(s->uses_dynamic_shared);
	assert_false(s->complete);
	assert_int_equal(s->reqntid[0], 8);
	assert_int_equal(s->reqntid[1], 4);
	assert_int_equal(s->reqntid[2], 1);
	assert_int_equal(s->maxntid[0], 0);
	assert_int_equal(s->params[1].offset, 24);
	assert_int_equal(s->params[2].offset, 32);
	/* x and y are unused, but only y has the size of an address. */
	assert_int_equal(s->params[1].role, GPUL_ROLE_SCALAR);
	assert_int_equal(s->params[2].role, GPUL_ROLE_UNKNOWN);
	gpul_signature_destroy(s);
	gpul_ptx_module_destroy(m);
}

static void refuses_a_device_function(void **state)
{
	static const char text[] = HEAD ".func f() { ret; }\n";
	gpul_ptx_module *m = parse(text, sizeof text - 1, "func");
	gpul_signature *s = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_signature_infer(m, &m->funcs[0], &s, &err), GPUL_EINVAL);
	assert_null(s);
	gpul_ptx_module_destroy(m);
}

static void print_returns_the_full_length_if_the_buffer_is_too_small(void **state)
{
	static const char text[] = HEAD ".entry k(.param .u64 a) { ret; }\n";
	gpul_ptx_module *m = parse(text, sizeof text - 1, "k");
	gpul_signature *s = infer(m, "k");
	char small[4];

	(void)state;
	assert_int_equal(gpul_signature_print(s, small, sizeof small), strlen("k(i64)"));
	assert_string_equal(small, "k(i");
	assert_int_equal(gpul_signature_print(s, NULL, 0), strlen("k(i64)"));
	gpul_signature_destroy(s);
	gpul_ptx_module_destroy(m);
}

static void types_have_names_and_sizes(void **state)
{
	(void)state;
	for (unsigned t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++) {
		const char *name = gpul_type_name((gpul_type)t);

		assert_int_equal(gpul_type_find(name), t);
		assert_int_equal(gpul_type_bytes((gpul_type)t) * 8, atoi(name + strcspn(name, "0123456789")));
	}
	assert_int_equal(gpul_type_find("f8"), GPUL_TYPE_NONE);
	assert_int_equal(gpul_type_bytes(GPUL_N_TYPES), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(infers_the_signatures_of_the_corpus_for_every_target),
		cmocka_unit_test(infers_the_signatures_of_small_kernels),
		cmocka_unit_test(infers_which_launches_a_kernel_supports),
		cmocka_unit_test(an_assumed_launch_has_sizes_and_values),
		cmocka_unit_test(reports_launch_bounds_and_parameter_offsets),
		cmocka_unit_test(refuses_a_device_function),
		cmocka_unit_test(print_returns_the_full_length_if_the_buffer_is_too_small),
		cmocka_unit_test(types_have_names_and_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
