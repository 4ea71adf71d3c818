/* test_registers.c — registers whose lifetimes do not overlap share storage in the frame: frames are small, and results are the same. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#include "softcuda/exec/observer_internal.h"
#include "softcuda/exec/program_internal.h"

enum { N = 300, LANES_USED = 32 }; /* without sharing, N registers of 32 lanes would need far more than a small frame */

static uint32_t frame_bytes(const struct rig *r)
{
	return gpul_exec_find_kernel(r->program, "k")->code->frame_bytes;
}

/* A growing buffer of PTX text. */
struct text {
	char *at;
	size_t n, room;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	va_list args;

	if (t->room - t->n < 512) {
		t->room = 2 * t->room + 1024;
		t->at = realloc(t->at, t->room);
		assert_non_null(t->at);
	}
	va_start(args, fmt);
	t->n += (size_t)vsnprintf(t->at + t->n, t->room - t->n, fmt, args);
	va_end(args);
}

/* Begin a kernel with registers %s0 to %s299; %t is the thread's number. */
static struct text begin(void)
{
	struct text t = { 0 };

	add(&t, "%s", PTX_HEADER KERNEL_OUT("k"));
	add(&t, ".reg .b32 %%s<%d>; .reg .b32 %%a; .reg .b32 %%b; .reg .b32 %%n; .reg .pred %%q;\n", N);
	return t;
}

/* Add instructions that compute s[from] from `source`, and s[k] from s[k - 1] for k up to to - 1; chain() computes the same in C. */
static void add_chain(struct text *t, const char *source, unsigned from, unsigned to)
{
	for (unsigned k = from; k < to; k++)
		if (k == from)
			add(t, "mad.lo.u32 %%s%u, %s, 3, %u;\n", k, source, k);
		else
			add(t, "mad.lo.u32 %%s%u, %%s%u, 3, %u;\n", k, k - 1, k);
}

static uint32_t chain(uint32_t source, unsigned from, unsigned to)
{
	for (unsigned k = from; k < to; k++)
		source = source * 3 + k;
	return source;
}

static uint32_t out[LANES_USED]; /* the results of the last run */

/* Run a kernel; return the size of its frame. */
static uint32_t run(struct text *t)
{
	struct rig *r = rig_open(t->at);
	uint32_t *results = rig_memory(r, sizeof out), bytes = frame_bytes(r);

	rig_expect_ok(r, "k", 1, LANES_USED, results, 0);
	memcpy(out, results, sizeof out);
	free(t->at);
	rig_close(r);
	return bytes;
}

static void a_long_chain_needs_few_places(void **state)
{
	struct text t = begin();

	(void)state;
	add_chain(&t, "%t", 0, N);
	add(&t, "st.global.u32 [%%mine], %%s%d; ret; }", N - 1);
	assert_true(run(&t) < N * LANES * 4 / 4);
	for (uint32_t l = 0; l < LANES_USED; l++)
		assert_int_equal(out[l], chain(l, 0, N));
}

/* Thread t runs the loop t % 5 times.  %a is set before the loop and read after it; %b and %n change in the loop, %b only in
 * some iterations. */
static void values_live_around_and_through_a_loop_are_kept(void **state)
{
	struct text t = begin();

	(void)state;
	add(&t, "add.u32 %%a, %%t, 77; mov.u32 %%b, 1; rem.u32 %%n, %%t, 5; setp.eq.u32 %%p1, %%n, 0; @%%p1 bra END;\n");
	add(&t, "LOOP:\n");
	add_chain(&t, "%b", 0, 100);
	add(&t, "and.b32 %%r1, %%n, 1; setp.eq.u32 %%p2, %%r1, 0; @%%p2 mov.u32 %%b, %%s99; @%%p2 bra SKIP;\n");
	add_chain(&t, "%n", 100, 200);
	add(&t, "SKIP: sub.u32 %%n, %%n, 1; setp.ne.u32 %%p1, %%n, 0; @%%p1 bra LOOP;\n");
	add(&t, "END:\n");
	add_chain(&t, "%a", 200, N);
	add(&t, "add.u32 %%r2, %%b, %%s%d; st.global.u32 [%%mine], %%r2; ret; }", N - 1);
	assert_true(run(&t) < N * LANES * 4 / 4);
	for (uint32_t l = 0; l < LANES_USED; l++) {
		uint32_t b = 1;

		for (uint32_t n = l % 5; n; n--)
			b = n & 1 ? b : chain(b, 0, 100);
		assert_int_equal(out[l], b + chain(l + 77, 200, N));
	}
}

