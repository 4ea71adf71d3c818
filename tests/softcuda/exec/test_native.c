/* test_native.c — runs of instructions that are compiled to machine code give the same bits, memory and faults as the
 * interpreter's handlers. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/program_internal.h"

enum { THREADS = 256, BLOCKS = 4, N = THREADS * BLOCKS, OUT_WORDS = 8, IN_WORDS = 4 };

/* clang-format off */
static const uint64_t special[] = {
	0, 1, 2, 31, 32, 33, 63, 64, 65, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
	0x8000000000000000, 0xffffffffffffffff, 0x3f800000, 0xbf800000, 0x3fc00000, 0x4f000000, 0xcf000000, 0x4effffff, 0x7f800000, 0xff800000,
	0x7f7fffff, 0x00000001, 0x007fffff, 0x80000001, 0x00800000, 0x3effffff, 0x3f000000, 0xc0200000, 0x40200000, 0x7fc00000, 0xffc01234, 0x7f801234,
	0x3ff0000000000000, 0xbff8000000000000, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
	0x0000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x7ff8000000001234, 0xfff8000000000000, 0x7ff0000000001234,
	0x3690000000000000, 0x47efffffe0000000, 0x47efffffffffffff, 0x3fe0000000000000, 0x4004000000000000, 0xbfd3333333333333,
};
/* clang-format on */
enum { N_SPECIAL = sizeof special / sizeof *special };

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 11 ^ *seed << 40;
}

/* Fill the inputs: most warps get ordinary numbers only, the others also get special values. */
static void fill(uint64_t *in)
{
	uint64_t seed = 5;

	for (unsigned k = 0; k < N * IN_WORDS; k++) {
		const unsigned warp = k / (32 * IN_WORDS);
		const uint64_t r = next_random(&seed);
		const float f = (float)(r % 4096) / 16 - 100;
		const double d = (double)f;
		uint32_t low;
		uint64_t wide;

		memcpy(&low, &f, sizeof low);
		memcpy(&wide, &d, sizeof wide);
		in[k] = warp % 4 == 0 ? wide : warp % 4 == 1 ? low : warp % 4 == 2 ? special[r % N_SPECIAL] : r >> (r & 31);
	}
}

static bool has_native(void)
{
	return !strcmp(gpul_build_name(), "v4");
}

/* Run the kernel k, with or without compilation.  out receives the resulting memory, text the text of the fault. */
static void run_kernel(const char *ptx, bool native, void *out, size_t bytes, char *text, size_t text_bytes)
{
	struct rig *r;
	uint64_t *in;
	void *to;

	setenv("GPULOAD_SOFT_NATIVE", native ? "1" : "0", 1);
	r = rig_open(ptx);
	to = rig_memory(r, bytes);
	in = rig_memory(r, N * IN_WORDS * sizeof *in);
	fill(in);
	rig_run(r, "k", BLOCKS, THREADS, to, (uintptr_t)in);
	snprintf(text, text_bytes, "%s", r->fault.kind ? r->fault.text : "");
	assert_int_equal(gpul_exec_find_kernel(r->program, "k")->code->has_native, native);
	memcpy(out, to, bytes);
	rig_close(r);
	unsetenv("GPULOAD_SOFT_NATIVE");
}

/* Remove the numbers from a fault's text, because addresses differ between the two runs. */
static void blank_addresses(char *text)
{
	for (char *p = strstr(text, "0x"); p; p = strstr(p + 2, "0x"))
		for (char *q = p + 2; strchr("0123456789abcdef", *q) && *q; q++)
			*q = '.';
}

static void expect_same(const char *ptx, const char *what)
{
	enum { WORDS = N * OUT_WORDS };
	static uint64_t want[WORDS], got[WORDS];
	char fault[2][1024];

	run_kernel(ptx, false, want, sizeof want, fault[0], sizeof fault[0]);
	run_kernel(ptx, true, got, sizeof got, fault[1], sizeof fault[1]);
	for (unsigned k = 0; k < 2; k++)
		blank_addresses(fault[k]);
	assert_string_equal(fault[0], fault[1]);
	for (unsigned k = 0; k < WORDS; k++)
		if (want[k] != got[k])
			fail_msg("%s: thread %u, word %u: compiled %#llx, by its handler %#llx", what, k / OUT_WORDS, k % OUT_WORDS,
				 (unsigned long long)got[k], (unsigned long long)want[k]);
}

