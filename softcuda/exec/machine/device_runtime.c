/* device_runtime.c — the CUDA runtime that kernels call: launches, streams, events, errors, memory, attributes.
 *
 *     child<<<2, 32>>>(p)    params = __cudaCDP2GetParameterBufferV2(child, grid, block, shared bytes)
 *      in a kernel           *(T **)params = p
 *                            __cudaCDP2LaunchDeviceV2(params, stream)
 *
 * nvcc generates calls of these functions, which the driver must define. PTX of CUDA 11 calls them without the prefix __cudaCDP2.
 *
 * Source: CUDA C++ Programming Guide, CUDA Dynamic Parallelism; the declarations of cuda_device_runtime_api.h and in nvcc's PTX. */
#include <stddef.h>
#include <stdlib.h>

#include "softcuda/exec/machine/nest_internal.h"
#include "softcuda/exec/warp/device_calls_internal.h"

/* Handles of the streams that every kernel has: the default streams, cudaStreamTailLaunch and cudaStreamFireAndForget. */
enum { STREAM_DEFAULT, STREAM_LEGACY, STREAM_PER_THREAD, STREAM_TAIL, STREAM_FIRE_AND_FORGET };
enum { STREAM_NON_BLOCKING = 1 };

/* A call of a function of the device runtime by one lane. */
struct device_call {
	struct warp_state *s;
	const struct insn *i;
	unsigned lane;
	struct nest *nest;
	struct nesting *nesting;
	struct block_nest *own;
	uint64_t result;         /* result of calls that return a value instead of an error code */
	const struct insn *stop; /* if not NULL, a fault was recorded, and the handler of the call must return `stop` */
};

static uint64_t argument(const struct device_call *c, uint32_t n)
{
	return gpul_builtin_argument(c->s, c->i->object, n, c->lane);
}

static uint16_t *last_error(const struct device_call *c)
{
	return &c->own->last_error[c->s->index * LANES + c->lane];
}

static gpul_exec_machine *machine_of(const struct device_call *c)
{
	return c->s->block->launch->machine;
}

/* Write the result of a call to the address that the kernel has passed as an argument. */
static int write_bytes(struct device_call *c, uint64_t at, const void *value, unsigned bytes, unsigned align)
{
	if (at & (align - 1) || !gpul_lane_may_write(c->s, c->lane, at, bytes))
		c->stop = gpul_fault_text(c->s, c->i, at & (align - 1) ? GPUL_EXEC_MISALIGNED : GPUL_EXEC_ILLEGAL_ADDRESS, c->lane,
					  "the result of a call of the device runtime cannot be written to 0x%llx", (unsigned long long)at);
	else
		memcpy((void *)(uintptr_t)at, value, bytes);
	return DEVICE_OK;
}

static int write_result(struct device_call *c, uint64_t at, const void *value, unsigned bytes)
{
	return write_bytes(c, at, value, bytes, bytes);
}

/* ---- launches ------------------------------------------------------------------------------------ */

/* Find and prepare the kernel that a function pointer refers to.  Returns NULL if it is not a kernel of this program. */
static const gpul_exec_kernel *kernel_at(const struct gpul_exec_program *p, uint64_t address)
{
	for (uint32_t k = 0; k < p->n_kernels; k++)
		if ((uintptr_t)p->kernels[k].code == address)
			return gpul_exec_kernel_prepare(&p->kernels[k], NULL) ? NULL : &p->kernels[k];
	return NULL;
}

/* Read the arguments of a launch: the kernel is argument 0; grid, block and shared memory size start at argument `first`. */
static int read_configuration(const struct device_call *c, uint32_t first, gpul_exec_launch_config *to)
{
	const struct call_site *site = c->i->object;

	to->kernel = kernel_at(c->s->frame->code->program, argument(c, 0));
	gpul_builtin_bytes(c->s, site, first, c->lane, to->grid, sizeof to->grid);
	gpul_builtin_bytes(c->s, site, first + 1, c->lane, to->block, sizeof to->block);
	to->dynamic_shared_bytes = (uint32_t)argument(c, first + 2);
	to->device = c->s->block->launch->device;
	return to->kernel ? DEVICE_OK : DEVICE_INVALID_FUNCTION;
}

