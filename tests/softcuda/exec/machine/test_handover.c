/* test_handover.c — a block passes a buffer to another block, as kernels of communication libraries do: with bulk copies, fences,
 * a counter incremented by red.release, a poll that sleeps, and a barrier with a thread count. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

enum { ROUNDS = 200, WORDS = 256 };

/* out[0]: number of rounds in which the second block found a wrong word; out[1]: rounds; out[2] and out[3]: the counters of
 * full and of empty buffers; from out + 1024: the buffer of 1024 bytes. */
#define BEGIN \
	PTX_HEADER KERNEL_OUT( \
		"k") ".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 m; .reg .b32 %s, %m, %k, %n; .reg .b64 %buffer;\n" \
		     "mov.u32 %s, s; mov.u32 %m, m; add.u64 %buffer, %o, 1024; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;\n" \
		     "add.u32 %r2, %s, %r2; mov.u32 %k, 0; cvt.u32.u64 %n, %x; mov.u32 %r3, %ctaid.x;\n" \
		     "setp.eq.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r3, 0; @%p2 bra RECEIVE;\n"

/* Wait until the word at out + offset is at least %k; then all threads continue. */
#define WAIT(label, offset) \
	"@!%p1 bra " label "_DONE;\n" label ": ld.acquire.sys.global.u32 %r4, [%o+" #offset "]; setp.ge.u32 %p3, %r4, %k; @%p3 bra " label \
	"_DONE;\n" \
	"nanosleep.u32 100; bra " label ";\n" label "_DONE: bar.sync 0;\n"

#define RAISE(offset) "@%p1 fence.acq_rel.sys; @%p1 red.release.sys.global.add.u32 [%o+" #offset "], 1;\n"

static void check(const char *ptx)
{
	struct rig *r = rig_open(ptx);
	uint32_t *out = rig_memory(r, 2048);

	rig_expect_ok(r, "k", 2, WORDS, out, ROUNDS);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[1], ROUNDS);
	assert_int_equal(out[2], ROUNDS);
	assert_int_equal(out[3], ROUNDS);
	rig_close(r);
}

/* Every thread checks that its word %r5 is round + thread; thread 0 counts the rounds with a wrong word. */
#define COUNT_WRONG \
	"add.u32 %r6, %k, %r1; setp.ne.u32 %p4, %r5, %r6; bar.red.popc.u32 %r7, 0, %p4; setp.ne.u32 %p5, %r7, 0;\n" \
	"@%p5 bra WRONG; bra RIGHT; WRONG: @%p1 red.global.add.u32 [%o], 1; RIGHT: @%p1 red.global.add.u32 [%o+4], 1;\n"

static void bulk_copies_hand_a_buffer_over(void **state)
{
	(void)state;
	check(BEGIN "SEND: " WAIT(
		"EMPTY",
		12) "add.u32 %k, %k, 1; add.u32 %r5, %k, %r1; st.shared.u32 [%r2], %r5;\n"
		    "fence.proxy.async.shared::cta; bar.sync 0; @!%p1 bra COPIED;\n"
		    "cp.async.bulk.global.shared::cta.bulk_group [%buffer], [%s], 1024;\n"
		    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n" RAISE(
			    8) "COPIED: bar.sync 0; setp.lt.u32 %p6, %k, %n; @%p6 bra SEND; ret;\n"
			       "RECEIVE: @%p1 mbarrier.init.shared::cta.b64 [%m], 1; bar.sync 0;\n"
			       "NEXT: add.u32 %k, %k, 1;\n" WAIT(
				       "FULL",
				       8) "@!%p1 bra ISSUED; mbarrier.arrive.expect_tx.shared::cta.b64 %d1, [%m], 1024;\n"
					  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%buffer], 1024, [%m];\n"
					  "ISSUED: add.u32 %r8, %k, 1; and.b32 %r8, %r8, 1;\n"
					  "TX: mbarrier.try_wait.parity.shared::cta.b64 %p7, [%m], %r8; @!%p7 bra TX;\n"
					  "ld.shared.u32 %r5, [%r2];\n" COUNT_WRONG RAISE(
						  12) "bar.sync 0; setp.lt.u32 %p6, %k, %n; @%p6 bra NEXT; ret;\n}");
}

static void stores_and_a_released_counter_hand_a_buffer_over(void **state)
{
	(void)state;
	check(BEGIN "shl.b32 %r9, %r1, 2; cvt.u64.u32 %d2, %r9; add.u64 %d2, %buffer, %d2;\n"
		    "SEND: " WAIT("EMPTY", 12) "add.u32 %k, %k, 1; add.u32 %r5, %k, %r1; st.global.u32 [%d2], %r5; bar.sync 0;\n" RAISE(
			    8) "setp.lt.u32 %p6, %k, %n; @%p6 bra SEND; ret;\n"
			       "RECEIVE: shl.b32 %r9, %r1, 2; cvt.u64.u32 %d2, %r9; add.u64 %d2, %buffer, %d2;\n"
			       "NEXT: add.u32 %k, %k, 1;\n" WAIT("FULL", 8) "ld.global.u32 %r5, [%d2];\n" COUNT_WRONG RAISE(
				       12) "bar.sync 0; setp.lt.u32 %p6, %k, %n; @%p6 bra NEXT; ret;\n}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bulk_copies_hand_a_buffer_over),
		cmocka_unit_test(stores_and_a_released_counter_hand_a_buffer_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
