/* test_multimem.c — multimem.ld_reduce, .st and .red, and ordinary stores to multicast addresses, with a team of three devices. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

enum { N = 3, BYTES = 4096, HOLE = 2048 }; /* the last device has no memory at offset HOLE and above */

struct test_team {
	gpul_exec_team team;
	_Alignas(16) uint8_t copy[N][BYTES];
	_Atomic uint64_t changes;
	bool turned; /* true: the devices were added in the opposite order */
	void *addresses;
};

static bool find_copies(gpul_exec_team *team, uint64_t offset, gpul_exec_copies *out, char *why, size_t why_bytes)
{
	struct test_team *t = (struct test_team *)team;

	if (offset >= HOLE) {
		snprintf(why, why_bytes, "has no memory");
		return false;
	}
	*out = (gpul_exec_copies){ .begin = 16, .end = HOLE, .n = N, .changes = &t->changes, .seen = t->changes };
	for (unsigned n = 0; n < N; n++)
		out->at[n] = t->copy[t->turned ? N - 1 - n : n] + 16;
	return offset >= 16;
}

static struct test_team *make_team(struct rig *r, uint32_t unwritable)
{
	static struct test_team t;
	gpul_exec_range range = {
		.bytes = BYTES, .flags = GPUL_EXEC_MEM_MULTICAST, .team = &t.team, .unwritable = unwritable, .label = "cuMemMap"
	};

	t = (struct test_team){ .team = { find_copies } };
	t.addresses = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(t.addresses, MAP_FAILED);
	range.base = (uintptr_t)t.addresses;
	assert_int_equal(gpul_exec_memory_add(r->memory, &range, NULL), GPUL_OK);
	return &t;
}

static void end_team(struct rig *r, const struct test_team *t)
{
	rig_close(r);
	munmap(t->addresses, BYTES);
}

/* A kernel k(out, x): x is a multicast address; each thread has its own 16 bytes of it at [%a], and of out at [%b]. */
#define KERNEL_BEGIN \
	".version 9.0\n.target sm_100a\n.address_size 64\n" KERNEL_OUT( \
		"k") ".reg .b64 %a, %b; .reg .b32 %l; mov.u32 %l, %tid.x; mad.wide.u32 %a, %l, 16, %x; mad.wide.u32 %b, %l, 16, %o;\n"
#define KERNEL(body) KERNEL_BEGIN body " ret; }\n"

static uint64_t address_of(const struct test_team *t, unsigned offset)
{
	return (uintptr_t)t->addresses + offset;
}

/* ---- ld_reduce --------------------------------------------------------------------------------- */

struct reduction {
	const char *text;
	uint32_t word[N], want;
}; /* each element of the vector is this word */

/* The order counts: in f32, (100000000 + 1) - 100000000 is 0, but (100000000 - 100000000) + 1 is 1.  Adding 1 to 2048 in f16, or to 256 in
 * bf16, is a tie, which rounds to even. */
