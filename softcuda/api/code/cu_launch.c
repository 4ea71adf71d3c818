/* cu_launch.c — checks a launch as NVIDIA's driver does, copies its arguments, queues it, and runs it on the interpreter. */
#include "softcuda/api/stream/cu_order_internal.h"
#include "softcuda/api/code/cu_code_internal.h"
#include "softcuda/exec/guard_internal.h"
#include "softcuda/exec/shown_name_internal.h"

#include <stdlib.h>
#include <string.h>

static uint64_t product(const uint32_t n[3])
{
	return (uint64_t)n[0] * n[1] * n[2];
}

static CUresult refuse_empty(const char *name, const uint32_t grid[3], const uint32_t block[3])
{
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: a grid of %ux%ux%u blocks of %ux%ux%u threads: a dimension is 0",
			   SHOWN_NAME(name), grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}

/* Report a grid or block that is too large in one dimension. */
static CUresult refuse_long(const char *name, const char *what, const uint32_t size[3], const uint32_t most[3])
{
	unsigned d = 0;

	while (size[d] <= most[d])
		d++;
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: a %s of %ux%ux%u %s: %c is %u, and can be at most %u", SHOWN_NAME(name), what,
			   size[0], size[1], size[2], *what == 'g' ? "blocks" : "threads", "xyz"[d], size[d], most[d]);
}

static CUresult check_shared(const struct function *f, uint32_t dynamic_bytes)
{
	const uint32_t most = MAX_SHARED_BYTES - f->info->shared_bytes;
	const char *name = f->info->name;

	if (dynamic_bytes <= (uint32_t)soft_max_dynamic(f))
		return CUDA_SUCCESS;
	if (dynamic_bytes > most)
		return soft_refuse(
			CUDA_ERROR_INVALID_VALUE,
			"%s: %u bytes of dynamic shared memory requested; a block can have at most %d bytes, of which this kernel uses %u "
			"for its static variables",
			SHOWN_NAME(name), dynamic_bytes, MAX_SHARED_BYTES, f->info->shared_bytes);
	return soft_refuse(
		CUDA_ERROR_INVALID_VALUE,
		"%s: %u bytes of dynamic shared memory requested; this kernel can have %d in addition to %u static bytes. Raise this "
		"limit (to at most %u) "
		"with cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize), which is "
		"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of the driver",
		SHOWN_NAME(name), dynamic_bytes, soft_max_dynamic(f), f->info->shared_bytes, most);
}

static CUresult check_dimensions(const struct function *f, const uint32_t grid[3], const uint32_t block[3])
{
	const char *name = f->info->name;
	const uint32_t *required = f->info->reqntid;
	uint64_t threads = product(block);

	if (!threads)
		return refuse_empty(name, grid, block);
	if (grid[0] > MAX_GRID_X || grid[1] > MAX_GRID_YZ || grid[2] > MAX_GRID_YZ)
		return refuse_long(name, "grid", grid, (const uint32_t[]){ MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ });
	if (block[0] > MAX_BLOCK_THREADS || block[1] > MAX_BLOCK_THREADS || block[2] > MAX_BLOCK_Z)
		return refuse_long(name, "block", block, (const uint32_t[]){ MAX_BLOCK_THREADS, MAX_BLOCK_THREADS, MAX_BLOCK_Z });
	if (threads > f->info->max_threads)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: a block of %ux%ux%u threads has %llu threads; %s %u", SHOWN_NAME(name),
				   block[0], block[1], block[2], (unsigned long long)threads,
				   f->info->max_threads < MAX_BLOCK_THREADS ? "the kernel's limit (__launch_bounds__ or .maxntid) is"
									    : "a block can have at most",
				   f->info->max_threads);
	if (required[0] && memcmp(required, block, sizeof f->info->reqntid) != 0)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "%s: the block has %ux%ux%u threads, but the kernel's .reqntid requires %ux%ux%u", SHOWN_NAME(name),
				   block[0], block[1], block[2], required[0], required[1], required[2]);
	return CUDA_SUCCESS;
}

