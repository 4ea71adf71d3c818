/* stop.c — the observer's hooks, which decide where the worker stops, how it continues, and how a replay goes back to an instruction. */
#include "softcuda/tools/debug/debug_internal.h"

static bool same_warp(const struct warp_name *n, const struct warp_state *s)
{
	return n->launch == s->block->launch && n->warp == s->index && n->block == gpul_debug_block_index(s->block);
}

/* Returns true if the warp or lane that the user is stepping has ended. */
static bool has_ended(const struct debug *d, const struct origin *from)
{
	for (size_t k = 0; k < d->resident.n; k++) {
		const struct block *b = d->resident.at[k];

		if (b->launch == from->warp.launch && gpul_debug_block_index(b) == from->warp.block && from->warp.warp < b->n_warps)
			return from->lane < 0 ? !b->warps[from->warp.warp].w.live : !(b->warps[from->warp.warp].w.live >> from->lane & 1);
	}
	return true;
}

static bool same_line(const struct place *a, const struct place *b)
{
	if (a->line || b->line)
		return a->line == b->line && a->file == b->file;
	return a->ptx_line == b->ptx_line && a->code == b->code;
}

/* ---- stopping ---------------------------------------------------------------------------------------------------------- */

/* Replaces the print callback during a replay, so that printf prints nothing. */
static void print_nothing(void *user, const char *text, size_t text_bytes)
{
	(void)user, (void)text, (void)text_bytes;
}

static void set_silent(struct debug *d, gpul_exec_launch *l, bool silent)
{
	if (silent && !d->print) {
		d->print = l->machine->options.print;
		l->machine->options.print = print_nothing;
	} else if (!silent && d->print) {
		l->machine->options.print = d->print;
		d->print = NULL;
	}
}

/* Report the stop to the client and sleep until the client lets the worker continue. The caller holds the lock. */
static void stop_here(struct debug *d, const struct stop *stop, gpul_exec_launch *l)
{
	const struct warp_state *s = stop->warp;

	if (d->client < 0)
		return;
	set_silent(d, l, false);
	d->stop = *stop;
	d->next = (struct stop){ 0 };
	d->search = (struct search){ 0 };
	gpul_debug_event(d, "stopped\treason=%s\tblock=%llu\twarp=%u\tlane=%u\tid=%u\tcount=%llu\ttext=%s", stop->reason,
			 s ? (unsigned long long)gpul_debug_block_index(s->block) : 0, s ? s->index : 0, stop->lane, stop->breakpoint,
			 (unsigned long long)d->count, stop->text);
	while (d->stop.reason)
		pthread_cond_wait(&d->resumed, &d->lock);
}

static void begin_replay(struct debug *d, gpul_exec_launch *l)
{
	d->restores = true;
	gpul_launch_again(l);
}

/* Called when a replay that searches has reached the end of the launch, or a fault.  If its search is complete, run the launch once
 * more, up to the instruction that was found. */
static bool search_is_complete(struct debug *d, gpul_exec_launch *l)
{
	if (d->search.phase != SEARCH_LAST || d->restores)
		return false;
	d->search.phase = SEARCH_GO;
	begin_replay(d, l);
	return true;
}

gpul_status gpul_debug_go(struct debug *d, enum go how, const struct origin *from, uint64_t to, gpul_error *err)
{
	if (how == GO_PAUSE) {
		d->go = GO_PAUSE;
		return GPUL_OK;
	}
	if (!d->configured && how < BACK_INSN) {
		d->configured = true;
		d->go = how;
		pthread_cond_broadcast(&d->resumed);
		return GPUL_OK;
	}
	if (!d->stop.reason)
		return gpul_fail(err, GPUL_EINVAL, 0, "no kernel is stopped: pause the running kernel first");
	if (how >= BACK_INSN && !d->has_snapshot)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "cannot step back: the memory of the program is larger than %llu MB: set "
				 "GPULOAD_SOFT_TOOLS=debug:back=MB",
				 (unsigned long long)d->back_bytes >> 20);
	if (how >= BACK_INSN && !d->alone)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot step back, because other kernels have run at the same time");
	d->go = how < BACK_INSN ? how : GO_FREE;
	d->from = *from;
	d->from.count = d->count;
	if (how >= BACK_INSN) {
		d->search = (struct search){ .phase = how < BACK_START ? SEARCH_LAST : SEARCH_GO,
					     .how = how,
					     .end = d->count + d->stop.after,
					     .from = *from,
					     .found = to };
		begin_replay(d, d->launch);
	}
	d->stop.reason = NULL;
	pthread_cond_broadcast(&d->resumed);
	return GPUL_OK;
}

