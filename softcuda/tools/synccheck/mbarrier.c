/* mbarrier.c — checks the life cycle of mbarriers: mbarrier.init, arrivals and waits, mbarrier.inval (PTX ISA 9.0, 9.7.13.15). */
#include "softcuda/exec/async_internal.h"
#include "softcuda/tools/synccheck/synccheck_internal.h"

#include <stdlib.h>

enum { MBARRIER_BYTES = 8, MOST_BYTES = (1 << 20) - 1 };

static bool is_inval(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);

	return i->op == OP_NOP && in && in->opcode == GPUL_PTX_MBARRIER && gpul_ptx_has_mod(in, GPUL_PTX_MOD_INVAL);
}

bool gpul_sync_is_mbarrier(const struct func_code *code, const struct insn *i)
{
	const bool copies = i->op == OP_CP_BULK || i->op == OP_CP_REDUCE;

	return i->op == OP_MBAR_INIT || i->op == OP_MBAR_ARRIVE || i->op == OP_MBAR_TEST || is_inval(code, i) ||
	       (copies && ((const struct async_copy *)i->object)->has_barrier);
}

static bool find_mbarriers(const gpul_ptx_module *m)
{
	for (uint32_t f = 0; f < m->n_funcs; f++)
		for (uint32_t k = 0; k < m->funcs[f].n_insts; k++)
			if (m->funcs[f].insts[k].opcode == GPUL_PTX_MBARRIER)
				return true;
	return false;
}

bool gpul_sync_module_has_mbarriers(const struct func_code *code)
{
	static _Thread_local struct {
		uint64_t program;
		bool has;
	} last; /* result for the last module, cached because a search of the module for each of its functions would take quadratic time */

	if (last.program != code->program->id) {
		last.program = code->program->id;
		last.has = find_mbarriers(code->program->module);
	}
	return last.has;
}

/* Return the mbarrier that overlaps these bytes; NULL if there is none. */
static struct mbarrier_object *find_mbarrier(const struct sync_block *m, uint64_t at, uint64_t bytes)
{
	for (unsigned k = 0; k < m->n_mbarriers; k++)
		if (m->mbarriers[k].at < at + bytes && at < m->mbarriers[k].at + MBARRIER_BYTES)
			return &m->mbarriers[k];
	return NULL;
}

static void add_mbarrier(struct sync_block *m, const struct warp_state *s, const struct insn *i, uint64_t at)
{
	if (m->n_mbarriers == m->mbarriers_capacity) {
		const unsigned capacity = m->mbarriers_capacity ? 2 * m->mbarriers_capacity : 16;
		struct mbarrier_object *grown = realloc(m->mbarriers, capacity * sizeof *grown);

		if (!grown)
			return;
		m->mbarriers = grown;
		m->mbarriers_capacity = capacity;
	}
	m->mbarriers[m->n_mbarriers++] = (struct mbarrier_object){ at, s->frame->code, i };
}

static uint64_t state_at(const struct warp_state *s, uint64_t at)
{
	return at + MBARRIER_BYTES <= s->shared_bytes ? *(const mbarrier_word *)(const void *)(s->shared + at) : 0;
}

/* ---- the instructions ------------------------------------------------------------------------------------------- */

static void before_init(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, unsigned l, uint64_t at)
{
	struct mbarrier_object *o = find_mbarrier(m, at, MBARRIER_BYTES);
	const uint64_t now = o ? state_at(s, o->at) : 0;
	char place[160];

	if (!o) {
		add_mbarrier(m, s, i, at);
		return;
	}
	gpul_insn_place(o->code, o->insn, NULL, place, sizeof place);
	gpul_sync_report(c, "mbarrier initialised again", s, i, 1u << l,
			 "the mbarrier at offset %llu of shared memory was initialised at %s, %s, and not invalidated since",
			 (unsigned long long)at, place, pending_arrivals(now) != expected_arrivals(now) ? "is in use" : "is valid");
	*o = (struct mbarrier_object){ at, s->frame->code, i };
}