static CUresult check_launch(const struct function *f, const gpul_exec_launch_config *c)
{
	CUresult r = check_dimensions(f, c->grid, c->block);

	if (r)
		return r;
	r = check_shared(f, c->dynamic_shared_bytes);
	if (r || !c->cooperative)
		return r;
	uint64_t resident = (uint64_t)soft.n_processors * (uint64_t)soft_blocks_per_sm(f, (int)product(c->block), c->dynamic_shared_bytes);

	if (product(c->grid) > resident)
		return soft_refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
				   "%s: a cooperative launch needs %llu blocks, but only %llu can be resident at the same time",
				   SHOWN_NAME(f->info->name), (unsigned long long)product(c->grid), (unsigned long long)resident);
	return CUDA_SUCCESS;
}

struct argument_buffer {
	const void *at;
	size_t bytes;
};

/* Parse `extra`, a list of keys and values that ends with CU_LAUNCH_PARAM_END. */
static CUresult find_argument_buffer(void **extra, struct argument_buffer *out)
{
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			out->at = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			memcpy(&out->bytes, extra[1], sizeof out->bytes);
		else
			return soft_refuse(CUDA_ERROR_INVALID_VALUE,
					   "cuLaunchKernel: a key in `extra` is unknown, or the pointer to the size is NULL");
	}
	return CUDA_SUCCESS;
}

/* Check the arguments as NVIDIA's driver does: a buffer that is shorter than the parameters is accepted. */
static CUresult check_arguments(const gpul_exec_kernel_info *info, bool has_params, const struct argument_buffer *b, bool of_node)
{
	if (has_params && (b->at || b->bytes))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: the arguments are passed twice, by kernelParams and by extra",
				   SHOWN_NAME(info->name));
	if (!b->at && b->bytes)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: `extra` has the size of the argument buffer, but not its address",
				   SHOWN_NAME(info->name));
	if (info->n_params && !has_params && !b->bytes)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: the launch has no arguments; the kernel has %u parameters (%u bytes)",
				   SHOWN_NAME(info->name), info->n_params, info->param_bytes);
	if (b->bytes > info->param_bytes)
		return soft_refuse(of_node ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
				   "%s: the argument buffer has %zu bytes; the kernel's parameters have only %u", SHOWN_NAME(info->name),
				   b->bytes, info->param_bytes);
	return CUDA_SUCCESS;
}

/* The arguments of a launch.  They are read under a guard that catches SIGSEGV, because a wrong pointer must not end the process. */
struct arguments {
	const gpul_exec_kernel_info *info;
	void **params, **extra;
	struct argument_buffer buffer;
	char *copy;
	CUresult result;
};

static void read_extra(void *arguments)
{
	struct arguments *a = arguments;

	a->result = find_argument_buffer(a->extra, &a->buffer);
}

static void read_arguments(void *arguments)
{
	struct arguments *a = arguments;
	const gpul_exec_kernel_info *info = a->info;

	for (uint32_t i = 0; a->params && i < info->n_params; i++) {
		if (!a->params[i]) {
			a->result = soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: argument %u is NULL", SHOWN_NAME(info->name), i);
			return;
		}
		memcpy(a->copy + info->params[i].offset, a->params[i], info->params[i].bytes);
	}
	if (a->buffer.bytes)
		memcpy(a->copy, a->buffer.at, a->buffer.bytes);
}

static CUresult read_guarded(struct arguments *a, void (*read)(void *arguments))
{
	uint64_t address;

	if (gpul_guarded(NULL, read, a, &address))
		return a->result;
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: the arguments of the launch cannot be read: no memory is at 0x%llx",
			   SHOWN_NAME(a->info->name), (unsigned long long)address);
}

