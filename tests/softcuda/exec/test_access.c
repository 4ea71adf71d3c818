/* test_access.c — loads and stores: widths, vectors, address spaces, faults. */
#include <sys/mman.h>

#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

static struct rig *open_body(const char *declarations, const char *body)
{
	char text[8192];

	snprintf(text, sizeof text, "%s%s%s%s ret; }", PTX_HEADER, declarations, KERNEL_OUT("k"), body);
	return rig_open(text);
}

/* Each kernel loads a byte pattern as type `load` into a register of `reg` bits, and stores the register as .u64. */
static void loads_extend_by_their_type(void **state)
{
	static const struct {
		const char *load;
		unsigned reg;
		uint64_t want;
	} rows[] = {
		{ "u8", 16, 0xf0 },
		{ "s8", 16, 0xfffffffffffffff0 },
		{ "b8", 32, 0xf0 },
		{ "s8", 32, 0xfffffffffffffff0 },
		{ "u8", 64, 0xf0 },
		{ "s8", 64, 0xfffffffffffffff0 },
		{ "u16", 16, 0xf1f0 },
		{ "u16", 32, 0xf1f0 },
		{ "s16", 32, 0xfffffffffffff1f0 },
		{ "u16", 64, 0xf1f0 },
		{ "s16", 64, 0xfffffffffffff1f0 },
		{ "u32", 32, 0xf3f2f1f0 },
		{ "b32", 64, 0xf3f2f1f0 },
		{ "s32", 64, 0xfffffffff3f2f1f0 },
		{ "b64", 64, 0xf7f6f5f4f3f2f1f0 },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		const char *name = rows[k].reg == 16 ? "%h1" : rows[k].reg == 32 ? "%r1" : "%d1";
		bool sign = rows[k].load[0] == 's';
		char body[512];
		struct rig *r;
		uint64_t *out;

		snprintf(body, sizeof body,
			 "mad.wide.u32 %%mine, %%t, 8, %%o; ld.global.%s %s, [%%x]; "
			 "cvt.%s64.%s%u %%d2, %s; st.global.u64 [%%mine], %%d2;",
			 rows[k].load, name, sign ? "s" : "u", sign ? "s" : "u", rows[k].reg, name);
		r = open_body(".global .align 8 .u64 pattern = 0xf7f6f5f4f3f2f1f0;\n", body);
		out = rig_memory(r, 64 * 8);
		uint64_t at;
		size_t bytes;

		assert_true(gpul_exec_find_variable(r->program, "pattern", &at, &bytes));
		rig_expect_ok(r, "k", 1, 33, out, at); /* one whole warp, and one warp with a single lane */
		assert_int_equal(out[0], rows[k].want);
		assert_int_equal(out[32], rows[k].want);
		rig_close(r);
	}
}

static void stores_truncate_to_the_low_bits(void **state)
{
	struct rig *r = open_body("", "mov.u64 %d1, 0x1122334455667788; cvt.u32.u64 %r1, %d1; cvt.u16.u64 %h1, %d1;\n"
				      "mad.wide.u32 %mine, %t, 64, %o; st.global.u8 [%mine], %d1; st.global.u8 "
				      "[%mine+1], %r1; st.global.u8 [%mine+2], %h1;\n"
				      "st.global.u16 [%mine+4], %d1; st.global.u16 [%mine+6], %r1; st.global.u16 "
				      "[%mine+8], %h1;\n"
				      "st.global.u32 [%mine+12], %d1; st.global.u32 [%mine+16], %r1; st.global.u64 "
				      "[%mine+24], %d1;\n"
				      "st.global.u8 [%mine+3], 255; st.global.f32 [%mine+32], 1.5; "
				      "st.volatile.global.u16 [%mine+36], %r1;");
	static const uint8_t want[40] = { 0x88, 0x88, 0x88, 0xff, 0x88, 0x77, 0x88, 0x77, 0x88, 0x77, 0,    0,    0x88,
					  0x77, 0x66, 0x55, 0x88, 0x77, 0x66, 0x55, 0,    0,    0,    0,    0x88, 0x77,
					  0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0,    0,    0xc0, 0x3f, 0x88, 0x77 };
	uint8_t *out = rig_memory(r, 40 * 64);

	(void)state;
	rig_expect_ok(r, "k", 1, 40, out, 0);
	for (unsigned n = 0; n < 40; n++)
		assert_memory_equal(out + 64 * n, want, 40);
	rig_close(r);
}

