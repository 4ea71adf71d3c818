/* explore.c — runs a launch once for each schedule that may have another result; or only once, with the schedule of a replay string.
 *
 * Before an access, before() suspends the split, a group of lanes that execute together (OBSERVED_YIELD), until every split of the
 * launch has ended, waits for others, or is about to make an access. Then one of the latter is chosen, and makes its access. The
 * search is depth first: the next schedule repeats the steps up to the deepest point where another choice must still be tried
 * (races.c). Sleep sets (P. Godefroid, 1996) avoid equivalent schedules: a choice that has been tried is not tried again ("sleeps")
 * until a step that conflicts with it is executed. */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"

/* ---- freeing steps ------------------------------------------------------------------------------------------------ */

static void free_choices(struct step *s)
{
	for (unsigned c = 0; c < s->n_choices; c++) {
		gpul_footprint_free(&s->choice[c].who.footprint);
		free(s->choice[c].pair);
	}
	free(s->choice);
	s->choice = NULL;
	s->n_choices = 0;
}

static void free_step(struct step *s)
{
	free_choices(s);
	gpul_footprint_free(&s->executed);
	free(s->before);
	s->before = NULL;
}

static void drop_steps(struct explorer *x, unsigned n)
{
	while (x->n_steps > n)
		free_step(&x->step[--x->n_steps]);
}

static bool same_entity(const struct entity *a, const struct entity *b)
{
	return a->block == b->block && a->warp == b->warp && a->lanes == b->lanes && a->insn == b->insn;
}

/* ---- choosing the split (group of lanes) that runs next -------------------------------------------------------------- */

static struct visit *find_visit(const struct explorer *x, const struct entity *e)
{
	for (unsigned k = 0; k < x->n_visits; k++) {
		struct visit *v = &x->visits[k];

		if (v->insn == e->insn && v->block == e->block && v->warp == e->warp && v->lanes == e->lanes)
			return v;
	}
	return NULL;
}

static void note_visit(struct explorer *x, const struct entity *e)
{
	struct visit *v = find_visit(x, e);

	if (!v && x->n_visits == x->visits_capacity) {
		const unsigned capacity = x->visits_capacity ? 2 * x->visits_capacity : 64;
		struct visit *grown = realloc(x->visits, capacity * sizeof *grown);

		if (!grown)
			return;
		x->visits = grown;
		x->visits_capacity = capacity;
	}
	v = v ? v : &x->visits[x->n_visits++];
	*v = (struct visit){ e->block, e->warp, e->lanes, e->insn, e->digest, x->n_changes };
}

/* Returns true if the lanes poll: they have made the same access with the same registers, and no memory has changed since then. */
static bool would_poll_again(const struct explorer *x, const struct entity *e)
{
	const struct visit *v = find_visit(x, e);

	return v && v->digest == e->digest && v->n_changes == x->n_changes;
}

/* Returns true if the choice stays in the sleep set: it was asleep or tried before the last step, and does not conflict with this step. */
static bool still_sleeps(const struct step *last, const struct entity *e)
{
	for (unsigned c = 0; c < last->n_choices; c++) {
		const struct choice *k = &last->choice[c];

		if (c != last->chosen && (k->done || k->asleep) && same_entity(&k->who, e))
			return !gpul_footprints_conflict(&k->who.footprint, &last->executed);
	}
	return false;
}

/* Return the index of the choice that the replay string names for this step; -1: it names none. */
static int replayed_choice(struct explorer *x, const struct step *step)
{
	for (unsigned k = 0; k < x->n_deviations; k++) {
		const struct deviation *d = &x->deviation[k];

		for (unsigned c = 0; d->step == x->depth && c < step->n_choices; c++)
			if (step->choice[c].who.block == d->block && step->choice[c].who.warp == d->warp &&
			    step->choice[c].who.lanes >> d->lane & 1)
				return (int)c;
		if (d->step == x->depth)
			x->why_not = "the replay string belongs to another launch";
	}
	return -1;
}

/* ---- deciding on the next step ------------------------------------------------------------------------------------- */

static struct step *new_step(struct explorer *x, const struct entity *list, unsigned n)
{
	const struct step *last;
	struct step *s;