static const struct reduction reductions[] = {
	{ "add.u32 %r0", { 1, 2, 0xffffffff }, 2 },
	{ "add.s32 %r0", { 1, 2, 0xffffffff }, 2 },
	{ "min.u32 %r0", { 7, 5, 0xffffffff }, 5 },
	{ "max.u32 %r0", { 7, 5, 0xffffffff }, 0xffffffff },
	{ "min.s32 %r0", { 7, 5, 0xffffffff }, 0xffffffff },
	{ "max.s32 %r0", { 7, 5, 0xffffffff }, 7 },
	{ "and.b32 %r0", { 0xff, 0x3f, 0x1e }, 0x1e },
	{ "or.b32 %r0", { 0x100, 0x30, 0x2 }, 0x132 },
	{ "xor.b32 %r0", { 0xff, 0x3f, 0x1 }, 0xc1 },
	{ "add.f32 %f0", { 0x4cbebc20, 0x3f800000, 0xccbebc20 }, 0 },
	{ "add.v2.f32 {%f0, %f1}", { 0x3f800000, 0x40000000, 0x40400000 }, 0x40c00000 },
	{ "add.v4.f32 {%f0, %f1, %f2, %f3}", { 0x3f800000, 0x40000000, 0x40400000 }, 0x40c00000 },
	{ "add.f16x2 %r0", { 0x68003c00, 0x3c003c00, 0x3c003c00 }, 0x68004200 },
	{ "add.acc::f32.f16x2 %r0", { 0x68003c00, 0x3c003c00, 0x3c003c00 }, 0x68014200 },
	{ "add.v4.f16x2 {%r0, %r1, %r2, %r3}", { 0x68003c00, 0x3c003c00, 0x3c003c00 }, 0x68004200 },
	{ "add.v8.f16 {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}", { 0x68003c00, 0x3c003c00, 0x3c003c00 }, 0x68004200 },
	{ "add.acc::f32.v2.f16 {%h0, %h1}", { 0x68003c00, 0x3c003c00, 0x3c003c00 }, 0x68014200 },
	{ "min.f16x2 %r0", { 0x3c00bc00, 0x40003c00, 0x7e000000 }, 0x3c00bc00 },
	{ "max.f16x2 %r0", { 0x3c00bc00, 0x40003c00, 0x7e000000 }, 0x40003c00 },
	{ "add.bf16x2 %r0", { 0x43803f80, 0x3f803f80, 0x3f803f80 }, 0x43804040 },
	{ "add.acc::f32.v4.bf16x2 {%r0, %r1, %r2, %r3}", { 0x43803f80, 0x3f803f80, 0x3f803f80 }, 0x43814040 },
	{ "min.v2.bf16 {%h0, %h1}", { 0x3f80bf80, 0x40003f80, 0x40000000 }, 0x3f80bf80 },
	{ "max.bf16x2 %r0", { 0x3f80bf80, 0x40003f80, 0x40000000 }, 0x40003f80 },
	/* in e4m3, 16 is 0x58, the next number 18 is 0x59, and 1 is 0x38, so 16 + 1 is a tie */
	{ "add.e4m3x4 %r0", { 0x58383858, 0x38383838, 0x38383838 }, 0x58444458 },
	{ "add.acc::f16.e4m3x4 %r0", { 0x58383858, 0x38383838, 0x38383838 }, 0x59444459 },
	{ "max.v2.e4m3x2 {%h0, %h1}", { 0x38b83838, 0x40383840, 0x30303030 }, 0x40383840 },
	{ "min.e5m2x4 %r0", { 0x3cbc3c3c, 0x403c3c40, 0x38383838 }, 0x38bc3838 },
	{ "add.acc::f16.v2.e5m2x2 {%h0, %h1}", { 0x3c3c3c3c, 0x3c3c3c3c, 0x40404040 }, 0x44444444 },
};

/* Write a kernel that stores the result of a form: elements 0 and 7 of a .v8 vector, all elements of other vectors. */
static void write_kernel(const char *form, char *text, size_t text_bytes)
{
	const char *registers = strchr(form, ' ') + 1;
	const bool vector = *registers == '{', eight = strstr(form, ".v8"), four = strstr(form, ".v4");
	const char *const type = registers[vector + 1] == 'h' ? "b16" : registers[vector + 1] == 'f' ? "f32" : "b32";

	snprintf(text, text_bytes, "%smultimem.ld_reduce.relaxed.sys.global.%s, [%%a]; st%s.%s [%%b], %s; ret; }\n", KERNEL_BEGIN, form,
		 four     ? ".v4"
		 : vector ? ".v2"
			  : "",
		 type, eight ? "{%h0, %h7}" : registers);
}

static void loads_reduce_in_the_order_of_the_team(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof reductions / sizeof reductions[0]; k++) {
		const struct reduction *e = &reductions[k];
		char text[2000];
		struct rig *r;
		struct test_team *t;
		uint32_t *out;

		write_kernel(e->text, text, sizeof text);
		r = rig_open(text);
		t = make_team(r, 0);
		out = rig_memory(r, 32 * 16);
		for (unsigned n = 0; n < N; n++)
			for (unsigned at = 0; at < HOLE; at += 4)
				memcpy(t->copy[n] + at, &e->word[n], 4);
		rig_expect_ok(r, "k", 1, 32, out, address_of(t, 16));
		for (unsigned at = 0; at < 32 * 4; at += strstr(e->text, ".v4") ? 1 : 4)
			if (out[at] != e->want)
				fail_msg("%s: word %u is %x, expected %x", e->text, at, out[at], e->want);
		end_team(r, t);
	}
}