static void loads_and_stores_whole_vectors(void **state)
{
	struct rig *r = open_body("", ".reg .v4 .f32 %v; .reg .b128 %q;\n"
				      "mad.wide.u32 %mine, %t, 64, %o; mad.wide.u32 %d1, %t, 64, %x;\n"
				      "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1]; st.global.v4.u32 "
				      "[%mine], {%r4, %r3, %r2, %r1};\n"
				      "ld.global.v2.u64 {%d2, %d3}, [%d1+16]; "
				      "st.relaxed.sys.global.v2.u64 [%mine+16], {%d3, %d2};\n"
				      "ld.relaxed.sys.global.v2.u64 {%d2, _}, [%d1+32]; st.global.u64 "
				      "[%mine+32], %d2;\n"
				      "ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%d1+40]; st.global.v2.u8 "
				      "[%mine+40], {%h4, %h1};\n"
				      "ld.volatile.global.v2.s16 {%r1, %r2}, [%d1+44]; "
				      "st.global.v2.u32 [%mine+48], {%r1, %r2};\n");
	uint8_t *out = rig_memory(r, 40 * 64), *in = rig_memory(r, 40 * 64);

	(void)state;
	for (unsigned n = 0; n < 40 * 64; n++)
		in[n] = (uint8_t)(n * 7 + 3);
	rig_expect_ok(r, "k", 1, 40, out, (uintptr_t)in);
	for (unsigned n = 0; n < 40; n++) {
		const uint8_t *i = in + 64 * n, *o = out + 64 * n;
		int16_t low, high;
		int32_t wide[2];

		for (unsigned k = 0; k < 4; k++)
			assert_memory_equal(o + 4 * k, i + 12 - 4 * k, 4);
		assert_memory_equal(o + 16, i + 24, 8);
		assert_memory_equal(o + 24, i + 16, 8);
		assert_memory_equal(o + 32, i + 32, 8);
		assert_int_equal(o[40], i[43]);
		assert_int_equal(o[41], i[40]);
		memcpy(&low, i + 44, 2);
		memcpy(&high, i + 46, 2);
		memcpy(wide, o + 48, 8);
		assert_int_equal(wide[0], low);
		assert_int_equal(wide[1], high);
	}
	rig_close(r);
}

static void generic_addresses_access_every_space(void **state)
{
	struct rig *r = open_body(".const .u32 c[2] = { 1000, 2000 };\n",
				  ".shared .u32 s[32]; .local .u32 q[4]; .reg .b64 %a; .reg .b64 %b;\n"
				  "cvta.shared.u64 %a, s; mad.wide.u32 %a, %t, 4, %a; st.u32 [%a], %t;\n"
				  "cvta.local.u64 %b, q; add.u32 %r1, %t, 50; st.u32 [%b+8], %r1;\n"
				  "ld.local.u32 %r2, [q+8]; cvta.to.shared.u64 %a, %a; ld.shared.u32 %r3, [%a];\n"
				  "cvta.const.u64 %a, c; ld.u32 %r4, [%a+4]; mov.b64 %d1, x; cvta.param.u64 %d1, "
				  "%d1; ld.u32 %r5, [%d1];\n"
				  "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5;\n"
				  "isspacep.local %p1, %b; isspacep.global %p2, %b; isspacep.global %p3, %o; "
				  "isspacep.shared %p4, %o;\n"
				  "selp.u32 %r1, 100000, 0, %p1; add.u32 %r2, %r2, %r1; selp.u32 %r1, 1, 0, %p2; "
				  "add.u32 %r2, %r2, %r1;\n"
				  "selp.u32 %r1, 200000, 0, %p3; add.u32 %r2, %r2, %r1; selp.u32 %r1, 1, 0, %p4; "
				  "add.u32 %r2, %r2, %r1;\n"
				  "st.u32 [%mine], %r2;");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 30000);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], 2 * n + 50 + 2000 + 30000 + 300000);
	rig_close(r);
}

