/* launch_start.c — checks a launch's configuration and starts it; aborts a launch. */
#include <stdlib.h>

#include "softcuda/exec/guard_internal.h"
#include "softcuda/exec/native/native_internal.h"
#include "softcuda/exec/shown_name_internal.h"
#include "softcuda/exec/warp/warp_internal.h"

enum { MAX_THREADS = 1024, MAX_SHARED = 227 * 1024, WORKSPACE_BYTES = 64 };

static gpul_status check_launch_shape(const gpul_exec_machine *m, const gpul_exec_launch_config *c, gpul_error *err)
{
	const gpul_exec_kernel_info *info = &c->kernel->info;
	uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2], shared, blocks;
	unsigned resident;

	for (int d = 0; d < 3; d++)
		if (!c->grid[d] || !c->block[d])
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "launch of %s: grid %u,%u,%u and block %u,%u,%u: no "
					 "dimension may be 0",
					 SHOWN_NAME(info->name), c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2]);
	if (c->block[0] > MAX_THREADS || c->block[1] > MAX_THREADS || c->block[2] > 64 || threads > info->max_threads)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "launch of %s: a block of %ux%ux%u = %llu threads; at most %u "
				 "(and 64 in z) are possible",
				 SHOWN_NAME(info->name), c->block[0], c->block[1], c->block[2], (unsigned long long)threads,
				 info->max_threads);
	for (int d = 0; d < 3; d++)
		if (info->reqntid[0] && c->block[d] != (info->reqntid[d] ? info->reqntid[d] : 1))
			return gpul_fail(err, GPUL_EINVAL, 0, "launch of %s: block %u,%u,%u, but .reqntid requires %u,%u,%u",
					 SHOWN_NAME(info->name), c->block[0], c->block[1], c->block[2], info->reqntid[0], info->reqntid[1],
					 info->reqntid[2]);
	if (c->grid[0] > INT32_MAX || c->grid[1] > 65535 || c->grid[2] > 65535)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "launch of %s: a grid of %ux%ux%u blocks; at most "
				 "2147483647x65535x65535 are possible",
				 SHOWN_NAME(info->name), c->grid[0], c->grid[1], c->grid[2]);
	shared = (uint64_t)info->shared_bytes + c->dynamic_shared_bytes;
	if (shared > MAX_SHARED)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "launch of %s: %u static and %u dynamic bytes of shared "
				 "memory; at most %u are possible",
				 SHOWN_NAME(info->name), info->shared_bytes, c->dynamic_shared_bytes, MAX_SHARED);
	blocks = (uint64_t)c->grid[0] * c->grid[1] * c->grid[2];
	resident = gpul_exec_max_resident_blocks(m, (uint32_t)threads, (uint32_t)shared);
	if (c->cooperative && blocks > resident)
		return gpul_fail(err, GPUL_EINVAL, 0, "cooperative launch of %s: %llu blocks, but only %u can be resident at the same time",
				 SHOWN_NAME(info->name), (unsigned long long)blocks, resident);
	return GPUL_OK;
}

static gpul_status check_cluster(const gpul_exec_launch_config *c, gpul_error *err)
{
	const gpul_exec_kernel_info *info = &c->kernel->info;
	uint64_t blocks = 1;

	for (int d = 0; d < 3; d++) {
		const uint32_t n = c->cluster[d] ? c->cluster[d] : info->cluster[d] ? info->cluster[d] : 1;

		blocks *= n;
		if (c->cluster[d] && info->cluster[d] && n != info->cluster[d])
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "launch of %s: clusters of %u,%u,%u blocks, but .reqnctapercluster requires %u,%u,%u",
					 SHOWN_NAME(info->name), c->cluster[0], c->cluster[1], c->cluster[2], info->cluster[0],
					 info->cluster[1], info->cluster[2]);
		if (c->grid[d] % n)
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "launch of %s: a grid of %u blocks is not a multiple of %u, the size of a cluster",
					 SHOWN_NAME(info->name), c->grid[d], n);
	}
	return blocks <= GPUL_EXEC_CLUSTER_BLOCKS
		       ? GPUL_OK
		       : gpul_fail(err, GPUL_EINVAL, 0, "launch of %s: a cluster of %llu blocks; at most %d are possible",
				   SHOWN_NAME(info->name), (unsigned long long)blocks, GPUL_EXEC_CLUSTER_BLOCKS);
}

/* Allocate the memory that grid.sync() uses for its barrier.  The code that nvcc generates for grid.sync() reads the upper half of
 * the barrier's address from %envreg1, and the lower half from %envreg2. */
static gpul_status create_workspace(gpul_exec_launch *l, gpul_error *err)
{
	gpul_exec_range range = { .bytes = WORKSPACE_BYTES, .label = "grid workspace" };

	l->workspace = aligned_alloc(64, WORKSPACE_BYTES);
	if (!l->workspace)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a cooperative launch");
	memset(l->workspace, 0, WORKSPACE_BYTES);
	range.base = (uintptr_t)l->workspace;
	return gpul_exec_memory_add(l->machine->memory, &range, err);
}

gpul_status gpul_launch_check(const gpul_exec_machine *m, const gpul_exec_launch_config *config, gpul_error *err)
{
	const char *refusal = gpul_exec_kernel_refusal(config->kernel);
	gpul_status st = refusal ? gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s", refusal) : check_launch_shape(m, config, err);

	return st ? st : check_cluster(config, err);
}

static uint64_t count_warps(const gpul_exec_launch_config *c)
{
	const uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2], blocks = (uint64_t)c->grid[0] * c->grid[1] * c->grid[2];

	return blocks * ((threads + LANES - 1) / LANES);
}

gpul_status gpul_exec_launch_start(gpul_exec_machine *m, const gpul_exec_launch_config *config, gpul_exec_launch **out, gpul_error *err)
{
	gpul_status st = gpul_launch_check(m, config, err);
	gpul_exec_launch *l;

	if (st)
		return st;
	gpul_guard_refresh();
	gpul_native_prepare(config->kernel->code, count_warps(config));
	l = gpul_launch_create(m, config);
	if (!l)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a launch of %s", SHOWN_NAME(config->kernel->info.name));
	if (config->cooperative)
		st = create_workspace(l, err);
	if (!st) {
		EACH_OBSERVER(o, m, launch_begins)
		o->launch_begins(o, l);
		st = gpul_machine_list(m, l, err);
	}
	if (st) {
		gpul_launch_destroy(l);
		return st;
	}
	*out = l;
	return GPUL_OK;
}

void gpul_exec_launch_abort(gpul_exec_launch *l)
{
	gpul_exec_fault fault = { .kind = GPUL_EXEC_ABORTED, .text = "the launch was aborted" };

	gpul_launch_fault(l, &fault);
	gpul_machine_stop(l->machine);
}
