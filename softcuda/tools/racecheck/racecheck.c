/* racecheck.c — the tool racecheck: its observer and hooks. */
#include "softcuda/tools/tool_internal.h"

#include <stdlib.h>

#include "softcuda/tools/racecheck/race_parts_internal.h"

/* ---- blocks --------------------------------------------------------------------------------------------------------- */

static void reset_warp(struct watched_warp *w)
{
	struct copy *copies = w->copies;
	const uint32_t room = w->copies_room;

	for (unsigned l = 0; l < LANES; l++) {
		race_clock_drop(w->clock[l]);
		race_clock_drop(w->release_clock[l]);
		for (unsigned k = 0; k < N_LEARNED; k++)
			race_clock_drop(w->learned[l][k].clock);
	}
	free(w->knows);
	free(w->sections);
	memset(w, 0, sizeof *w);
	w->copies = copies;
	w->copies_room = room;
}

static void begin_warps(struct watched_block *b)
{
	for (unsigned k = 0; k < b->n_warps; k++) {
		b->warps[k].block = b;
		b->warps[k].index = k;
		b->warps[k].stamp = 1;
	}
	b->time = 1;
	b->floor = b->proxy_floor = b->proxy_pending = 0;
	b->version++;
	b->any_clock = b->any_fence = false;
}

/* Return the state of a block with this many warps: a free state of the worker, or a new one.  NULL: out of memory. */
static struct watched_block *take_block(struct watcher *k, unsigned n_warps)
{
	struct watched_block *b = k->free_blocks;

	if (b)
		k->free_blocks = b->next;
	else
		b = calloc(1, sizeof *b);
	if (b && b->room < n_warps) {
		for (unsigned n = 0; n < b->room; n++)
			free(b->warps[n].copies);
		free(b->warps);
		b->warps = calloc(n_warps, sizeof *b->warps);
		b->room = b->warps ? n_warps : 0;
	}
	if (b && b->room < n_warps) {
		free(b);
		return NULL;
	}
	return b;
}

static void block_begins(struct observer *o, struct block *block)
{
	static _Atomic uint32_t n_blocks;
	const uint32_t *grid = block->launch->grid;
	struct watcher *k = race_watcher();
	struct watched_block *b = k ? take_block(k, block->n_warps) : NULL;

	*block_note(block, o) = NULL;
	if (!b)
		return;
	b->watcher = k;
	b->block = block;
	b->n_warps = block->n_warps;
	b->launch = race_launch_number(block->launch);
	b->key = block_key(b->launch, block->index[0] + grid[0] * (block->index[1] + grid[1] * block->index[2]));
	b->serial = atomic_fetch_add(&n_blocks, 1);
	begin_warps(b);
	b->knows_cpu = race_cpu_knows_some(); /* the host may have waited for a flag of another kernel before it launched this one */
	race_enter(k);
	if (race_shadow_create(&b->shared, block->shared_bytes)) {
		b->next = k->blocks;
		k->blocks = b;
		*block_note(block, o) = b;
	}
	race_leave(k);
}

static void block_ends(struct observer *o, struct block *block)
{
	struct watched_block *b = *block_note(block, o), **at;
	struct watcher *k;

	if (!b)
		return;
	k = b->watcher;
	race_enter(k);
	for (at = &k->blocks; *at != b; at = &(*at)->next)
		;
	*at = b->next;
	race_shadow_clear(&b->shared);
	for (unsigned n = 0; n < b->n_warps; n++)
		reset_warp(&b->warps[n]);
	race_vars_end(b);
	race_clock_drop(b->shared_clock);
	b->shared_clock = NULL;
	for (unsigned id = 0; id < N_BARRIERS; id++) {
		race_clock_drop(b->arrivals[id]);
		b->arrivals[id] = NULL;
	}
	b->next = k->free_blocks;
	k->free_blocks = b;
	*block_note(block, o) = NULL;
	race_leave(k);
}

static void barrier_completes(struct observer *o, struct block *block, unsigned id)
{
	struct watched_block *b = *block_note(block, o);

	if (b)
		race_barrier_completes(b, id);
}

/* ---- instructions ------------------------------------------------------------------------------------------------------- */

static struct site *site_of(struct observer *o, const struct func_code *code, const struct insn *i)
{
	_Atomic(struct site *) *note = (_Atomic(struct site *) *)insn_note(code, i, o);
	struct site *site = atomic_load_explicit(note, memory_order_acquire);

	if (!site) {
		site = race_site_new(code, i);
		atomic_store_explicit(note, site, memory_order_release); /* if two threads store a site, the first one is unused */
	}
	return site;
}