static void each_lane_has_separate_local_memory(void **state)
{
	struct rig *r = open_body("", ".local .align 8 .b8 q[128]; .reg .b64 %a; .reg .b64 %b; "
				      "mov.u64 %a, q; mov.u32 %r1, 0;\n"
				      "L: add.u32 %r2, %r1, %t; mad.wide.u32 %b, %r1, 4, %a; "
				      "st.local.u32 [%b], %r2; add.u32 %r1, %r1, 1;\n"
				      "setp.lt.u32 %p1, %r1, 32; @%p1 bra L;\n"
				      "and.b32 %r3, %t, 31; mad.wide.u32 %b, %r3, 4, %a; "
				      "ld.local.u32 %r4, [%b]; st.global.u32 [%mine], %r4;");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], n + n % 32);
	rig_close(r);
}

/* The kernels access a local variable through a pointer with all lanes active, with some, and with one. */
static void pointers_to_local_memory_access_the_lanes_own_memory(void **state)
{
	struct rig *r = open_body("", ".local .align 8 .b8 q[16]; .reg .b64 %a;\n"
				      "mov.u64 %a, q; cvta.local.u64 %a, %a;\n"
				      "st.u32 [%a+8], %t; ld.u32 %r1, [%a+8];\n"
				      "setp.lt.u32 %p1, %t, 7; @%p1 st.u32 [%a+8], 100; @%p1 ld.u32 %r1, [%a+8];\n"
				      "setp.eq.u32 %p2, %t, 5; @%p2 st.u32 [%a+8], 200; @%p2 ld.u32 %r1, [%a+8];\n"
				      "ld.local.u32 %r2, [q+8]; mad.lo.u32 %r1, %r1, 1000, %r2;\n"
				      "st.global.u32 [%mine], %r1;");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 1001 * (n == 5 ? 200 : n < 7 ? 100 : n));
	rig_close(r);
}

/* Checks the addresses of local and shared variables modulo their alignment. */
static void variables_have_their_alignment_in_every_lane(void **state)
{
	static const unsigned aligns[] = { 4, 64, 128, 256, 1024 };

	(void)state;
	for (size_t k = 0; k < sizeof aligns / sizeof *aligns; k++) {
		char body[512];
		struct rig *r;
		uint32_t *out;

		snprintf(body, sizeof body,
			 ".local .align %u .b8 q[8]; .shared .align %u .b8 s[8]; .reg .b64 %%a; .reg .b64 %%b;\n"
			 "mov.u64 %%a, q; cvta.local.u64 %%a, %%a; mov.u64 %%b, s; cvta.shared.u64 %%b, %%b; or.b64 %%a, %%a, %%b;\n"
			 "cvt.u32.u64 %%r1, %%a; and.b32 %%r1, %%r1, %u; st.global.u32 [%%mine], %%r1;",
			 aligns[k], aligns[k], aligns[k] - 1);
		r = open_body("", body);
		out = rig_memory(r, 96 * 4);
		memset(out, 1, 96 * 4);
		rig_expect_ok(r, "k", 1, 96, out, 0);
		for (unsigned n = 0; n < 96; n++)
			assert_int_equal(out[n], 0);
		rig_close(r);
	}
}

