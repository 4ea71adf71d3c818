/* memcheck.c — the tool memcheck: finds accesses outside allocations or after free, reads of unwritten memory, leaks, invalid frees. */
#include "softcuda/tools/memcheck/parts_internal.h"

enum { HEAP_RED_ZONE = 32 };

static void add_range(struct observer *o, const gpul_exec_range *r)
{
	(void)o;
	gpul_records_add(r);
}

static void remove_range(struct observer *o, const gpul_exec_range *r)
{
	(void)o;
	gpul_records_remove(r);
}

static void see_host_move(struct observer *o, const struct host_move *m)
{
	(void)o;
	for (uint64_t z = 0; z < m->n_slices; z++)
		for (uint64_t y = 0; y < m->n_rows; y++)
			gpul_records_written(m->to + z * m->to_slice + y * m->to_pitch,
					     m->from ? m->from + z * m->from_slice + y * m->from_pitch : 0, m->row_bytes);
}

static gpul_status create_memcheck(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	const char *leaks = gpul_tool_option(options, "leaks"), *strict = gpul_tool_option(options, "strict");

	(void)memory;
	if (leaks && strcmp(leaks, "no") != 0 && strcmp(leaks, "yes") != 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "memcheck: leaks must be yes or no, not '%.40s'", leaks);
	if (strict && *strict)
		return gpul_fail(err, GPUL_EINVAL, 0, "memcheck: the option strict takes no value, but has '%.40s'", strict);
	gpul_memcheck.o = (struct observer){
		.name = "memcheck",
		.whole_programs = true,
		.wants = gpul_check_wants,
		.handler = gpul_check_handler,
		.before = gpul_check_before,
		.after = gpul_check_after,
		.block_begins = gpul_check_block_begins,
		.block_ends = gpul_check_block_ends,
		.launch_begins = gpul_tool_launch_begins,
		.launch_ends = gpul_find_launch_ends,
		.program_ends = gpul_find_program_ends,
		.range_added = add_range,
		.range_removed = remove_range,
		.host_moves = see_host_move,
		.heap_red_zone_bytes = HEAP_RED_ZONE,
		.exact_bounds = true,
	};
	gpul_memcheck.leaks = !leaks || !strcmp(leaks, "yes");
	gpul_memcheck.strict = strict;
	*out = &gpul_memcheck.o;
	return GPUL_OK;
}

static void finish_memcheck(struct observer *o)
{
	(void)o;
	if (gpul_reports_leaks())
		gpul_records_report_leaks();
	gpul_find_sum_up();
	gpul_memcheck.has_ended = true;
}

/* Stop without reporting leaks: kernels still run, so the program could not free the memory that they use. */
static void stop_memcheck(struct observer *o)
{
	(void)o;
	gpul_find_sum_up();
}

static const char *const keys[] = { "leaks", "strict", NULL };

const struct tool gpul_memcheck_tool = {
	.name = "memcheck",
	.summary = "invalid accesses, reads of memory that was not written, invalid frees, leaks: leaks=no, strict",
	.keys = keys,
	.create = create_memcheck,
	.finish = finish_memcheck,
	.stop = stop_memcheck,
};