	if (x->n_steps == x->steps_capacity) {
		const unsigned capacity = x->steps_capacity ? 2 * x->steps_capacity : 256;
		struct step *grown = realloc(x->step, capacity * sizeof *grown);

		if (!grown)
			return NULL;
		x->step = grown;
		x->steps_capacity = capacity;
	}
	s = &x->step[x->n_steps];
	*s = (struct step){ .choice = calloc(n, sizeof *s->choice), .n_choices = n };
	if (!s->choice)
		return NULL;
	last = x->n_steps ? &x->step[x->n_steps - 1] : NULL;
	x->n_steps++;
	for (unsigned c = 0; c < n; c++) {
		s->choice[c].who = list[c];
		s->choice[c].waits = would_poll_again(x, &list[c]);
		s->choice[c].wanted = x->exhaustive;
		s->choice[c].asleep = x->all && x->phase == PHASE_EXPLORE && !x->exhaustive && last && still_sleeps(last, &list[c]);
	}
	return s;
}

static void begin_again(struct explorer *x, const char *why)
{
	if (why)
		x->why_not = why;
	x->abandoned = true;
	gpul_launch_again(x->launch);
}

static void report_livelock(struct explorer *x)
{
	gpul_exec_fault fault = { .kind = GPUL_EXEC_TRAP };

	snprintf(fault.text, sizeof fault.text,
		 "kernel %s: under this schedule all threads that have not ended poll memory that no thread changes",
		 SHOWN_NAME(x->launch->kernel->info.name));
	gpul_launch_fault(x->launch, &fault);
}

/* Choose the next step among the splits in the list.  Takes ownership of the elements of the list. */
static void decide(struct explorer *x, struct entity *list, unsigned n)
{
	struct step *s = x->depth < x->n_steps ? &x->step[x->depth] : NULL;
	int chosen;

	if (s) {
		bool same = s->n_choices == n;

		for (unsigned c = 0; c < n; c++) {
			same = same && same_entity(&s->choice[c].who, &list[c]);
			gpul_footprint_free(&list[c].footprint);
		}
		if (!same) {
			begin_again(x, "the kernel is not deterministic: it reads a clock, or memory that other threads change");
			return;
		}
	} else {
		s = x->depth < MAX_STEPS ? new_step(x, list, n) : NULL;
		if (!s) {
			for (unsigned c = 0; c < n; c++)
				gpul_footprint_free(&list[c].footprint);
			begin_again(x, "a schedule has too many steps");
			x->too_long = true;
			return;
		}
		chosen = replayed_choice(x, s);
		chosen = chosen < 0 ? gpul_default_choice(s, x->depth ? s - 1 : NULL, true) : chosen;
		if (chosen < 0 && gpul_default_choice(s, NULL, false) < 0) {
			report_livelock(x);
			return;
		}
		if (chosen < 0) {
			begin_again(x, NULL);
			return;
		}
		s->chosen = (unsigned)chosen;
	}
	note_visit(x, &s->choice[s->chosen].who);
	x->granted = true;
}

/* ---- executing a step --------------------------------------------------------------------------------------------- */

bool gpul_explore_wants(const struct func_code *code, const struct insn *i)
{
	const unsigned space = i->flags & SPACE_MASK;
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);

	if (!gpul_insn_accesses_memory(i) || !in)
		return i->op >= OP_SHFL_UP && i->op <= OP_REDUX_F32 ? true : i->op == OP_BAR_WARP;
	if (i->op == OP_CP_ASYNC || i->op == OP_CP_BULK || i->op == OP_CP_REDUCE)
		return true;
	return space != SPACE_LOCAL && space != SPACE_PARAM && !gpul_ptx_has_mod(in, GPUL_PTX_MOD_NC) &&
	       !gpul_ptx_has_mod(in, GPUL_PTX_MOD_CONST);
}

/* Return the host memory of a span; NULL if the access will fault, or uses multicast addresses. */
static uint8_t *span_memory(const struct explorer *x, const struct warp_state *s, const struct span *p)
{
	const uint64_t offset = (uint32_t)p->at;
	gpul_exec_range r;

	if (!gpul_span_global(p))
		return offset + p->bytes <= s->shared_bytes ? s->shared + offset : NULL;
	if (!gpul_exec_memory_find(x->launch->machine->memory, p->at, &r) || p->at + p->bytes > r.base + r.bytes ||
	    r.flags & GPUL_EXEC_MEM_MULTICAST)
		return NULL;
	return gpul_span_global(p);
}

