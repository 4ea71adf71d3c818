/* test_atomic.c — atom and red: the result of each operation, and concurrent additions by two workers. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

/* One operation on one variable; operands, result and returned value have 64 bits. */
struct row {
	const char *op, *type;
	uint64_t old, b, want;
};

static const struct row rows[] = {
	{ "add", "u32", 0xffffffff, 2, 1 },
	{ "add", "s32", 5, (uint32_t)-7, (uint32_t)-2 },
	{ "add", "u64", 1ull << 63, 1ull << 63, 0 },
	{ "min", "u32", 0x80000000, 1, 1 },
	{ "min", "s32", 0x80000000, 1, 0x80000000 },
	{ "max", "u32", 0x80000000, 1, 0x80000000 },
	{ "max", "s32", 0x80000000, 1, 1 },
	{ "min", "s64", (uint64_t)-1, 1, (uint64_t)-1 },
	{ "max", "u64", (uint64_t)-1, 1, (uint64_t)-1 },
	{ "min", "u64", (uint64_t)-1, 1, 1 },
	{ "max", "s64", (uint64_t)-1, 1, 1 },
	{ "and", "b32", 0xff00ff, 0x0f0f0f, 0x0f000f },
	{ "or", "b32", 0xf0, 0x0f, 0xff },
	{ "xor", "b32", 0xff, 0x0f, 0xf0 },
	{ "and", "b64", 0xff00000000000000, 0x1f00000000000001, 0x1f00000000000000 },
	{ "or", "b64", 1, 1ull << 40, 1ull << 40 | 1 },
	{ "xor", "b64", 1, 1, 0 },
	{ "exch", "b32", 5, 6, 6 },
	{ "exch", "b64", 5, 1ull << 50, 1ull << 50 },
	{ "inc", "u32", 5, 7, 6 },
	{ "inc", "u32", 7, 7, 0 },
	{ "inc", "u32", 9, 7, 0 },
	{ "dec", "u32", 5, 7, 4 },
	{ "dec", "u32", 0, 7, 7 },
	{ "dec", "u32", 9, 7, 7 },
	{ "add", "f32", 0x3f800000, 0x40000000, 0x40400000 },
	{ "add", "f64", 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000 },
	{ "add.noftz", "f16", 0x3c00, 0x4000, 0x4200 },
	{ "add.noftz", "f16", 1, 1, 2 },
	{ "add.noftz", "f16", 0x7bff, 0x7bff, 0x7c00 },
	{ "add.noftz", "f16", 0x6800, 0x3c00, 0x6800 },
	{ "add.noftz", "f16x2", 0x3c004000, 0x3c003c00, 0x40004200 },
	{ "add.noftz", "bf16", 0x3f80, 0x4000, 0x4040 },
	{ "add.noftz", "bf16", 0x4b80, 0x3f80, 0x4b80 },
	{ "add.noftz", "bf16", 1, 1, 2 },
	{ "min.noftz", "f16", 0, 0x8000, 0x8000 },
	{ "max.noftz", "f16", 0x7e00, 0xbc00, 0xbc00 },
	{ "max.noftz", "f16", 0x7e00, 0xfe00, 0x7fff },
	{ "min.noftz", "bf16", 0xbf80, 1, 0xbf80 },
	{ "max.noftz", "f16x2", 0x3c00c000, 0x4000bc00, 0x4000bc00 },
	{ "add.noftz", "bf16x2", 0x3f804000, 0x3f803f80, 0x40004040 },
};

static unsigned bytes_of(const char *type)
{
	return strstr(type, "64") ? 8 : strstr(type, "16") && !strstr(type, "x2") ? 2 : 4;
}

/* PTX ISA 9.7.13.5: f32 additions treat subnormal numbers as 0 in global memory, and keep them in shared memory.  Tested for atom
 * and red, with all lanes, some, and one. */
