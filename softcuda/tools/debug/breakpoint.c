/* breakpoint.c — breakpoints and watchpoints: finds their instructions, and checks whether the current instruction hits one. */
#include "softcuda/tools/debug/debug_internal.h"

#include <stdlib.h>

struct breakpoint *gpul_debug_add_breakpoint(struct debug *d, const struct breakpoint *b)
{
	struct breakpoint *added = gpul_array_push(&d->breakpoints);

	if (!added)
		return NULL;
	*added = *b;
	added->id = ++d->last_id;
	return added;
}

void gpul_debug_remove_breakpoint(struct debug *d, size_t k)
{
	struct breakpoint *b = &d->breakpoints.at[k];

	free(b->where);
	free(b->condition);
	gpul_array_free(&b->at);
	memmove(b, b + 1, (d->breakpoints.n - k - 1) * sizeof *b);
	d->breakpoints.n--;
}

/* ---- resolving breakpoints ---------------------------------------------------------------------------------------- */

static void add_place(struct breakpoint *b, const struct insn *i)
{
	const struct insn **at = gpul_array_push(&b->at);

	if (at)
		*at = i;
}

/* Return the line of an instruction in the breakpoint's file (CUDA C++ or PTX); 0 if the instruction comes from another file. */
static uint32_t line_in_file(const struct breakpoint *b, const struct func_code *code, const struct insn *i)
{
	const struct place p = gpul_debug_place(code, i);
	char name[TEXT_BYTES];

	if (!gpul_insn_ptx(code, i) || !gpul_insn_begins(code, i))
		return 0;
	if (p.file && gpul_debug_same_file(p.file, b->where))
		return p.line;
	gpul_debug_ptx_name(code->program, name, sizeof name);
	return gpul_debug_same_file(name, b->where) ? p.ptx_line : 0;
}

/* A fast test, done once for each function: returns false if none of its code comes from the breakpoint's file, which is the usual case. */
static bool may_have_file(const struct breakpoint *b, const struct func_code *code)
{
	const gpul_ptx_module *m = code->program->module;
	char name[TEXT_BYTES];

	for (uint32_t k = 0; k < m->n_files; k++)
		if (gpul_debug_same_file(gpul_ptx_name(m, m->files[k].path), b->where))
			return true;
	gpul_debug_ptx_name(code->program, name, sizeof name);
	return gpul_debug_same_file(name, b->where);
}

/* Return the first line at or after b->line that has code. */
static uint32_t nearest_line(const struct debug *d, const struct breakpoint *b)
{
	uint32_t best = 0;

	for (size_t n = 0; n < d->code.n; n++) {
		const struct func_code *code = d->code.at[n];

		for (uint32_t k = 0; may_have_file(b, code) && k < code->n_insns; k++) {
			const uint32_t line = line_in_file(b, code, &code->insns[k]);

			if (line >= b->line && line && (!best || line < best))
				best = line;
		}
	}
	return best;
}

/* Set the breakpoint at each instruction of the line whose preceding instruction is on another line. */
static void resolve_line(const struct debug *d, struct breakpoint *b)
{
	b->found_line = nearest_line(d, b);
	for (size_t n = 0; n < d->code.n && b->found_line; n++) {
		const struct func_code *code = d->code.at[n];
		uint32_t before = 0;

		for (uint32_t k = 0; may_have_file(b, code) && k < code->n_insns; k++) {
			const struct insn *i = &code->insns[k];
			const uint32_t line = line_in_file(b, code, i);

			if (line == b->found_line && before != line)
				add_place(b, i);
			before = gpul_insn_begins(code, i) ? line : before;
		}
	}
}

static const struct insn *insn_of_row(const struct func_code *code, uint32_t row)
{
	for (uint32_t k = 0; k < code->n_insns; k++)
		if (code->insns[k].src >= row)
			return &code->insns[k];
	return NULL;
}