/* Save the bytes that the step may overwrite.  Returns false if out of memory, or a span has no host memory. */
static bool keep_old_bytes(struct explorer *x, const struct warp_state *s, const struct footprint *f)
{
	size_t bytes = 0;

	for (unsigned k = 0; k < f->n; k++) {
		if (!span_memory(x, s, &f->span[k]))
			return false;
		bytes += f->span[k].bytes;
	}
	free(x->old_bytes);
	x->old_bytes = malloc(bytes);
	if (!x->old_bytes || (x->all && !gpul_image_keep(&x->image, f))) {
		x->why_not = "memory ran out";
		return false;
	}
	bytes = 0;
	for (unsigned k = 0; k < f->n; k++) {
		memcpy(x->old_bytes + bytes, span_memory(x, s, &f->span[k]), f->span[k].bytes);
		bytes += f->span[k].bytes;
	}
	return true;
}

static bool has_changed(const struct explorer *x, const struct warp_state *s, const struct footprint *f)
{
	const uint8_t *old = x->old_bytes;

	for (unsigned k = 0; old && k < f->n; k++) {
		const uint8_t *now = span_memory(x, s, &f->span[k]);

		if (!now || memcmp(old, now, f->span[k].bytes) != 0)
			return true;
		old += f->span[k].bytes;
	}
	return !old;
}

static bool is_its_turn(const struct explorer *x, const struct warp_state *s, const struct insn *i)
{
	const struct step *step = &x->step[x->depth];
	const struct entity *who = &step->choice[step->chosen].who;

	return who->block == gpul_block_number(s->block) && who->warp == s->index && who->insn == i && who->lanes & s->w.mask;
}

/* Suspend the current lanes. The block counts as polling without progress, so that the worker starts more blocks; once all blocks
 * have started, the block counts as making progress, so that the worker does not sleep. */
static enum observed let_wait(const struct explorer *x, struct warp_state *s)
{
	const bool all_begun = x->n_begun >= x->launch->n_blocks || x->n_blocks >= x->launch->max_resident;

	s->block->polls = true;
	s->block->progressed |= all_begun;
	return OBSERVED_YIELD;
}

enum observed gpul_explore_before(struct explorer *x, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct entity list[MAX_ENTITIES];
	struct footprint f;
	unsigned n;

	if (x->phase == PHASE_OFF || s->block->launch != x->launch || !on || !gpul_insn_accesses_memory(i))
		return OBSERVED_RUN;
	if (!gpul_footprint_make(s, i, on, gpul_block_number(s->block), &f))
		return OBSERVED_RUN;
	gpul_footprint_free(&f);
	if (!x->abandoned && !x->granted && !atomic_load(&x->launch->stop) && gpul_entities_collect(x, s, i, list, &n))
		decide(x, list, n);
	if (!x->granted || !is_its_turn(x, s, i))
		return let_wait(x, s);
	x->granted = false;
	gpul_footprint_free(&x->step[x->depth].executed); /* the step may still have its footprint from the previous schedule */
	x->executing = gpul_footprint_make(s, i, on, gpul_block_number(s->block), &x->step[x->depth].executed);
	if (x->executing && !keep_old_bytes(x, s, &x->step[x->depth].executed)) {
		free(x->old_bytes);
		x->old_bytes = NULL;
	}
	s->block->progressed = true;
	return OBSERVED_RUN;
}

void gpul_explore_after(struct explorer *x, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	struct step *step;

	if (x->phase == PHASE_OFF || s->block->launch != x->launch || waits)
		return;
	if (!gpul_insn_accesses_memory(i)) {
		uint32_t lanes[GPUL_EXEC_SM_THREADS / LANES] = { 0 };

		lanes[s->index] = on;
		gpul_known_join(x, s->block, lanes, s->index + 1);
		return;
	}
	if (!x->executing)
		return;
	x->executing = false;
	step = &x->step[x->depth];
	if (gpul_footprint_writes(&step->executed)) {
		if (has_changed(x, s, &step->executed))
			x->n_changes++;
		else if (i->op >= OP_ATOM_ADD_32 && i->op <= OP_ATOM_EXCH_128)
			gpul_footprint_only_reads(&step->executed);
	}
	gpul_races_find(x, x->depth);
	x->depth++;
}

/* ---- schedules ---------------------------------------------------------------------------------------------------- */

