/* test_observer.c — the events that observers get: instructions with their lanes, accesses, barriers, blocks, launches, memory. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#include "softcuda/exec/warp/observe_internal.h"

enum { MAX_SEEN = 4096 };

/* Records all calls of an observer, as lines of text. */
struct recorder {
	struct observer o;
	char lines[MAX_SEEN][120];
	unsigned n;
	bool addresses;                    /* record accesses only */
	unsigned n_yields;                 /* number of loads that still have to yield */
	const char *reg;                   /* names of the registers whose values are recorded at a return */
	int n_again_inside, n_again_after; /* how often to restart the launch: at its 20th instruction, and at its end */
	unsigned n_seen;                   /* instructions since the launch began */
	unsigned most_turns;               /* end the launch after this many turns of a block; 0: no limit */
	const char *skip;                  /* this observer skips instructions with this opcode */
};

__attribute__((format(printf, 2, 3))) static void see(struct recorder *r, const char *fmt, ...)
{
	va_list ap;

	assert_true(r->n < MAX_SEEN);
	va_start(ap, fmt);
	vsnprintf(r->lines[r->n++], sizeof r->lines[0], fmt, ap);
	va_end(ap);
}

static bool has_line(const struct recorder *r, const char *line)
{
	for (unsigned k = 0; k < r->n; k++)
		if (!strcmp(r->lines[k], line))
			return true;
	for (unsigned k = 0; k < r->n; k++)
		print_message("%s\n", r->lines[k]);
	return false;
}

static unsigned count_lines(const struct recorder *r, const char *line)
{
	unsigned n = 0;

	for (unsigned k = 0; k < r->n; k++)
		n += !strcmp(r->lines[k], line);
	return n;
}

static const char *opcode_of(const struct warp_state *s, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(s->frame->code, i);

	return in ? gpul_ptx_opcode_text((gpul_ptx_opcode)in->opcode) : "end";
}

static void watch_register(struct recorder *r, const struct warp_state *s, const struct insn *i)
{
	unsigned bytes;
	const uint32_t *lanes;

	if (!r->reg || !gpul_insn_begins(s->frame->code, i) || strcmp(opcode_of(s, i), "ret") != 0)
		return;
	for (uint32_t flat = 0; flat < s->frame->code->ptx->n_flat_regs; flat++) {
		const gpul_ptx_regs *row = gpul_ptx_reg_row(s->frame->code->ptx, flat);
		const char *name = gpul_ptx_name(s->frame->code->program->module, row->name);

		if (strcmp(name, r->reg) != 0)
			continue;
		lanes = gpul_warp_register(s, s->frame, flat, &bytes);
		if (lanes)
			see(r, "%s%u: %u bytes, warp %u, %u %u", name, flat - row->first, bytes, s->index, lanes[0], bytes ? lanes[9] : 0);
	}
}

static enum observed before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	static const char *const kinds[] = { "", "read", "write", "atomic" }, *const spaces[] = { "global", "?", "shared", "local",
												  "param" };
	struct recorder *r = (struct recorder *)o;
	struct lane_accesses a[MAX_INSN_ACCESSES];
	const unsigned n = gpul_insn_accesses(s, i, on, a);

	if (gpul_insn_begins(s->frame->code, i) && !r->addresses)
		see(r, "%s %08x", opcode_of(s, i), on);
	for (unsigned k = 0; k < n; k++)
		EACH_LANE_OF(l, a[k].lanes)
	see(r, "%s %s +%llu %u lane %u order %d scope %d", kinds[a[k].kind], spaces[a[k].space[l]],
	    a[k].space[l] == SPACE_GLOBAL ? 0 : (unsigned long long)a[k].at[l], a[k].bytes[l], l, a[k].order, a[k].scope);
	watch_register(r, s, i);
	if (r->n_again_inside && ++r->n_seen >= 20) {
		if (r->n_seen == 20)
			gpul_launch_again(s->block->launch);
		return OBSERVED_YIELD;
	}
	if (n && r->n_yields) {
		r->n_yields--;
		return OBSERVED_YIELD;
	}
	return r->skip && !strcmp(r->skip, opcode_of(s, i)) ? OBSERVED_SKIP : OBSERVED_RUN;
}