/* ---- arithmetic ---------------------------------------------------------------------------------- */

/* The inputs are %h0 to %h2 (16 bits), %r0 to %r2 (32), %d0 to %d3 (64), %p1 and %p2; the tested instructions write registers from
 * number 4 on. */
#define KERNEL \
	".visible .entry k(.param .u64 out, .param .u64 x) {\n" \
	".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %d<16>; .reg .b64 %o; .reg .b64 %x; .reg .b32 %t;\n" \
	"ld.param.u64 %o, [out]; ld.param.u64 %x, [x]; mov.u32 %t, %ctaid.x;\n" \
	"{ .reg .b32 a; .reg .b32 b; mov.u32 a, %ntid.x; mov.u32 b, %tid.x; mad.lo.u32 %t, %t, a, b; }\n"
#define BEGIN PTX_HEADER KERNEL
#define INPUTS \
	"mad.wide.u32 %o, %t, 64, %o; mad.wide.u32 %x, %t, 32, %x;\n" \
	"ld.global.u64 %d0, [%x]; ld.global.u64 %d1, [%x+8]; ld.global.u64 %d2, [%x+16]; ld.global.u64 %d3, [%x+24];\n" \
	"cvt.u32.u64 %r0, %d0; cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2; cvt.u16.u64 %h0, %d0; cvt.u16.u64 %h1, %d1; cvt.u16.u64 %h2, %d2;\n" \
	"setp.lt.s64 %p1, %d0, %d1; setp.lt.s64 %p2, %d2, %d3;\n" \
	"mov.b64 %d4, 4; mov.b64 %d5, 5; mov.b32 %r4, 6; mov.b32 %r5, 7; mov.b16 %h4, 8; mov.b16 %h5, 9; mov.pred %p4, 0; mov.pred %p5, 1;\n"
#define OUTPUTS \
	"selp.b32 %r8, 1, 0, %p4; selp.b32 %r9, 1, 0, %p5; mov.b64 %d8, {%r8, %r9}; cvt.u32.u16 %r8, %h4; cvt.u32.u16 %r9, %h5; mov.b64 %d9, {%r8, %r9};\n" \
	"st.global.u64 [%o], %d4; st.global.u64 [%o+8], %d5; st.global.u32 [%o+16], %r4; st.global.u32 [%o+24], %r5;\n" \
	"st.global.u64 [%o+32], %d8; st.global.u64 [%o+40], %d9; st.global.u64 [%o+48], %d0; st.global.u32 [%o+56], %r0; ret; }\n"