/* Report an arrival that PTX does not allow; otherwise update *now, the state of the mbarrier. */
static void check_arrival(struct synccheck *c, struct warp_state *s, const struct insn *i, unsigned l, uint64_t at, mbarrier_word *now)
{
	const uint64_t before = *now;
	const uint32_t count = U32(&s->w, i->b)[l], bytes = U32(&s->w, i->c)[l];

	if (!update_mbarrier(i, now, count, bytes))
		gpul_sync_report(c, "too many arrivals", s, i, 1u << l,
				 "%u arrivals at the mbarrier at offset %llu, but the phase waits for only %u of %u", count,
				 (unsigned long long)at, pending_arrivals(before), expected_arrivals(before));
	else if (i->n & MBAR_EXPECTS && (bytes > MOST_BYTES || missing_bytes(before) + (int32_t)bytes > MOST_BYTES))
		gpul_sync_report(c, "too many bytes", s, i, 1u << l,
				 "the mbarrier at offset %llu would wait for %u more bytes; at most %u are possible",
				 (unsigned long long)at, bytes, MOST_BYTES);
}

static void before_use(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on,
		       const struct lane_accesses *a)
{
	mbarrier_word now = 0;
	uint64_t seen = UINT64_MAX;

	EACH_LANE_OF(l, on)
	{
		const struct mbarrier_object *o;

		if (a->space[l] != SPACE_SHARED)
			continue;
		o = find_mbarrier(m, a->at[l], MBARRIER_BYTES);
		if (!o || o->at != a->at[l]) {
			gpul_sync_report(c, "mbarrier not initialised", s, i, 1u << l,
					 "no mbarrier has been initialised at offset %llu of shared memory", (unsigned long long)a->at[l]);
			continue;
		}
		if (i->op != OP_MBAR_ARRIVE)
			continue;
		if (seen != a->at[l])
			now = state_at(s, seen = a->at[l]);
		check_arrival(c, s, i, l, a->at[l], &now);
	}
}

static void before_inval(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, unsigned l, uint64_t at)
{
	struct mbarrier_object *o = find_mbarrier(m, at, MBARRIER_BYTES);
	uint64_t now;

	if (!o) {
		gpul_sync_report(c, "mbarrier not initialised", s, i, 1u << l,
				 "no mbarrier has been initialised at offset %llu of shared memory", (unsigned long long)at);
		return;
	}
	now = state_at(s, at);
	if (pending_arrivals(now) != expected_arrivals(now) || missing_bytes(now))
		gpul_sync_report(c, "mbarrier invalidated in use", s, i, 1u << l,
				 "the phase of the mbarrier at offset %llu waits for %u of %u arrivals", (unsigned long long)at,
				 pending_arrivals(now), expected_arrivals(now));
	*o = m->mbarriers[--m->n_mbarriers];
}

/* Describe the access of mbarrier.inval.  Decoding turns it into an instruction without a memory access, but keeps the address operand. */
static void describe_inval(struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses *a)
{
	struct lane_accesses all[MAX_INSN_ACCESSES];
	struct insn init = *i;

	init.op = OP_MBAR_INIT;
	gpul_insn_accesses(s, &init, on, all);
	*a = all[0];
}

void gpul_sync_before_mbarrier(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on)
{
	const bool invalidates = i->op == OP_NOP;
	struct lane_accesses a[MAX_INSN_ACCESSES];
	unsigned n = 1;

	if (invalidates)
		describe_inval(s, i, on, a);
	else
		n = gpul_insn_accesses(s, i, on, a);
	if (!n)
		return;
	if (i->op != OP_MBAR_INIT && !invalidates) {
		before_use(c, m, s, i, on, &a[n - 1]);
		return;
	}
	EACH_LANE_OF(l, on)
	{
		if (a->space[l] != SPACE_SHARED)
			continue;
		if (invalidates)
			before_inval(c, m, s, i, l, a->at[l]);
		else
			before_init(c, m, s, i, l, a->at[l]);
	}
}

void gpul_sync_before_store(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct lane_accesses a[MAX_INSN_ACCESSES];
	const unsigned n = gpul_insn_accesses(s, i, on, a);
	const struct mbarrier_object *o;
	char place[160];

	for (unsigned k = 0; k < n; k++) {
		if (a[k].kind == ACCESS_READ || a[k].mbarrier)
			continue;
		EACH_LANE_OF(l, a[k].lanes)
		{
			o = a[k].space[l] == SPACE_SHARED ? find_mbarrier(m, a[k].at[l], a[k].bytes[l]) : NULL;
			if (!o)
				continue;
			gpul_insn_place(o->code, o->insn, NULL, place, sizeof place);
			gpul_sync_report(c, "mbarrier overwritten", s, i, 1u << l,
					 "this instruction writes to the valid mbarrier at offset %llu of shared memory, initialised at "
					 "%s",
					 (unsigned long long)o->at, place);
			return;
		}
	}
}
