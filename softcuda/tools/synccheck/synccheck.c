/* synccheck.c — the tool synccheck: finds wrong uses of barriers and *.sync instructions, and threads that wait forever. */
#include "softcuda/tools/synccheck/synccheck_internal.h"

#include <stdlib.h>

enum { DEFAULT_TIMEOUT_S = 10 };

/* ---- hooks ------------------------------------------------------------------------------------------------------ */

static bool accesses_shared_or_global(const struct insn *i)
{
	const unsigned space = i->flags & SPACE_MASK;

	return gpul_insn_accesses_memory(i) && space != SPACE_LOCAL && space != SPACE_PARAM;
}

static bool is_store(const struct insn *i)
{
	return i->op >= OP_ST_8_16 && i->op <= OP_STO;
}

static bool wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	(void)o;
	if (gpul_sync_is_barrier(i) || gpul_sync_has_members(i, NULL) || gpul_sync_is_mbarrier(code, i) || i->op == OP_READ_CLOCK)
		return true;
	return accesses_shared_or_global(i) && (!is_store(i) || gpul_sync_module_has_mbarriers(code));
}

static enum observed before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct synccheck *c = (struct synccheck *)o;
	struct sync_block *m = sync_block_of(c, s->block);

	if (!on || !m)
		return OBSERVED_RUN;
	if (m->suspect)
		gpul_sync_before_poll(m, s, i, on);
	if (gpul_sync_is_barrier(i))
		gpul_sync_before_barrier(c, m, s, i, on);
	else if (gpul_sync_has_members(i, NULL))
		gpul_sync_before_members(c, s, i, on);
	else if (gpul_sync_is_mbarrier(s->frame->code, i))
		gpul_sync_before_mbarrier(c, m, s, i, on);
	else if (m->n_mbarriers)
		gpul_sync_before_store(c, m, s, i, on);
	return OBSERVED_RUN;
}

static void barrier_completes(struct observer *o, struct block *b, unsigned id)
{
	struct synccheck *c = (struct synccheck *)o;
	struct sync_block *m = sync_block_of(c, b);

	if (m)
		gpul_sync_barrier_completes(c, m, b, id);
}

static void deadlock(struct observer *o, struct block *b)
{
	struct synccheck *c = (struct synccheck *)o;
	const struct gpul_exec_launch *l = b->launch;
	char text[3000] = "", block[INDEX_BYTES];

	if (!gpul_sync_is_new(c, "deadlock", l->kernel->code, l->kernel->code->insns))
		return;
	gpul_sync_who_waits(c, sync_block_of(c, b), b, text, sizeof text);
	gpul_tool_report(SYNCCHECK, "deadlock: kernel %s, block %s: all threads that have not exited wait, and none of them can continue%s",
			 SHOWN_NAME(l->kernel->info.name), gpul_index_text(b->index, l->grid, block), text);
}

static void block_begins(struct observer *o, struct block *b)
{
	struct sync_block *m = calloc(1, sizeof *m); /* if this is NULL, the block is not checked */

	if (m)
		m->n_live = b->n_live;
	*block_note(b, o) = m;
}

static void block_yields(struct observer *o, struct block *b)
{
	struct synccheck *c = (struct synccheck *)o;
	struct sync_block *m = sync_block_of(c, b);

	if (m)
		gpul_sync_block_yields(c, m, b);
}

static void block_ends(struct observer *o, struct block *b)
{
	struct synccheck *c = (struct synccheck *)o;
	struct sync_block *m = *block_note(b, o);
	const struct gpul_exec_launch *l = b->launch;

	if (m && m->stalls && atomic_load(&l->stop) && !c->ends &&
	    gpul_sync_is_new(c, "ended while it waited", l->kernel->code, l->kernel->code->insns))
		gpul_tool_report(SYNCCHECK, "kernel %s was stopped while its threads polled memory", SHOWN_NAME(l->kernel->info.name));
	if (m)
		gpul_sync_stall_ends(c, m);
	for (unsigned id = 0; m && id < N_BARRIERS; id++)
		free(m->at[id].list);
	if (m)
		free(m->mbarriers);
	free(m);
	*block_note(b, o) = NULL;
}

/* ---- the tool --------------------------------------------------------------------------------------------------- */

static gpul_status create(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	uint64_t timeout_s = DEFAULT_TIMEOUT_S;
	gpul_status st = gpul_tool_number(options, SYNCCHECK, "timeout", 1, &timeout_s, err);
	struct synccheck *c;

	(void)memory;
	if (st)
		return st;
	c = calloc(1, sizeof *c);
	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for synccheck");
	c->o = (struct observer){ .name = SYNCCHECK,
				  .wants = wants,
				  .whole_programs = true,
				  .before = before,
				  .barrier_completes = barrier_completes,
				  .deadlock = deadlock,
				  .block_begins = block_begins,
				  .block_yields = block_yields,
				  .block_ends = block_ends,
				  .launch_begins = gpul_tool_launch_begins,
				  .launch_ends = gpul_tool_launch_ends };
	c->timeout_ms = timeout_s < UINT64_MAX / 1000 ? timeout_s * 1000 : UINT64_MAX;
	c->ends = gpul_tool_option(options, "end") != NULL;
	pthread_mutex_init(&c->findings.lock, NULL);
	*out = &c->o;
	return GPUL_OK;
}

static void finish(struct observer *o)
{
	struct synccheck *c = (struct synccheck *)o;
	const unsigned n = atomic_load(&c->n_stalled);

	gpul_findings_say_counts(&c->findings, SYNCCHECK, "times");
	if (n)
		gpul_tool_report(SYNCCHECK, "the program ended while %u block%s did nothing but poll memory", n,
				 n == 1 ? " has" : "s have");
	gpul_tool_sum_up(SYNCCHECK);
}

static const char *const keys[] = { "timeout", "end", NULL };

const struct tool gpul_synccheck_tool = {
	.name = SYNCCHECK,
	.summary = "misused barriers and masks, deadlocks: timeout=SECONDS (10): how long a block may do nothing but poll; end: then stop "
		   "the kernel",
	.keys = keys,
	.create = create,
	.finish = finish,
	.stop = finish, /* may run at the same time as hooks, because it reads each shared counter only once */
};