/* The loop reads %a at its start and writes it at its end, so each iteration reads the value of the previous one. */
static void a_value_of_the_last_iteration_is_kept(void **state)
{
	struct text t = begin();

	(void)state;
	add(&t,
	    "mov.u32 %%n, 4; mov.u32 %%b, 0; mov.u32 %%a, %%t;\nLOOP: setp.eq.u32 %%p1, %%n, 4; @%%p1 bra FIRST; add.u32 %%b, %%b, %%a;\nFIRST:\n");
	add_chain(&t, "%t", 0, 100);
	add(&t, "add.u32 %%a, %%s99, %%n;\n");
	add_chain(&t, "%n", 100, N);
	add(&t, "sub.u32 %%n, %%n, 1; setp.ne.u32 %%p1, %%n, 0; @%%p1 bra LOOP;\n");
	add(&t, "add.u32 %%b, %%b, %%s%d; st.global.u32 [%%mine], %%b; ret; }", N - 1);
	run(&t);
	for (uint32_t l = 0; l < LANES_USED; l++)
		assert_int_equal(out[l], 3 * chain(l, 0, 100) + 4 + 3 + 2 + chain(1, 100, N));
}

/* Lanes of one warp take four paths, whose registers share storage, and then reconverge with one result. */
static void lanes_on_different_ways_do_not_disturb_each_other(void **state)
{
	struct text t = begin();

	(void)state;
	add(&t, "and.b32 %%r1, %%t, 3; mov.u32 %%a, 5;\n WAYS: .branchtargets A, B, C, D;\n brx.idx %%r1, WAYS;\n");
	for (unsigned way = 0; way < 4; way++) {
		add(&t, "%c:\n", 'A' + way);
		add_chain(&t, "%t", 70 * way, 70 * way + 70);
		add(&t, "bar.warp.sync 0x%x; add.u32 %%a, %%a, %%s%u; bra.uni END;\n", 0x11111111u << way, 70 * way + 69);
	}
	add(&t, "END: st.global.u32 [%%mine], %%a; ret; }");
	assert_true(run(&t) < N * LANES * 4 / 4);
	for (uint32_t l = 0; l < LANES_USED; l++)
		assert_int_equal(out[l], 5 + chain(l, 70 * (l & 3), 70 * (l & 3) + 70));
}

/* A guarded instruction writes only some lanes; the other lanes keep the value that the register had in the previous iteration. */
static void lanes_whose_guard_is_false_keep_their_value(void **state)
{
	struct text t = begin();

	(void)state;
	add(&t, "mov.u32 %%n, 3; mov.u32 %%b, 0;\nLOOP:\n");
	add_chain(&t, "%n", 0, N);
	add(&t, "setp.ne.u32 %%p3, %%n, 3; @%%p3 bra LATER; mov.u32 %%a, 11;\nLATER:\n");
	add(&t, "rem.u32 %%r1, %%t, %%n; setp.eq.u32 %%p1, %%r1, 0; @%%p1 mov.u32 %%a, %%s%d; add.u32 %%b, %%b, %%a;\n", N - 1);
	add(&t, "sub.u32 %%n, %%n, 1; setp.ne.u32 %%p2, %%n, 1; @%%p2 bra LOOP; st.global.u32 [%%mine], %%b; ret; }");
	run(&t);
	for (uint32_t l = 0; l < LANES_USED; l++) {
		const uint32_t of_three = l % 3 ? 11 : chain(3, 0, N);

		assert_int_equal(out[l], of_three + (l % 2 ? of_three : chain(2, 0, N)));
	}
}

/* The elements of a vector are written one by one, so they must not share storage with sources that are read later. */
static void results_of_a_vector_do_not_take_the_places_of_its_sources(void **state)
{
	struct text t = begin();

	(void)state;
	add(&t, "mov.u32 %%s0, %%t; add.u32 %%s1, %%t, 100; add.u32 %%s2, %%t, 200; add.u32 %%s3, %%t, 300;\n");
	for (unsigned k = 4; k < N; k += 4)
		add(&t, "mov.v4.u32 {%%s%u, %%s%u, %%s%u, %%s%u}, {%%s%u, %%s%u, %%s%u, %%s%u};\n", k, k + 1, k + 2, k + 3, k - 4, k - 3,
		    k - 2, k - 1);
	add(&t, "shl.b32 %%s%d, %%s%d, 4; add.u32 %%s%d, %%s%d, %%s%d; st.global.u32 [%%mine], %%s%d; ret; }", N - 3, N - 3, N - 4, N - 4,
	    N - 3, N - 4);
	run(&t);
	for (uint32_t l = 0; l < LANES_USED; l++)
		assert_int_equal(out[l], l + 16 * (l + 100));
}

/* A result must not share storage with a source of another width, because the handler still reads the source while it writes. */
static void widths_are_kept_apart(void **state)
{
	struct text t = begin();

	(void)state;
	add(&t, ".reg .b64 %%w<%d>; .reg .b16 %%z<%d>; mov.u32 %%s0, %%t;\n", N, N);
	for (unsigned k = 1; k < N; k++)
		add(&t,
		    "cvt.u64.u32 %%w%u, %%s%u; shl.b64 %%w%u, %%w%u, 1; cvt.u16.u64 %%z%u, %%w%u; cvt.u32.u16 %%s%u, %%z%u; add.u32 %%s%u, %%s%u, 1;\n",
		    k, k - 1, k, k, k, k, k, k, k, k);
	add(&t, "st.global.u32 [%%mine], %%s%d; ret; }", N - 1);
	assert_true(run(&t) < N * LANES * 4 / 4);
	for (uint32_t l = 0; l < LANES_USED; l++) {
		uint32_t want = l;

		for (unsigned k = 1; k < N; k++)
			want = (uint16_t)(2 * want) + 1u;
		assert_int_equal(out[l], want);
	}
}