/* ---- continuing: does a step end at this instruction? ------------------------------------------------------------- */

static bool step_ends(struct debug *d, struct warp_state *s, const struct insn *i)
{
	const struct origin *from = &d->from;
	const bool mine = same_warp(&from->warp, s) && (from->lane < 0 || s->w.mask >> from->lane & 1);
	struct place here;

	switch (d->go) {
	case GO_PAUSE:
		return true;
	case GO_WARP:
		return !same_warp(&from->warp, s);
	case GO_BLOCK:
		return gpul_debug_block_index(s->block) != from->warp.block || s->block->launch != from->warp.launch;
	case GO_INSN:
	case GO_LINE:
	case GO_OVER:
	case GO_OUT:
		break;
	default:
		return false;
	}
	if (!mine)
		return has_ended(d, from);
	if (d->go == GO_INSN)
		return true;
	if (d->go == GO_OUT)
		return s->frame->depth < from->depth;
	here = gpul_debug_place(s->frame->code, i);
	if (d->go == GO_OVER && s->frame->depth > from->depth)
		return false;
	return s->frame->depth != from->depth || !same_line(&here, &from->place);
}

static void check_stop(struct debug *d, struct warp_state *s, const struct insn *i)
{
	struct stop stop = { .warp = s, .insn = i, .lane = first_lane(s->w.mask) };
	const struct breakpoint *b;
	unsigned lane = stop.lane;

	if (d->go != GO_FREE && d->from.lane >= 0 && s->w.mask >> d->from.lane & 1)
		stop.lane = (unsigned)d->from.lane;
	if (d->next.reason && (!d->next.warp || d->next.warp == s)) {
		stop.reason = d->next.reason;
		memcpy(stop.text, d->next.text, sizeof stop.text);
		stop.breakpoint = d->next.breakpoint;
		stop.lane = s->w.mask >> d->next.lane & 1 ? d->next.lane : stop.lane;
	} else if (d->stops_at_entry) {
		d->stops_at_entry = false;
		stop.reason = "entry";
	} else if ((b = gpul_debug_hit(d, s, i, s->w.mask, &lane))) {
		stop.reason = b->kind == BREAK_KERNEL ? "function breakpoint" : "breakpoint";
		stop.breakpoint = b->id;
		stop.lane = lane;
	} else if (step_ends(d, s, i)) {
		stop.reason = d->go == GO_PAUSE ? "pause" : "step";
	} else if (gpul_insn_ptx(s->frame->code, i)->opcode == GPUL_PTX_BRKPT) {
		stop.reason = "breakpoint";
		snprintf(stop.text, sizeof stop.text, "brkpt");
	}
	if (stop.reason)
		stop_here(d, &stop, s->block->launch);
}

/* ---- going back: the instruction that a replay searches for -------------------------------------------------------- */

static bool search_matches(struct debug *d, struct warp_state *s, const struct insn *i)
{
	struct search *r = &d->search;
	const bool mine = same_warp(&r->from.warp, s) && (r->from.lane < 0 || s->w.mask >> r->from.lane & 1);
	struct place here;
	unsigned lane;
	bool begins;

	if (r->how == BACK_FREE)
		return gpul_debug_hit(d, s, i, s->w.mask, &lane);
	if (!mine || r->how == BACK_INSN)
		return mine;
	here = gpul_debug_place(s->frame->code, i);
	begins = (!r->line.code || !same_line(&here, &r->line)) && s->frame->depth <= r->from.depth;
	r->line = here;
	return begins;
}

static enum observed replay(struct debug *d, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct search *r = &d->search;
	char text[TEXT_BYTES];
	unsigned lane;

	if (r->phase == SEARCH_LAST && d->count < r->end) {
		if (search_matches(d, s, i) || (r->how == BACK_FREE && gpul_debug_watch_hit(d, s, i, on, &lane, text, sizeof text)))
			r->found = d->count;
		return OBSERVED_RUN;
	}
	if (r->phase == SEARCH_LAST) {
		r->phase = SEARCH_GO;
		begin_replay(d, s->block->launch);
		return OBSERVED_YIELD;
	}
	if (d->count >= r->found) {
		struct stop stop = { .reason = "step", .warp = s, .insn = i, .lane = first_lane(s->w.mask) };

		if (r->from.lane >= 0 && s->w.mask >> r->from.lane & 1)
			stop.lane = (unsigned)r->from.lane;
		if (!r->found)
			snprintf(stop.text, sizeof stop.text, "the beginning of the kernel");
		stop_here(d, &stop, s->block->launch);
	}
	return OBSERVED_RUN;
}