static int take_buffer(struct device_call *c, const gpul_exec_launch_config *config, uint64_t params_bytes)
{
	if (params_bytes > PARAMS_BYTES) {
		c->stop = gpul_fault_text(c->s, c->i, GPUL_EXEC_TRAP, c->lane,
					  "a launch by a kernel has %llu bytes of parameters, but at most %d are supported",
					  (unsigned long long)params_bytes, PARAMS_BYTES);
		return DEVICE_OK;
	}
	c->result = (uintptr_t)gpul_nesting_take_slot(c->nesting, machine_of(c)->memory, config);
	return c->result ? DEVICE_OK : DEVICE_OUT_OF_RESOURCES;
}

static int get_parameter_buffer_v2(struct device_call *c)
{
	gpul_exec_launch_config config = { 0 };
	int e = read_configuration(c, 1, &config);

	return e ? e : take_buffer(c, &config, config.kernel->info.param_bytes);
}

static int get_parameter_buffer(struct device_call *c)
{
	const gpul_exec_launch_config none = { 0 };

	return take_buffer(c, &none, argument(c, 1));
}

/* Find the stream of a handle, and return a device_error.  *out is NULL for cudaStreamFireAndForget, which is not a stream. */
static int find_stream(struct device_call *c, uint64_t handle, struct nested_stream **out)
{
	struct nested_stream **own = &c->own->stream;

	*out = NULL;
	if (handle == STREAM_FIRE_AND_FORGET)
		return DEVICE_OK;
	if (handle > STREAM_FIRE_AND_FORGET) {
		*out = gpul_nest_stream_find(c->nest, handle);
		return *out ? DEVICE_OK : DEVICE_INVALID_HANDLE;
	}
	if (handle == STREAM_TAIL)
		*out = gpul_nest_tail(c->nest);
	else
		*out = *own = *own ? *own : gpul_nest_stream_new(c->nest);
	return *out ? DEVICE_OK : DEVICE_NO_MEMORY;
}

/* Queue a launch.  Its parameter buffer, a slot of struct nesting, is freed if the launch cannot be queued. */
static int queue_launch(struct device_call *c, const gpul_exec_launch_config *config, uint64_t stream_handle)
{
	struct nested_op *op = calloc(1, sizeof *op);
	struct nested_stream *stream = NULL;
	gpul_error err = { 0 };
	gpul_status st = op ? gpul_launch_check(machine_of(c), config, &err) : GPUL_ENOMEM;
	int e = st == GPUL_EINVAL ? DEVICE_INVALID_CONFIGURATION : st == GPUL_ENOMEM ? DEVICE_NO_MEMORY : DEVICE_OK;

	if (st == GPUL_EUNSUPPORTED)
		c->stop = gpul_fault_text(c->s, c->i, GPUL_EXEC_TRAP, c->lane, "a kernel launched a kernel that cannot run: %s", err.text);
	if (!e && c->s->block->launch->depth >= MAX_NEST_DEPTH && config->kernel->code->program != c->nesting->copies)
		e = DEVICE_MAX_DEPTH;
	if (!e)
		e = find_stream(c, stream_handle, &stream);
	if (!e && !c->stop) {
		op->config = *config;
		return gpul_nest_submit(c->nest, stream, op);
	}
	free(op);
	pthread_mutex_lock(&c->nesting->lock);
	gpul_nesting_free_slot(c->nesting, config->params);
	pthread_mutex_unlock(&c->nesting->lock);
	return e;
}

static int launch_device_v2(struct device_call *c)
{
	gpul_exec_launch_config config;

	if (!gpul_nesting_claim_slot(c->nesting, argument(c, 0), &config) || !config.kernel)
		return DEVICE_INVALID_VALUE;
	return queue_launch(c, &config, argument(c, 1));
}

