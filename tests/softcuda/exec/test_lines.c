/* test_lines.c — a warp that sees the last word of a line of 128 bytes sees the whole line that another warp stored
 * (softcuda/exec/run/run_internal.h).  NCCL's LL128 protocol needs it: the last word of each line is its flag. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

enum { ROUNDS = 150000 }; /* number of rounds, of 4 lines each */

/* Block 0 stores 1, 2, ... x to all words of 4 lines, 16 bytes per lane.  Block 1 loads the lines until it reads x.  It counts in out[0]
 * the words that are older than the last word of their line, and in out[1] how often the word of lane 0 has changed.  Lane l accesses the
 * 16-byte piece with number l * turn mod 32; `back` is the inverse of `turn`: back * turn = 1 mod 32. */
#define LINES(store, load, turn, back) \
	PTX_HEADER KERNEL_OUT("lines") ".reg .b64 %v<9>; .reg .b32 %w<8>;\n" \
				       "mov.u32 %w1, %laneid; mul.lo.u32 %w1, %w1, " #turn "; and.b32 %w1, %w1, 31;\n" \
				       "add.u64 %v1, %o, 255; and.b64 %v1, %v1, -128;\n" \
				       "mad.wide.u32 %v1, %w1, 16, %v1;\n" \
				       "or.b32 %w2, %w1, 7; mul.lo.u32 %w2, %w2, " #back "; and.b32 %w2, %w2, 31;\n" \
				       "mov.u64 %v2, 0; mov.u64 %v5, 0; mov.u32 %w5, 0; mov.u32 %w6, 0; mov.u32 %w7, %ctaid.x;\n" \
				       "setp.ne.u32 %p1, %w7, 0; @%p1 bra READ;\n" \
				       "WRITE: add.u64 %v2, %v2, 1; " store " [%v1], {%v2, %v2};\n" \
				       "setp.lt.u64 %p2, %v2, %x; @%p2 bra WRITE; ret;\n" \
				       "READ: " load " {%v3, %v4}, [%v1];\n" \
				       "cvt.u32.u64 %w3, %v4; shfl.sync.idx.b32 %w3, %w3, %w2, 31, -1; cvt.u64.u32 %v6, %w3;\n" \
				       "min.u64 %v7, %v3, %v4; setp.lt.u64 %p3, %v7, %v6; @%p3 add.u32 %w5, %w5, 1;\n" \
				       "setp.ne.u64 %p4, %v3, %v5; @%p4 add.u32 %w6, %w6, 1; mov.u64 %v5, %v3;\n" \
				       "setp.lt.u64 %p5, %v6, %x; vote.sync.any.pred %p5, %p5, -1; @%p5 bra READ;\n" \
				       "red.global.add.u32 [%o], %w5; mov.u32 %w4, %laneid; setp.ne.u32 %p6, %w4, 0;\n" \
				       "@!%p6 st.global.u32 [%o+4], %w6; ret;\n}\n"

static void check(const char *ptx)
{
	struct rig *r = rig_open(ptx);
	uint32_t *out = rig_memory(r, 256 + 4 * 128);

	rig_expect_ok(r, "lines", 2, 32, out, ROUNDS);
	if (out[0])
		fail_msg("%u words were older than the last word of their line", out[0]);
	if (out[1] < 2)
		print_message("the two blocks did not run at the same time\n");
	rig_close(r);
}

static void volatile_accesses_deliver_lines_whole(void **state)
{
	(void)state;
	check(LINES("st.volatile.global.v2.u64", "ld.volatile.global.v2.u64", 1, 1));
	check(LINES("st.volatile.v2.u64", "ld.volatile.v2.u64", 1, 1));
}

static void relaxed_and_acquire_loads_deliver_lines_whole(void **state)
{
	(void)state;
	check(LINES("st.relaxed.sys.global.v2.u64", "ld.relaxed.sys.global.v2.u64", 1, 1));
	check(LINES("st.global.v2.u64", "ld.acquire.sys.global.v2.u64", 1, 1));
}

static void the_order_of_the_lanes_does_not_matter(void **state)
{
	(void)state;
	check(LINES("st.volatile.global.v2.u64", "ld.volatile.global.v2.u64", 31, 31));
	check(LINES("st.volatile.global.v2.u64", "ld.volatile.global.v2.u64", 5, 13));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volatile_accesses_deliver_lines_whole),
		cmocka_unit_test(relaxed_and_acquire_loads_deliver_lines_whole),
		cmocka_unit_test(the_order_of_the_lanes_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
