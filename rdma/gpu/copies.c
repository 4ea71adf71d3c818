/* copies.c — copies between GPU memory and staging buffers. */
#include "rdma/gpu/copies.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "driver/context.h"

/* limit of the copies in flight per direction; a power of two */
enum { RING = GPUL_RDMA_MAX_STAGES };
static_assert((RING & (RING - 1)) == 0, "positions in the rings are counters, modulo RING");

struct batch { /* the copies started by one call of post; one event reports that all of them have ended */
	CUevent event;
	uint32_t end; /* the copies at positions before this one belong to this batch or to older batches */
	uint64_t posted_ns;
};

/* The state of one direction.  Positions only increase, and wrap around at 2^32: code compares them
 * only for equality and by their difference.
 *
 *       told         ended             posted
 *     ───┴─────────────┴──────────────────┴───> ids
 *         poll has      completed by events of
 *         reported      batches [oldest, newest)
 *         the ids before */
struct lane {
	CUstream stream;
	uint64_t ids[RING];
	uint32_t told, ended, posted;
	struct batch batches[RING];
	uint32_t oldest, newest;
};

enum { OUT, IN, N_LANES };

struct gpul_rdma_copies {
	const gpul_driver *drv; /* borrowed */
	gpul_context context;   /* retained */
	gpul_mem *memory;
	uint64_t stages, end; /* CPU addresses of the start and the end of the staging buffers */
	size_t stage_bytes;
	unsigned n_stages;
	struct lane lanes[N_LANES];
	gpul_rdma_failure failed; /* the first failure; .status GPUL_OK: none */
};

static CUevent *event_of(struct gpul_rdma_copies *c, unsigned i)
{
	return &c->lanes[i / RING].batches[i % RING].event;
}

/* ---- the context ----------------------------------------------------------------------------------------------- */

/* Make the primary context current. *before: set to the context that leave_context() restores. */
static CUresult enter_context(const gpul_rdma_copies *c, CUcontext *before)
{
	CUresult r = c->drv->cuCtxGetCurrent(before);

	if (r || *before == c->context.handle)
		return r;
	return c->drv->cuCtxSetCurrent(c->context.handle);
}

/* Restore the previous context.  If the thread had none, the primary context stays current, so that its next call need not set it again. */
static void leave_context(const gpul_rdma_copies *c, CUcontext before)
{
	if (before && before != c->context.handle)
		(void)c->drv->cuCtxSetCurrent(before);
}

/* ---- create, destroy --------------------------------------------------------------------------------------------- */

/* Release what create_objects() has created; handles that are 0 are skipped. */
static void destroy_objects(gpul_rdma_copies *c)
{
	for (unsigned i = 0; i < N_LANES * RING && *event_of(c, i); i++)
		(void)c->drv->cuEventDestroy(*event_of(c, i));
	for (unsigned i = 0; i < N_LANES && c->lanes[i].stream; i++)
		(void)c->drv->cuStreamDestroy(c->lanes[i].stream);
	gpul_mem_destroy(c->memory);
}

static gpul_status create_objects(gpul_rdma_copies *c, int gpu, gpul_error *err)
{
	const gpul_driver *drv = c->drv;
	const gpul_mem_desc desc = {
		.bytes = 2 * c->n_stages * c->stage_bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &gpu, .n_devices = 1
	};
	gpul_status st = gpul_mem_create(drv, &desc, &c->memory, err);

	for (unsigned i = 0; !st && i < N_LANES; i++)
		st = gpul_cu(drv, err, cuStreamCreate(&c->lanes[i].stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; !st && i < N_LANES * RING; i++)
		st = gpul_cu(drv, err, cuEventCreate(event_of(c, i), CU_EVENT_DISABLE_TIMING));
	if (st) {
		destroy_objects(c);
		return st;
	}
	c->stages = (uint64_t)(uintptr_t)gpul_mem_cpu(c->memory);
	c->end = c->stages + desc.bytes;
	return GPUL_OK;
}

gpul_status gpul_rdma_copies_create(const gpul_driver *drv, int gpu, unsigned n_stages, size_t stage_bytes, gpul_rdma_copies **out,
				    gpul_error *err)
{
	gpul_rdma_copies *c;
	CUcontext before = NULL;
	gpul_status st;

	if (n_stages == 0 || n_stages > GPUL_RDMA_MAX_STAGES || stage_bytes == 0 || stage_bytes > UINT32_MAX)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "invalid staging buffers for GPU memory: %u buffers of %zu bytes per direction, expected 1 to "
				 "%d buffers of 1 byte to 4 GiB",
				 n_stages, stage_bytes, (int)GPUL_RDMA_MAX_STAGES);
	c = calloc(1, sizeof *c);
	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes of staging buffers for GPU memory", sizeof *c);
	*c = (gpul_rdma_copies){ .drv = drv, .n_stages = n_stages, .stage_bytes = stage_bytes };
	(void)drv->cuCtxGetCurrent(&before);
	st = gpul_context_open(drv, gpu, &c->context, err);
	if (st)
		goto free_c;
	st = create_objects(c, gpu, err);
	(void)drv->cuCtxSetCurrent(before);
	if (st)
		goto release_context;
	*out = c;
	return GPUL_OK;
release_context:
	(void)drv->cuDevicePrimaryCtxRelease(c->context.device);
free_c:
	free(c);
	return st;
}