static void additions_keep_subnormal_numbers_in_shared_memory_only(void **state)
{
	static const char *const additions[] = { "atom.%s.add.f32 %%f2, [%%a], %%f1;", "red.%s.add.f32 [%%a], %%f1;" };
	static const struct {
		const char *lanes;
		uint32_t mask;
	} groups[] = { { "setp.lt.u32 %p1, %t, 32;", 0xffffffff },
		       { "setp.gt.u32 %p1, %t, 20;", 0xffe00000 },
		       { "setp.eq.u32 %p1, %t, 3;", 8 } };

	(void)state;
	for (unsigned n = 0; n < 2 * 2 * 3; n++) {
		const bool shared = n % 2;
		const uint32_t mask = groups[n / 4].mask;
		char addition[128], text[2048];
		struct rig *r;
		uint32_t *out;

		snprintf(addition, sizeof addition, additions[n / 2 % 2], shared ? "shared" : "global");
		snprintf(
			text, sizeof text,
			"%s .shared .u32 s[32]; .reg .b32 %%s; .reg .b%d %%a;\n"
			"mov.u32 %%s, s; mad.lo.u32 %%s, %%t, 4, %%s; mov.b32 %%f1, 3; mov.b32 %%f2, 5; %s %%a, %s; st.%s.f32 [%%a], %%f2;\n"
			"%s @!%%p1 bra END; %s\n"
			"END: ld.%s.f32 %%f3, [%%a]; st.global.f32 [%%mine], %%f3; ret; }",
			PTX_HEADER KERNEL_OUT("k"), shared ? 32 : 64, shared ? "mov.u32" : "mov.u64", shared ? "%s" : "%mine",
			shared ? "shared" : "global", groups[n / 4].lanes, addition, shared ? "shared" : "global");
		r = rig_open(text);
		out = rig_memory(r, 32 * 4);
		rig_expect_ok(r, "k", 1, 32, out, 0);
		for (unsigned l = 0; l < 32; l++)
			if (out[l] != (!(mask >> l & 1) ? 5u : shared ? 8u : 0u))
				fail_msg("%s lane %u of %#x has %#x", addition, l, mask, out[l]);
		rig_close(r);
	}
}

static void atom_and_red_work_in_every_space(void **state)
{
	static const char *const spaces[] = { "global", "shared", "" };

	(void)state;
	for (unsigned n = 0; n < 3 * sizeof rows / sizeof rows[0]; n++) {
		const struct row *w = &rows[n / 3];
		const char *space = spaces[n % 3], *dot = *space ? "." : "";
		unsigned bytes = bytes_of(w->type);
		const char *reg = bytes == 8 ? "%d2" : bytes == 4 ? "%r1" : "%h1", *back = bytes == 8 ? "%d3" : bytes == 4 ? "%r2" : "%h2";
		char text[2048];
		struct rig *r;
		uint64_t *out, params[2] = { 0 };

		snprintf(text, sizeof text,
			 "%s .shared .align 8 .u64 s; .reg .b64 %%a;\n"
			 "%s ld.global.u64 %%d1, [%%o]; st.shared.u64 [s], %%d1; ld.global.b%u "
			 "%s, [%%o+16];\n"
			 "atom%s%s.%s.%s %s, [%%a], %s; red%s%s.%s.%s [%%a], %s;\n"
			 "st.global.b%u [%%o+8], %s; ld.shared.u64 %%d1, [s]; st.global.u64 "
			 "[%%o+24], %%d1; ret; }",
			 PTX_HEADER KERNEL_OUT("k"), !strcmp(space, "shared") ? "mov.u64 %a, s;" : "mov.u64 %a, %o;", 8 * bytes, reg, dot,
			 space, w->op, w->type, back, reg, dot, space, strcmp(w->op, "exch") ? w->op : "or",
			 strcmp(w->op, "exch") ? w->type
			 : bytes == 8          ? "b64"
					       : "b32",
			 reg, 8 * bytes, back);
		r = rig_open(text);
		out = rig_memory(r, 64);
		out[0] = w->old;
		out[2] = w->b;
		rig_expect_ok(r, "k", 1, 1, out, 0);
		memcpy(params, &out[1], bytes);
		assert_int_equal(params[0], w->old); /* atom returns the old value */
		if (!strcmp(w->op, "exch"))
			assert_int_equal(out[*space == 's' ? 3 : 0], w->want);
		rig_close(r);
	}
}

