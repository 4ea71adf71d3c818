/* test_cluster.c — clusters of several blocks: cluster registers, the cluster barrier, and access to the shared memory of other blocks. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#define CLUSTER(name, blocks) \
	".visible .entry " name "(.param .u64 out, .param .u64 x) .reqnctapercluster " blocks " {\n" \
	".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .b64 %o; .reg .b64 %mine; .reg .b32 %t, %rank, %n, %s, %m;\n" \
	".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 m;\n" \
	"ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r1, %r1, %r2, %t;\n" \
	"mad.wide.u32 %mine, %r1, 4, %o; mov.u32 %rank, %cluster_ctarank; mov.u32 %n, %cluster_nctarank; mov.u32 %s, s; mov.u32 %m, m;\n"

/* Thread t of each block reads word t of the next block, by a .shared::cluster address and by a generic one. */
static void blocks_read_the_shared_memory_of_each_other(void **state)
{
	struct rig *r = rig_open(PTX_HEADER CLUSTER(
		"k",
		"4") "shl.b32 %r3, %t, 2; add.u32 %r3, %s, %r3; mad.lo.u32 %r4, %rank, 1000, %t; st.shared.u32 [%r3], %r4;\n"
		     "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
		     "add.u32 %r5, %rank, 1; rem.u32 %r5, %r5, %n; mapa.shared::cluster.u32 %r6, %r3, %r5; ld.shared::cluster.u32 %r7, [%r6];\n"
		     "cvta.shared::cluster.u64 %d1, s; mapa.u64 %d2, %d1, %r5; mad.wide.u32 %d2, %t, 4, %d2; ld.u32 %r8, [%d2];\n"
		     "sub.u32 %r9, %r7, %r8; getctarank.u64 %r10, %d2; getctarank.shared::cluster.u32 %r11, %r6; sub.u32 %r12, %r10, %r11;\n"
		     "or.b32 %r9, %r9, %r12; sub.u32 %r12, %r10, %r5; or.b32 %r9, %r9, %r12; isspacep.shared::cluster %p1, %d2;\n"
		     "isspacep.shared %p2, %d2; @!%p1 add.u32 %r9, %r9, 1; @%p2 add.u32 %r9, %r9, 1; cvta.to.shared::cluster.u64 %d3, %d2;\n"
		     "cvt.u32.u64 %r13, %d3; sub.u32 %r13, %r13, %r6; or.b32 %r9, %r9, %r13; shl.b32 %r9, %r9, 20; add.u32 %r7, %r7, %r9;\n"
		     "st.global.u32 [%mine], %r7; barrier.cluster.arrive; barrier.cluster.wait; ret; }");
	uint32_t *out = rig_memory(r, 8 * 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 8, 64, out, 0);
	for (unsigned n = 0; n < 512; n++)
		assert_int_equal(out[n], (n / 64 % 4 + 1) % 4 * 1000 + n % 64);
	rig_close(r);
}

static void threads_add_to_a_counter_of_the_first_block(void **state)
{
	struct rig *r = rig_open(PTX_HEADER CLUSTER(
		"k",
		"2, 1, 1") "st.shared.u32 [s], 0; barrier.cluster.arrive; barrier.cluster.wait; mapa.shared::cluster.u32 %r3, s, 0;\n"
			   "atom.relaxed.cluster.shared::cluster.add.u32 %r4, [%r3], 1; barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
			   "ld.shared::cluster.u32 %r5, [%r3]; st.global.u32 [%mine], %r5; barrier.cluster.arrive; barrier.cluster.wait; ret; }");
	uint32_t *out = rig_memory(r, 6 * 96 * 4);

	(void)state;
	rig_expect_ok(r, "k", 6, 96, out, 0);
	for (unsigned n = 0; n < 6 * 96; n++)
		assert_int_equal(out[n], 192);
	rig_close(r);
}

/* Each block copies 256 bytes to the other block, whose mbarrier waits for these bytes and for an arrival of its own first thread. */
static void a_copy_arrives_at_the_mbarrier_of_another_block(void **state)
{
	struct rig *r = rig_open(PTX_HEADER CLUSTER(
		"k",
		"2") "shl.b32 %r3, %t, 2; add.u32 %r3, %s, %r3; mad.lo.u32 %r4, %rank, 1000, %t; st.shared.u32 [%r3], %r4; setp.eq.u32 %p1, %t, 0;\n"
		     "@%p1 mbarrier.init.shared.b64 [m], 2; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 256; fence.proxy.async;\n"
		     "barrier.cluster.arrive; barrier.cluster.wait; xor.b32 %r5, %rank, 1; mapa.shared::cluster.u32 %r6, %m, %r5;\n"
		     "mapa.shared::cluster.u32 %r7, %s, %r5; add.u32 %r7, %r7, 512; @!%p1 bra WAIT;\n"
		     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%s], 256, [%r6];\n"
		     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n"
		     "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT; ld.shared.u32 %r8, [%r3+512];\n"
		     "st.global.u32 [%mine], %r8; barrier.cluster.arrive; barrier.cluster.wait; ret; }");
	uint32_t *out = rig_memory(r, 4 * 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 4, 64, out, 0);
	for (unsigned n = 0; n < 256; n++)
		assert_int_equal(out[n], (n / 64 + 1) % 2 * 1000 + n % 64);
	rig_close(r);
}

