/* who_waits.c — describes what the threads of a block wait for: one line for each group of threads. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/tools/synccheck/synccheck_internal.h"

#include <stdio.h>

enum { MAX_GROUPS = 24 };

/* Lanes that wait for the same thing, in consecutive warps. */
struct group {
	const struct func_code *code;
	const struct insn *insn; /* barrier or polling instruction; NULL: neither is known */
	const struct poll *poll; /* the word that the threads poll; NULL: they wait at a barrier or a *.sync */
	const struct split *split;
	uint32_t first_warp, last_warp, lanes;
};

/* ---- collecting --------------------------------------------------------------------------------------------------- */

static const struct poll *poll_of(const struct sync_block *m, uint32_t warp, uint32_t lanes)
{
	const struct poll *best = NULL;

	for (unsigned k = 0; m && k < m->n_polls; k++) {
		const struct poll *p = &m->polls[k];

		if (p->warp == warp && p->lanes & lanes && (!best || (best->space == SPACE_GLOBAL && p->mbarrier)))
			best = p;
	}
	return best;
}

static struct group group_of(const struct sync_block *m, const struct warp_state *s, const struct split *p)
{
	struct group g = { .code = p->frame->code, .split = p, .first_warp = s->index, .last_warp = s->index, .lanes = p->mask };

	if (p->state == SPLIT_BARRIER) {
		g.insn = p->pc - 1;
	} else if (p->state == SPLIT_SYNC) {
		g.insn = p->pc;
	} else {
		g.poll = poll_of(m, s->index, p->mask);
		g.insn = g.poll ? g.poll->insn : NULL;
		g.code = g.poll ? g.poll->code : g.code;
	}
	return g;
}

static bool same_group(const struct group *a, const struct group *b)
{
	return a->insn == b->insn && a->lanes == b->lanes && a->split->state == b->split->state && a->last_warp + 1 == b->first_warp &&
	       (a->insn || a->split->pc == b->split->pc) && (!a->poll || a->poll->at == b->poll->at);
}

static unsigned collect_groups(const struct sync_block *m, const struct block *b, struct group groups[MAX_GROUPS], unsigned *left_out)
{
	unsigned n = 0;

	*left_out = 0;
	for (unsigned w = 0; w < b->n_warps; w++) {
		const struct warp_state *s = &b->warps[w];

		for (unsigned k = 0; k < s->n_splits; k++) {
			struct group g = group_of(m, s, &s->splits[k]);
			unsigned at = 0;

			while (at < n && !same_group(&groups[at], &g))
				at++;
			if (at < n)
				groups[at].last_warp = w;
			else if (n < MAX_GROUPS)
				groups[n++] = g;
			else
				(*left_out)++;
		}
	}
	return n;
}

/* ---- describing what a group of lanes waits for ------------------------------------------------------------------- */

static void describe_mbarrier(const struct block *b, const struct poll *p, char *buf, size_t bytes)
{
	uint64_t now;

	if (p->space != SPACE_SHARED || p->at + sizeof now > b->shared_bytes) {
		snprintf(buf, bytes, "an mbarrier at an address outside of shared memory");
		return;
	}
	memcpy(&now, b->shared + p->at, sizeof now);
	if (missing_bytes(now))
		snprintf(buf, bytes, "the mbarrier at offset %llu of shared memory, whose phase waits for %u of %u arrivals and %d bytes",
			 (unsigned long long)p->at, pending_arrivals(now), expected_arrivals(now), missing_bytes(now));
	else
		snprintf(buf, bytes, "the mbarrier at offset %llu of shared memory, whose phase waits for %u of %u arrivals",
			 (unsigned long long)p->at, pending_arrivals(now), expected_arrivals(now));
}