void gpul_rdma_copies_destroy(gpul_rdma_copies *c)
{
	CUcontext before = NULL;

	if (!c)
		return;
	gpul_rdma_copies_drain(c);
	(void)enter_context(c, &before);
	destroy_objects(c);
	(void)c->drv->cuCtxSetCurrent(before);
	/* gpul_context_close() is not used: the caller may have opened the same context, which must stay current. */
	(void)c->drv->cuDevicePrimaryCtxRelease(c->context.device);
	free(c);
}

void *gpul_rdma_copies_stages(const gpul_rdma_copies *c)
{
	return gpul_mem_cpu(c->memory);
}

const gpul_mem_info *gpul_rdma_copies_about(const gpul_rdma_copies *c)
{
	return gpul_mem_about(c->memory);
}

/* ---- failures -------------------------------------------------------------------------------------------------- */

/* Record a driver error.  `call` is the name of the driver function; since_ns is the time when the operation started, 0: not known. */
static gpul_status fail_by_driver(gpul_rdma_copies *c, CUresult r, const char *call, uint64_t since_ns)
{
	const char *advice = gpul_cu_advice(r);
	gpul_error e = { 0 };
	const char *text;
	size_t n;

	(void)gpul_cu_status(c->drv, &e, r, call);
	text = strstr(e.text, ": "); /* the text is "cuEventQuery: CUDA_ERROR_...: advice", but gpul_rdma_failure has separate
				      * fields for the call and the advice */
	text = text ? text + 2 : e.text;
	n = strlen(text);
	if (*advice && n > strlen(advice) + 2 && !strcmp(text + n - strlen(advice), advice))
		n -= strlen(advice) + 2;
	if (since_ns)
		c->failed.after_ns = gpul_clock_ns() - since_ns;
	return gpul_rdma_fail(&c->failed, GPUL_ECUDA, (int)r, call, advice, "%.*s", (int)n, text);
}

static gpul_status report_failure(const gpul_rdma_copies *c, gpul_rdma_failure *why)
{
	if (c->failed.status && why && !why->status)
		*why = c->failed;
	return c->failed.status;
}

/* ---- post -------------------------------------------------------------------------------------------------------- */

static gpul_status check_op(gpul_rdma_copies *c, const gpul_rdma_op *op)
{
	if (op->kind != GPUL_RDMA_OP_COPY_OUT && op->kind != GPUL_RDMA_OP_COPY_IN)
		return gpul_rdma_fail(&c->failed, GPUL_EINVAL, op->kind, "staging copy", NULL,
				      "operation %d is not a copy between GPU and host memory", op->kind);
	if (op->bytes > c->stage_bytes || op->local < c->stages || op->local > c->end - op->bytes)
		return gpul_rdma_fail(&c->failed, GPUL_EINVAL, 0, "staging copy", NULL,
				      "%u bytes at %#llx are not in one of the staging buffers of %zu bytes", op->bytes,
				      (unsigned long long)op->local, c->stage_bytes);
	return GPUL_OK;
}

static gpul_status start_copy(gpul_rdma_copies *c, struct lane *lane, const gpul_rdma_op *op)
{
	const gpul_driver *drv = c->drv;
	void *stage = (void *)(uintptr_t)op->local;
	CUresult r = CUDA_SUCCESS;

	if (op->bytes && op->kind == GPUL_RDMA_OP_COPY_OUT)
		r = drv->cuMemcpyDtoHAsync(stage, (CUdeviceptr)op->remote, op->bytes, lane->stream);
	else if (op->bytes)
		r = drv->cuMemcpyHtoDAsync((CUdeviceptr)op->remote, stage, op->bytes, lane->stream);
	if (r)
		return fail_by_driver(c, r, op->kind == GPUL_RDMA_OP_COPY_OUT ? "cuMemcpyDtoHAsync" : "cuMemcpyHtoDAsync", 0);
	lane->ids[lane->posted++ % RING] = op->id;
	return GPUL_OK;
}