static void dynamic_shared_memory_follows_static_shared_memory(void **state)
{
	struct rig *r = open_body(".extern .shared .align 16 .b8 dyn[];\n",
				  ".shared .u32 s[5]; .reg .b32 %a; mov.u32 %a, dyn; mad.lo.u32 %r1, "
				  "%t, 4, %a; st.shared.u32 [%r1], %t;\n"
				  "bar.sync 0; xor.b32 %r2, %t, 33; mad.lo.u32 %r1, %r2, 4, %a; "
				  "ld.shared.u32 %r3, [%r1]; ld.shared.u32 %r4, [dyn+8];\n"
				  "mad.lo.u32 %r3, %r4, 1000, %r3; mov.u32 %r5, %dynamic_smem_size; "
				  "mad.lo.u32 %r3, %r5, 10000, %r3; st.global.u32 [%mine], %r3;");
	uint32_t *out = rig_memory(r, 64 * 4);
	const gpul_exec_kernel_info *info = gpul_exec_kernel_info_of(gpul_exec_find_kernel(r->program, "k"));

	(void)state;
	assert_int_equal(info->shared_bytes, 20);
	assert_int_equal(rig_finish(r, rig_start(r, "k", 1, 64, 256, out, 0)), GPUL_EXEC_OK);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], (n ^ 33) + 2000 + 2560000);
	assert_int_equal(rig_finish(r, rig_start(r, "k", 1, 64, 224, out, 0)), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "shared memory"));
	rig_close(r);
}

static void initialisers_fill_variables_in_order(void **state)
{
	struct rig *r = open_body(".global .align 4 .b8 bytes[6] = { 1, 2, 255 };\n"
				  ".global .u32 rows[2][3] = { { 1, 2 }, { 4, 5, 6 } };\n"
				  ".global .f32 floats[2] = { 0f3f800000, 2.5 };\n"
				  ".global .f64 one = 1.0;\n"
				  ".global .u64 pointer = rows+8;\n"
				  ".global .u64 generic_pointer = generic(bytes);\n",
				  "");
	static const uint8_t bytes[6] = { 1, 2, 255 };
	static const uint32_t rows[6] = { 1, 2, 0, 4, 5, 6 };
	static const float floats[2] = { 1.0f, 2.5f };
	const double one = 1.0;
	uint64_t at, rows_at, pointer;
	size_t n;

	(void)state;
	assert_true(gpul_exec_find_variable(r->program, "bytes", &at, &n));
	assert_int_equal(n, 6);
	assert_memory_equal((void *)(uintptr_t)at, bytes, 6);
	assert_true(gpul_exec_find_variable(r->program, "rows", &rows_at, &n));
	assert_memory_equal((void *)(uintptr_t)rows_at, rows, 24);
	assert_true(gpul_exec_find_variable(r->program, "floats", &at, &n));
	assert_memory_equal((void *)(uintptr_t)at, floats, 8);
	assert_true(gpul_exec_find_variable(r->program, "one", &at, &n));
	assert_memory_equal((void *)(uintptr_t)at, &one, 8);
	assert_true(gpul_exec_find_variable(r->program, "pointer", &at, &n));
	memcpy(&pointer, (void *)(uintptr_t)at, 8);
	assert_int_equal(pointer, rows_at + 8);
	assert_false(gpul_exec_find_variable(r->program, "nothing", &at, &n));
	assert_int_equal(gpul_exec_n_variables(r->program), 6);
	rig_close(r);
}