static void describe_word(const struct block *b, const struct poll *p, char *buf, size_t bytes)
{
	const gpul_exec_memory *memory = b->launch->machine->memory;
	unsigned long long value = 0;
	gpul_exec_range r;

	if (p->space == SPACE_SHARED && p->at + p->bytes <= b->shared_bytes) {
		memcpy(&value, b->shared + p->at, p->bytes < 8 ? p->bytes : 8);
		snprintf(buf, bytes, "%u bytes at offset %llu of shared memory, which contain 0x%llx", p->bytes, (unsigned long long)p->at,
			 value);
	} else if (p->space == SPACE_GLOBAL && gpul_exec_memory_find(memory, p->at, &r) && !(r.flags & GPUL_EXEC_MEM_MULTICAST) &&
		   p->at + p->bytes <= r.base + r.bytes) {
		memcpy(&value, (const void *)(uintptr_t)p->at, p->bytes < 8 ? p->bytes : 8);
		snprintf(buf, bytes, "%u bytes at offset %llu of %s (0x%llx), which contain 0x%llx", p->bytes,
			 (unsigned long long)(p->at - r.base), r.label, (unsigned long long)p->at, value);
	} else {
		snprintf(buf, bytes, "%u bytes at 0x%llx", p->bytes, (unsigned long long)p->at);
	}
}

static void describe_wait(const struct block *b, const struct group *g, char *buf, size_t bytes)
{
	const struct warp_state *s = &b->warps[g->first_warp];
	const struct split *p = g->split;
	const struct barrier *r = &b->barriers[p->barrier];
	char word[160], who[100];

	if (p->state == SPLIT_BARRIER) {
		snprintf(buf, bytes, "waits at barrier %u: %u of %u threads have arrived", p->barrier,
			 r->expected ? r->arrived : r->arrived_live, r->expected ? r->expected : b->n_live);
	} else if (p->state == SPLIT_SYNC) {
		snprintf(buf, bytes, "waits for %s of the warp (mask 0x%08x)",
			 gpul_tool_lanes(p->need & s->w.live & ~p->mask, who, sizeof who), p->need);
	} else if (g->poll) {
		if (g->poll->mbarrier)
			describe_mbarrier(b, g->poll, word, sizeof word);
		else
			describe_word(b, g->poll, word, sizeof word);
		snprintf(buf, bytes, "polls %s", word);
	} else {
		snprintf(buf, bytes, "runs");
	}
}

static size_t print_group(const struct block *b, const struct group *g, char *buf, size_t bytes)
{
	const uint32_t all = gpul_sync_existing(&b->warps[g->first_warp]);
	char place[160], opcode[80], lanes[100], what[300], warps[40];
	const struct insn *i = g->insn ? g->insn : g->split->pc;

	if (g->last_warp > g->first_warp)
		snprintf(warps, sizeof warps, "warps %u-%u", g->first_warp, g->last_warp);
	else
		snprintf(warps, sizeof warps, "warp %u", g->first_warp);
	gpul_insn_place(g->code, i, NULL, place, sizeof place);
	describe_wait(b, g, what, sizeof what);
	return (size_t)snprintf(buf, bytes, "\n%s, %s: %s: %s %s", warps,
				g->lanes == all ? "all lanes" : gpul_tool_lanes(g->lanes, lanes, sizeof lanes), place,
				gpul_sync_opcode(g->code, i, opcode, sizeof opcode), what);
}

static unsigned count_exited(const struct block *b)
{
	return b->n_threads - b->n_live;
}

void gpul_sync_who_waits(struct synccheck *c, const struct sync_block *m, struct block *b, char *buf, size_t bytes)
{
	struct group groups[MAX_GROUPS];
	unsigned left_out, n = collect_groups(m, b, groups, &left_out);
	size_t used = 0;

	(void)c;
	for (unsigned k = 0; k < n && used < bytes; k++)
		used += print_group(b, &groups[k], buf + used, bytes - used);
	if (left_out && used < bytes)
		used += (size_t)snprintf(buf + used, bytes - used, "\nand %u groups more", left_out);
	if (count_exited(b) && used < bytes)
		snprintf(buf + used, bytes - used, "\n%u of %u threads have exited", count_exited(b), b->n_threads);
}