/* End a batch: record an event after the copies that have been started since position `first`. */
static gpul_status end_batch(gpul_rdma_copies *c, struct lane *lane, uint32_t first, uint64_t now_ns)
{
	struct batch *b = &lane->batches[lane->newest % RING];
	CUresult r;

	if (lane->posted == first)
		return GPUL_OK;
	r = c->drv->cuEventRecord(b->event, lane->stream);
	if (r)
		return fail_by_driver(c, r, "cuEventRecord", 0);
	b->end = lane->posted;
	b->posted_ns = now_ns;
	lane->newest++;
	return GPUL_OK;
}

gpul_status gpul_rdma_copies_post(gpul_rdma_copies *c, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why)
{
	const uint32_t first[N_LANES] = { c->lanes[OUT].posted, c->lanes[IN].posted };
	gpul_status st = c->failed.status;
	CUcontext before = NULL;
	uint64_t now_ns;
	CUresult r;

	*n_posted = 0;
	if (st || n == 0)
		return report_failure(c, why);
	r = enter_context(c, &before);
	if (r)
		st = fail_by_driver(c, r, "cuCtxSetCurrent", 0);
	while (!st && *n_posted < n) {
		const gpul_rdma_op *op = &ops[*n_posted];
		struct lane *lane = &c->lanes[op->kind == GPUL_RDMA_OP_COPY_OUT ? OUT : IN];

		st = check_op(c, op);
		if (!st && lane->posted - lane->told >= c->n_stages)
			break;
		if (!st)
			st = start_copy(c, lane, op);
		*n_posted += !st;
	}
	now_ns = gpul_clock_ns();
	for (unsigned i = 0; !st && i < N_LANES; i++)
		st = end_batch(c, &c->lanes[i], first[i], now_ns);
	leave_context(c, before);
	return report_failure(c, why);
}

/* ---- poll ---------------------------------------------------------------------------------------------------------- */

/* Query the events, oldest first, while they have completed and there is room for ids. */
static gpul_status poll_lane(gpul_rdma_copies *c, struct lane *lane, uint64_t *ids, unsigned max, unsigned *n)
{
	for (;;) {
		const struct batch *b = &lane->batches[lane->oldest % RING];
		CUresult r;

		while (*n < max && lane->told != lane->ended)
			ids[(*n)++] = lane->ids[lane->told++ % RING];
		if (*n == max || lane->oldest == lane->newest)
			return GPUL_OK;
		r = c->drv->cuEventQuery(b->event);
		if (r == CUDA_ERROR_NOT_READY)
			return GPUL_OK;
		if (r)
			return fail_by_driver(c, r, "cuEventQuery", b->posted_ns);
		lane->ended = b->end;
		lane->oldest++;
	}
}

gpul_status gpul_rdma_copies_poll(gpul_rdma_copies *c, uint64_t *ids, unsigned max, unsigned *n, gpul_rdma_failure *why)
{
	gpul_status st = GPUL_OK;
	CUcontext before = NULL;
	CUresult r;

	*n = 0;
	if (c->failed.status)
		return report_failure(c, why);
	if (!gpul_rdma_copies_busy(c))
		return GPUL_OK;
	r = enter_context(c, &before);
	if (r)
		st = fail_by_driver(c, r, "cuCtxSetCurrent", 0);
	for (unsigned i = 0; !st && i < N_LANES; i++)
		st = poll_lane(c, &c->lanes[i], ids, max, n);
	leave_context(c, before);
	return report_failure(c, why);
}

bool gpul_rdma_copies_busy(const gpul_rdma_copies *c)
{
	return c->lanes[OUT].told != c->lanes[OUT].posted || c->lanes[IN].told != c->lanes[IN].posted;
}

void gpul_rdma_copies_drain(gpul_rdma_copies *c)
{
	CUcontext before = NULL;

	/* After a failure some copies may be in flight without an event, so wait for the streams instead. */
	if (!gpul_rdma_copies_busy(c) && !c->failed.status)
		return;
	(void)enter_context(c, &before);
	for (unsigned i = 0; i < N_LANES; i++)
		(void)c->drv->cuStreamSynchronize(c->lanes[i].stream);
	leave_context(c, before);
}