/* Copy the launch's arguments to *out, which the caller frees.  Arguments past the end of a buffer are 0. */
static CUresult copy_arguments(const struct function *f, void **params, void **extra, bool of_node, void **out)
{
	struct arguments a = { .info = f->info, .params = params, .extra = extra };
	CUresult r = CUDA_SUCCESS;

	gpul_guard_refresh();
	if (extra)
		r = read_guarded(&a, read_extra);
	if (!r)
		r = check_arguments(f->info, params != NULL, &a.buffer, of_node);
	if (r)
		return r;
	a.copy = calloc(1, f->info->param_bytes + 1);
	if (!a.copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = read_guarded(&a, read_arguments);
	if (r)
		free(a.copy);
	else
		*out = a.copy;
	return r;
}

/* ---- the operation ---------------------------------------------------------------------- */

static CUresult fault_result(gpul_exec_fault_kind kind)
{
	switch (kind) {
	case GPUL_EXEC_OK:
		return CUDA_SUCCESS;
	case GPUL_EXEC_ILLEGAL_ADDRESS:
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	case GPUL_EXEC_MISALIGNED:
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	case GPUL_EXEC_ILLEGAL_INSTRUCTION:
		return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case GPUL_EXEC_ASSERT:
		return CUDA_ERROR_ASSERT;
	case GPUL_EXEC_NO_MEMORY:
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	case GPUL_EXEC_TRAP:
	case GPUL_EXEC_STACK:
	case GPUL_EXEC_ABORTED:
		break;
	}
	return CUDA_ERROR_LAUNCH_FAILED;
}

/* End the operation.  A worker of the interpreter calls this function when the kernel has ended. */
static void launch_done(void *user, const gpul_exec_fault *fault)
{
	struct op *op = user;
	CUresult r = fault_result(fault->kind);

	soft_lock();
	if (r && !op->ctx->fault)
		soft_report_kernel_fault(fault);
	soft_op_finish(op, r);
	soft_unlock();
}

static CUresult have_machine(void)
{
	gpul_exec_machine_options options = { .heap_bytes = soft.heap_bytes,
					      .pending_launches = soft.pending_launches,
					      .attribute = soft.device_attribute };
	gpul_error err = { 0 };

	if (soft.machine || gpul_exec_machine_create(soft.memory, &options, &soft.machine, &err) == GPUL_OK)
		return CUDA_SUCCESS;
	return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s", err.text);
}

/* Start the kernel; launch_done() ends the operation. */
static void run_launch(struct op *op)
{
	struct launch_op *l = CONTAINER(op, struct launch_op, op);
	gpul_error err = { 0 };
	gpul_exec_launch *running = NULL;
	gpul_status st = GPUL_ENOMEM;
	CUresult r = have_machine();

	op->refs++; /* keeps op alive: launch_done() may run before gpul_exec_launch_start() returns */
	l->config.done = launch_done;
	l->config.done_user = op;
	l->config.grid_id = op->ctx->next_grid_id++;
	l->config.order = op->order ? &op->order->place : NULL;
	soft_unlock();
	if (!r)
		st = gpul_exec_launch_start(soft.machine, &l->config, &running, &err);
	soft_lock();
	l->running = running;
	/* The context may have failed while the lock was released.  If op has ended, op->ctx may have been freed: do not read it. */
	if (!st && !op->ended && op->ctx->fault)
		gpul_exec_launch_abort(running);
	if (st) {
		r = st == GPUL_EINVAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
		soft_refuse(r, "%s", err.text);
		if (op->deferred) /* the call that queued op has already returned CUDA_SUCCESS */
			soft_context_fail(op->ctx, r);
		soft_op_end(op, r);
	}
	soft_op_release(op);
}

static void stop_launch(struct op *op)
{
	struct launch_op *l = CONTAINER(op, struct launch_op, op);

	if (l->running)
		gpul_exec_launch_abort(l->running);
}

static void release_launch(struct op *op)
{
	struct launch_op *l = CONTAINER(op, struct launch_op, op);

	gpul_exec_launch_release(l->running);
	free(l->params);
	if (l->code)
		soft_code_unref(l->code);
}

static bool copy_launch(struct op *op)
{
	struct launch_op *l = CONTAINER(op, struct launch_op, op);
	size_t bytes = gpul_exec_kernel_info_of(l->config.kernel)->param_bytes + 1;
	void *params = malloc(bytes);

	if (!params)
		return false;
	memcpy(params, l->params, bytes);
	l->params = params;
	l->config.params = params;
	l->code->refs++;
	return true;
}

const struct op_kind soft_launch_kind = {
	.run = run_launch,
	.stop = stop_launch,
	.release = release_launch,
	.copy = copy_launch,
	.is_node = true,
	.node_type = CU_GRAPH_NODE_TYPE_KERNEL,
	.bytes = sizeof(struct launch_op),
};

CUresult soft_launch_check(const struct op *op)
{
	const struct launch_op *l = CONTAINER(op, struct launch_op, op);

	if (op->kind != &soft_launch_kind || product(l->config.grid))
		return CUDA_SUCCESS;
	return refuse_empty(gpul_exec_kernel_info_of(l->config.kernel)->name, l->config.grid, l->config.block);
}

/* ---- the calls -------------------------------------------------------------------------- */

CUresult soft_launch_new(struct context *ctx, struct stream *s, CUfunction handle, const gpul_exec_launch_config *c, void **params,
			 void **extra, struct op **out)
{
	struct function *f;
	struct launch_op *l;
	struct op *op;
	CUresult r = soft_find_function(ctx, handle, &f);

	if (!r && s && f->module->ctx != ctx)
		r = soft_refuse(CUDA_ERROR_INVALID_HANDLE, "%s: its module and the stream belong to different contexts",
				SHOWN_NAME(f->info->name));
	if (!r)
		r = soft_check_kernel(f->kernel);
	if (!r && s && !product(c->grid)) /* for a graph node, cuGraphLaunch() checks the grid, which can still be changed */
		r = refuse_empty(f->info->name, c->grid, c->block);
	if (!r)
		r = check_launch(f, c);
	if (r)
		return r;
	op = soft_op_new(s, &soft_launch_kind);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	l = CONTAINER(op, struct launch_op, op);
	r = copy_arguments(f, params, extra, !s, &l->params);
	if (r) {
		soft_op_release(op);
		return r;
	}
	l->config = *c;
	l->config.kernel = f->kernel;
	l->config.device = (unsigned)f->module->ctx->device->ordinal; /* the nodes of one graph may run on different devices */
	l->config.params = l->params;
	l->handle = handle;
	l->code = f->module->code;
	l->code->refs++;
	*out = op;
	return CUDA_SUCCESS;
}

static CUresult queue_launch(CUfunction handle, gpul_exec_launch_config *c, CUstream stream, void **params, void **extra)
{
	struct context *ctx;
	struct stream *s;
	struct op *op;
	CUresult r = soft_enter_stream_not_in_callback(stream, &ctx, &s);

	if (r)
		return r;
	r = soft_launch_new(ctx, s, handle, c, params, extra, &op);
	if (!r) {
		r = soft_capture_or_submit(op);
		if (!r && !op->deferred && op->ended && !CONTAINER(op, struct launch_op, op)->running)
			r = op->result; /* the kernel could not be started */
		soft_op_release(op);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
			       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,
			       void **extra)
{
	gpul_exec_launch_config c = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared_bytes = shared_bytes,
	};

	return queue_launch(f, &c, stream, params, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
					  unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
					  void **params)
{
	gpul_exec_launch_config c = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared_bytes = shared_bytes,
		.cooperative = true,
	};

	return queue_launch(f, &c, stream, params, NULL);
}

static CUresult set_cluster(unsigned x, unsigned y, unsigned z, gpul_exec_launch_config *c)
{
	const uint64_t blocks = (uint64_t)x * y * z;

	if (!blocks || blocks > GPUL_EXEC_CLUSTER_BLOCKS)
		return soft_refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE, "the cluster has %ux%ux%u blocks; expected 1 to %d blocks", x, y, z,
				   GPUL_EXEC_CLUSTER_BLOCKS);
	c->cluster[0] = x;
	c->cluster[1] = y;
	c->cluster[2] = z;
	return CUDA_SUCCESS;
}

