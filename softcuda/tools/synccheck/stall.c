/* stall.c — finds blocks that poll forever.
 *
 *     no progress for some turns ──> suspect: record its loads (before_poll) and hash its state at each turn
 *     the same state as some turns ago, and only loads from shared memory and constants since
 *                                ──> proof: no other block can change these, so it loops forever: report, end the launch
 *     otherwise, after the time limit ──> print what it polls; another block, launch or the host may still change it: it is an
 *                                         error only if the launch is ended, or the process ends, while the block polls
 *
 * Progress means that a warp ends, waits or arrives. The state is everything that the block's instructions can read and write
 * except global memory: registers, program counters, local and shared memory, barriers. Brent's algorithm detects a repeated
 * state: it keeps the hash of the last turn whose number is a power of two. If the block has since loaded something that others
 * can change, no hash is needed until the next one is kept. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/tools/synccheck/synccheck_internal.h"

#include <stdio.h>

#include "core/clock.h"

enum { SUSPECT_TURNS = 32 };

/* ---- the state of a block ----------------------------------------------------------------------------------------- */

/* Hash data into two independent 64-bit sums: a collision of both sums is practically impossible. */
static void digest(uint64_t sum[2], const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t word;

	for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
		memcpy(&word, at, sizeof word);
		sum[0] = (sum[0] ^ word) * 0x9e3779b97f4a7c15u;
		sum[0] ^= sum[0] >> 32;
		sum[1] = (sum[1] + word) * 0xc2b2ae3d27d4eb4fu;
		sum[1] ^= sum[1] >> 29;
	}
	for (; bytes; at++, bytes--) {
		sum[0] = (sum[0] ^ *at) * 0x9e3779b97f4a7c15u;
		sum[1] = (sum[1] + *at) * 0xc2b2ae3d27d4eb4fu;
	}
}

static void digest_warp(uint64_t sum[2], const struct warp_state *s)
{
	digest(sum, &s->w.live, sizeof s->w.live);
	digest(sum, &s->w.cc, sizeof s->w.cc);
	digest(sum, s->arrived, sizeof s->arrived);
	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];

		digest(sum, &p->pc, sizeof p->pc);
		digest(sum, &p->mask, sizeof p->mask);
		digest(sum, &p->state, sizeof p->state);
		for (const struct frame *f = p->frame; f; f = f->parent) {
			digest(sum, &f->code, sizeof f->code);
			digest(sum, f->regs, f->code->frame_bytes);
		}
	}
	for (unsigned l = 0; s->local_bytes && l < LANES; l++)
		digest(sum, s->local + l * s->local_stride, s->local_bytes);
}

static void digest_block(uint64_t sum[2], const struct block *b)
{
	sum[0] = sum[1] = 0;
	for (unsigned k = 0; k < b->n_warps; k++)
		if (!b->warps[k].done)
			digest_warp(sum, &b->warps[k]);
	digest(sum, b->shared, b->shared_bytes);
	digest(sum, b->barriers, sizeof b->barriers);
}

/* ---- the loads of the block --------------------------------------------------------------------------------------- */

static bool is_constant(const struct warp_state *s, const struct insn *i, uint64_t at)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(s->frame->code, i);
	gpul_exec_range r;

	if (in && (gpul_ptx_has_mod(in, GPUL_PTX_MOD_NC) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_CONST)))
		return true;
	return gpul_exec_memory_find(s->block->launch->machine->memory, at, &r) && r.flags & GPUL_EXEC_MEM_READ_ONLY;
}

static void remember_poll(struct sync_block *m, const struct warp_state *s, const struct insn *i, const struct lane_accesses *a)
{
	const unsigned first = first_lane(a->lanes);

	for (unsigned k = 0; k < m->n_polls; k++) {
		struct poll *p = &m->polls[k];

		if (p->insn == i && p->warp == s->index && p->at == a->at[first]) {
			p->lanes |= a->lanes;
			return;
		}
	}
	if (m->n_polls == MAX_POLLS) {
		m->many_polls = true;
		return;
	}
	m->polls[m->n_polls++] = (struct poll){ s->frame->code,  i,          s->index, a->lanes, a->bytes[first], a->at[first],
						a->space[first], a->mbarrier };
}

void gpul_sync_before_poll(struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct lane_accesses a[MAX_INSN_ACCESSES];
	const unsigned n = gpul_insn_accesses(s, i, on, a);

	m->reads_others |= i->op == OP_READ_CLOCK;
	for (unsigned k = 0; k < n; k++) {
		if (a[k].kind == ACCESS_WRITE || !a[k].lanes)
			continue;
		EACH_LANE_OF(l, a[k].lanes)
		m->reads_others |= a[k].space[l] == SPACE_GLOBAL && !is_constant(s, i, a[k].at[l]);
		remember_poll(m, s, i, &a[k]);
	}
}