static void each_atomic_operation_stores_its_result(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof rows / sizeof rows[0]; n++) {
		unsigned bytes = bytes_of(rows[n].type);
		const char *reg = bytes == 8 ? "%d2" : bytes == 4 ? "%r1" : "%h1";
		char text[2048];
		struct rig *r;
		uint64_t *out;

		snprintf(text, sizeof text,
			 "%s ld.global.b%u %s, [%%o+16]; atom.global.%s.%s %s, [%%o], %s; ret; "
			 "}",
			 PTX_HEADER KERNEL_OUT("k"), 8 * bytes, reg, rows[n].op, rows[n].type, reg, reg);
		r = rig_open(text);
		out = rig_memory(r, 64);
		out[0] = rows[n].old;
		out[2] = rows[n].b;
		rig_expect_ok(r, "k", 1, 1, out, 0);
		if (out[0] != rows[n].want)
			fail_msg("atom.%s.%s of 0x%llx, 0x%llx stored 0x%llx instead of 0x%llx", rows[n].op, rows[n].type,
				 (unsigned long long)rows[n].old, (unsigned long long)rows[n].b, (unsigned long long)out[0],
				 (unsigned long long)rows[n].want);
		rig_close(r);
	}
}

/* Run one operation on one address in all lanes, or only in odd ones, either in all lanes at the same time or in one lane after
 * the other. */
static void run_on_one_address(const struct row *row, bool shared, bool odd_lanes, bool in_turn, uint64_t result[128])
{
	const unsigned bits = 8 * bytes_of(row->type);
	const char *reg = bits == 64 ? "%d" : bits == 32 ? "%r" : "%h";
	char text[2048];
	struct rig *r;
	uint64_t *out;

	snprintf(text, sizeof text,
		 "%s .shared .align 8 .u64 s; .reg .b64 %%a; .reg .b32 %%turn; mov.u64 %%a, %s; mov.u32 %%turn, 0;\n"
		 "ld.global.u64 %%d5, [%%o]; st.shared.u64 [s], %%d5; mad.wide.u32 %%mine, %%t, 8, %%o;\n"
		 "ld.global.b%u %s1, [%%mine+256]; cvt.u%u.u32 %s3, %%t; and.b32 %%r9, %%t, %d; setp.ne.u32 %%p2, %%r9, %d; @%%p2 ret;\n"
		 "L: setp.%s.u32 %%p1, %%t, %%turn; @%%p1 atom.%s.%s.%s %s2, [%%a], %s1%s%s;\n"
		 "add.u32 %%turn, %%turn, 1; setp.lt.u32 %%p3, %%turn, %d; @%%p3 bra L;\n"
		 "st.global.b%u [%%mine+512], %s2; ld.shared.u64 %%d6, [s]; st.global.u64 [%%o+8], %%d6; ret; }",
		 PTX_HEADER KERNEL_OUT("k"), shared ? "s" : "%o", bits, reg, bits, reg, odd_lanes, odd_lanes, in_turn ? "eq" : "ge",
		 shared ? "shared" : "global", row->op, row->type, reg, reg, strcmp(row->op, "cas") ? "" : ", ",
		 strcmp(row->op, "cas") ? ""
		 : bits == 64           ? "%d3"
		 : bits == 32           ? "%r3"
					: "%h3",
		 in_turn ? 32 : 1, bits, reg);
	r = rig_open(text);
	out = rig_memory(r, 128 * 8);
	out[0] = row->old;
	for (uint64_t l = 0; l < 32; l++)
		out[32 + l] = l % 3 ? row->b + l : row->old + l;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	memcpy(result, out, 128 * 8);
	rig_close(r);
}

static void lanes_that_meet_at_one_address_come_in_their_order(void **state)
{
	static const struct row swaps[] = { { "cas", "b16", 1, 0, 0 }, { "cas", "b32", 1, 0, 0 }, { "cas", "b64", 1, 0, 0 } };
	const size_t n_rows = sizeof rows / sizeof rows[0], n_swaps = sizeof swaps / sizeof swaps[0];

	(void)state;
	for (size_t n = 0; n < 4 * (n_rows + n_swaps); n++) {
		const struct row *row = n / 4 < n_rows ? &rows[n / 4] : &swaps[n / 4 - n_rows];
		uint64_t at_once[128], in_turn[128];

		run_on_one_address(row, n & 1, n & 2, false, at_once);
		run_on_one_address(row, n & 1, n & 2, true, in_turn);
		assert_int_equal(in_turn[64 + (n & 2 ? 1 : 0)], row->old);
		if (memcmp(at_once, in_turn, sizeof at_once))
			fail_msg("atom.%s.%s %s %s lanes: the results differ", row->op, row->type, n & 1 ? "shared" : "global",
				 n & 2 ? "odd" : "all");
	}
}