/* Apply a launch attribute.  Hints about caches, scheduling and overlap are ignored; other unsupported attributes are refused. */
static CUresult apply_attribute(const CUlaunchAttribute *a, gpul_exec_launch_config *c)
{
	switch ((int)a->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		c->cooperative = a->value.cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return set_cluster(a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z, c);
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case 14: /* preferred shared memory carveout, since CUDA 12.5 */
		return CUDA_SUCCESS;
	default:
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "launch attribute %d is not supported", (int)a->id);
	}
}

static CUresult launch_ex(const CUlaunchConfig *config, CUstream default_stream, CUfunction f, void **params, void **extra)
{
	CUresult r = CUDA_SUCCESS;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	gpul_exec_launch_config c = {
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.dynamic_shared_bytes = config->sharedMemBytes,
	};

	for (unsigned i = 0; !r && i < config->numAttrs; i++)
		r = apply_attribute(&config->attrs[i], &c);
	return r ? r : queue_launch(f, &c, config->hStream ? config->hStream : default_stream, params, extra);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	return launch_ex(config, CU_STREAM_LEGACY, f, params, extra);
}

/* Written by hand, because scripts/per_thread.py cannot generate it: the stream is a member of *config. */
EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	return launch_ex(config, CU_STREAM_PER_THREAD, f, params, extra);
}