/* clang-format off */
static const char *const forms[] = {
	"add.u32 %r4, %r0, %r1; add.u32 %r5, %r4, 77;", "add.u64 %d4, %d0, %d1; add.u64 %d5, %d4, %d4;", "sub.u32 %r4, %r0, %r1; sub.u64 %d4, %d0, %d1;",
	"mul.lo.u32 %r4, %r0, %r1; mul.lo.u64 %d4, %d0, %d1;", "mad.lo.u32 %r4, %r0, %r1, %r2; mad.lo.u64 %d4, %d0, %d1, %d2;",
	"mul.hi.s32 %r4, %r0, %r1; mul.hi.u32 %r5, %r0, %r1;", "neg.s32 %r4, %r0; neg.s64 %d4, %d0;", "abs.s32 %r4, %r0; abs.s64 %d4, %d0;",
	"and.b32 %r4, %r0, %r1; and.b64 %d4, %d0, %d1;", "or.b32 %r4, %r0, %r1; or.b64 %d4, %d0, %d1;", "xor.b32 %r4, %r0, %r1; xor.b64 %d4, %d0, %d1;",
	"not.b32 %r4, %r0; not.b64 %d4, %d0;", "min.s32 %r4, %r0, %r1; max.s32 %r5, %r0, %r1;", "min.u32 %r4, %r0, %r1; max.u32 %r5, %r0, %r1;",
	"min.s64 %d4, %d0, %d1; max.s64 %d5, %d0, %d1;", "min.u64 %d4, %d0, %d1; max.u64 %d5, %d0, %d1;",
	"shl.b32 %r4, %r0, %r1; shl.b64 %d4, %d0, %r1;", "shr.u32 %r4, %r0, %r1; shr.u64 %d4, %d0, %r1;", "shr.s32 %r4, %r0, %r1; shr.s64 %d4, %d0, %r1;",
	"shl.b64 %d4, %d0, 13; shr.s64 %d5, %d4, 7;", "shf.l.wrap.b32 %r4, %r0, %r1, %r2; shf.r.wrap.b32 %r5, %r0, %r1, %r2;",
	"shf.l.wrap.b32 %r4, %r0, %r0, 5; shf.r.wrap.b32 %r5, %r4, %r1, 32;",
	"lop3.b32 %r4, %r0, %r1, %r2, 0xe8; lop3.b32 %r5, %r4, %r1, %r0, 0x2d;", "mul.wide.s32 %d4, %r0, %r1; mul.wide.u32 %d5, %r0, %r1;",
	"mad.wide.s32 %d4, %r0, %r1, %d2; mad.wide.u32 %d5, %r0, %r1, %d4;", "mul.wide.u32 %d4, %r0, 24; mad.wide.s32 %d5, %r0, -3, %d4;",
	"add.f32 %r4, %r0, %r1; add.f64 %d4, %d0, %d1;", "sub.f32 %r4, %r0, %r1; sub.f64 %d4, %d0, %d1;", "mul.f32 %r4, %r0, %r1; mul.f64 %d4, %d0, %d1;",
	"fma.rn.f32 %r4, %r0, %r1, %r2; fma.rn.f64 %d4, %d0, %d1, %d2;", "fma.rn.f32 %r4, %r0, %r1, %r2; fma.rn.f32 %r5, %r4, %r4, 0f3F800000;",
	"fma.rn.f64 %d4, %d0, %d0, %d1; fma.rn.f64 %d5, %d4, 0d3FF8000000000000, %d4;", "div.rn.f32 %r4, %r0, %r1; div.rn.f64 %d4, %d0, %d1;",
	"sqrt.rn.f32 %r4, %r0; sqrt.rn.f64 %d4, %d0;", "rcp.rn.f32 %r4, %r0; rcp.rn.f64 %d4, %d0;", "rcp.approx.f32 %r4, %r0; sqrt.approx.f32 %r5, %r0;",
	"rcp.approx.ftz.f32 %r4, %r0; sqrt.approx.ftz.f32 %r5, %r0; add.u32 %r4, %r4, 1;",
	"min.f32 %r4, %r0, %r1; max.f32 %r5, %r0, %r1;", "min.f64 %d4, %d0, %d1; max.f64 %d5, %d0, %d1;", "neg.f32 %r4, %r0; neg.f64 %d4, %d0;",
	"abs.f32 %r4, %r0; abs.f64 %d4, %d0;", "add.rz.f32 %r4, %r0, %r1; sub.rm.f32 %r5, %r0, %r1;", "mul.rp.f32 %r4, %r0, %r1; fma.rm.f32 %r5, %r0, %r1, %r2;",
	"fma.rz.f32 %r4, %r0, %r1, %r2; fma.rp.f32 %r5, %r0, %r1, %r2;", "cvt.sat.f32.f32 %r4, %r0; add.f32 %r5, %r4, %r4;",
	"cvt.rni.f32.f32 %r4, %r0; cvt.rzi.f32.f32 %r5, %r0;", "cvt.rmi.f32.f32 %r4, %r0; cvt.rpi.f32.f32 %r5, %r0;", "cvt.rni.f64.f64 %d4, %d0; cvt.rzi.f64.f64 %d5, %d0;",
	"cvt.rmi.f64.f64 %d4, %d0; cvt.rpi.f64.f64 %d5, %d0;", "cvt.s64.s32 %d4, %r0; cvt.u64.u32 %d5, %r0;", "cvt.u32.u64 %r4, %d0; add.u32 %r5, %r4, %r4;",
	"cvt.f64.f32 %d4, %r0; cvt.rn.f32.f64 %r4, %d0;", "cvt.rn.f64.s32 %d4, %r0; cvt.rn.f64.u32 %d5, %r0;", "cvt.rn.f32.s32 %r4, %r0; cvt.rn.f32.u32 %r5, %r0;",
	"cvt.rn.f32.s64 %r4, %d0; cvt.rn.f64.s64 %d4, %d0; cvt.rn.f64.u64 %d5, %d0;", "cvt.rzi.s32.f32 %r4, %r0; cvt.rni.s32.f32 %r5, %r0;",
	"cvt.rzi.s32.f64 %r4, %d0; add.u32 %r5, %r4, 1;", "mov.b32 %r4, %r0; mov.b64 %d4, %d0; mov.b16 %h4, %h0;", "selp.b32 %r4, %r0, %r1, %p1; selp.b64 %d4, %d0, 5, %p2;",
	"selp.b16 %h4, %h0, %h1, %p1; add.u16 %h5, %h4, %h1;", "mov.b64 %d4, {%r0, %r1}; mov.b64 {%r4, %r5}, %d1;", "setp.eq.s32 %p4, %r0, %r1; setp.ne.u32 %p5, %r0, %r1;",
	"setp.lt.s32 %p4, %r0, %r1; setp.le.s32 %p5, %r0, %r1;", "setp.gt.s32 %p4, %r0, %r1; setp.ge.s32 %p5, %r0, %r1;",
	"setp.lo.u32 %p4, %r0, %r1; setp.ls.u32 %p5, %r0, %r1;", "setp.hi.u32 %p4, %r0, %r1; setp.hs.u32 %p5, %r0, %r1;",
	"setp.lt.s64 %p4, %d0, %d1; setp.ge.u64 %p5, %d0, %d1;", "setp.eq.s64 %p4, %d0, %d1; setp.gt.u64 %p5, %d0, 100;", "setp.lt.f32 %p4, %r0, %r1; setp.ge.f32 %p5, %r0, %r1;",
	"setp.eq.f32 %p4, %r0, %r1; setp.ne.f32 %p5, %r0, %r1;", "setp.le.f64 %p4, %d0, %d1; setp.gt.f64 %p5, %d0, %d1;", "setp.ne.f64 %p4, %d0, %d0; setp.eq.f64 %p5, %d0, %d0;",
	"setp.equ.f32 %p4, %r0, %r1; setp.neu.f32 %p5, %r0, %r1;", "setp.ltu.f32 %p4, %r0, %r1; setp.leu.f32 %p5, %r0, %r1;", "setp.gtu.f64 %p4, %d0, %d1; setp.geu.f64 %p5, %d0, %d1;",
	"setp.num.f32 %p4, %r0, %r1; setp.nan.f64 %p5, %d0, %d1;", "setp.lt.and.s32 %p4, %r0, %r1, %p1; setp.lt.or.f32 %p5, %r0, %r1, %p2;",
	"setp.ge.xor.u64 %p4, %d0, %d1, %p1; setp.lt.and.f64 %p5, %d0, %d1, !%p2;", "setp.lt.s32 %p4|%p5, %r0, %r1; add.u32 %r4, %r0, %r1; add.u32 %r5, %r4, 1;",
	"setp.lt.ftz.f32 %p4, %r0, %r1; setp.ge.ftz.f32 %p5, %r0, %r1; add.u32 %r4, %r0, 1; add.u32 %r5, %r4, 1;",
	"and.pred %p4, %p1, %p2; or.pred %p5, %p1, %p2;", "xor.pred %p4, %p1, %p2; not.pred %p5, %p1;", "add.u16 %h4, %h0, %h1; sub.u16 %h5, %h0, %h1;",
	"mul.lo.u16 %h4, %h0, %h1; and.b16 %h5, %h4, 255;", "or.b16 %h4, %h0, %h1; xor.b16 %h5, %h0, %h1;", "setp.lt.s16 %p4, %h0, %h1; setp.ge.u16 %p5, %h0, %h1;",
	"prmt.b32 %r4, %r0, %r1, 0x7250; prmt.b32 %r5, %r0, %r1, 0x0123;", "prmt.b32 %r4, %r0, %r1, 0x98ef; prmt.b32 %r5, %r0, 0, 0x4440;",
	"prmt.b32 %r4, %r0, %r1, %r2; prmt.b32.f4e %r5, %r0, %r1, 3;", "cvt.u32.u16 %r4, %h0; cvt.s32.s16 %r5, %h0;", "cvt.u16.u32 %h4, %r0; add.u16 %h5, %h4, 1;",
	/* guarded instructions, and instructions that are not compiled, between compiled ones */
	"ex2.approx.f32 %r4, %r0; add.f32 %r4, %r4, %r1; popc.b32 %r5, %r4; add.u32 %r5, %r5, %r0;", "@%p1 add.u32 %r4, %r0, %r1; add.u32 %r5, %r4, %r4; @!%p2 mov.u32 %r4, 3; sub.u32 %r4, %r4, %r5;",
	/* lanes reconverge at a branch target in the middle of instructions that could be compiled together */
	"@%p1 bra JOIN; add.u32 %r4, %r0, %r1; xor.b32 %r4, %r4, %r2; JOIN: add.u32 %r4, %r4, 1; sub.u32 %r4, %r4, %r0; activemask.b32 %r5;",
	/* a register that is both destination and source */
	"mov.b64 %d4, %d0; add.u64 %d4, %d4, %d4; mul.lo.u64 %d4, %d4, %d4; mov.b64 %d5, %d4; mov.b64 {%r4, %r5}, %d4;",
	/* more live values than the CPU has registers */
	"add.u64 %d4, %d0, %d1; add.u64 %d5, %d1, %d2; add.u64 %d6, %d2, %d3; add.u64 %d7, %d3, %d0; add.u64 %d8, %d0, %d2; add.u64 %d9, %d1, %d3; xor.b64 %d10, %d4, %d5;"
	"xor.b64 %d11, %d6, %d7; xor.b64 %d12, %d8, %d9; add.u64 %d4, %d4, %d10; add.u64 %d4, %d4, %d11; add.u64 %d4, %d4, %d12; add.u64 %d5, %d4, %d8; add.u64 %d5, %d5, %d0;",
};
/* clang-format on */

