/* test_async.c — asynchronous copies, mbarriers, and clusters of one block. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#define SHARED \
	".shared .align 16 .b8 s[4096]; .shared .align 8 .b64 m; .reg .b32 %s; .reg .b32 %m;\n" \
	"mov.u32 %s, s; mov.u32 %m, m;\n"

static void cp_async_copies_the_source_and_zeroes_the_rest(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") SHARED "shl.b32 %r1, %t, 4; add.u32 %r1, %s, %r1; shl.b32 %r2, %t, "
								   "4; cvt.u64.u32 %d1, %r2; add.u64 %d1, %x, %d1;\n"
								   "st.shared.v4.u32 [%r1], {9, 9, 9, 9}; and.b32 %r3, %t, 31; "
								   "min.u32 %r3, %r3, 16;\n"
								   "cp.async.cg.shared.global [%r1], [%d1], 16, %r3; "
								   "cp.async.commit_group; cp.async.wait_group 0;\n"
								   "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1]; add.u32 %r4, "
								   "%r4, %r5; add.u32 %r6, %r6, %r7;\n"
								   "add.u32 %r4, %r4, %r6; st.global.u32 [%mine], %r4; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4), *in = rig_memory(r, 64 * 16);

	(void)state;
	for (unsigned n = 0; n < 256; n++)
		in[n] = n + 1;
	rig_expect_ok(r, "k", 1, 64, out, (uintptr_t)in);
	for (unsigned n = 0; n < 64; n++) {
		uint32_t part[4] = { 0 };

		memcpy(part, in + 4 * n, n % 32 < 16 ? n % 32 : 16);
		assert_int_equal(out[n], part[0] + part[1] + part[2] + part[3]);
	}
	rig_close(r);
}

static void cp_async_with_ignore_source_reads_nothing(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") SHARED "shl.b32 %r1, %t, 2; add.u32 %r1, %s, %r1; setp.ge.u32 %p1, %t, 8; "
								   "setp.lt.u32 %p2, %t, 24;\n"
								   "mov.u64 %d1, %x; @%p1 mov.u64 %d1, 64; st.shared.u32 [%r1], 9;\n"
								   "@%p2 cp.async.ca.shared::cta.global [%r1], [%d1], 4, %p1;\n"
								   "cp.async.wait_all; ld.shared.u32 %r2, [%r1]; st.global.u32 [%mine], "
								   "%r2; ret; }");
	uint32_t *out = rig_memory(r, 32 * 4), *in = rig_memory(r, 4);

	(void)state;
	in[0] = 77;
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)in);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], n < 8 ? 77 : n < 24 ? 0 : 9);
	assert_int_equal(rig_run(r, "k", 1, 32, out, 64), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "test.ptx:"));
	rig_close(r);
}

/* Warp 0 waits three times for the arrivals of 64 threads; the parity distinguishes the phases. */
static void an_mbarrier_ends_a_phase_when_all_have_arrived(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") SHARED
				 "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [%m], 64; @%p1 "
				 "st.shared.u32 [s], 0;\n"
				 "bar.sync 0; mov.u32 %r1, 0; mov.u32 %r3, 0;\n"
				 "AGAIN: atom.shared.add.u32 %r2, [s], 1; mbarrier.arrive.shared.b64 %d1, "
				 "[%m];\n"
				 "WAIT: mbarrier.try_wait.shared.b64 %p2, [%m], %d1; @!%p2 bra WAIT;\n"
				 "and.b32 %r4, %r1, 1; mbarrier.test_wait.parity.shared.b64 %p3, [%m], %r4;\n"
				 "ld.shared.u32 %r2, [s]; mad.lo.u32 %r3, %r3, 1000, %r2; @!%p3 add.u32 %r3, "
				 "%r3, 1; bar.sync 0;\n"
				 "add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 3; @%p4 bra AGAIN;\n"
				 "st.global.u32 [%mine], %r3; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 64128192);
	rig_close(r);
}

static void an_mbarrier_waits_for_bytes_too(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") SHARED
				 "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared::cta.b64 [%m], 1; bar.sync "
				 "0;\n"
				 "@!%p1 bra WAIT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 256;\n"
				 "mbarrier.test_wait.parity.shared.b64 %p2, [%m], 0; selp.u32 %r1, 100, 0, "
				 "%p2;\n"
				 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%x], "
				 "256, [%m];\n"
				 "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%m], 0; @!%p2 bra WAIT;\n"
				 "shl.b32 %r2, %t, 2; add.u32 %r2, %s, %r2; ld.shared.u32 %r3, [%r2]; @%p1 "
				 "add.u32 %r3, %r3, %r1;\n"
				 "add.u32 %r3, %r3, 1; st.shared.u32 [%r2], %r3; fence.proxy.async; bar.sync 0; "
				 "@!%p1 exit;\n"
				 "cp.async.bulk.global.shared::cta.bulk_group [%o], [%s], 256; "
				 "cp.async.bulk.commit_group;\n"
				 "cp.async.bulk.wait_group 0; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4), *in = rig_memory(r, 64 * 4);

	(void)state;
	for (unsigned n = 0; n < 64; n++)
		in[n] = 3 * n;
	rig_expect_ok(r, "k", 1, 64, out, (uintptr_t)in);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 3 * n + 1);
	rig_close(r);
}

