/* test_window.c — addresses in .shared and .local wrap at 32 bits, as on an H200.
 *
 * nvcc computes the address of w[i + 1], i = -1, in 64 bits: %d1 = w + 4 * 0xffffffff, then [%d1 + 4], which is w + 2^34.  Each form of
 * access below reads or changes w[8] at an address whose upper half is not 0; every expected value was observed on an H200. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

/* Open a rig whose kernel executes `access` with the address of w[8] plus x in %d3 and %r3, then stores %r4 in each active thread. */
static struct rig *open_window(const char *space, const char *active, const char *access)
{
	char text[4096];

	snprintf(text, sizeof text,
		 "%s%s.%s .align 16 .b32 w[256];\n"
		 "mov.u32 %%r1, 0; mov.u64 %%d2, w;\n"
		 "FILL: mul.wide.u32 %%d3, %%r1, 4; add.s64 %%d3, %%d3, %%d2; add.u32 %%r2, %%r1, 1000;\n"
		 "st.%s.u32 [%%d3], %%r2; add.u32 %%r1, %%r1, 1; setp.lt.u32 %%p1, %%r1, 256; @%%p1 bra FILL;\n"
		 "bar.sync 0; add.s64 %%d2, %%d2, 32; add.s64 %%d3, %%d2, %%x; cvt.u32.u64 %%r3, %%d3;\n"
		 "%s @!%%p2 bra END;\n%s\nst.global.u32 [%%mine], %%r4; END: ret; }",
		 PTX_HEADER, KERNEL_OUT("k"), space, space, active, access);
	return rig_open(text);
}

static const char *const active_lanes[] = {
	"setp.eq.u32 %p2, %t, %t;",                     /* all lanes are active */
	"setp.eq.u32 %p2, %t, 5;",                      /* one lane is active */
	"and.b32 %r9, %t, 1; setp.eq.u32 %p2, %r9, 1;", /* every second lane is active */
};

static bool is_active(unsigned n, unsigned lane)
{
	return n == 0 || (n == 1 ? lane == 5 : lane % 2 == 1);
}

/* A test case: `access` must give `want` in each active lane, with all, one and half of the lanes active. */
struct window_row {
	const char *access;
	uint64_t x;
	uint32_t want;
};

static void expect_rows(const char *space, const struct window_row *rows, size_t n_rows)
{
	for (size_t k = 0; k < n_rows; k++) {
		for (unsigned n = 0; n < 3; n++) {
			struct rig *r = open_window(space, active_lanes[n], rows[k].access);
			uint32_t *out = rig_memory(r, 32 * 4);

			rig_expect_ok(r, "k", 1, 32, out, rows[k].x);
			for (unsigned l = 0; l < 32; l++)
				if (out[l] != (is_active(n, l) ? rows[k].want : 0))
					fail_msg("%s %s, x 0x%llx, lanes %u: lane %u has %u", space, rows[k].access,
						 (unsigned long long)rows[k].x, n, l, out[l]);
			rig_close(r);
		}
	}
}

/* The test cases that are the same for .local and .shared. */
#define WINDOW_ROWS(space) \
	{ "ld." space ".u32 %r4, [%d3];", 0x100000004, 1009 }, { "ld." space ".u32 %r4, [%d3];", 0xffffffff00000004, 1009 }, \
		{ "ld." space ".u32 %r4, [%d3];", 0x8000000000000010, 1012 }, \
		{ "ld." space ".u32 %r4, [%d3];", 0xfffffffffffffff0, 1004 }, { "ld." space ".u32 %r4, [%d3+4];", 0x3fffffffc, 1008 }, \
		{ "ld." space ".u32 %r4, [%d3+-4];", 0x100000004, 1008 }, \
		{ "add.u32 %r3, %r3, 0xffffff00; ld." space ".u32 %r4, [%r3+256];", 0, 1008 }, \
		{ "ld.volatile." space ".u32 %r4, [%d3];", 0x100000000, 1008 }, \
		{ "ld." space ".v2.u32 {%r5,%r4}, [%d3];", 0x100000000, 1009 }, \
		{ "st." space ".u32 [%d3], 77; ld." space ".u32 %r4, [%d2];", 0x100000000, 77 }, \
		{ "st." space ".v2.u32 [%d3], {76,77}; ld." space ".u32 %r4, [%d2+4];", 0x100000000, 77 }, \
		{ "st.volatile." space ".u32 [%d3], 77; ld." space ".u32 %r4, [%d2];", 0x100000000, 77 }, \
		{ "cvta." space ".u64 %d4, %d2; add.s64 %d4, %d4, %x; cvta.to." space ".u64 %d4, %d4;\n" \
		  "ld." space ".u32 %r4, [%d4];", \
		  0x100000004, 1009 }

