/* schedule.c — the tool schedule: runs kernels with their memory accesses in another order, or in all possible orders. */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdlib.h>

#include "core/clock.h"

enum { DEFAULT_MAX = 10000 };

/* ---- options ------------------------------------------------------------------------------------------------------ */

static gpul_status parse_how(struct explorer *x, const char *how, gpul_error *err)
{
	unsigned long long seed;
	char *end;

	if (!how || !*how)
		return gpul_fail(err, GPUL_EINVAL, 0, "schedule needs a seed, all, or replay:STRING");
	if (!strcmp(how, "all")) {
		x->all = true;
		return GPUL_OK;
	}
	if (!strncmp(how, "replay:", 7)) {
		if (!gpul_schedule_parse(how + 7, x))
			return gpul_fail(err, GPUL_EINVAL, 0, "schedule: '%.60s' is not a replay string, such as replay:0/12-0.1.0", how);
		return GPUL_OK;
	}
	seed = strtoull(how, &end, 0);
	if (*how == '-' || *end)
		return gpul_fail(err, GPUL_EINVAL, 0, "schedule needs a seed (a number), all, or replay:STRING, not '%.60s'", how);
	x->by_seed = true;
	x->seed = seed;
	return GPUL_OK;
}

/* ---- launches ----------------------------------------------------------------------------------------------------- */

static void capture_print(void *user, const char *text, size_t bytes)
{
	struct explorer *x = user;
	char *grown = realloc(x->now.printed, x->now.n_printed + bytes + 1);

	if (!grown)
		return;
	memcpy(grown + x->now.n_printed, text, bytes);
	x->now.printed = grown;
	x->now.n_printed += bytes;
}

static uint64_t count_lanes_of(const struct gpul_exec_launch *l)
{
	const uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];

	return l->n_blocks * ((threads + LANES - 1) / LANES * LANES);
}

/* Start exploring or replaying a launch. */
static void begin_launch(struct explorer *x, gpul_exec_launch *l)
{
	const uint64_t n_lanes = count_lanes_of(l), number = x->n_launches++;

	if (!x->all && number != x->replayed_launch)
		return;
	if (x->launch || n_lanes > MAX_LANES) {
		gpul_tool_say(SCHEDULE, "kernel %s runs in its usual order: %s", SHOWN_NAME(l->kernel->info.name),
			      x->launch ? "another launch runs at the same time" : "it has more than 2048 threads, in whole warps");
		return;
	}
	x->launch_number = number;
	x->n_lanes = n_lanes;
	x->known = calloc(n_lanes * KNOWN_WORDS, sizeof *x->known);
	if (!x->known)
		return;
	x->launch = l;
	x->phase = PHASE_EXPLORE;
	x->began_ns = gpul_clock_ns();
	x->n_schedules = x->n_redundant = 0;
	x->why_not = NULL;
	x->differs = x->too_long = false;
	if (!x->all)
		return;
	x->print = l->machine->options.print;
	x->print_user = l->machine->options.print_user;
	l->machine->options.print = capture_print;
	l->machine->options.print_user = x;
}

static void launch_begins(struct observer *o, gpul_exec_launch *l)
{
	struct explorer *x = (struct explorer *)o;

	if (x->by_seed)
		x->launch_number = x->n_launches++;
	else if (x->launch != l)
		begin_launch(x, l);
	if (x->launch == l)
		gpul_explore_run_begins(x);
}

static void launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	struct explorer *x = (struct explorer *)o;

	if (x->launch != l)
		return;
	if (x->all && x->phase == PHASE_EXPLORE) {
		gpul_explore_run_ends(x, fault);
		return;
	}
	if (!x->all && x->why_not)
		gpul_tool_say(SCHEDULE, "kernel %s: %s", SHOWN_NAME(l->kernel->info.name), x->why_not);
	gpul_explore_end(x);
}