static void after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	(void)s, (void)i;
	if (waits)
		see((struct recorder *)o, "waits %08x", on);
}

static void barrier_completes(struct observer *o, struct block *b, unsigned id)
{
	see((struct recorder *)o, "barrier %u, warp 1: %08x", id, b->warps[1].arrived[id]);
}

static void deadlock(struct observer *o, struct block *b)
{
	see((struct recorder *)o, "deadlock of block %u", b->index[0]);
}

static void block_begins(struct observer *o, struct block *b)
{
	*block_note(b, o) = calloc(1, sizeof(unsigned));
	assert_non_null(*block_note(b, o));
	see((struct recorder *)o, "block %u begins", b->index[0]);
}

static void block_yields(struct observer *o, struct block *b)
{
	static const gpul_exec_fault enough = { .kind = GPUL_EXEC_TRAP, .text = "enough" };

	if (++*(unsigned *)*block_note(b, o) == ((struct recorder *)o)->most_turns)
		gpul_launch_fault(b->launch, &enough);
}

static void block_ends(struct observer *o, struct block *b)
{
	free(*block_note(b, o));
	see((struct recorder *)o, "block %u ends", b->index[0]);
}

static void launch_begins(struct observer *o, gpul_exec_launch *l)
{
	struct recorder *r = (struct recorder *)o;

	see(r, "launch of %u begins", l->grid[0]);
	r->n_seen = 0;
}

static void launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	struct recorder *r = (struct recorder *)o;

	see(r, "launch of %u ends: %d", l->grid[0], fault->kind);
	if (r->n_again_inside) {
		r->n_again_inside--;
	} else if (r->n_again_after) {
		r->n_again_after--;
		gpul_launch_again(l);
	}
}

static void range_added(struct observer *o, const gpul_exec_range *range)
{
	see((struct recorder *)o, "added %llu of %s", (unsigned long long)range->bytes, range->label);
}

static void range_removed(struct observer *o, const gpul_exec_range *range)
{
	see((struct recorder *)o, "removed %llu of %s", (unsigned long long)range->bytes, range->label);
}

static void program_ends(struct observer *o, const gpul_exec_program *p)
{
	see((struct recorder *)o, "program ends: %u kernels", (unsigned)gpul_exec_n_kernels(p));
}

static struct recorder *new_recorder(void)
{
	struct recorder *r = calloc(1, sizeof *r);

	assert_non_null(r);
	r->o = (struct observer){ .name = "test",
				  .serial = true,
				  .before = before,
				  .after = after,
				  .barrier_completes = barrier_completes,
				  .deadlock = deadlock,
				  .block_begins = block_begins,
				  .block_yields = block_yields,
				  .block_ends = block_ends,
				  .launch_begins = launch_begins,
				  .launch_ends = launch_ends,
				  .range_added = range_added,
				  .range_removed = range_removed,
				  .program_ends = program_ends };
	return r;
}

static struct rig *open_watched(const char *ptx, struct recorder *r)
{
	struct observer *const list[] = { &r->o };

	return rig_open_observed(ptx, (gpul_exec_machine_options){ .n_workers = 2 }, list, 1);
}

/* Only threads 0 to 7 execute the addition, which the others skip by a branch, and the store, whose guard is false in the others. */
#define KERNEL \
	PTX_HEADER KERNEL_OUT( \
		"k") ".shared .b8 s[512];" \
		     "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r2, %r2, %r3;" \
		     "st.shared.u32 [%r2], %r1; bar.sync 0; @!%p1 bra skip; add.u32 %r1, %r1, 1; skip: @%p1 st.global.u32 [%mine], %r1;" \
		     "atom.acq_rel.cta.global.add.u32 %r4, [%o], 1; ret; }"