static void a_reduction_of_64_bits(void **state)
{
	struct rig *r = rig_open(KERNEL(
		"multimem.ld_reduce.min.s64 %d0, [%a]; st.u64 [%b], %d0; multimem.ld_reduce.add.f64 %d1, [%a+8]; st.u64 [%b+8], %d1;"));
	struct test_team *t = make_team(r, 0);
	uint64_t *out = rig_memory(r, 16);

	(void)state;
	for (int64_t n = 0; n < N; n++) {
		const double x = n == 0 ? 1e17 : n == 1 ? 1 : -1e17;
		const int64_t value = 5 - 3 * n;

		memcpy(t->copy[n] + 16, &value, 8);
		memcpy(t->copy[n] + 24, &x, 8);
	}
	rig_expect_ok(r, "k", 1, 1, out, address_of(t, 16));
	assert_int_equal(out[0], -1);
	assert_int_equal(out[1], 0);
	t->turned = true; /* in this order, the sum of the old values is 0, too: (-1e17 + 1) + 1e17 */
	atomic_fetch_add(&t->changes, 1);
	memcpy(t->copy[2] + 24, (double[]){ 1 }, 8);
	memcpy(t->copy[1] + 24, (double[]){ -1e17 }, 8);
	memcpy(t->copy[0] + 24, (double[]){ 1e17 }, 8);
	rig_expect_ok(r, "k", 1, 1, out, address_of(t, 16));
	assert_int_equal(out[1], 0); /* the sum is (1 - 1e17) + 1e17 */
	end_team(r, t);
}

/* ---- st and red -------------------------------------------------------------------------------- */

static void stores_reach_each_copy(void **state)
{
	struct rig *r = rig_open(KERNEL("cvt.rn.f32.u32 %f0, %l; multimem.st.release.sys.global.v4.f32 [%a], {%f0, %f0, %f0, %f0};"
					"setp.eq.u32 %p1, %l, 2; @%p1 multimem.st.weak.b64 [%a], 77;"));
	struct test_team *t = make_team(r, 0);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, rig_memory(r, 4), address_of(t, 16));
	for (unsigned n = 0; n < N; n++)
		for (unsigned l = 0; l < 32; l++) {
			const float want[4] = { (float)l, (float)l, (float)l, (float)l };

			if (l != 2)
				assert_memory_equal(t->copy[n] + 16 + 16 * l, want, 16);
			else
				assert_int_equal(*(uint64_t *)(void *)(t->copy[n] + 16 + 32), 77);
		}
	end_team(r, t);
}

static void reductions_update_each_copy(void **state)
{
	struct rig *r = rig_open(
		KERNEL("multimem.red.release.sys.global.add.u32 [%x], 2; multimem.red.relaxed.gpu.max.s64 [%x+8], -3;"
		       "mov.b32 %r1, 0x3c003c00; multimem.red.relaxed.sys.add.v2.f16x2 [%x+16], {%r1, %r1};"
		       "mov.f32 %f0, 0f3F800000; multimem.red.relaxed.sys.global.add.f32 [%x+24], %f0;"
		       "mov.b32 %r1, 0x3f803f80; multimem.red.relaxed.sys.global.add.v4.bf16x2 [%x+32], {%r1, %r1, %r1, %r1};"));
	struct test_team *t = make_team(r, 0);

	(void)state;
	for (unsigned n = 0; n < N; n++) {
		memset(t->copy[n] + 16, 0, 64);
		*(uint32_t *)(void *)(t->copy[n] + 16) = n;
		*(int64_t *)(void *)(t->copy[n] + 24) = -10;
	}
	rig_expect_ok(r, "k", 2, 32, rig_memory(r, 4), address_of(t, 16));
	for (unsigned n = 0; n < N; n++) {
		const uint32_t *word = (const uint32_t *)(const void *)(t->copy[n] + 16);

		assert_int_equal(word[0], n + 128);
		assert_int_equal(*(const int64_t *)(const void *)(word + 2), -3);
		assert_int_equal(word[4], 0x54005400); /* 1, added 64 times, is 64 in f16 */
		assert_int_equal(word[5], 0x54005400);
		assert_int_equal(word[6], 0x42800000);
		assert_int_equal(word[11], 0x42804280);
	}
	end_team(r, t);
}