static int launch_device(struct device_call *c)
{
	gpul_exec_launch_config config;
	const void *params;

	if (!gpul_nesting_claim_slot(c->nesting, argument(c, 1), &config))
		return DEVICE_INVALID_VALUE;
	params = config.params;
	config = (gpul_exec_launch_config){ .params = params };
	if (!read_configuration(c, 2, &config))
		return queue_launch(c, &config, argument(c, 5));
	pthread_mutex_lock(&c->nesting->lock);
	gpul_nesting_free_slot(c->nesting, params);
	pthread_mutex_unlock(&c->nesting->lock);
	return DEVICE_INVALID_FUNCTION;
}

/* ---- streams and events ---------------------------------------------------------------------------- */

static int stream_create(struct device_call *c)
{
	const uint64_t flags = argument(c, 1);
	struct nested_stream *s;

	if (flags != STREAM_NON_BLOCKING)
		return DEVICE_INVALID_VALUE;
	s = gpul_nest_stream_new(c->nest);
	return s ? write_result(c, argument(c, 0), &s, sizeof s) : DEVICE_NO_MEMORY;
}

static int stream_destroy(struct device_call *c)
{
	const uint64_t handle = argument(c, 0);

	return handle > STREAM_FIRE_AND_FORGET && gpul_nest_stream_close(c->nest, handle) ? DEVICE_OK : DEVICE_INVALID_HANDLE;
}

static int event_create(struct device_call *c)
{
	enum { DISABLE_TIMING = 2 };
	struct nested_event *e;

	if (argument(c, 1) != DISABLE_TIMING)
		return DEVICE_INVALID_VALUE;
	e = gpul_nest_event_new(c->nest);
	return e ? write_result(c, argument(c, 0), &e, sizeof e) : DEVICE_NO_MEMORY;
}

static int queue_event(struct device_call *c, enum nested_kind kind, uint64_t event_handle, uint64_t stream_handle)
{
	struct nested_event *event = gpul_nest_event_find(c->nest, event_handle);
	struct nested_stream *stream;
	struct nested_op *op;
	int e;

	if (!event || stream_handle == STREAM_FIRE_AND_FORGET || stream_handle == STREAM_TAIL)
		return DEVICE_INVALID_HANDLE;
	if ((e = find_stream(c, stream_handle, &stream)))
		return e;
	op = calloc(1, sizeof *op);
	if (!op)
		return DEVICE_NO_MEMORY;
	op->kind = kind;
	op->event = event;
	return gpul_nest_submit(c->nest, stream, op);
}

static int event_record(struct device_call *c)
{
	return queue_event(c, NESTED_RECORD, argument(c, 0), argument(c, 1));
}

static int stream_wait_event(struct device_call *c)
{
	return queue_event(c, NESTED_WAIT, argument(c, 1), argument(c, 0));
}

/* cudaEventDestroy only checks the handle.  The event is freed at the end of the launch, because streams may still wait for it. */
static int event_destroy(struct device_call *c)
{
	return gpul_nest_event_find(c->nest, argument(c, 0)) ? DEVICE_OK : DEVICE_INVALID_HANDLE;
}

/* ---- copies and fills ----------------------------------------------------------------------------------- */

/* Queue a copy or fill, as the launch of a kernel.  Its parameters are in a parameter buffer of the machine (struct nesting). */
static int queue_copy(struct device_call *c, const struct device_copy *copy, uint64_t stream_handle)
{
	gpul_exec_launch_config config = { .device = c->s->block->launch->device };
	void *params;

	if (!copy->width || !copy->height)
		return DEVICE_OK;
	if (!gpul_device_copy(c->nesting, machine_of(c)->memory, copy, &config))
		return DEVICE_NO_MEMORY;
	params = gpul_nesting_take_slot(c->nesting, machine_of(c)->memory, &config);
	if (!params)
		return DEVICE_OUT_OF_RESOURCES;
	memcpy(params, copy, COPY_PARAMS_BYTES);
	(void)gpul_nesting_claim_slot(c->nesting, (uintptr_t)params, &config);
	return queue_launch(c, &config, stream_handle);
}