/* Code that lets lanes exit before the tested instructions: none, some of each warp, and all but one. */
static const char *const leave[] = { "", "and.b32 %r30, %t, 5; setp.eq.u32 %p7, %r30, 1; @%p7 bra END;\n",
				     "and.b32 %r30, %t, 31; setp.ne.u32 %p7, %r30, 13; @%p7 bra END;\n" };

static void arithmetic_has_the_bits_of_the_handlers(void **state)
{
	(void)state;
	if (!has_native())
		skip();
	for (unsigned k = 0; k < sizeof forms / sizeof *forms; k++)
		for (unsigned n = 0; n < sizeof leave / sizeof *leave; n++) {
			char ptx[8192];

			snprintf(ptx, sizeof ptx, "%s%s%s%s\nEND: %s", BEGIN, INPUTS, leave[n], forms[k], OUTPUTS);
			expect_same(ptx, forms[k]);
		}
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* From %r20, the thread's number in its block, each pattern computes %r10, the index of the element (of 256) that the thread accesses. */
static const char *const patterns[] = {
	"mov.b32 %r10, %r20;",      "and.b32 %r10, %r20, 0xe0;",
	"xor.b32 %r10, %r20, 255;", "mul.lo.u32 %r10, %r20, 5; and.b32 %r10, %r10, 255;",
	"shr.u32 %r10, %r20, 3;",   "add.u32 %r10, %r20, 7; and.b32 %r10, %r10, 255;",
};

/* The instructions `setup` compute the address of the element %r10, in memory of the block or of the thread, in %d10 or %r11. */
struct space {
	const char *name, *setup, *address;
};
static const struct space spaces[] = {
	{ "global", "mov.u32 %r21, %ctaid.x; shl.b32 %r21, %r21, 8; add.u32 %r21, %r21, %r10; mad.wide.u32 %d10, %r21, BYTES, %o;\n",
	  "%d10" },
	{ "generic", "mov.u32 %r21, %ctaid.x; shl.b32 %r21, %r21, 8; add.u32 %r21, %r21, %r10; mad.wide.u32 %d10, %r21, BYTES, %o;\n",
	  "%d10" },
	{ "shared", "mov.u32 %r11, shared; mad.lo.u32 %r11, %r10, BYTES, %r11;\n", "%r11" },
	{ "generic shared", "mov.u64 %d10, shared; cvta.shared.u64 %d10, %d10; mad.wide.u32 %d10, %r10, BYTES, %d10;\n", "%d10" },
	{ "local", "mov.u64 %d10, local; and.b32 %r11, %r10, 7; mad.wide.u32 %d10, %r11, BYTES, %d10;\n", "%d10" },
	{ "generic local", "mov.u64 %d10, local; cvta.local.u64 %d10, %d10; and.b32 %r11, %r10, 7; mad.wide.u32 %d10, %r11, BYTES, %d10;\n",
	  "%d10" },
	{ "local by 32 bits", "mov.u32 %r11, local; and.b32 %r12, %r10, 7; mad.lo.u32 %r11, %r12, BYTES, %r11;\n", "%r11" },
};
static const char *const suffixes[] = { ".global", "", ".shared", "", ".local", "", ".local" };

/* Append text, with every "BYTES" replaced by the number. */
static void add_text(char *out, size_t room, const char *text, unsigned bytes)
{
	const char *p;

	while ((p = strstr(text, "BYTES"))) {
		snprintf(out + strlen(out), room - strlen(out), "%.*s%u", (int)(p - text), text, bytes);
		text = p + strlen("BYTES");
	}
	snprintf(out + strlen(out), room - strlen(out), "%s", text);
}

/* Write a kernel that stores a value, loads it, adds 1 and stores the sum, all at the address that `pattern` computes, plus `offset`. */
static void make_access(char *ptx, size_t room, unsigned space, const char *pattern, unsigned bytes, const char *leaving, int offset)
{
	char text[1024];
	const char *type = bytes == 4 ? "u32" : "u64", *s = suffixes[space], *at = spaces[space].address;

	snprintf(
		ptx, room, "%s",
		PTX_HEADER
		".visible .entry k(.param .u64 out, .param .u64 x) {\n"
		".reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %d<16>; .reg .b64 %o; .reg .b64 %x; .reg .b32 %t;\n"
		".shared .align 8 .b8 shared[2048]; .local .align 8 .b8 local[64];\n"
		"ld.param.u64 %o, [out]; ld.param.u64 %x, [x]; mov.u32 %t, %ctaid.x; mov.u32 %r20, %ntid.x; mul.lo.u32 %t, %t, %r20; mov.u32 %r20, %tid.x; add.u32 %t, %t, %r20;\n"
		"mad.wide.u32 %x, %t, 32, %x; ld.global.u64 %d0, [%x]; ld.global.u32 %r0, [%x]; mov.u64 %d4, 0; mov.u32 %r4, 0;\n");
	add_text(ptx, room, pattern, bytes);
	add_text(ptx, room, spaces[space].setup, bytes);
	add_text(ptx, room, leaving, bytes);
	snprintf(text, sizeof text, "st%s.%s [%s+%d], %%%c0; ld%s.%s %%%c4, [%s+%d]; add.%s %%%c4, %%%c4, 1; st%s.%s [%s+%d], %%%c4;\n", s,
		 type, at, offset, bytes == 4 ? 'r' : 'd', s, type, bytes == 4 ? 'r' : 'd', at, offset, type, bytes == 4 ? 'r' : 'd',
		 bytes == 4 ? 'r' : 'd', s, type, at, offset, bytes == 4 ? 'r' : 'd');
	add_text(ptx, room, text, bytes);
	add_text(ptx, room, "END: mad.wide.u32 %o, %t, 16, %o; st.global.u64 [%o+16384], %d4; st.global.u32 [%o+16392], %r4; ret; }\n",
		 bytes);
}

static void memory_is_the_same(void **state)
{
	(void)state;
	if (!has_native())
		skip();
	for (unsigned s = 0; s < sizeof spaces / sizeof *spaces; s++)
		for (unsigned p = 0; p < sizeof patterns / sizeof *patterns; p++)
			for (unsigned n = 0; n < 2 * sizeof leave / sizeof *leave; n++) {
				char ptx[8192], what[256];
				const unsigned bytes = n % 2 ? 8 : 4;

				make_access(ptx, sizeof ptx, s, patterns[p], bytes, leave[n / 2], 0);
				snprintf(what, sizeof what, "%u bytes of %s memory, %s, %s", bytes, spaces[s].name, patterns[p],
					 leave[n / 2]);
				expect_same(ptx, what);
			}
}

/* The accesses are made by single lanes, by lanes with consecutive addresses, and by all lanes at one address; the addresses are past the
 * end, before the start, misaligned, or far from any memory. */
static void faults_are_the_same(void **state)
{
	static const int offsets[] = { 1 << 24, -(1 << 24), 2, 1 << 30 };

	(void)state;
	if (!has_native())
		skip();
	for (unsigned s = 0; s < sizeof spaces / sizeof *spaces; s++)
		for (unsigned k = 0; k < 3 * sizeof offsets / sizeof *offsets; k++) {
			static uint64_t out[N * OUT_WORDS];
			char ptx[8192], fault[2][1024], *mark;

			make_access(ptx, sizeof ptx, s, patterns[k % 3], 4, "", offsets[k / 3]);
			for (unsigned native = 0; native < 2; native++) {
				run_kernel(ptx, native, out, sizeof out, fault[native], sizeof fault[native]);
				assert_true(*fault[native]);
				/* After " is ", the text describes addresses, which differ between runs. */
				if ((mark = strstr(fault[native], " is ")))
					*mark = '\0';
				if ((mark = strstr(fault[native], " at ")))
					*mark = '\0';
			}
			assert_string_equal(fault[0], fault[1]);
		}
}

/* Ranges are added and removed between launches; a load must fault if and only if its range does not exist at that time. */
static void removed_memory_faults(void **state)
{
	struct rig *r;
	uint64_t *in, *out, *gone;

	(void)state;
	if (!has_native())
		skip();
	r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") "mad.wide.u32 %d0, %t, 8, %x; ld.global.u64 %d1, [%d0]; add.u64 %d1, %d1, 1; mad.wide.u32 %d2, %t, 8, %o;"
		     "st.global.u64 [%d2], %d1; ret; }\n");
	in = rig_memory(r, 256 * 8);
	out = rig_memory(r, 256 * 8);
	gone = rig_memory(r, 256 * 8);
	for (unsigned k = 0; k < 256; k++)
		in[k] = gone[k] = k;
	for (unsigned k = 0; k < 3; k++)
		rig_expect_ok(r, "k", 1, 256, out, (uintptr_t)(k == 1 ? gone : in));
	assert_int_equal(out[255], 256);
	gpul_exec_memory_remove(r->memory, (uintptr_t)gone);
	assert_int_equal(rig_run(r, "k", 1, 256, out, (uintptr_t)gone), GPUL_EXEC_ILLEGAL_ADDRESS);
	free(gone);
	r->n_blocks--;
	rig_close(r);
}