static enum observed before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct watched_block *b = *block_note(s->block, o);
	struct site *site = on && b ? site_of(o, s->frame->code, i) : NULL;
	struct watched_warp *w = b ? &b->warps[s->index] : NULL;

	if (!site)
		return OBSERVED_RUN;
	switch (site->class) {
	case SITE_PLAIN:
	case SITE_ACCESS:
		race_enter(b->watcher);
		race_access(w, s, i, site, on);
		race_leave(b->watcher);
		break;
	case SITE_FENCE:
		race_sections_fenced(w, on, site->scope);
		race_fence(w, on, site->scope);
		break;
	case SITE_PROXY_FENCE:
		race_proxy_fence(w, on);
		break;
	case SITE_WARP_SYNC:
		race_warp_arrives(w, on);
		break;
	case SITE_ARRIVE:
		race_barrier_arrive(w, s, i, on);
		break;
	case SITE_COMMIT:
		race_copy_commit(w, on);
		break;
	case SITE_WAIT:
	case SITE_WAIT_READ:
		race_copy_wait(w, site, on);
		break;
	case SITE_COPY_ARRIVE:
		race_copy_arrives(w, s, i, on);
		break;
	default:
		break;
	}
	return OBSERVED_RUN;
}

static void after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	struct watched_block *b = *block_note(s->block, o);
	struct site *site;

	if (!b || !on || waits || i->op == OP_EXIT)
		return;
	if (i->op == OP_BAR_WARP) {
		race_warp_passes(&b->warps[s->index], s, i, on);
		return;
	}
	if (i->op <= OP_LDV && i->op >= OP_LD_U8_16)
		return;
	if (i->op <= OP_STV && i->op >= OP_ST_8_16)
		return;
	site = site_of(o, s->frame->code, i);
	if (site && site->class == SITE_ACCESS)
		race_access_ends(&b->warps[s->index], s, i, site, on);
	else if (site && site->class == SITE_COPY_ARRIVE)
		race_copy_arrive_ends(&b->warps[s->index], s, i, on);
	else if (site && site->class == SITE_MALLOC)
		race_malloc_ends(s, i, on);
}

static bool wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	(void)o;
	return race_site_wanted(code, i);
}

/* ---- hooks for launches, programs, memory --------------------------------------------------------------------------------- */

static void launch_begins(struct observer *o, gpul_exec_launch *l)
{
	gpul_tool_launch_begins(o, l);
	race_launch_begins(l);
}

static void launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	gpul_tool_launch_ends(o, l, fault);
	race_launch_ends(l);
}

static void program_ends(struct observer *o, const gpul_exec_program *p)
{
	(void)o;
	race_sites_end(p);
}

static void range_added(struct observer *o, const gpul_exec_range *r)
{
	(void)o;
	race_alias_add(r);
	if (!race_has_other_address(r))
		race_shadow_forget(r->base, r->bytes);
}

static void range_removed(struct observer *o, const gpul_exec_range *r)
{
	(void)o;
	if (!race_has_other_address(r))
		race_shadow_forget(r->base, r->bytes);
	race_alias_remove(r);
}

static void host_moves(struct observer *o, const struct host_move *m)
{
	(void)o;
	race_host_moves(m);
}

/* ---- the tool ------------------------------------------------------------------------------------------------------------- */

/* clang-format off */
static struct observer observer = {
	.name = TOOL, .wants = wants, .before = before, .after = after, .barrier_completes = barrier_completes, .block_begins = block_begins,
	.block_ends = block_ends, .launch_begins = launch_begins, .launch_ends = launch_ends, .program_ends = program_ends,
	.range_added = range_added, .range_removed = range_removed, .host_moves = host_moves,
};
/* clang-format on */

/* Read an option without a value. */
static gpul_status read_switch(const struct tool_options *options, const char *key, bool *out, gpul_error *err)
{
	const char *value = gpul_tool_option(options, key);

	if (value && *value)
		return gpul_fail(err, GPUL_EINVAL, 0, TOOL ": the option %s takes no value, but has '%.40s'", key, value);
	*out = value;
	return GPUL_OK;
}

static gpul_status create(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	gpul_status st = read_switch(options, "same", &race_report_same, err);

	st = st ? st : read_switch(options, "ptx", &race_by_letter, err);
	if (st)
		return st;
	race_findings_begin(memory);
	race_copies_begin(memory);
	if (!race_records_create())
		return gpul_fail(err, GPUL_ENOMEM, 0, TOOL ": no memory for the records of accesses");
	*out = &observer;
	return GPUL_OK;
}

static void finish(struct observer *o)
{
	(void)o;
	race_findings_finish();
}

static const char *const keys[] = { "same", "ptx", NULL };

const struct tool gpul_racecheck_tool = {
	.name = TOOL,
	.summary =
		"data races of shared and global memory, by PTX's memory model: same (also writes of equal values), ptx (volatile accesses do not race with each other)",
	.keys = keys,
	.create = create,
	.finish = finish,
	.stop = finish,
};