static int memcpy_async(struct device_call *c)
{
	const struct device_copy copy = { .to = argument(c, 0), .from = argument(c, 1), .width = argument(c, 2), .height = 1 };

	return queue_copy(c, &copy, argument(c, 4));
}

static int memcpy_2d_async(struct device_call *c)
{
	const struct device_copy copy = { .to = argument(c, 0),
					  .to_pitch = argument(c, 1),
					  .from = argument(c, 2),
					  .from_pitch = argument(c, 3),
					  .width = argument(c, 4),
					  .height = argument(c, 5) };

	return copy.width > copy.to_pitch || copy.width > copy.from_pitch ? DEVICE_INVALID_PITCH : queue_copy(c, &copy, argument(c, 7));
}

static int memset_async(struct device_call *c)
{
	const struct device_copy fill = {
		.to = argument(c, 0), .from = argument(c, 1) & 0xff, .width = argument(c, 2), .height = 1, .fill = true
	};

	return queue_copy(c, &fill, argument(c, 3));
}

static int memset_2d_async(struct device_call *c)
{
	const struct device_copy fill = { .to = argument(c, 0),
					  .to_pitch = argument(c, 1),
					  .from = argument(c, 2) & 0xff,
					  .width = argument(c, 3),
					  .height = argument(c, 4),
					  .fill = true };

	return fill.width > fill.to_pitch ? DEVICE_INVALID_PITCH : queue_copy(c, &fill, argument(c, 5));
}

/* ---- errors -------------------------------------------------------------------------------------------- */

static int get_last_error(struct device_call *c)
{
	c->result = *last_error(c);
	*last_error(c) = DEVICE_OK;
	return DEVICE_OK;
}

static int peek_at_last_error(struct device_call *c)
{
	c->result = *last_error(c);
	return DEVICE_OK;
}