/* Parameters and results of a device function are in registers, which the call writes and reads. */
static void parameters_and_results_in_registers_are_kept(void **state)
{
	struct text t = { 0 };

	(void)state;
	add(&t, "%s.func (.reg .b32 %%x) f(.reg .b32 %%y, .reg .b32 %%z)\n{ .reg .b32 %%s<%d>; mul.lo.u32 %%x, %%y, 3;\n", PTX_HEADER, N);
	add_chain(&t, "%x", 0, 50);
	add(&t, "mov.u32 %%z, 7; add.u32 %%x, %%s49, %%z;\n");
	add_chain(&t, "%y", 50, N);
	add(&t, "ret; }\n");
	add(&t, "%s call (%%r1), f, (%%t, %%r2); st.global.u32 [%%mine], %%r1; ret; }", KERNEL_OUT("k") "mov.u32 %r2, 1000;\n");
	run(&t);
	for (uint32_t l = 0; l < LANES_USED; l++)
		assert_int_equal(out[l], chain(3 * l, 0, 50) + 7);
}

/* When a tool observes the kernel, each register has its own storage, because tools show registers by name. */
static void registers_that_are_observed_do_not_share(void **state)
{
	struct observer watcher = { 0 };
	struct observer *const watchers[] = { &watcher };
	struct text t = begin();
	struct rig *r;
	uint32_t *results;

	(void)state;
	add_chain(&t, "%t", 0, N);
	add(&t, "st.global.u32 [%%mine], %%s%d; ret; }", N - 1);
	r = rig_open_observed(t.at, (gpul_exec_machine_options){ .n_workers = 1 }, watchers, 1);
	results = rig_memory(r, LANES_USED * 4);
	rig_expect_ok(r, "k", 1, LANES_USED, results, 0);
	assert_int_equal(results[5], chain(5, 0, N));
	assert_true(frame_bytes(r) >= N * LANES * 4);
	free(t.at);
	rig_close(r);
}

#define OLD_HEADER ".version 2.3\n.target sm_20\n.address_size 64\n"

/* Each thread has one copy of the registers of module scope for all functions; a block does not see the values of the previous block. */
static void registers_of_the_module_are_shared_by_its_functions(void **state)
{
	struct rig *r = rig_open_with(
		OLD_HEADER
		".reg .u32 sum, %s<300>; .reg .pred odd;\n"
		".func (.reg .u32 y) last() { mov.u32 y, %s299; ret; }\n"
		".func step { .reg .u32 sum; mov.u32 sum, 9; @odd add.u32 %s299, %s299, sum; ret; }\n" KERNEL_OUT("count") "add.u32 sum, sum, %t; add.u32 sum, sum, 1; st.global.u32 [%mine], sum; ret; }\n" KERNEL_OUT(
			"k") "and.b32 %r1, %t, 1; setp.eq.u32 odd, %r1, 1; setp.lt.u32 %p1, %t, 8; add.u32 %s299, %s299, %t;\n"
			     "@%p1 call step; call step; call (%r2), last; st.global.u32 [%mine], %r2; ret; }",
		1, 0);
	uint32_t *sums = rig_memory(r, 4 * LANES_USED * 4);

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		rig_expect_ok(r, "count", 4, LANES_USED, sums, 0);
		for (uint32_t l = 0; l < 4 * LANES_USED; l++)
			assert_int_equal(sums[l], l + 1);
		rig_expect_ok(r, "k", 4, LANES_USED, sums, 0);
		for (uint32_t l = 0; l < 4 * LANES_USED; l++)
			assert_int_equal(sums[l], l + (l % 2 ? l < 8 ? 18 : 9 : 0));
	}
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_chain_needs_few_places),
		cmocka_unit_test(values_live_around_and_through_a_loop_are_kept),
		cmocka_unit_test(a_value_of_the_last_iteration_is_kept),
		cmocka_unit_test(lanes_on_different_ways_do_not_disturb_each_other),
		cmocka_unit_test(lanes_whose_guard_is_false_keep_their_value),
		cmocka_unit_test(results_of_a_vector_do_not_take_the_places_of_its_sources),
		cmocka_unit_test(widths_are_kept_apart),
		cmocka_unit_test(parameters_and_results_in_registers_are_kept),
		cmocka_unit_test(registers_that_are_observed_do_not_share),
		cmocka_unit_test(registers_of_the_module_are_shared_by_its_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