/* ---- other hooks -------------------------------------------------------------------------------------------------- */

static bool wants(struct observer *o, const struct func_code *code, const struct insn *i)
{
	return ((struct explorer *)o)->by_seed ? gpul_seed_wants(i) : gpul_explore_wants(code, i);
}

static enum observed before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct explorer *x = (struct explorer *)o;

	return x->by_seed ? gpul_seed_before(x, s, i) : gpul_explore_before(x, s, i, on);
}

static void after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	struct explorer *x = (struct explorer *)o;

	if (!x->by_seed)
		gpul_explore_after(x, s, i, on, waits);
}

static void barrier_completes(struct observer *o, struct block *b, unsigned id)
{
	struct explorer *x = (struct explorer *)o;
	uint32_t lanes[GPUL_EXEC_SM_THREADS / LANES];

	if (x->launch != b->launch)
		return;
	for (unsigned k = 0; k < b->n_warps; k++)
		lanes[k] = b->warps[k].arrived[id];
	gpul_known_join(x, b, lanes, b->n_warps);
}

/* Clear memory that has not been written yet, so that it has the same contents in all schedules. */
static void clear_memory(struct block *b)
{
	memset(b->shared, 0, b->shared_bytes);
	for (unsigned k = 0; k < b->n_warps; k++)
		memset(b->warps[k].local, 0, b->warps[k].local_stride * LANES);
}

static void block_begins(struct observer *o, struct block *b)
{
	struct explorer *x = (struct explorer *)o;

	*block_note(b, o) = x->by_seed ? gpul_seed_new_block(x, b) : NULL;
	if (x->launch != b->launch)
		return;
	clear_memory(b);
	x->n_begun++;
	if (x->n_blocks == x->blocks_capacity) {
		const unsigned capacity = x->blocks_capacity ? 2 * x->blocks_capacity : 16;
		struct block **grown = realloc(x->blocks, capacity * sizeof *grown);

		if (!grown)
			return;
		x->blocks = grown;
		x->blocks_capacity = capacity;
	}
	x->blocks[x->n_blocks++] = b;
}

static void block_ends(struct observer *o, struct block *b)
{
	struct explorer *x = (struct explorer *)o;

	free(*block_note(b, o));
	*block_note(b, o) = NULL;
	for (unsigned k = 0; k < x->n_blocks; k++)
		if (x->blocks[k] == b)
			memmove(&x->blocks[k], &x->blocks[k + 1], (--x->n_blocks - k) * sizeof *x->blocks);
}

/* ---- the tool ----------------------------------------------------------------------------------------------------- */

static gpul_status create(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	struct explorer *x = calloc(1, sizeof *x);
	gpul_status st;

	(void)memory;
	if (!x)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the tool schedule");
	x->o = (struct observer){ .name = SCHEDULE,
				  .serial = true,
				  .yields = true,
				  .wants = wants,
				  .whole_programs = true,
				  .before = before,
				  .after = after,
				  .barrier_completes = barrier_completes,
				  .block_begins = block_begins,
				  .block_ends = block_ends,
				  .launch_begins = launch_begins,
				  .launch_ends = launch_ends };
	x->max_schedules = DEFAULT_MAX;
	st = parse_how(x, gpul_tool_option(options, "how"), err);
	x->exhaustive = gpul_tool_option(options, "exhaustive") != NULL;
	st = st ? st : gpul_tool_number(options, SCHEDULE, "max", 1, &x->max_schedules, err);
	if (st) {
		free(x);
		return st;
	}
	*out = &x->o;
	return GPUL_OK;
}

static const char *const keys[] = { "how", "exhaustive", "max", NULL };

const struct tool gpul_schedule_tool = {
	.name = SCHEDULE,
	.summary = "memory accesses in another order: how=SEED, how=all (max=N: at most N orders of each launch; 10000), how=replay:STRING",
	.keys = keys,
	.create = create,
};