void gpul_explore_run_begins(struct explorer *x)
{
	for (uint64_t l = 0; l < x->n_lanes; l++)
		memset(x->known + l * KNOWN_WORDS, 0, (x->depth / 64 + 1) * sizeof *x->known);
	x->depth = 0;
	x->granted = x->executing = x->abandoned = false;
	x->n_changes = 0;
	x->n_visits = x->n_blocks = 0;
	x->n_begun = 0;
	x->now.n_printed = 0;
}

/* Prepare the next schedule: take another choice at the deepest step where one must be tried; returns false if there is none. */
static bool next_schedule(struct explorer *x)
{
	drop_steps(x, x->depth);
	for (; x->n_steps; drop_steps(x, x->n_steps - 1)) {
		struct step *s = &x->step[x->n_steps - 1];

		s->choice[s->chosen].done = true;
		gpul_footprint_free(&s->executed);
		for (unsigned c = 0; c < s->n_choices; c++) {
			const struct choice *k = &s->choice[c];

			if (!k->wanted || k->done || k->asleep || k->waits)
				continue;
			s->chosen = c;
			return true;
		}
	}
	return false;
}

static bool same_outcome(const struct explorer *x)
{
	uint64_t at;
	uint32_t bytes;

	return x->now.fault.kind == x->first.fault.kind && x->now.n_printed == x->first.n_printed &&
	       !memcmp(x->now.printed ? x->now.printed : "", x->first.printed ? x->first.printed : "", x->now.n_printed) &&
	       !gpul_image_differs(&x->image, 0, &at, &bytes);
}

/* Compare the result of this schedule with that of the first schedule. */
static void judge(struct explorer *x, const gpul_exec_fault *fault)
{
	x->now.fault = *fault;
	x->n_schedules++;
	if (x->n_schedules > 1) {
		x->differs = !same_outcome(x);
		if (x->differs)
			gpul_difference_report(x);
		return;
	}
	gpul_image_end_first(&x->image);
	x->first = x->now;
	x->now = (struct outcome){ 0 };
}

static void sum_up(const struct explorer *x)
{
	const char *kernel = SHOWN_NAME(x->launch->kernel->info.name);
	const unsigned long long n = x->n_schedules, tried = n + x->n_redundant;

	if (x->differs)
		gpul_tool_say(SCHEDULE, "kernel %s: %llu schedule%s tried", kernel, tried, tried == 1 ? "" : "s");
	else if (x->why_not)
		gpul_tool_say(SCHEDULE, "kernel %s: %llu schedule%s tried, with the same result; not complete: %s", kernel, tried,
			      tried == 1 ? "" : "s", x->why_not);
	else if (n == 1)
		gpul_tool_say(SCHEDULE, "kernel %s: all schedules are equivalent to the first one; complete", kernel);
	else
		gpul_tool_say(SCHEDULE, "kernel %s: all %llu schedules give the same result; complete", kernel, n);
}

void gpul_explore_run_ends(struct explorer *x, const gpul_exec_fault *fault)
{
	bool more;

	if (!x->all || x->phase != PHASE_EXPLORE)
		return;
	if (x->abandoned)
		x->n_redundant++;
	else
		judge(x, fault);
	more = !x->differs && !x->why_not && next_schedule(x);
	if (more && x->n_schedules + x->n_redundant >= x->max_schedules) {
		x->why_not = "--max is reached";
		more = false;
	} else if (more && (gpul_clock_ns() - x->began_ns) / 1000000000 >= MOST_SECONDS) {
		x->why_not = "the search has taken 60 s";
		more = false;
	}
	gpul_image_restore(&x->image);
	if (!more) {
		sum_up(x);
		x->phase = PHASE_LAST; /* run the first schedule again, so that the program continues with its result */
		drop_steps(x, 0);
		x->launch->machine->options.print = x->print;
		x->launch->machine->options.print_user = x->print_user;
	}
	gpul_launch_again(x->launch);
}

void gpul_explore_end(struct explorer *x)
{
	x->depth = 0;
	drop_steps(x, 0);
	gpul_image_clear(&x->image);
	free(x->first.printed);
	free(x->now.printed);
	free(x->known);
	free(x->old_bytes);
	x->known = NULL;
	x->old_bytes = NULL;
	x->now = x->first = (struct outcome){ 0 };
	x->launch = NULL;
	x->phase = PHASE_OFF;
}