static void sees_instructions_lanes_and_accesses(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(KERNEL, r);
	uint32_t *out = rig_memory(g, 64 * 4);

	(void)state;
	assert_int_equal(rig_run(g, "k", 1, 64, out, 0), GPUL_EXEC_OK);
	assert_true(has_line(r, "added 256 of cuMemAlloc"));
	assert_true(has_line(r, "launch of 1 begins"));
	assert_true(has_line(r, "block 0 begins"));
	assert_true(has_line(r, "setp ffffffff"));
	assert_true(has_line(r, "add 000000ff"));
	assert_true(has_line(r, "st 000000ff"));                                /* the guarded store of warp 0 */
	assert_true(has_line(r, "st 00000000"));                                /* the guarded store of warp 1: no lane executes it */
	assert_true(has_line(r, "write shared +128 4 lane 0 order 0 scope 2")); /* warp 1 */
	assert_true(has_line(r, "write global +0 4 lane 7 order 0 scope 2"));
	assert_int_equal(count_lines(r, "write global +0 4 lane 7 order 0 scope 2"), 1);
	assert_int_equal(count_lines(r, "write global +0 4 lane 8 order 0 scope 2"), 0);
	assert_true(has_line(r, "atomic global +0 4 lane 31 order 5 scope 0"));
	assert_int_equal(count_lines(r, "barrier 0, warp 1: ffffffff"), 1);
	assert_true(has_line(r, "block 0 ends"));
	assert_true(has_line(r, "launch of 1 ends: 0"));
	assert_true(gpul_exec_memory_remove(g->memory, (uintptr_t)out));
	assert_true(has_line(r, "removed 256 of cuMemAlloc"));
	rig_close(g);
	free(r);
}

static void a_load_that_gives_up_its_turn_is_done_later(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(KERNEL, r);
	uint32_t *out = rig_memory(g, 64 * 4);

	(void)state;
	r->addresses = true;
	r->n_yields = 5;
	assert_int_equal(rig_run(g, "k", 1, 64, out, 0), GPUL_EXEC_OK);
	assert_int_equal(out[0], 65);
	assert_int_equal(out[7], 8);
	assert_int_equal(r->n_yields, 0);
	rig_close(g);
	free(r);
}

/* The second observer makes the instruction yield; it is called before the first observer. */
static void an_instruction_that_gives_up_its_turn_is_seen_once_by_others(void **state)
{
	struct recorder *r = new_recorder(), *yields = new_recorder();
	struct observer *const list[] = { &r->o, &yields->o };
	struct rig *g;

	(void)state;
	yields->o.yields = true;
	yields->n_yields = 5;
	g = rig_open_observed(KERNEL, (gpul_exec_machine_options){ .n_workers = 2 }, list, 2);
	assert_int_equal(rig_run(g, "k", 1, 64, rig_memory(g, 64 * 4), 0), GPUL_EXEC_OK);
	assert_int_equal(yields->n_yields, 0);
	assert_int_equal(count_lines(yields, "atom ffffffff") + count_lines(yields, "st ffffffff") + count_lines(yields, "ld ffffffff"),
			 8 + 5);
	assert_int_equal(count_lines(r, "atom ffffffff") + count_lines(r, "st ffffffff") + count_lines(r, "ld ffffffff"), 8);
	rig_close(g);
	free(r);
	free(yields);
}

static void an_instruction_can_be_skipped(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(KERNEL, r);
	uint32_t *out = rig_memory(g, 64 * 4);

	(void)state;
	r->skip = "atom";
	assert_int_equal(rig_run(g, "k", 1, 64, out, 0), GPUL_EXEC_OK);
	assert_int_equal(out[0], 1);
	rig_close(g);
	free(r);
}