static void shared_addresses_wrap_at_32_bits(void **state)
{
	static const struct window_row rows[] = {
		WINDOW_ROWS("shared"),
		{ "atom.shared.exch.b32 %r4, [%d3], 1008;", 0x100000000, 1008 },
		{ "red.shared.max.u32 [%d3], 2000; ld.shared.u32 %r4, [%d2];", 0x100000000, 2000 },
		{ "cp.async.ca.shared.global [%d3], [%o], 4; cp.async.wait_all; ld.shared.u32 %r4, [%d2];", 0x100000000, 0 },
		/* cvta.shared uses only the lower 32 bits of its operand */
		{ "cvta.shared.u64 %d4, %d3; ld.u32 %r4, [%d4];", 0x8000000000000010, 1012 },
	};

	(void)state;
	expect_rows("shared", rows, sizeof rows / sizeof rows[0]);
}

static void local_addresses_wrap_at_32_bits(void **state)
{
	static const struct window_row rows[] = { WINDOW_ROWS("local") };

	(void)state;
	expect_rows("local", rows, sizeof rows / sizeof rows[0]);
}

static void addresses_outside_the_window_fault_with_the_code_of_an_h200(void **state)
{
	static const struct {
		const char *space, *access;
		uint64_t x;
		gpul_exec_fault_kind kind;
	} rows[] = {
		{ "shared", "ld.shared.u32 %r4, [%d3];", 0x1000, GPUL_EXEC_ILLEGAL_ADDRESS },
		{ "shared", "ld.shared.u32 %r4, [%d3];", 0x39000, GPUL_EXEC_ILLEGAL_ADDRESS },
		{ "shared", "ld.shared.u32 %r4, [%d3];", 0x1000000, GPUL_EXEC_ILLEGAL_INSTRUCTION },
		{ "shared", "st.shared.u32 [%d3], 1;", 0x80000000, GPUL_EXEC_ILLEGAL_INSTRUCTION },
		{ "shared", "atom.shared.add.u32 %r4, [%d3], 1;", 0x80000000, GPUL_EXEC_ILLEGAL_INSTRUCTION },
		{ "shared", "ld.shared.u32 %r4, [%d3];", 2, GPUL_EXEC_MISALIGNED },
		{ "local", "ld.local.u32 %r4, [%d3];", 0x1000, GPUL_EXEC_ILLEGAL_ADDRESS },
		{ "local", "ld.local.u32 %r4, [%d3];", 0x80000000, GPUL_EXEC_ILLEGAL_ADDRESS },
		{ "local", "ld.local.u32 %r4, [%d3];", 2, GPUL_EXEC_MISALIGNED },
		/* a generic address has 64 bits */
		{ "shared", "cvta.shared.u64 %d4, %d2; add.s64 %d4, %d4, %x; ld.u32 %r4, [%d4];", 0x8000000000000000,
		  GPUL_EXEC_ILLEGAL_ADDRESS },
		{ "local", "cvta.local.u64 %d4, %d3; ld.u32 %r4, [%d4];", 0x8000000000000000, GPUL_EXEC_ILLEGAL_ADDRESS },
	};

	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		for (unsigned n = 0; n < 3; n++) {
			struct rig *r = open_window(rows[k].space, active_lanes[n], rows[k].access);
			void *out = rig_memory(r, 32 * 4);

			if (rig_run(r, "k", 1, 32, out, rows[k].x) != rows[k].kind)
				fail_msg("%s, x 0x%llx: fault %d: %s", rows[k].access, (unsigned long long)rows[k].x, (int)r->fault.kind,
					 r->fault.text);
			rig_close(r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_addresses_wrap_at_32_bits),
		cmocka_unit_test(local_addresses_wrap_at_32_bits),
		cmocka_unit_test(addresses_outside_the_window_fault_with_the_code_of_an_h200),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