static void concurrent_additions_of_two_workers_are_all_counted(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "mov.u32 %r1, 0;\n"
							    "L: atom.global.add.u32 %r2, [%o], 1; red.global.add.u64 [%o+8], 2; "
							    "red.global.add.f32 [%o+16], 0f3f800000;\n"
							    "red.global.add.f64 [%o+24], 0d3ff0000000000000; atom.global.inc.u32 %r3, "
							    "[%o+32], 0xffffffff;\n"
							    "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 20; @%p1 bra L; ret; }");
	uint8_t *out = rig_memory(r, 64);
	uint64_t wide;
	uint32_t narrow;
	double f64;
	float f32;

	(void)state;
	rig_expect_ok(r, "k", 16, 128, out, 0);
	memcpy(&narrow, out, 4);
	memcpy(&wide, out + 8, 8);
	memcpy(&f32, out + 16, 4);
	memcpy(&f64, out + 24, 8);
	assert_int_equal(narrow, 16 * 128 * 20);
	assert_int_equal(wide, 2 * 16 * 128 * 20);
	assert_true(f32 == 16 * 128 * 20);
	assert_true(f64 == 16 * 128 * 20);
	memcpy(&narrow, out + 32, 4);
	assert_int_equal(narrow, 16 * 128 * 20);
	rig_close(r);
}

static void compare_and_swap_works_in_every_width(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") ".reg .b128 %q; .reg .b128 %n; .reg .b128 %w;\n"
							    "mov.b16 %h1, 5; mov.b16 %h2, 6; atom.global.cas.b16 %h3, [%o], %h1, %h2; "
							    "atom.global.cas.b16 %h3, [%o+2], %h1, %h2;\n"
							    "atom.global.cas.b32 %r1, [%o+4], 5, 6; atom.global.cas.b64 %d1, [%o+8], "
							    "5, 6;\n"
							    "mov.u64 %d1, 5; mov.u64 %d2, 9; mov.b128 %q, {%d1, %d2}; mov.b128 %n, "
							    "{%d2, %d1};\n"
							    "atom.global.cas.b128 %w, [%o+16], %q, %n; atom.global.exch.b128 %w, "
							    "[%o+32], %q; mov.b128 {%d3, %d4}, %w; st.global.u64 [%o+48], %d3; ret; "
							    "}");
	uint64_t *out = rig_memory(r, 64);
	const uint16_t low[4] = { 5, 7, 5, 0 };

	(void)state;
	memcpy(out, low, 8);
	out[1] = 4;
	out[2] = 5;
	out[3] = 9;
	out[4] = 77;
	rig_expect_ok(r, "k", 1, 1, out, 0);
	assert_int_equal(out[0], 6 | 7 << 16 | 6ull << 32);
	assert_int_equal(out[1], 4);
	assert_int_equal(out[2], 9);
	assert_int_equal(out[3], 5);
	assert_int_equal(out[4], 5);
	assert_int_equal(out[5], 9);
	assert_int_equal(out[6], 77);
	rig_close(r);
}

static void a_histogram_in_shared_memory_counts_every_element(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") ".shared .u32 s[8]; .reg .b32 %a; mov.u32 %a, s; setp.ge.u32 %p1, %t, 8; "
							    "mad.lo.u32 %r1, %t, 4, %a; @!%p1 st.shared.u32 [%r1], 0; bar.sync 0;\n"
							    "and.b32 %r2, %t, 7; mad.lo.u32 %r2, %r2, 4, %a; atom.shared.add.u32 %r3, "
							    "[%r2], 1; bar.sync 0;\n"
							    "@%p1 ret; ld.shared.u32 %r4, [%r1]; st.global.u32 [%mine], %r4; ret; }");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	rig_expect_ok(r, "k", 1, 1000, out, 0);
	for (unsigned n = 0; n < 8; n++)
		assert_int_equal(out[n], 125);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atom_and_red_work_in_every_space),
		cmocka_unit_test(additions_keep_subnormal_numbers_in_shared_memory_only),
		cmocka_unit_test(each_atomic_operation_stores_its_result),
		cmocka_unit_test(lanes_that_meet_at_one_address_come_in_their_order),
		cmocka_unit_test(concurrent_additions_of_two_workers_are_all_counted),
		cmocka_unit_test(compare_and_swap_works_in_every_width),
		cmocka_unit_test(a_histogram_in_shared_memory_counts_every_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
