/* footprint.c — lists the bytes that an instruction accesses, as spans, and tests whether two instructions conflict. */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdlib.h>

/* In footprints, shared memory has addresses that no host memory has: bit 63 is set, and the block number starts at bit 32. */
enum { SHARED_BIT = 63, BLOCK_AT = 32 };

/* Return the kind of a red instruction on integers, which commutes with red instructions of the same kind; 0 for any other instruction. */
static uint8_t commuting_kind(const struct warp_state *s, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(s->frame->code, i);

	if (!in || in->opcode != GPUL_PTX_RED || i->n)
		return 0;
	if (i->op == OP_ATOM_ADD_32 || i->op == OP_ATOM_ADD_64)
		return 1;
	return i->op >= OP_ATOM_MIN_U32 && i->op <= OP_ATOM_XOR_64 ? (uint8_t)(2 + (i->op - OP_ATOM_MIN_U32)) : 0;
}

static void add_span(struct footprint *f, struct span s)
{
	struct span *last = f->n ? &f->span[f->n - 1] : NULL;

	if (last && last->writes == s.writes && last->commutes == s.commutes && s.at <= last->at + last->bytes && s.at >= last->at) {
		const uint64_t end = s.at + s.bytes;

		if (end > last->at + last->bytes)
			last->bytes = (uint32_t)(end - last->at);
		return;
	}
	f->span[f->n++] = s;
}

bool gpul_footprint_make(struct warp_state *s, const struct insn *i, uint32_t on, uint64_t block, struct footprint *out)
{
	struct lane_accesses a[MAX_INSN_ACCESSES];
	const unsigned n = gpul_insn_accesses(s, i, on, a);
	const uint8_t commutes = commuting_kind(s, i);

	*out = (struct footprint){ 0 };
	if (!n)
		return false;
	out->span = malloc(n * LANES * sizeof *out->span);
	if (!out->span)
		return false;
	for (unsigned k = 0; k < n; k++) {
		EACH_LANE_OF(l, a[k].lanes)
		{
			struct span add = { a[k].at[l], a[k].bytes[l], a[k].kind != ACCESS_READ, commutes };

			if (a[k].space[l] == SPACE_SHARED)
				add.at += UINT64_C(1) << SHARED_BIT | block << BLOCK_AT;
			else if (a[k].space[l] != SPACE_GLOBAL)
				continue;
			if (add.bytes)
				add_span(out, add);
		}
	}
	if (!out->n)
		gpul_footprint_free(out);
	return out->n;
}

void gpul_footprint_free(struct footprint *f)
{
	free(f->span);
	*f = (struct footprint){ 0 };
}

bool gpul_footprint_copy(const struct footprint *from, struct footprint *to)
{
	*to = (struct footprint){ 0 };
	if (!from->n)
		return true;
	to->span = malloc(from->n * sizeof *to->span);
	if (!to->span)
		return false;
	memcpy(to->span, from->span, from->n * sizeof *to->span);
	to->n = from->n;
	return true;
}

bool gpul_footprints_conflict(const struct footprint *a, const struct footprint *b)
{
	for (unsigned k = 0; k < a->n; k++) {
		for (unsigned n = 0; n < b->n; n++) {
			const struct span *x = &a->span[k], *y = &b->span[n];

			if ((x->writes || y->writes) && x->at < y->at + y->bytes && y->at < x->at + x->bytes &&
			    !(x->commutes && x->commutes == y->commutes))
				return true;
		}
	}
	return false;
}

void gpul_footprint_only_reads(struct footprint *f)
{
	for (unsigned k = 0; k < f->n; k++) {
		f->span[k].writes = false;
		f->span[k].commutes = 0;
	}
}

bool gpul_footprint_writes(const struct footprint *f)
{
	for (unsigned k = 0; k < f->n; k++)
		if (f->span[k].writes)
			return true;
	return false;
}

uint8_t *gpul_span_global(const struct span *s)
{
	return s->at >> SHARED_BIT ? NULL : (uint8_t *)(uintptr_t)s->at;
}