/* ---- the hooks -------------------------------------------------------------------------------------------------------- */

static enum observed before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct debug *d = (struct debug *)o;
	enum observed wish = OBSERVED_RUN;
	struct breakpoint *b;
	char text[TEXT_BYTES];
	unsigned lane;

	pthread_mutex_lock(&d->lock);
	d->count++;
	d->splits_before = s->n_splits;
	if (d->restores) {
		wish = OBSERVED_YIELD;
	} else if (gpul_insn_begins(s->frame->code, i) && gpul_insn_ptx(s->frame->code, i)) {
		if (d->search.phase != SEARCH_OFF)
			wish = replay(d, s, i, on);
		else
			check_stop(d, s, i);
	}
	if (d->restores)
		wish = OBSERVED_YIELD;
	if (d->search.phase == SEARCH_OFF && wish == OBSERVED_RUN && d->client >= 0) {
		b = gpul_debug_watch_hit(d, s, i, on, &lane, text, sizeof text);
		if (b) {
			d->next = (struct stop){ .reason = "data breakpoint", .warp = s, .lane = lane, .breakpoint = b->id };
			memcpy(d->next.text, text, sizeof text);
		}
	}
	pthread_mutex_unlock(&d->lock);
	return wish;
}

static void after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	struct debug *d = (struct debug *)o;

	(void)on, (void)waits;
	pthread_mutex_lock(&d->lock);
	if (s->event == EVENT_FAULT && search_is_complete(d, s->block->launch)) {
		;
	} else if (s->event == EVENT_FAULT && d->search.phase == SEARCH_OFF && !d->restores) {
		struct stop stop = { .reason = "exception", .after = true, .warp = s, .insn = i, .lane = first_lane(s->w.mask) };
		gpul_exec_launch *l = s->block->launch;

		pthread_mutex_lock(&l->lock);
		snprintf(stop.text, sizeof stop.text, "%s", l->fault.text);
		pthread_mutex_unlock(&l->lock);
		stop_here(d, &stop, l);
	} else if (d->go == GO_DIVERGE && s->n_splits > d->splits_before && !d->next.reason) {
		d->next = (struct stop){ .reason = "step", .warp = s };
		snprintf(d->next.text, sizeof d->next.text, "warp %u has diverged: %u groups of lanes", s->index, s->n_splits);
	}
	pthread_mutex_unlock(&d->lock);
}

static void barrier_completes(struct observer *o, struct block *b, unsigned id)
{
	struct debug *d = (struct debug *)o;

	pthread_mutex_lock(&d->lock);
	if (d->go == GO_BARRIER && d->search.phase == SEARCH_OFF && !d->next.reason) {
		d->next.reason = "step";
		snprintf(d->next.text, sizeof d->next.text, "barrier %u of block %llu is complete", id,
			 (unsigned long long)gpul_debug_block_index(b));
	}
	pthread_mutex_unlock(&d->lock);
}

static void deadlock(struct observer *o, struct block *b)
{
	struct debug *d = (struct debug *)o;
	struct stop stop = { .reason = "exception", .after = true, .text = "deadlock: no warp of the block can run" };

	pthread_mutex_lock(&d->lock);
	for (unsigned k = 0; k < b->n_warps && !stop.warp; k++) {
		struct warp_state *s = &b->warps[k];

		if (s->done || !s->n_splits)
			continue;
		stop.warp = s;
		s->frame = s->splits[0].frame;
		s->w.mask = s->splits[0].mask;
		s->w.bank[BANK_REGS] = s->frame->regs;
		stop.insn = s->splits[0].pc;
		stop.lane = first_lane(s->splits[0].mask);
	}
	if (!search_is_complete(d, b->launch) && d->search.phase == SEARCH_OFF)
		stop_here(d, &stop, b->launch);
	pthread_mutex_unlock(&d->lock);
}

static void block_begins(struct observer *o, struct block *b)
{
	struct debug *d = (struct debug *)o;
	struct block **at;

	/* Clear memory that a kernel can read before writing it, so that the first run and its replay read the same values. */
	memset(b->shared, 0, b->shared_bytes);
	for (unsigned k = 0; k < b->n_warps; k++) {
		memset(b->warps[k].local, 0, LANES * b->warps[k].local_stride);
		memset(b->warps[k].splits[0].frame->regs, 0, b->warps[k].splits[0].frame->code->frame_bytes);
	}
	pthread_mutex_lock(&d->lock);
	at = gpul_array_push(&d->resident);
	if (at)
		*at = b;
	pthread_mutex_unlock(&d->lock);
}