/* In the same instruction, lanes 0 to 15 store to multicast addresses and the others to ordinary memory. */
static void ordinary_stores_reach_each_copy(void **state)
{
	static const char *const stores[] = { "st.global.u32 [%b], %l;", "st.relaxed.sys.global.u32 [%b], %l;",
					      "st.volatile.v4.u32 [%b], {%l, %l, %l, %l};", "st.u64 [%b], %d1;", "st.global.u8 [%b], %l;" };
	(void)state;
	for (size_t k = 0; k < sizeof stores / sizeof stores[0]; k++) {
		char text[1000];
		struct rig *r;
		struct test_team *t;
		uint32_t *out;

		snprintf(text, sizeof text, "%scvt.u64.u32 %%d1, %%l; setp.lt.u32 %%p1, %%l, 16; @%%p1 mov.b64 %%b, %%a; %s ret; }\n",
			 KERNEL_BEGIN, stores[k]);
		r = rig_open(text);
		t = make_team(r, 0);
		out = rig_memory(r, 32 * 16);
		rig_expect_ok(r, "k", 1, 32, out, address_of(t, 16));
		for (unsigned l = 0; l < 16; l++)
			for (unsigned n = 0; n < N; n++)
				assert_int_equal(*(uint32_t *)(void *)(t->copy[n] + 16 + 16 * l), l);
		for (unsigned l = 16; l < 32; l++)
			assert_int_equal(out[4 * l], l);
		end_team(r, t);
	}
}

/* ---- faults -------------------------------------------------------------------------------------- */

static void expect_fault(const char *text, unsigned offset, uint32_t unwritable, gpul_exec_fault_kind kind, const char *part)
{
	struct rig *r = rig_open(text);
	struct test_team *t = make_team(r, unwritable);
	uint32_t *out = rig_memory(r, 16);

	assert_int_equal(rig_run(r, "k", 1, 1, out, offset == UINT32_MAX ? (uintptr_t)out : address_of(t, offset)), kind);
	if (!strstr(r->fault.text, part))
		fail_msg("\"%s\" does not contain \"%s\"", r->fault.text, part);
	end_team(r, t);
}

static void accesses_that_are_faults(void **state)
{
	const gpul_exec_fault_kind address = GPUL_EXEC_ILLEGAL_ADDRESS;

	(void)state;
	expect_fault(KERNEL("multimem.st.b32 [%a], 1;"), UINT32_MAX, 0, address, "is not an address of a multicast object");
	expect_fault(KERNEL("multimem.st.b64 [%a], 1;"), 20, 0, GPUL_EXEC_MISALIGNED, "is not a multiple of 8");
	expect_fault(KERNEL("multimem.st.b64 [%a], 1;"), HOLE, 0, address, "has no memory");
	expect_fault(KERNEL("multimem.st.b64 [%a], 1;"), 16, 1, address, "device 0 may not write: see cuMemSetAccess");
	expect_fault(KERNEL("ld.global.u32 %r1, [%a];"), 16, 0, address, "which only stores and multimem instructions access");
	expect_fault(KERNEL("atom.global.add.u32 %r1, [%a], 1;"), 16, 0, address, "which only stores and multimem instructions access");
	expect_fault(KERNEL("st.global.u32 [%a], %r1;"), HOLE, 0, address, "has no memory");
	expect_fault(KERNEL("multimem.st.b32 [%a], 1;"), BYTES, 0, address, "4-byte multimem store at 0x");
}

static void forms_that_ptx_lacks_are_refused(void **state)
{
	static const char *const forms[] = { "multimem.ld_reduce.add.acc::f32.u32 %r0, [%a];",
					     "multimem.st.v8.f32 [%a], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};",
					     "multimem.st.b16 [%a], %h0;" };
	(void)state;
	for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
		char text[1200];
		gpul_error err = { 0 };
		struct rig r = { 0 };

		snprintf(text, sizeof text, "%s%s ret; }\n", KERNEL_BEGIN, forms[k]);
		assert_int_equal(gpul_exec_memory_create(&r.memory, NULL), GPUL_OK);
		assert_int_equal(rig_load(&r, text, &err), GPUL_EFORMAT);
		gpul_exec_memory_destroy(r.memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_reduce_in_the_order_of_the_team),
		cmocka_unit_test(a_reduction_of_64_bits),
		cmocka_unit_test(stores_reach_each_copy),
		cmocka_unit_test(reductions_update_each_copy),
		cmocka_unit_test(ordinary_stores_reach_each_copy),
		cmocka_unit_test(accesses_that_are_faults),
		cmocka_unit_test(forms_that_ptx_lacks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