static void later_phases_do_not_wait_for_dropped_threads(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") SHARED
				 "mbarrier.init.shared.b64 [%m], 3; mbarrier.arrive_drop.shared.b64 %d1, [%m];\n"
				 "mbarrier.pending_count.b64 %r1, %d1; mbarrier.arrive.shared::cta.b64 %d2, "
				 "[%m], 2;\n"
				 "mbarrier.pending_count.b64 %r2, %d2; mbarrier.test_wait.shared.b64 %p1, [%m], "
				 "%d1;\n"
				 "mbarrier.arrive.shared.b64 %d3, [%m]; mbarrier.pending_count.b64 %r3, %d3;\n"
				 "mad.lo.u32 %r1, %r1, 10, %r2; mad.lo.u32 %r1, %r1, 10, %r3; @%p1 add.u32 %r1, "
				 "%r1, 1000;\n"
				 "st.global.u32 [%mine], %r1; ret; }" KERNEL_OUT("many") SHARED
				 "mbarrier.init.shared.b64 [%m], 2; mbarrier.arrive.shared::cta.b64 %d1, [%m], "
				 "3; ret; }");
	uint32_t *out = rig_memory(r, 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 1, out, 0);
	assert_int_equal(out[0], 1322);
	assert_int_equal(rig_run(r, "many", 1, 1, out, 0), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "3 arrivals, but the phase waits for only 2 of 2"));
	rig_close(r);
}

static void a_cluster_is_one_block(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") SHARED "shl.b32 %r1, %t, 2; add.u32 %r1, %s, %r1; st.shared.u32 [%r1], %t;\n"
								   "barrier.cluster.arrive; barrier.cluster.wait; cvta.shared.u64 %d1, "
								   "s; mapa.u64 %d2, %d1, 0;\n"
								   "getctarank.u64 %r2, %d2; mov.u32 %r3, %cluster_nctarank; mad.lo.u32 "
								   "%r2, %r2, 100, %r3;\n"
								   "sub.u32 %r4, 63, %t; mad.wide.u32 %d2, %r4, 4, %d2; ld.u32 %r5, "
								   "[%d2]; mad.lo.u32 %r5, %r5, 10, %r2;\n"
								   "st.global.u32 [%mine], %r5; griddepcontrol.wait; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 10 * (63 - n) + 1);
	rig_close(r);
}

/* Cooperative groups keep their barriers in reserved shared memory, which follows the kernel's own shared memory. */
static void a_part_of_shared_memory_is_reserved_for_the_system(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") SHARED "mov.u32 %r1, %reserved_smem_offset_1; setp.eq.u32 %p1, %t, "
								   "0; @%p1 st.shared.u32 [%r1], 7;\n"
								   "bar.sync 0; ld.shared.u32 %r2, [%r1]; mov.u32 %r3, "
								   "%reserved_smem_offset_begin;\n"
								   "setp.ge.u32 %p2, %r3, 4104; @%p2 add.u32 %r2, %r2, 10; "
								   "mov.u32 %r4, %reserved_smem_offset_end;\n"
								   "sub.u32 %r4, %r4, 4; ld.shared.u32 %r5, [%r4]; st.global.u32 "
								   "[%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], 17);
	rig_close(r);
}

static void refuses_unsupported_copies(void **state)
{
	static const char *const texts[] = {
		"cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes [%r1], [%x, {%r2, %r2, %r2}], [%r3], {%h1, %h2}; ret; }",
		"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%x, {%r2, %r2, %r2, %r2, %r2}], [%r3]; ret; }",
	};
	char text[1024];

	(void)state;
	for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
		char *why;

		snprintf(text, sizeof text, "%s%s", PTX_HEADER KERNEL_OUT("k"), texts[k]);
		why = rig_refusal(text, "k");
		assert_non_null(strstr(why, "test.ptx:10: cp."));
		free(why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cp_async_copies_the_source_and_zeroes_the_rest),
		cmocka_unit_test(cp_async_with_ignore_source_reads_nothing),
		cmocka_unit_test(an_mbarrier_ends_a_phase_when_all_have_arrived),
		cmocka_unit_test(an_mbarrier_waits_for_bytes_too),
		cmocka_unit_test(later_phases_do_not_wait_for_dropped_threads),
		cmocka_unit_test(a_cluster_is_one_block),
		cmocka_unit_test(a_part_of_shared_memory_is_reserved_for_the_system),
		cmocka_unit_test(refuses_unsupported_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