static void block_ends(struct observer *o, struct block *b)
{
	struct debug *d = (struct debug *)o;

	pthread_mutex_lock(&d->lock);
	for (size_t k = 0; k < d->resident.n; k++) {
		if (d->resident.at[k] == b) {
			memmove(&d->resident.at[k], &d->resident.at[k + 1], (--d->resident.n - k) * sizeof *d->resident.at);
			break;
		}
	}
	if (d->next.warp && d->next.warp->block == b)
		d->next.warp = NULL;
	pthread_mutex_unlock(&d->lock);
}

static void launch_begins(struct observer *o, gpul_exec_launch *l)
{
	struct debug *d = (struct debug *)o;

	pthread_mutex_lock(&d->lock);
	if (d->restores) {
		d->restores = false;
		d->count = 0;
		d->search.line = (struct place){ 0 };
		gpul_debug_restore(d);
		set_silent(d, l, true);
		pthread_mutex_unlock(&d->lock);
		return;
	}
	while (d->waits && !d->configured)
		pthread_cond_wait(&d->resumed, &d->lock);
	d->alone = d->n_launches++ == 0;
	d->launch = l;
	if (d->alone) {
		d->count = 0;
		if (d->client >= 0)
			gpul_debug_save(d);
	}
	if (d->unresolved)
		gpul_debug_resolve(d);
	gpul_debug_event(d, "launch\tkernel=%s\tgrid=%u,%u,%u\tblock=%u,%u,%u", SHOWN_NAME(l->kernel->info.name), l->grid[0], l->grid[1],
			 l->grid[2], l->block[0], l->block[1], l->block[2]);
	pthread_mutex_unlock(&d->lock);
}

static void launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	struct debug *d = (struct debug *)o;
	struct stop stop = { .reason = "step", .after = true };

	pthread_mutex_lock(&d->lock);
	if (search_is_complete(d, l)) {
		;
	} else if (!d->restores && d->search.phase != SEARCH_OFF) { /* the replay never reached the instruction */
		if (d->search.how == BACK_TO)
			snprintf(stop.text, sizeof stop.text, "%s has ended at instruction #%llu, before instruction #%llu",
				 SHOWN_NAME(l->kernel->info.name), (unsigned long long)d->count, (unsigned long long)d->search.found);
		else
			snprintf(stop.text, sizeof stop.text,
				 "the replay took a different path and ended: the kernel reads clocks, or waits for the host");
		d->search = (struct search){ 0 };
		set_silent(d, l, false);
		stop_here(d, &stop, l);
	} else if (!d->restores && (d->stops_at_end || d->go == GO_INSN || d->go == GO_LINE || d->go == GO_OVER || d->go == GO_OUT)) {
		snprintf(stop.text, sizeof stop.text, "%s has ended%s%s", SHOWN_NAME(l->kernel->info.name), fault->kind ? ": " : "",
			 fault->text);
		stop.reason = fault->kind ? "exception" : "step";
		stop_here(d, &stop, l);
	}
	if (!d->restores) {
		d->n_launches--;
		gpul_debug_event(d, "end\tkernel=%s", SHOWN_NAME(l->kernel->info.name));
	}
	pthread_mutex_unlock(&d->lock);
}

static bool wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	struct debug *d = (struct debug *)o;
	const struct func_code **at;

	if (i != code->insns)
		return true;
	pthread_mutex_lock(&d->lock);
	at = gpul_array_push(&d->code);
	if (at)
		*at = code;
	d->unresolved = true;
	pthread_mutex_unlock(&d->lock);
	return true;
}

static void program_ends(struct observer *o, const gpul_exec_program *p)
{
	struct debug *d = (struct debug *)o;
	size_t n = 0;

	pthread_mutex_lock(&d->lock);
	for (size_t k = 0; k < d->code.n; k++)
		if (d->code.at[k]->program != p)
			d->code.at[n++] = d->code.at[k];
	if (n < d->code.n) {
		d->code.n = n;
		gpul_debug_resolve(d);
	}
	pthread_mutex_unlock(&d->lock);
}

void gpul_debug_hooks(struct observer *o)
{
	*o = (struct observer){ .name = "debug",
				.whole_programs = true,
				.serial = true,
				.yields = true,
				.wants = wants,
				.before = before,
				.after = after,
				.barrier_completes = barrier_completes,
				.deadlock = deadlock,
				.block_begins = block_begins,
				.block_ends = block_ends,
				.launch_begins = launch_begins,
				.launch_ends = launch_ends,
				.program_ends = program_ends };
}