/* Arguments are passed in registers, and as nvcc passes them, in local memory of the caller's and the callee's frames. */
static void functions_are_compiled_too(void **state)
{
	(void)state;
	if (!has_native())
		skip();
	expect_same(
		PTX_HEADER
		".func (.reg .b32 %q) twice(.reg .b32 %a) { add.u32 %q, %a, %a; add.u32 %q, %q, 1; xor.b32 %q, %q, 5; ret; }\n" KERNEL INPUTS
		"call (%r4), twice, (%r0); call (%r5), twice, (%r4);\n" OUTPUTS,
		"a call");
	for (unsigned n = 0; n < sizeof leave / sizeof *leave; n++) {
		char ptx[8192];

		snprintf(
			ptx, sizeof ptx, "%s%s%s\nEND: %s",
			PTX_HEADER
			".func (.param .b64 q) sum(.param .b64 a, .param .b32 b) { .reg .b64 %d<4>; .reg .b32 %r<4>; .local .align 8 .b8 at[32];\n"
			"ld.param.u64 %d0, [a]; ld.param.u32 %r0, [b]; st.local.u64 [at+8], %d0; st.local.u32 [at+16], %r0; ld.local.u64 %d1, [at+8]; ld.local.u32 %r1, [at+16];\n"
			"cvt.u64.u32 %d2, %r1; add.u64 %d1, %d1, %d2; st.param.u64 [q], %d1; ret; }\n" KERNEL INPUTS,
			leave[n],
			"{ .param .b64 a; .param .b32 b; .param .b64 q; st.param.b64 [a], %d0; st.param.b32 [b], %r1; call.uni (q), sum, (a, b); ld.param.b64 %d4, [q]; }\n"
			"{ .param .b64 a; .param .b32 b; .param .b64 q; st.param.b64 [a], %d4; st.param.b32 [b], %r2; call.uni (q), sum, (a, b); ld.param.b64 %d5, [q]; }\n",
			OUTPUTS);
		expect_same(ptx, leave[n]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic_has_the_bits_of_the_handlers),
		cmocka_unit_test(memory_is_the_same),
		cmocka_unit_test(faults_are_the_same),
		cmocka_unit_test(removed_memory_faults),
		cmocka_unit_test(functions_are_compiled_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