/* The errors that calls of the device runtime can return; the last entry describes all other error codes. */
static const struct {
	int error;
	const char *name, *text;
} errors[] = {
	{ DEVICE_OK, "cudaSuccess", "no error" },
	{ DEVICE_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument" },
	{ DEVICE_NO_MEMORY, "cudaErrorMemoryAllocation", "out of memory" },
	{ DEVICE_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration", "invalid configuration argument" },
	{ DEVICE_INVALID_PITCH, "cudaErrorInvalidPitchValue", "invalid pitch argument" },
	{ DEVICE_MAX_DEPTH, "cudaErrorLaunchMaxDepthExceeded", "launch would exceed maximum depth of nested launches" },
	{ DEVICE_INVALID_FUNCTION, "cudaErrorInvalidDeviceFunction", "invalid device function" },
	{ DEVICE_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ DEVICE_UNSUPPORTED_LIMIT, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture" },
	{ DEVICE_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
	{ DEVICE_OUT_OF_RESOURCES, "cudaErrorLaunchOutOfResources", "too many resources requested for launch" },
	{ -1, "cudaErrorUnknown", "unrecognized error code" },
};

enum { N_ERRORS = sizeof errors / sizeof errors[0], TEXT_BYTES = 64, ALL_TEXTS = 2 * N_ERRORS * TEXT_BYTES };

/* Copy the names and texts of errors to memory that kernels may access, for cudaGetErrorString.  The caller holds nesting's lock. */
static uint8_t *create_texts(gpul_exec_memory *memory)
{
	gpul_exec_range range = { .bytes = ALL_TEXTS, .flags = GPUL_EXEC_MEM_READ_ONLY, .label = "names of errors" };
	char *texts = aligned_alloc(64, ALL_TEXTS);

	if (!texts)
		return NULL;
	memset(texts, 0, ALL_TEXTS);
	for (size_t k = 0; k < N_ERRORS; k++) {
		strncpy(texts + 2 * k * TEXT_BYTES, errors[k].name, TEXT_BYTES - 1);
		strncpy(texts + (2 * k + 1) * TEXT_BYTES, errors[k].text, TEXT_BYTES - 1);
	}
	range.base = (uintptr_t)texts;
	if (!gpul_exec_memory_add(memory, &range, NULL))
		return (uint8_t *)texts;
	free(texts);
	return NULL;
}

static int error_text(struct device_call *c, unsigned column)
{
	struct nesting *g = c->nesting;
	size_t row = 0;

	while (row < N_ERRORS - 1 && errors[row].error != (int)argument(c, 0))
		row++;
	pthread_mutex_lock(&g->lock);
	if (!g->texts)
		g->texts = create_texts(machine_of(c)->memory);
	if (g->texts)
		c->result = (uintptr_t)g->texts + (2 * row + column) * TEXT_BYTES;
	pthread_mutex_unlock(&g->lock);
	return DEVICE_OK;
}

static int get_error_name(struct device_call *c)
{
	return error_text(c, 0);
}

static int get_error_string(struct device_call *c)
{
	return error_text(c, 1);
}

/* ---- memory and devices ------------------------------------------------------------------------------- */

static int device_malloc(struct device_call *c)
{
	struct heap *heap = gpul_heap_of(machine_of(c));
	uint64_t at = heap ? gpul_heap_alloc(heap, argument(c, 1)) : 0;

	(void)write_result(c, argument(c, 0), &at, sizeof at);
	return at ? DEVICE_OK : DEVICE_NO_MEMORY;
}

static int device_free(struct device_call *c)
{
	const uint64_t at = argument(c, 0);
	struct heap *heap = gpul_heap_of(machine_of(c));

	return !at || (heap && gpul_heap_free(heap, at)) ? DEVICE_OK : DEVICE_INVALID_VALUE;
}

static int get_device(struct device_call *c)
{
	const int device = (int)c->s->block->launch->device;

	return write_result(c, argument(c, 0), &device, sizeof device);
}

static bool find_attribute(const struct device_call *c, unsigned device, int attribute, int *value)
{
	const gpul_exec_machine_options *o = &machine_of(c)->options;

	return o->attribute && o->attribute(device, attribute, value);
}

static int get_device_count(struct device_call *c)
{
	int n = 1;

	(void)find_attribute(c, 0, 0, &n);
	return write_result(c, argument(c, 0), &n, sizeof n);
}

static int get_attribute(struct device_call *c)
{
	int value = 0, n = 1;

	(void)find_attribute(c, 0, 0, &n);
	if ((uint32_t)argument(c, 2) >= (uint32_t)n)
		return DEVICE_INVALID_DEVICE;
	if (!find_attribute(c, (unsigned)argument(c, 2), (int)argument(c, 1), &value))
		return DEVICE_INVALID_VALUE;
	return write_result(c, argument(c, 0), &value, sizeof value);
}

static int max_active_blocks(struct device_call *c)
{
	const gpul_exec_kernel *k = kernel_at(c->s->frame->code->program, argument(c, 1));
	const uint64_t dynamic_bytes = argument(c, 3);
	int n;

	if (!k)
		return DEVICE_INVALID_FUNCTION;
	if ((int32_t)argument(c, 2) <= 0)
		return DEVICE_INVALID_VALUE;
	n = dynamic_bytes > GPUL_EXEC_SM_SHARED_BYTES
		    ? 0
		    : (int)gpul_exec_blocks_per_sm((uint32_t)argument(c, 2), k->info.shared_bytes + dynamic_bytes);
	return write_result(c, argument(c, 0), &n, sizeof n);
}

static int get_limit(struct device_call *c)
{
	enum { MALLOC_HEAP_SIZE = 2, PENDING_LAUNCH_COUNT = 4 }; /* values of enum cudaLimit */
	const uint32_t limit = (uint32_t)argument(c, 1);
	const gpul_exec_machine_options *o = &machine_of(c)->options;
	const uint64_t value = limit == MALLOC_HEAP_SIZE ? o->heap_bytes : o->pending_launches;

	if (limit != MALLOC_HEAP_SIZE && limit != PENDING_LAUNCH_COUNT)
		return DEVICE_UNSUPPORTED_LIMIT;
	return write_result(c, argument(c, 0), &value, sizeof value);
}

/* Return the number in a module's .target, such as 90 for sm_90a. */
static int target_number(const gpul_ptx_module *m)
{
	const char *digits = strpbrk(gpul_ptx_name(m, m->target), "0123456789");

	return digits ? (int)strtol(digits, NULL, 10) : 0;
}

static int get_function_attributes(struct device_call *c)
{
	enum { MAJOR = 75, MINOR = 76, MOST_SHARED = 48 << 10 };
	const gpul_exec_kernel *k = kernel_at(c->s->frame->code->program, argument(c, 1));
	int major = 0, minor = 0;
	struct { /* the first members of cudaFuncAttributes (driver_types.h) */
		uint64_t shared_bytes, const_bytes, local_bytes;
		int32_t max_threads, n_regs, ptx_version, binary_version, cache_mode, max_dynamic_shared_bytes, carveout;
	} a;
	enum { BYTES = 52 }; /* the size of the struct that device_calls_internal.h declares for this call */

	_Static_assert(offsetof(__typeof__(a), carveout) + sizeof a.carveout == BYTES, "no padding");
	if (!k)
		return DEVICE_INVALID_FUNCTION;
	memset(&a, 0, sizeof a);
	(void)find_attribute(c, c->s->block->launch->device, MAJOR, &major);
	(void)find_attribute(c, c->s->block->launch->device, MINOR, &minor);
	a.shared_bytes = k->info.shared_bytes;
	a.const_bytes = k->info.const_bytes;
	a.local_bytes = k->info.local_bytes;
	a.max_threads = (int32_t)k->info.max_threads;
	a.n_regs = (int32_t)k->info.n_regs;
	a.ptx_version = target_number(c->s->frame->code->program->module);
	a.binary_version = 10 * major + minor;
	a.max_dynamic_shared_bytes = k->info.shared_bytes < MOST_SHARED ? (int32_t)(MOST_SHARED - k->info.shared_bytes) : 0;
	a.carveout = -1;
	return write_bytes(c, argument(c, 0), &a, BYTES, sizeof a.shared_bytes);
}

/* ---- the table of functions ------------------------------------------------------------------------------- */

static const struct {
	int (*call)(struct device_call *c);
	bool returns_error;
} calls[] = {
#define X(name, function, returns_error, written_bytes) { function, returns_error },
	GPUL_DEVICE_CALLS(X)
#undef X
};

/* Return the state that the block keeps between calls of the device runtime; NULL: out of memory. */
static struct block_nest *nest_of_block(struct block *b)
{
	if (!b->nest)
		b->nest = calloc(1, sizeof *b->nest + ((size_t)b->n_warps * LANES) * sizeof b->nest->last_error[0]);
	return b->nest;
}

const struct insn *gpul_call_device_runtime(struct warp_state *s, const struct insn *i)
{
	const struct call_site *site = i->object;
	const unsigned row = (unsigned)site->builtin - BUILTIN_DEVICE_RUNTIME;
	struct device_call c = { .s = s, .i = i, .nest = gpul_nest_of(s->block->launch), .own = nest_of_block(s->block) };

	if (!c.nest || !c.own)
		return gpul_fault_text(s, i, GPUL_EXEC_NO_MEMORY, first_lane(s->w.mask), "no memory for launches by the kernel");
	c.nesting = gpul_nesting_of(machine_of(&c));
	EACH_ACTIVE(l, &s->w)
	{
		int e;

		c.lane = l;
		c.result = 0;
		e = calls[row].call(&c);
		if (c.stop)
			return c.stop;
		if (e)
			*last_error(&c) = (uint16_t)e;
		gpul_builtin_set_result(s, site, l, calls[row].returns_error ? (uint64_t)e : c.result);
	}
	return i + 1;
}
