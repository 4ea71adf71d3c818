/* cu_occupancy.c — how many blocks fit on a multiprocessor, computed as for a GPU.  The interpreter keeps the same number of
 * blocks resident, so that a cooperative grid of this size can be launched. */
#include "softcuda/api/code/cu_code_internal.h"

enum { PORTABLE_CLUSTER_BLOCKS = 8, LEAST_SMS = 132 };

static size_t smaller_of(size_t value, size_t limit)
{
	return value < limit ? value : limit;
}

int soft_blocks_per_sm(const struct function *f, int block_threads, size_t dynamic_shared_bytes)
{
	if ((unsigned)block_threads > f->info->max_threads || dynamic_shared_bytes > (size_t)soft_max_dynamic(f))
		return 0;
	return (int)gpul_exec_blocks_per_sm((uint32_t)block_threads, f->info->shared_bytes + (uint32_t)dynamic_shared_bytes);
}

/* Find the function; the lock is held on success.  As with NVIDIA's driver, these calls require a current context; other queries do not. */
static CUresult enter_resident(CUfunction handle, struct function **out)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = soft_find_function(ctx, handle, out);
	if (!r)
		r = soft_prepare((*out)->kernel);
	if (r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, CUfunction handle, int block_threads,
								     size_t dynamic_shared_bytes, unsigned int flags)
{
	struct function *f;
	CUresult r;

	if (!n || block_threads <= 0 || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter_resident(handle, &f);
	if (r)
		return r;
	*n = soft_blocks_per_sm(f, block_threads, dynamic_shared_bytes);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int block_threads, size_t dynamic_shared_bytes)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, block_threads, dynamic_shared_bytes, 0);
}

/* Choose the block size that gives the most resident threads; if two sizes give equally many, the larger one. */
EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block, CUfunction handle, CUoccupancyB2DSize shared_of_block,
							  size_t dynamic_shared_bytes, int block_limit, unsigned int flags)
{
	struct function *f;
	int best = 0, best_blocks = 0;
	CUresult r;

	if (!min_grid || !block || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter_resident(handle, &f);
	if (r)
		return r;
	soft_unlock(); /* release the lock, because shared_of_block is a function of the application, which can call the driver */
	int limit = block_limit > 0 ? block_limit : MAX_BLOCK_THREADS;

	if (limit > (int)f->info->max_threads)
		limit = (int)f->info->max_threads;
	for (int threads = limit; threads > 0; threads = (threads - 1) / WARP_THREADS * WARP_THREADS) {
		size_t shared = shared_of_block ? shared_of_block(threads) : dynamic_shared_bytes;
		int blocks = soft_blocks_per_sm(f, threads, shared);

		if (blocks * threads > best * best_blocks) {
			best = threads;
			best_blocks = blocks;
		}
	}
	*block = best;
	*min_grid = best_blocks * soft.n_processors;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block, CUfunction f, CUoccupancyB2DSize shared_of_block,
						 size_t dynamic_shared_bytes, int block_limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block, f, shared_of_block, dynamic_shared_bytes, block_limit, 0);
}

/* As in cuda_occupancy.h, a block has at most 48 KiB unless CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES was set. */
EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic_bytes, CUfunction handle, int n_blocks, int block_threads)
{
	struct function *f;
	CUresult r;

	if (!dynamic_bytes || n_blocks <= 0 || block_threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter_resident(handle, &f);
	if (r)
		return r;
	size_t used = f->info->shared_bytes + RESERVED_SHARED_BYTES;
	size_t each = SM_SHARED_BYTES / (size_t)n_blocks;

	*dynamic_bytes = each > used ? smaller_of(each - used, (size_t)soft_max_dynamic(f)) : 0;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* ---- clusters -------------------------------------------------------------------------------- */

static uint64_t product(unsigned x, unsigned y, unsigned z)
{
	const unsigned most = UINT16_MAX;

	return x > most || y > most || z > most ? UINT64_MAX : (uint64_t)x * y * z;
}

/* Return the number of blocks in each cluster of a launch; 0: the configuration is invalid. */
static unsigned cluster_blocks(const CUlaunchConfig *config, const struct function *f)
{
	const uint32_t *own = f->info->cluster;
	uint64_t blocks = own[0] ? product(own[0], own[1], own[2]) : 1;

	for (unsigned k = 0; k < config->numAttrs; k++)
		if (config->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			blocks = product(config->attrs[k].value.clusterDim.x, config->attrs[k].value.clusterDim.y,
					 config->attrs[k].value.clusterDim.z);
	return blocks <= GPUL_EXEC_CLUSTER_BLOCKS ? (unsigned)blocks : 0;
}

static CUresult check_config(const CUlaunchConfig *config)
{
	uint64_t threads = config ? product(config->blockDimX, config->blockDimY, config->blockDimZ) : 0;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	if (!threads || threads > MAX_BLOCK_THREADS)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "occupancy: a block of %u x %u x %u threads is not possible; expected 1 to %d threads",
				   config->blockDimX, config->blockDimY, config->blockDimZ, MAX_BLOCK_THREADS);
	return CUDA_SUCCESS;
}

static int blocks_of_config(const struct function *f, const CUlaunchConfig *config)
{
	return soft_blocks_per_sm(f, (int)(config->blockDimX * config->blockDimY * config->blockDimZ), config->sharedMemBytes);
}

/* Only the number of resident blocks is limited (exec/machine/residency.c): the blocks of a cluster may be on any multiprocessors. */
EXPORT CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction handle, const CUlaunchConfig *config)
{
	struct function *f;
	unsigned blocks;
	CUresult r = n ? check_config(config) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = enter_resident(handle, &f);
	if (r)
		return r;
	blocks = cluster_blocks(config, f);
	if (blocks)
		*n = blocks_of_config(f, config) * (soft.n_processors > LEAST_SMS ? soft.n_processors : LEAST_SMS) / (int)blocks;
	soft_unlock();
	return blocks ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *blocks, CUfunction handle, const CUlaunchConfig *config)
{
	struct function *f;
	CUresult r = blocks ? check_config(config) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = enter_resident(handle, &f);
	if (r)
		return r;
	*blocks = !blocks_of_config(f, config) ? 0 : f->non_portable_cluster ? GPUL_EXEC_CLUSTER_BLOCKS : PORTABLE_CLUSTER_BLOCKS;
	soft_unlock();
	return CUDA_SUCCESS;
}
