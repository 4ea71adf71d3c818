/* test_rest.c — a worker thread sleeps between rounds if and only if its blocks only poll words that do not change. */
#include "tests/softcuda/exec/engine_rig.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { NAPS = 200, DEADLINE_MS = 60000, WORDS = 40000 };

static const char kernels[] = PTX_HEADER KERNEL_OUT(
	"waits") "L: ld.acquire.sys.global.u32 %r1, [%x]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
		 "st.global.u32 [%mine], %r1; ret; }\n"
	/* Waits, and counts its polls in local memory. */
	KERNEL_OUT("spills") ".local .u32 count[2]; mov.u64 %d1, count; cvta.local.u64 %d1, %d1; mov.u32 %r2, 0;\n"
			     "L: add.u32 %r2, %r2, 1; st.u32 [%d1], %r2; st.local.u32 [count+4], %r2;\n"
			     "ld.acquire.sys.global.u32 %r1, [%x]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
			     "st.global.u32 [%mine], %r1; ret; }\n"
	/* Waits, and writes the number of its polls to the next word, as a waiting kernel of comm/ does. */
	KERNEL_OUT(
		"tells") "mov.u32 %r2, 0;\n"
			 "L: add.u32 %r2, %r2, 1; st.relaxed.sys.global.u32 [%x+4], %r2;\n"
			 "ld.acquire.sys.global.u32 %r1, [%x]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
			 "st.global.u32 [%mine], %r1; ret; }\n" KERNEL_OUT(
				 "clock") "L: mov.u64 %d1, %globaltimer; setp.lt.u64 %p1, %d1, %x; @%p1 bra L; st.global.u32 [%mine], 7; ret; }\n"
	/* Adds words that are all 0, by ordered loads. */
	KERNEL_OUT("scans") "mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
			    "L: ld.relaxed.sys.global.u32 %r1, [%x]; add.u32 %r2, %r2, %r1; add.u64 %x, %x, 4; add.u32 %r3, %r3, 1;\n"
			    "setp.lt.u32 %p1, %r3, 40000; @%p1 bra L; st.global.u32 [%mine], %r2; ret; }\n"
	/* Polls a word that does not change, but stores a different value each time. */
	KERNEL_OUT("stores") "mov.u32 %r3, 0;\n"
			     "L: ld.relaxed.sys.global.u32 %r1, [%x]; add.u32 %r3, %r3, 1; st.global.u32 [%mine], %r3;\n"
			     "setp.lt.u32 %p1, %r3, 40000; @%p1 bra L; ret; }\n"
	/* Loads the word that it changes itself. */
	KERNEL_OUT("counts") "L: ld.relaxed.sys.global.u32 %r1, [%x]; add.u32 %r2, %r1, 1; st.relaxed.sys.global.u32 [%x], %r2;\n"
			     "setp.lt.u32 %p1, %r2, 40000; @%p1 bra L; st.global.u32 [%mine], %r2; ret; }\n";

/* Each sleep of a thread is one voluntary context switch; yields and preemptions are involuntary switches. */
static long sleeps(void)
{
	struct rusage u;

	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_nvcsw;
}

/* The calling thread sleeps, too, but hundreds of times less often than a worker does. */
static bool worker_sleeps(void)
{
	const long before = sleeps();
	long own = 0;

	for (int ms = 0; ms < DEADLINE_MS && sleeps() - before - own < NAPS; ms += 100, own++)
		usleep(100000);
	return sleeps() - before - own >= NAPS;
}

static void a_worker_sleeps_while_its_blocks_poll(void **state)
{
	static const char *const waiters[] = { "waits", "spills", "tells" };

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct rig *r = rig_open_with(kernels, 1, 0);
		uint32_t *out = rig_memory(r, 4 * 32 * 4), *flag = rig_memory(r, 8);
		gpul_exec_launch *waiting = rig_start(r, waiters[k], 4, 1, 0, out, (uintptr_t)flag);

		assert_true(worker_sleeps());
		__atomic_store_n(flag, 9, __ATOMIC_RELEASE);
		assert_int_equal(rig_finish(r, waiting), GPUL_EXEC_OK);
		for (unsigned n = 0; n < 4; n++)
			assert_int_equal(out[n], 9);
		rig_close(r);
	}
}

static void a_worker_sleeps_while_its_block_waits_for_a_time(void **state)
{
	struct rig *r = rig_open_with(kernels, 1, 0);
	uint32_t *out = rig_memory(r, 4);
	gpul_exec_launch *waiting = rig_start(r, "clock", 1, 1, 0, out, UINT64_MAX);

	(void)state;
	assert_true(worker_sleeps());
	gpul_exec_launch_abort(waiting);
	assert_int_equal(rig_finish(r, waiting), GPUL_EXEC_ABORTED);
	rig_close(r);
}

/* Sleeping after every fourth poll would be 10,000 sleeps.  On a busy machine, there are at most ten sleeps per second. */
static void a_worker_does_not_sleep_while_a_block_moves_data(void **state)
{
	static const char *const busy[] = { "scans", "stores", "counts" };
	static const uint32_t results[] = { 0, WORDS, WORDS };

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct rig *r = rig_open_with(kernels, 1, 0);
		uint32_t *out = rig_memory(r, 4), *words = rig_memory(r, WORDS * 4);
		const long before = sleeps();

		rig_expect_ok(r, busy[k], 1, 1, out, (uintptr_t)words);
		assert_in_range(sleeps() - before, 0, WORDS / 40);
		assert_int_equal(out[0], results[k]);
		rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_sleeps_while_its_blocks_poll),
		cmocka_unit_test(a_worker_sleeps_while_its_block_waits_for_a_time),
		cmocka_unit_test(a_worker_does_not_sleep_while_a_block_moves_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