/* Offsets between lanes have 32 bits, so addresses more than 1 GiB apart take another code path. */
static void lanes_access_memory_at_any_distance(void **state)
{
	enum { STEP_BITS = 27 };
	static const uint64_t steps[] = { 4, 1 << 20, 1 << 24, 1 << 25, 1ull << 26, 1ull << STEP_BITS };
	const size_t bytes = 32ull << STEP_BITS; /* 4 GiB of address space, of which only a few pages are touched */
	uint8_t *far = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const gpul_exec_range range = { .base = (uintptr_t)far, .bytes = bytes, .label = "cuMemAlloc" };

	(void)state;
	assert_true(far != MAP_FAILED);
	for (unsigned k = 0; k < 2 * sizeof steps / sizeof steps[0]; k++) {
		/* if k is odd, addresses descend from lane to lane, so that all others are below that of lane 0 */
		struct rig *r = open_body("", k % 2 ? "xor.b32 %r1, %t, 31; cvt.u64.u32 %d1, %r1; ld.global.u64 %d2, [%o+256];\n"
						      "mad.lo.u64 %d1, %d1, %d2, %x; st.global.u32 [%d1], %t;\n"
						      "ld.global.u32 %r2, [%d1]; st.global.u32 [%mine], %r2;"
						    : "cvt.u64.u32 %d1, %t; ld.global.u64 %d2, [%o+256];\n"
						      "mad.lo.u64 %d1, %d1, %d2, %x; st.global.u32 [%d1], %t;\n"
						      "ld.global.u32 %r2, [%d1]; st.global.u32 [%mine], %r2;");
		uint32_t *out = rig_memory(r, 32 * 4 + 256);
		const uint64_t step = steps[k / 2];

		memcpy((uint8_t *)out + 256, &step, 8);
		assert_int_equal(gpul_exec_memory_add(r->memory, &range, NULL), GPUL_OK);
		rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)far);
		for (unsigned l = 0; l < 32; l++) {
			assert_int_equal(out[l], l);
			assert_int_equal(*(uint32_t *)(void *)(far + step * (k % 2 ? 31 - l : l)), l);
		}
		gpul_exec_memory_remove(r->memory, (uintptr_t)far);
		rig_close(r);
	}
	munmap(far, bytes);
}

/* PTX ISA, %total_smem_size: from sm_80 on, shared memory is allocated in units of 128 bytes.  A block may use the rest of its
 * last unit. */
static void a_block_has_whole_units_of_shared_memory(void **state)
{
	struct rig *r = open_body(".shared .u32 s[33];",
				  "mov.u32 %r1, s; cvt.u32.u64 %r2, %x; add.u32 %r1, %r1, %r2;\n"
				  "st.shared.u32 [%r1], 9; ld.shared.u32 %r2, [%r1];\n"
				  "mov.u32 %r3, %total_smem_size; mov.u32 %r4, %aggr_smem_size; sub.u32 %r4, %r4, %r3;\n"
				  "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%mine], %r2;");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	for (uint64_t at = 128; at < 256; at += 4) {
		rig_expect_ok(r, "k", 1, 32, out, at);
		for (unsigned n = 0; n < 32; n++)
			assert_int_equal(out[n], 9 + 256 + 1024);
	}
	assert_int_equal(rig_run(r, "k", 1, 32, out, 256), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "beyond the block's 132 bytes of shared memory"));
	rig_close(r);
}

/* ---- faults -------------------------------------------------------------------------------------- */