static void sees_registers_and_the_end_of_the_program(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(KERNEL, r);
	uint32_t *out = rig_memory(g, 64 * 4);

	(void)state;
	r->reg = "%r";
	assert_int_equal(rig_run(g, "k", 1, 64, out, 0), GPUL_EXEC_OK);
	assert_true(has_line(r, "%r1: 4 bytes, warp 0, 1 9")); /* lanes 0 to 7 have added 1 */
	assert_true(has_line(r, "%r1: 4 bytes, warp 1, 32 41"));
	r->reg = "%p";
	assert_int_equal(rig_run(g, "k", 1, 64, out, 0), GPUL_EXEC_OK);
	assert_true(has_line(r, "%p1: 0 bytes, warp 0, 255 0"));
	rig_close(g);
	assert_true(has_line(r, "program ends: 1 kernels"));
	free(r);
}

/* Three blocks of two warps: the launch is abandoned twice, then run three times. */
static void a_launch_can_begin_again(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(KERNEL, r);
	uint32_t *out = rig_memory(g, 192 * 4), once[192];

	(void)state;
	assert_int_equal(rig_run(g, "k", 3, 64, out, 0), GPUL_EXEC_OK);
	memcpy(once, out, sizeof once);
	memset(out, 0, sizeof once);
	r->n = 0;
	r->n_again_inside = 2;
	r->n_again_after = 2;
	assert_int_equal(rig_run(g, "k", 3, 64, out, 0), GPUL_EXEC_OK);
	assert_int_equal(count_lines(r, "launch of 3 begins"), 5);
	assert_int_equal(count_lines(r, "launch of 3 ends: 8"), 2);
	assert_int_equal(count_lines(r, "launch of 3 ends: 0"), 3);
	assert_int_equal(count_lines(r, "block 0 begins"), 5);
	assert_int_equal(count_lines(r, "block 0 begins") + count_lines(r, "block 1 begins") + count_lines(r, "block 2 begins"),
			 count_lines(r, "block 0 ends") + count_lines(r, "block 1 ends") + count_lines(r, "block 2 ends"));
	assert_int_equal(count_lines(r, "block 2 ends"), 3);
	assert_memory_equal(out, once, sizeof once); /* each launch first stores word 0, so abandoned launches leave no trace */
	assert_int_equal(rig_run(g, "k", 3, 64, out, 0), GPUL_EXEC_OK);
	rig_close(g);
	free(r);
}

static void sees_a_deadlock_before_the_launch_fails(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(PTX_HEADER KERNEL_OUT("k") "setp.lt.u32 %p1, %t, 32; @%p1 bra end; bar.sync 1, 64; end: ret; }", r);

	(void)state;
	assert_int_equal(rig_run(g, "k", 1, 64, NULL, 0), GPUL_EXEC_TRAP);
	assert_true(has_line(r, "deadlock of block 0"));
	assert_true(has_line(r, "block 0 ends"));
	assert_true(has_line(r, "launch of 1 ends: 4"));
	rig_close(g);
	free(r);
}

static void sees_lanes_that_wait_for_others_of_their_warp(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(PTX_HEADER KERNEL_OUT("k") "setp.lt.u32 %p1, %t, 4; @%p1 bra low; bar.warp.sync -1; bra end;"
								"low: bar.warp.sync -1; end: st.global.u32 [%mine], %t; ret; }",
				     r);
	uint32_t *out = rig_memory(g, 32 * 4);

	(void)state;
	assert_int_equal(rig_run(g, "k", 1, 32, out, 0), GPUL_EXEC_OK);
	assert_true(has_line(r, "waits fffffff0"));
	assert_int_equal(out[31], 31);
	rig_close(g);
	free(r);
}

static void can_end_a_launch_whose_blocks_never_end(void **state)
{
	struct recorder *r = new_recorder();
	struct rig *g = open_watched(PTX_HEADER KERNEL_OUT("k") "again: bra again; }", r);

	(void)state;
	r->addresses = true;
	r->most_turns = 5;
	assert_int_equal(rig_run(g, "k", 3, 32, NULL, 0), GPUL_EXEC_TRAP);
	assert_string_equal(g->fault.text, "enough");
	assert_true(has_line(r, "launch of 3 ends: 4"));
	rig_close(g);
	free(r);
}