static void resolve_name(const struct debug *d, struct breakpoint *b)
{
	for (size_t n = 0; n < d->code.n; n++) {
		const struct func_code *code = d->code.at[n];
		const gpul_ptx_module *m = code->program->module;
		const struct insn *at = NULL;

		if (b->kind == BREAK_KERNEL && gpul_shown_name_is(gpul_ptx_name(m, code->ptx->name), b->where))
			at = code->insns;
		for (uint32_t k = 0; b->kind == BREAK_LABEL && k < code->ptx->n_labels; k++) {
			const gpul_ptx_label *l = &code->ptx->labels[k];

			if (l->kind == GPUL_PTX_LABEL_CODE && !strcmp(gpul_ptx_name(m, l->name), b->where))
				at = insn_of_row(code, l->inst);
		}
		if (at)
			add_place(b, at);
		if (at && !b->found_line)
			b->found_line = gpul_debug_place(code, at).line ? gpul_debug_place(code, at).line
									: gpul_debug_place(code, at).ptx_line;
	}
}

void gpul_debug_resolve(struct debug *d)
{
	for (size_t k = 0; k < d->breakpoints.n; k++) {
		struct breakpoint *b = &d->breakpoints.at[k];
		const uint32_t before = b->found_line;

		b->at.n = 0;
		b->found_line = 0;
		if (b->kind == BREAK_LINE)
			resolve_line(d, b);
		else if (b->kind != BREAK_WATCH)
			resolve_name(d, b);
		if (b->found_line != before)
			gpul_debug_event(d, "breakpoint\tid=%u\tline=%u", b->id, b->found_line);
	}
	d->unresolved = false;
}

/* ---- checking for hits ---------------------------------------------------------------------------------------------- */

/* Returns true if the condition is true in a lane of the mask, and sets *lane.  A condition that cannot be evaluated counts as true. */
static bool condition_holds(const struct debug *d, const struct breakpoint *b, struct warp_state *s, uint32_t mask, unsigned *lane)
{
	EACH_LANE_OF(l, mask)
	{
		const struct lane at = { .memory = d->memory, .warp = s, .frame = s->frame, .index = l };
		struct value v;

		*lane = l;
		if (!b->condition || gpul_debug_evaluate(&at, b->condition, &v, NULL) || gpul_debug_true(&v))
			return true;
	}
	return false;
}

/* Count a hit, except during a replay that searches for a position.  Returns true if the kernel must stop: after `ignored` hits. */
static bool counts(const struct debug *d, struct breakpoint *b)
{
	if (d->search.phase != SEARCH_OFF)
		return b->hits > b->ignored;
	return ++b->hits > b->ignored;
}

struct breakpoint *gpul_debug_hit(struct debug *d, struct warp_state *s, const struct insn *i, uint32_t mask, unsigned *lane)
{
	for (size_t k = 0; k < d->breakpoints.n; k++) {
		struct breakpoint *b = &d->breakpoints.at[k];

		for (size_t n = 0; n < b->at.n; n++)
			if (b->at.at[n] == i && condition_holds(d, b, s, mask, lane) && counts(d, b))
				return b;
	}
	return NULL;
}

static bool overlaps(const struct breakpoint *b, const struct lane_accesses *a, unsigned l)
{
	const bool same_space = a->space[l] == b->space;

	return same_space && a->bytes[l] && a->at[l] < b->address + b->bytes && b->address < a->at[l] + a->bytes[l];
}

struct breakpoint *gpul_debug_watch_hit(struct debug *d, struct warp_state *s, const struct insn *i, uint32_t on, unsigned *lane,
					char *text, size_t bytes)
{
	static const char *const kinds[] = { "", "reads", "writes", "changes" };
	struct lane_accesses a[MAX_INSN_ACCESSES];
	const unsigned n = gpul_insn_accesses(s, i, on, a);

	for (size_t k = 0; n && k < d->breakpoints.n; k++) {
		struct breakpoint *b = &d->breakpoints.at[k];
		uint32_t lanes = 0;
		unsigned kind = 0;

		for (unsigned m = 0; b->kind == BREAK_WATCH && m < n; m++) {
			EACH_LANE_OF(l, a[m].lanes)
			{
				if (a[m].kind & b->on && overlaps(b, &a[m], l)) {
					lanes |= 1u << l;
					kind |= a[m].kind;
				}
			}
		}
		if (lanes && condition_holds(d, b, s, lanes, lane) && counts(d, b)) {
			snprintf(text, bytes, "lane %u%s of warp %u %s %s", *lane, count_lanes(lanes) > 1 ? " (and others)" : "", s->index,
				 kinds[kind], b->where);
			return b;
		}
	}
	return NULL;
}