static void a_fault_past_the_end_of_an_allocation_reports_the_distance(void **state)
{
	struct rig *r = open_body("", "st.global.u32 [%mine], %t;");
	uint32_t *out = rig_memory(r, 100 * 4);

	(void)state;
	assert_int_equal(rig_run(r, "k", 2, 64, out, 0), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_int_equal(r->fault.address, (uintptr_t)out + 400);
	assert_int_equal(r->fault.block[0], 1);
	assert_int_equal(r->fault.thread[0], 100 - 64);
	assert_non_null(strstr(r->fault.text, "4-byte global store"));
	assert_non_null(strstr(r->fault.text, "is 0 bytes past the end of a 400-byte cuMemAlloc allocation"));
	assert_non_null(strstr(r->fault.text, "; k, block 1, thread 36"));
	assert_non_null(strstr(r->fault.text, "test.ptx:"));
	rig_close(r);
}

static void each_kind_of_invalid_access_has_a_message(void **state)
{
	static const struct {
		const char *body;
		gpul_exec_fault_kind kind;
		const char *text;
	} rows[] = {
		{ "ld.global.u32 %r1, [%o+2];", GPUL_EXEC_MISALIGNED, "is not a multiple of 4" },
		{ "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%o+8];", GPUL_EXEC_MISALIGNED, "is not a multiple of 16" },
		{ "mov.u64 %d1, 0; ld.global.u32 %r1, [%d1+8];", GPUL_EXEC_ILLEGAL_ADDRESS, "NULL pointer" },
		{ "mov.u64 %d1, 0; st.u32 [%d1], %r1;", GPUL_EXEC_ILLEGAL_ADDRESS, "NULL pointer" },
		{ ".shared .u32 s[2]; ld.shared.u32 %r1, [s+128];", GPUL_EXEC_ILLEGAL_ADDRESS,
		  "beyond the block's 8 bytes of shared memory" },
		{ ".local .u32 q[4]; st.local.u32 [q+16], %r1;", GPUL_EXEC_ILLEGAL_ADDRESS, "bytes of local memory" },
		{ ".local .u64 q[2]; mov.u64 %d1, q; cvta.local.u64 %d1, %d1; setp.eq.u32 %p1, %t, 9;\n"
		  "@%p1 add.u64 %d1, %d1, 4; ld.u64 %d1, [%d1];",
		  GPUL_EXEC_MISALIGNED, "is not a multiple of 8" },
		{ ".local .u64 q[2]; mov.u64 %d1, q; cvta.local.u64 %d1, %d1; setp.eq.u32 %p1, %t, 9;\n"
		  "@%p1 add.u64 %d1, %d1, 1000; st.u64 [%d1], %d1;",
		  GPUL_EXEC_ILLEGAL_ADDRESS, "" },
		{ "mov.u64 %d1, x; cvta.param.u64 %d1, %d1; st.u64 [%d1], %d1;", GPUL_EXEC_ILLEGAL_ADDRESS, "8-byte store at" },
		{ "mov.u64 %d1, x; ld.param.u64 %d1, [%d1+8];", GPUL_EXEC_ILLEGAL_ADDRESS, "bytes of parameters" },
		{ "ld.param.u64 %d1, [x+-4];", GPUL_EXEC_MISALIGNED, "8-byte param load at 0x4 is not a multiple of 8" },
		{ "atom.global.add.u32 %r1, [%o+1024], 1;", GPUL_EXEC_ILLEGAL_ADDRESS, "past the end" },
		{ "setp.eq.u32 %p1, %t, 3; @%p1 trap;", GPUL_EXEC_TRAP, "trap executed" },
		{ "brkpt;", GPUL_EXEC_TRAP, "brkpt" },
		{ "add.u64 %o, %o, 1020; ld.global.v2.u32 {%r1, %r2}, [%o+4];", GPUL_EXEC_ILLEGAL_ADDRESS, "past the end" },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct rig *r = open_body(".const .u32 c = 5;\n", rows[k].body);
		void *out = rig_memory(r, 1024);

		assert_int_equal(rig_run(r, "k", 1, 32, out, 0), rows[k].kind);
		if (!strstr(r->fault.text, rows[k].text))
			fail_msg("%s: \"%s\" does not contain \"%s\"", rows[k].body, r->fault.text, rows[k].text);
		rig_close(r);
	}
}

/* All lanes, some lanes, or one lane make the access, with 32-bit or 64-bit addresses; the address of one lane is misaligned. */
static void a_misaligned_access_to_shared_memory_is_a_fault(void **state)
{
	static const struct {
		const char *access;
		unsigned bytes;
	} rows[] = {
		{ "ld.shared.u16 %h1, [%a];", 2 },
		{ "st.shared.u16 [%a], %h1;", 2 },
		{ "ld.shared.u32 %r9, [%a];", 4 },
		{ "st.shared.u32 [%a], %r9;", 4 },
		{ "ld.shared.u64 %d9, [%a];", 8 },
		{ "st.shared.u64 [%a], %d9;", 8 },
		{ "ld.shared.v2.u32 {%r8, %r9}, [%a];", 8 },
		{ "st.shared.v4.u32 [%a], {%r8, %r9, %r8, %r9};", 16 },
		{ "ld.volatile.shared.u32 %r9, [%a];", 4 },
		{ "atom.shared.add.u32 %r9, [%a], 1;", 4 },
		{ "atom.shared.add.u64 %d9, [%a], 1;", 8 },
		{ "red.shared.add.f32 [%a], %f1;", 4 },
		{ "atom.shared.cas.b32 %r9, [%a], 1, 2;", 4 },
		{ "ld.shared.u32 %r9, [%a+2];", 0 },
		{ "st.shared.u64 [%a+4], %d9;", 0 },
	};
	static const char *const lanes[] = { "setp.lt.u32 %p1, %t, 32;", "setp.ge.u32 %p1, %t, 9;", "setp.eq.u32 %p1, %t, 9;" };

	(void)state;
	for (unsigned n = 0; n < 6 * sizeof rows / sizeof rows[0]; n++) {
		const unsigned bytes = rows[n / 6].bytes;
		const bool wide = n % 2;
		char body[1024], want[64];
		struct rig *r;

		/* bytes 0: the offset in the instruction is misaligned; otherwise the address of lane 9 is */
		snprintf(body, sizeof body,
			 ".shared .align 16 .b8 s[1024]; .reg .b%d %%a; mov.u%d %%a, s; %s\n"
			 "setp.eq.u32 %%p2, %%t, 9; mul.lo.u32 %%r1, %%t, 16; @%%p2 add.u32 %%r1, %%r1, %u;\n"
			 "%s @!%%p1 bra END; %s END:",
			 wide ? 64 : 32, wide ? 64 : 32, lanes[n / 2 % 3], bytes / 2,
			 wide ? "cvt.u64.u32 %d1, %r1; add.u64 %a, %a, %d1;" : "add.u32 %a, %a, %r1;", rows[n / 6].access);
		snprintf(want, sizeof want, "is not a multiple of %u", bytes ? bytes : strstr(rows[n / 6].access, "64") ? 8 : 4);
		r = open_body("", body);
		if (rig_run(r, "k", 1, 32, NULL, 0) != GPUL_EXEC_MISALIGNED || !strstr(r->fault.text, want))
			fail_msg("%s, lanes %u, wide %d: %s", rows[n / 6].access, n / 2 % 3, wide, r->fault.text);
		if (bytes)
			assert_int_equal(r->fault.thread[0], 9);
		rig_close(r);
	}
}

static void inactive_lanes_access_no_memory(void **state)
{
	struct rig *r = open_body("", "setp.lt.u32 %p1, %t, 7; mov.u32 %r1, 5;\n"
				      "@%p1 ld.global.u32 %r1, [%mine]; @%p1 st.global.u32 [%mine], 9; "
				      "@!%p1 bra END; st.global.u32 [%mine+0], 10; END:");
	uint32_t *out = rig_memory(r, 7 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 7; n++)
		assert_int_equal(out[n], 10);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_extend_by_their_type),
		cmocka_unit_test(stores_truncate_to_the_low_bits),
		cmocka_unit_test(loads_and_stores_whole_vectors),
		cmocka_unit_test(generic_addresses_access_every_space),
		cmocka_unit_test(each_lane_has_separate_local_memory),
		cmocka_unit_test(pointers_to_local_memory_access_the_lanes_own_memory),
		cmocka_unit_test(variables_have_their_alignment_in_every_lane),
		cmocka_unit_test(dynamic_shared_memory_follows_static_shared_memory),
		cmocka_unit_test(a_block_has_whole_units_of_shared_memory),
		cmocka_unit_test(initialisers_fill_variables_in_order),
		cmocka_unit_test(lanes_access_memory_at_any_distance),
		cmocka_unit_test(a_fault_past_the_end_of_an_allocation_reports_the_distance),
		cmocka_unit_test(each_kind_of_invalid_access_has_a_message),
		cmocka_unit_test(a_misaligned_access_to_shared_memory_is_a_fault),
		cmocka_unit_test(inactive_lanes_access_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