/* ---- turns: each time the worker has run the warps of the block ---------------------------------------------------- */

static void save_state(struct sync_block *m, const uint64_t state[2])
{
	memcpy(m->saved, state, sizeof m->saved);
	m->turns_since = 0;
	m->n_polls = 0;
	m->many_polls = m->reads_others = false;
}

static void end_launch(struct block *b, const char *why)
{
	gpul_exec_fault fault = { .kind = GPUL_EXEC_TRAP };

	memcpy(fault.block, b->index, sizeof fault.block);
	snprintf(fault.text, sizeof fault.text, "kernel %s: %s; synccheck has stopped the kernel", SHOWN_NAME(b->launch->kernel->info.name),
		 why);
	gpul_launch_fault(b->launch, &fault);
}

/* Report a block that polls.  proven: the block will certainly poll forever, which is an error. */
static void report_stall(struct synccheck *c, const struct sync_block *m, struct block *b, const char *why, bool proven)
{
	const struct gpul_exec_launch *l = b->launch;
	const uint64_t next = atomic_load(&l->next_block);
	char text[3000] = "", block[INDEX_BYTES], rest[160] = "";

	if (!gpul_sync_is_new(c, why, l->kernel->code, m->polls[0].insn))
		return;
	gpul_sync_who_waits(c, m, b, text, sizeof text);
	gpul_index_text(b->index, l->grid, block);
	if (next < l->n_blocks)
		snprintf(rest, sizeof rest, "\n%llu of %llu blocks have not started; at most %llu are resident at the same time",
			 (unsigned long long)(l->n_blocks - next), (unsigned long long)l->n_blocks, (unsigned long long)l->max_resident);
	if (proven)
		gpul_tool_report(SYNCCHECK, "deadlock: kernel %s, block %s: %s%s%s", SHOWN_NAME(l->kernel->info.name), block, why, text,
				 rest);
	else
		gpul_tool_say(SYNCCHECK, "kernel %s, block %s waits: %s%s%s", SHOWN_NAME(l->kernel->info.name), block, why, text, rest);
}

/* Called when the block's state repeats.  If the block has since polled only memory that no other block can change, it loops forever. */
static void check_cycle(struct synccheck *c, struct sync_block *m, struct block *b)
{
	if (!m->n_polls || m->reported)
		return;
	m->reported = true;
	report_stall(c, m, b, "its threads poll shared memory that no other thread can change, so they poll forever", true);
	end_launch(b, "a block polls shared memory forever");
}

static void check_time(struct synccheck *c, struct sync_block *m, struct block *b, uint64_t now)
{
	if (m->reported || !m->n_polls || m->many_polls || (now - m->idle_since_ns) / 1000000 < c->timeout_ms)
		return;
	m->reported = m->stalls = true;
	atomic_fetch_add(&c->n_stalled, 1);
	report_stall(c, m, b, "its threads have only polled memory for longer than the time limit (--synccheck-timeout)", c->ends);
	if (c->ends)
		end_launch(b, "a block has only polled memory until the time limit");
}

void gpul_sync_stall_ends(struct synccheck *c, struct sync_block *m)
{
	if (m->stalls)
		atomic_fetch_sub(&c->n_stalled, 1);
	m->stalls = false;
}

void gpul_sync_block_yields(struct synccheck *c, struct sync_block *m, struct block *b)
{
	uint64_t state[2], now;
	bool save;

	if (b->progressed || b->n_live != m->n_live) {
		m->n_live = b->n_live;
		m->idle_turns = 0;
		m->suspect = m->reported = false;
		gpul_sync_stall_ends(c, m);
		return;
	}
	if (++m->idle_turns < SUSPECT_TURNS)
		return;
	now = gpul_clock_ns();
	if (!m->suspect) {
		m->suspect = true;
		m->idle_since_ns = now;
		m->power = 1;
		digest_block(state, b);
		save_state(m, state);
		return;
	}
	save = ++m->turns_since == m->power;
	if (save || !m->reads_others)
		digest_block(state, b);
	if (!m->reads_others && !memcmp(state, m->saved, sizeof state))
		check_cycle(c, m, b);
	check_time(c, m, b, now);
	if (save) {
		m->power *= 2;
		save_state(m, state);
	}
}