/* ---- the handler of an observer, and its data per instruction --------------------------------------------------------- */

/* A handler counts the executions of each addition in its note, a pointer that an observer has for each instruction (insn_note()). */
static _Atomic unsigned n_handled;
static struct observer *counter;

static bool wants_additions(struct observer *o, const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);

	(void)o;
	return in && in->opcode == GPUL_PTX_ADD;
}

static const struct insn *count_addition(struct warp *w, const struct insn *i)
{
	const struct func_code *code = state_of(w)->frame->code;
	void **note = insn_note(code, i, counter);

	n_handled++;
	*note = (char *)*note + 1; /* the note is NULL at first; one worker runs, so no atomic operation is needed */
	return code->observed[i - code->insns].run(w, i);
}

static observed_fn *handler_of_additions(struct observer *o, const struct func_code *code, const struct insn *i)
{
	(void)o, (void)code, (void)i;
	return count_addition;
}

static void a_handler_is_called_instead_of_the_hooks_and_keeps_notes(void **state)
{
	struct recorder *r = new_recorder(), *other = new_recorder();
	unsigned n_insns = 0, n_noted = 0;

	(void)state;
	for (unsigned with_other = 0; with_other < 2; with_other++) {
		struct observer *const list[] = { &r->o, &other->o };

		r->o.wants = wants_additions;
		r->o.handler = handler_of_additions;
		counter = &r->o;
		n_handled = 0;
		struct rig *g = rig_open_observed(KERNEL, (gpul_exec_machine_options){ .n_workers = 1 }, list, with_other ? 2 : 1);
		uint32_t *out = rig_memory(g, 64 * 4);

		assert_int_equal(rig_run(g, "k", 1, 64, out, 0), GPUL_EXEC_OK);
		assert_int_equal(out[7], 8);
		if (!with_other) {
			const struct func_code *code = gpul_exec_find_kernel(g->program, "k")->code;

			for (uint32_t k = 0; k < code->n_insns; k++) {
				n_insns += wants_additions(&r->o, code, &code->insns[k]);
				n_noted += wants_additions(&r->o, code, &code->insns[k])
						   ? (unsigned)(uintptr_t)*insn_note(code, &code->insns[k], &r->o)
						   : 0;
			}
			assert_true(n_insns >= 2);
			assert_true(n_handled >= 3);          /* at least three, because one addition is executed by one warp only */
			assert_int_equal(n_noted, n_handled); /* sum of the counters that insn_note() keeps for each addition */
			assert_int_equal(count_lines(r, "add ffffffff"), 0); /* the hooks were not called */
		} else {
			/* two observers want the instruction, so their hooks are called instead of the handler */
			assert_int_equal(n_handled, 0);
			assert_true(count_lines(r, "add ffffffff") > 0);
			assert_int_equal(count_lines(r, "add ffffffff"), count_lines(other, "add ffffffff"));
		}
		rig_close(g);
		r->n = 0;
	}
	free(r);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_instructions_lanes_and_accesses),
		cmocka_unit_test(a_load_that_gives_up_its_turn_is_done_later),
		cmocka_unit_test(an_instruction_that_gives_up_its_turn_is_seen_once_by_others),
		cmocka_unit_test(an_instruction_can_be_skipped),
		cmocka_unit_test(sees_registers_and_the_end_of_the_program),
		cmocka_unit_test(a_launch_can_begin_again),
		cmocka_unit_test(sees_a_deadlock_before_the_launch_fails),
		cmocka_unit_test(sees_lanes_that_wait_for_others_of_their_warp),
		cmocka_unit_test(can_end_a_launch_whose_blocks_never_end),
		cmocka_unit_test(a_handler_is_called_instead_of_the_hooks_and_keeps_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