static void special_registers_number_the_blocks_of_a_cluster(void **state)
{
	struct rig *r = rig_open(PTX_HEADER CLUSTER(
		"k",
		"3") "mov.u32 %r3, %clusterid.x; mov.u32 %r4, %cluster_ctaid.x; mov.u32 %r5, %nclusterid.x; mov.u32 %r6, %cluster_nctaid.x;\n"
		     "mov.pred %p1, %is_explicit_cluster; selp.u32 %r7, 1, 0, %p1; mad.lo.u32 %r3, %r3, 10, %r4; mad.lo.u32 %r3, %r3, 10, %r5;\n"
		     "mad.lo.u32 %r3, %r3, 10, %r6; mad.lo.u32 %r3, %r3, 10, %rank; mad.lo.u32 %r3, %r3, 10, %n; mad.lo.u32 %r3, %r3, 10, %r7;\n"
		     "st.global.u32 [%mine], %r3; ret; }");
	uint32_t *out = rig_memory(r, 6 * 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 6, 32, out, 0);
	for (unsigned n = 0; n < 6; n++)
		assert_int_equal(out[32 * n], ((((((n / 3) * 10 + n % 3) * 10 + 2) * 10 + 3) * 10 + n % 3) * 10 + 3) * 10 + 1);
	rig_close(r);
}

/* Exited threads do not block the others, whether they have arrived or not. */
static void exited_threads_do_not_count_at_the_barrier(void **state)
{
	struct rig *r = rig_open(PTX_HEADER CLUSTER(
		"k", "2") "setp.lt.u32 %p1, %t, 5; @%p1 exit; setp.eq.u32 %p2, %rank, 0; @%p2 barrier.cluster.arrive; @%p2 exit;\n"
			  "barrier.cluster.arrive; barrier.cluster.wait; st.global.u32 [%mine], 7; ret; }");
	uint32_t *out = rig_memory(r, 2 * 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 2, 64, out, 0);
	for (unsigned n = 0; n < 128; n++)
		assert_int_equal(out[n], n >= 69 ? 7 : 0);
	rig_close(r);
}

static void an_access_beyond_the_other_block_is_a_fault(void **state)
{
	static const char *const accesses[] = {
		"mapa.shared::cluster.u32 %r3, s, 1; ld.shared::cluster.u32 %r4, [%r3+8192];",
		"mapa.shared::cluster.u32 %r3, s, 7; ld.shared::cluster.u32 %r4, [%r3+4096];",
		"cvta.shared.u64 %d1, s; mapa.u64 %d2, %d1, 9; ld.u32 %r4, [%d2];",
	};
	char text[2048];

	(void)state;
	for (size_t k = 0; k < sizeof accesses / sizeof accesses[0]; k++) {
		struct rig *r;

		snprintf(text, sizeof text, "%s%s ret; }", PTX_HEADER CLUSTER("k", "2"), accesses[k]);
		r = rig_open(text);
		if (rig_run(r, "k", 2, 32, rig_memory(r, 256), 0) == GPUL_EXEC_OK || !strstr(r->fault.text, "4-byte"))
			fail_msg("%s: %s", accesses[k], r->fault.text);
		rig_close(r);
	}
}

static void a_grid_is_a_multiple_of_its_clusters(void **state)
{
	struct rig *r = rig_open(PTX_HEADER CLUSTER("k", "4") "ret; }");
	gpul_exec_launch_config config = {
		.kernel = gpul_exec_find_kernel(r->program, "k"), .grid = { 6, 1, 1 }, .block = { 32, 1, 1 }, .params = (uint64_t[]){ 0, 0 }
	};
	gpul_exec_launch *l;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_exec_launch_start(r->machine, &config, &l, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "a grid of 6 blocks is not a multiple of 4"));
	config.grid[0] = 8;
	config.cluster[0] = 2;
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_exec_launch_start(r->machine, &config, &l, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, ".reqnctapercluster requires 4"));
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_read_the_shared_memory_of_each_other),
		cmocka_unit_test(threads_add_to_a_counter_of_the_first_block),
		cmocka_unit_test(a_copy_arrives_at_the_mbarrier_of_another_block),
		cmocka_unit_test(special_registers_number_the_blocks_of_a_cluster),
		cmocka_unit_test(exited_threads_do_not_count_at_the_barrier),
		cmocka_unit_test(an_access_beyond_the_other_block_is_a_fault),
		cmocka_unit_test(a_grid_is_a_multiple_of_its_clusters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
