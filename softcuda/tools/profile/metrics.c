/* metrics.c — computes a kernel's metrics, named as in Nsight Compute.
 *
 * Source: Nsight Compute, Kernel Profiling Guide, "Metrics Reference" and "Metrics Decoder". */
#include "softcuda/tools/profile/profile_internal.h"

struct list {
	struct metric *out;
	unsigned n;
};

static void add(struct list *to, const char *name, double value, bool whole)
{
	if (to->n < MAX_METRICS)
		to->out[to->n++] = (struct metric){ name, value, whole };
}

static void add_count(struct list *to, const char *name, uint64_t value)
{
	add(to, name, (double)value, true);
}

static void add_instructions(struct list *to, const struct row_count *c)
{
	const uint64_t uniform = c->branches - c->diverged;

	add_count(to, "smsp__inst_executed.sum", c->warps);
	add_count(to, "smsp__thread_inst_executed.sum", c->threads);
	add_count(to, "smsp__thread_inst_executed_pred_on.sum", c->guarded);
	add(to, "smsp__thread_inst_executed_per_inst_executed.ratio", gpul_ratio(c->threads, c->warps), false);
	add(to, "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", gpul_ratio(c->guarded, c->warps), false);
	add_count(to, "smsp__sass_branch_targets.sum", c->branches);
	add_count(to, "smsp__sass_branch_targets_threads_divergent.sum", c->diverged);
	add_count(to, "smsp__sass_branch_targets_threads_uniform.sum", uniform);
	add(to, "smsp__sass_average_branch_targets_threads_uniform.pct", 100 * gpul_ratio(uniform, c->branches), false);
}

/* metric names of the requests, sectors and sectors per request of each kind of access to global or local memory */
static const struct {
	enum space space;
	enum access_by by;
	const char *requests, *sectors, *ratio;
} sector_names[] = {
#define X(space, by, name) \
	{ space, by, "l1tex__t_requests_pipe_lsu_mem_" name ".sum", "l1tex__t_sectors_pipe_lsu_mem_" name ".sum", \
	  "l1tex__average_t_sectors_per_request_pipe_lsu_mem_" name ".ratio" },
	X(GLOBAL_MEMORY, BY_LOAD, "global_op_ld") X(GLOBAL_MEMORY, BY_STORE, "global_op_st") X(GLOBAL_MEMORY, BY_ATOMIC, "global_op_atom")
		X(GLOBAL_MEMORY, BY_REDUCTION, "global_op_red") X(LOCAL_MEMORY, BY_LOAD, "local_op_ld")
			X(LOCAL_MEMORY, BY_STORE, "local_op_st") X(GLOBAL_MEMORY, BY_COPY, "global_op_ldgsts")
#undef X
};
static const struct {
	enum access_by by;
	const char *wavefronts, *conflicts;
} bank_names[] = {
	{ BY_LOAD, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum" },
	{ BY_STORE, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum" },
	{ BY_ATOMIC, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
	  "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum" },
	{ BY_COPY, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
	  "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum" },
};

static void add_memory(struct list *to, const struct kernel_result *k)
{
	const struct space_count *all = k->sum.memory.space;

	for (size_t n = 0; n < sizeof sector_names / sizeof *sector_names; n++) {
		const struct space_count *c = &k->by[sector_names[n].by].space[sector_names[n].space];

		add_count(to, sector_names[n].requests, c->requests);
		add_count(to, sector_names[n].sectors, c->actual);
		add(to, sector_names[n].ratio, gpul_ratio(c->actual, c->requests), false);
	}
	add_count(to, "memory_l2_theoretical_sectors_global", all[GLOBAL_MEMORY].actual);
	add_count(to, "memory_l2_theoretical_sectors_global_ideal", all[GLOBAL_MEMORY].ideal);
	add_count(to, "memory_l2_theoretical_sectors_local", all[LOCAL_MEMORY].actual);
	for (size_t n = 0; n < sizeof bank_names / sizeof *bank_names; n++) {
		struct space_count c = k->by[bank_names[n].by].space[SHARED_MEMORY];

		if (bank_names[n].by == BY_ATOMIC) { /* in this report, red on shared memory counts as an atomic operation */
			c.actual += k->by[BY_REDUCTION].space[SHARED_MEMORY].actual;
			c.ideal += k->by[BY_REDUCTION].space[SHARED_MEMORY].ideal;
		}
		add_count(to, bank_names[n].wavefronts, c.actual);
		add_count(to, bank_names[n].conflicts, c.actual - c.ideal);
	}
	add_count(to, "memory_l1_wavefronts_shared", all[SHARED_MEMORY].actual);
	add_count(to, "memory_l1_wavefronts_shared_ideal", all[SHARED_MEMORY].ideal);
}

static void add_launch(struct list *to, const struct kernel_result *k)
{
	const struct launch_shape *s = k->kernel->shapes;
	const struct occupancy *o = &k->occupancy;

	add_count(to, "launch__grid_size", (uint64_t)s->grid[0] * s->grid[1] * s->grid[2]);
	add_count(to, "launch__block_size", (uint64_t)s->block[0] * s->block[1] * s->block[2]);
	add_count(to, "launch__registers_per_thread", k->registers);
	add_count(to, "launch__occupancy_limit_warps", o->by_warps);
	add_count(to, "launch__occupancy_limit_registers", o->by_registers);
	add_count(to, "launch__occupancy_limit_shared_mem", o->by_shared);
	add_count(to, "launch__occupancy_limit_blocks", o->by_blocks);
	add_count(to, "sm__maximum_warps_avg_per_active_cycle", o->warps);
	add(to, "sm__maximum_warps_per_active_cycle_pct", o->percent, false);
}

unsigned gpul_profile_metrics(const struct kernel_result *k, struct metric out[MAX_METRICS])
{
	struct list to = { .out = out };

	add_instructions(&to, &k->sum);
	add_memory(&to, k);
	add_launch(&to, k);
	return to.n;
}
