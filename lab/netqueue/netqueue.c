/* netqueue.c — allocates the memory of a netqueue, launches its kernel, and explains its reports. */
#include "lab/netqueue/netqueue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/embedded.h"
#include "loader/loader.h"

GPUL_EMBED(netqueue_unpack_ptx, "lab/netqueue/unpack.ptx");

/* clang-format off */
enum {
	DEFAULT_SLOTS = 64, DEFAULT_SLOT_BYTES = 64 << 10, DEFAULT_ENTRIES = 8192, DEFAULT_TIMEOUT_MS = 10000,
	/* these blocks saturate the PCIe bus: 16 blocks with 11 copying warps each have 360 KiB of loads in flight */
	HOST_BLOCKS = 16, HOST_THREADS = 384, CHUNK = 8,
	INTERPRETED_BLOCKS = 2, INTERPRETED_THREADS = 96,
	POLLS_PER_CHECK = 1024, INTERPRETED_POLLS_PER_CHECK = 32,
};
/* clang-format on */

struct gpul_netqueue {
	const gpul_driver *drv;
	gpul_netqueue_desc about;
	gpul_module *module;
	const gpul_kernel *kernel;
	CUstream stream;
	gpul_mem *bounce, *shared; /* `shared` contains the control words, followed by the ring of entries */
	gpul_netqueue_control *control;
	gpul_netqueue_entry *ring;
	CUdeviceptr counts;
	bool running;
};

/* ---- creation ------------------------------------------------------------------------------------------------ */

static uint32_t or_default(uint32_t n, uint32_t otherwise)
{
	return n ? n : otherwise;
}

static void set_defaults(gpul_netqueue *q)
{
	gpul_netqueue_desc *d = &q->about;
	const bool interprets = q->drv->interprets, device = d->kind == GPUL_MEM_DEVICE;

	d->shape.n_slots = or_default(d->shape.n_slots, DEFAULT_SLOTS);
	d->shape.slot_bytes = or_default(d->shape.slot_bytes, DEFAULT_SLOT_BYTES);
	d->shape.n_entries = or_default(d->shape.n_entries, DEFAULT_ENTRIES);
	d->shape.chunk_entries = or_default(d->shape.chunk_entries, CHUNK);
	d->n_threads = or_default(d->n_threads, interprets ? INTERPRETED_THREADS : device ? GPUL_NETQUEUE_MAX_THREADS : HOST_THREADS);
	d->timeout_ms = d->timeout_ms ? d->timeout_ms : DEFAULT_TIMEOUT_MS;
}

static gpul_status load_kernel(gpul_netqueue *q, gpul_error *err)
{
	gpul_status st = gpul_module_load_embedded(q->drv, &netqueue_unpack_ptx, &q->module, err);

	st = st ? st : gpul_kernel_find(q->module, "gpul_netqueue_unpack", &q->kernel, err);
	return st ? st : gpul_kernel_prepare(q->kernel, err);
}

/* Choose the number of blocks.  All must be resident together: the CPU reuses memory only after reports from all blocks. */
static gpul_status choose_blocks(gpul_netqueue *q, gpul_error *err)
{
	gpul_netqueue_desc *d = &q->about;
	int n_processors = 0, per_processor = 0;
	CUfunction function;
	CUdevice device;
	gpul_status st = gpul_cu(q->drv, err, cuDeviceGet(&device, d->device));

	st = st ? st : gpul_cu(q->drv, err, cuDeviceGetAttribute(&n_processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	st = st ? st : gpul_kernel_function(q->kernel, &function, err);
	st = st ? st : gpul_cu(q->drv, err, cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, function, (int)d->n_threads, 0));
	if (st)
		return st;
	const uint32_t most = (uint32_t)(n_processors * per_processor), on_device = (uint32_t)n_processors;
	const uint32_t wanted = d->shape.n_blocks            ? d->shape.n_blocks
				: q->drv->interprets         ? INTERPRETED_BLOCKS
				: d->kind == GPUL_MEM_DEVICE ? on_device
							     : HOST_BLOCKS;

	d->shape.n_blocks = wanted < most ? wanted : most;
	return GPUL_OK;
}

static gpul_status check_desc(const gpul_netqueue_desc *d, gpul_error *err)
{
	if (d->n_threads % 32 || d->n_threads < GPUL_NETQUEUE_MIN_THREADS || d->n_threads > GPUL_NETQUEUE_MAX_THREADS)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of threads per block is %u: expected a multiple of 32 from %d to %d",
				 d->n_threads, GPUL_NETQUEUE_MIN_THREADS, GPUL_NETQUEUE_MAX_THREADS);
	return gpul_netqueue_shape_check(&d->shape, err);
}

static gpul_status allocate(gpul_netqueue *q, gpul_error *err)
{
	gpul_netqueue_desc *d = &q->about;
	gpul_mem_desc mem = { .kind = d->kind,
			      .bytes = (size_t)d->shape.n_slots * d->shape.slot_bytes,
			      .node = GPUL_MEM_NODE_OF_GPU,
			      .devices = &d->device,
			      .n_devices = 1 };
	gpul_status st = gpul_mem_create(q->drv, &mem, &q->bounce, err);

	if (st)
		return st;
	d->kind = gpul_mem_about(q->bounce)->kind;
	mem.kind = GPUL_MEM_AUTO;
	mem.bytes = sizeof *q->control + d->shape.n_entries * sizeof *q->ring;
	st = gpul_mem_create(q->drv, &mem, &q->shared, err);
	if (st)
		return st;
	q->control = gpul_mem_cpu(q->shared);
	q->ring = (gpul_netqueue_entry *)(q->control + 1);
	st = gpul_cu(q->drv, err, cuMemAlloc(&q->counts, sizeof(gpul_netqueue_counts)));
	return st ? st : gpul_cu(q->drv, err, cuStreamCreate(&q->stream, CU_STREAM_NON_BLOCKING));
}

gpul_status gpul_netqueue_create(const gpul_driver *drv, const gpul_netqueue_desc *desc, gpul_netqueue **out, gpul_error *err)
{
	gpul_netqueue *q = calloc(1, sizeof *q);
	gpul_status st;

	if (!q)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the state of a netqueue");
	q->drv = drv;
	q->about = *desc;
	set_defaults(q);
	st = load_kernel(q, err);
	st = st ? st : choose_blocks(q, err);
	st = st ? st : check_desc(&q->about, err);
	st = st ? st : allocate(q, err);
	if (st) {
		gpul_netqueue_destroy(q);
		return st;
	}
	gpul_netqueue_empty(q);
	*out = q;
	return GPUL_OK;
}

void gpul_netqueue_destroy(gpul_netqueue *q)
{
	if (!q)
		return;
	if (q->running) {
		gpul_netqueue_abort(q);
		(void)q->drv->cuCtxSynchronize(); /* the kernel may still be running on a stream of the caller */
	}
	if (q->stream)
		(void)q->drv->cuStreamDestroy(q->stream);
	if (q->counts)
		(void)q->drv->cuMemFree(q->counts);
	gpul_mem_destroy(q->shared);
	gpul_mem_destroy(q->bounce);
	gpul_module_unload(q->module);
	free(q);
}

const gpul_netqueue_desc *gpul_netqueue_about(const gpul_netqueue *q)
{
	return &q->about;
}

const gpul_mem *gpul_netqueue_bounce(const gpul_netqueue *q)
{
	return q->bounce;
}

/* ---- a receive --------------------------------------------------------------------------------------------- */

void gpul_netqueue_empty(gpul_netqueue *q)
{
	memset(q->control, 0, sizeof *q->control);
	memset(q->ring, 0, q->about.shape.n_entries * sizeof *q->ring);
}

gpul_status gpul_netqueue_launch(gpul_netqueue *q, CUdeviceptr destination, uint64_t bytes, CUstream stream, gpul_error *err)
{
	const gpul_netqueue_desc *d = &q->about;
	const CUdeviceptr shared = gpul_mem_gpu(q->shared);
	gpul_netqueue_view view = {
		.bounce = (const unsigned char *)(uintptr_t)gpul_mem_gpu(q->bounce),
		.bounce_bytes = (uint64_t)d->shape.n_slots * d->shape.slot_bytes,
		.destination = (unsigned char *)(uintptr_t)destination,
		.destination_bytes = bytes,
		.ring = (const gpul_netqueue_entry *)(uintptr_t)(shared + sizeof *q->control),
		.control = (gpul_netqueue_control *)(uintptr_t)shared,
		.counts = (gpul_netqueue_counts *)(uintptr_t)q->counts,
		/* 25 % longer than the time-out of the feeder thread, whose message is more precise and should come first */
		.timeout_ns = d->timeout_ms > 0 ? (uint64_t)d->timeout_ms * 1250000 : 0,
		.slot_bytes = d->shape.slot_bytes,
		.n_entries = d->shape.n_entries,
		.chunk_entries = d->shape.chunk_entries,
		.polls_per_check = q->drv->interprets ? INTERPRETED_POLLS_PER_CHECK : POLLS_PER_CHECK,
	};
	const gpul_launch_config config = { .grid = { d->shape.n_blocks, 1, 1 }, .block = { d->n_threads, 1, 1 }, .stream = stream };
	void *args[] = { &view };
	const size_t arg_bytes[] = { sizeof view };
	gpul_status st;

	if (q->running)
		return gpul_fail(err, GPUL_EINVAL, 0, "the netqueue's kernel is running: call gpul_netqueue_wait() first");
	if (bytes == 0 || bytes > GPUL_NETQUEUE_DESTINATION_MASK)
		return gpul_fail(err, GPUL_EINVAL, 0, "the destination has %" PRIu64 " bytes: expected 1 to 2^56 - 1", bytes);
	st = gpul_cu(q->drv, err, cuMemsetD8Async(q->counts, 0, sizeof(gpul_netqueue_counts), stream));
	st = st ? st : gpul_kernel_launch(q->kernel, &config, args, arg_bytes, 1, err);
	q->running = !st;
	return st;
}

gpul_status gpul_netqueue_begin(gpul_netqueue *q, CUdeviceptr destination, uint64_t bytes, gpul_error *err)
{
	if (!q->running)
		gpul_netqueue_empty(q);
	return gpul_netqueue_launch(q, destination, bytes, q->stream, err);
}

/* Write an entry by two 8-byte stores.  The kernel takes the entry when both words have its lap number (of the pass over the ring).
 * The store of word 1 is a release, which pairs with the acquire in gpul_netqueue_take(): a kernel that reads word 1 also sees word 0
 * and the piece. */
void gpul_netqueue_write(gpul_netqueue *q, uint64_t n, const gpul_netqueue_entry *entry)
{
	gpul_netqueue_entry *at = &q->ring[n & (q->about.shape.n_entries - 1)];

	__atomic_store_n(&at->word[0], entry->word[0], __ATOMIC_RELEASE);
	__atomic_store_n(&at->word[1], entry->word[1], __ATOMIC_RELEASE);
}

void gpul_netqueue_read_done(const gpul_netqueue *q, uint64_t *done)
{
	/* The loads pair with the release in gpul_netqueue_publish() of unpack.cuh. */
	for (uint32_t b = 0; b < q->about.shape.n_blocks; b++)
		done[b] = __atomic_load_n(&q->control->done[b], __ATOMIC_ACQUIRE);
}

void gpul_netqueue_publish(gpul_netqueue *q, uint64_t n_entries, bool all)
{
	__atomic_store_n(&q->control->written, 2 * n_entries + all, __ATOMIC_RELEASE);
}

void gpul_netqueue_abort(gpul_netqueue *q)
{
	__atomic_store_n(&q->control->abort, 1, __ATOMIC_RELEASE);
}

gpul_status gpul_netqueue_poll(gpul_netqueue *q, bool *out, gpul_error *err)
{
	const CUresult r = q->drv->cuStreamQuery(q->stream);

	*out = r != CUDA_ERROR_NOT_READY;
	return *out ? gpul_cu_status(q->drv, err, r, "cuStreamQuery(q->stream)") : GPUL_OK;
}

static void collect_reports(const gpul_netqueue *q, gpul_netqueue_result *out)
{
	out->waited = q->control->waited;
	for (uint32_t i = 0; i < GPUL_NETQUEUE_MAX_REPORTS; i++)
		if (__atomic_load_n(&q->control->reports[i].ready, __ATOMIC_ACQUIRE))
			out->reports[out->n_reports++] = q->control->reports[i];
}

gpul_status gpul_netqueue_wait(gpul_netqueue *q, gpul_netqueue_result *out, gpul_error *err)
{
	gpul_netqueue_result r = { .n_reports = 0 };
	char text[GPUL_NETQUEUE_TEXT_BYTES];
	gpul_status st = gpul_cu(q->drv, err, cuStreamSynchronize(q->stream));

	q->running = false;
	st = st ? st : gpul_cu(q->drv, err, cuMemcpyDtoH(&r.counts, q->counts, sizeof r.counts));
	if (st)
		return st;
	collect_reports(q, &r);
	*out = r;
	if (r.waited.ready)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "%s", gpul_netqueue_explain(&r.waited, text));
	if (r.counts.n_refused)
		return gpul_fail(err, GPUL_EFORMAT, (int)r.reports[0].field, "%" PRIu64 " of %" PRIu64 " pieces of data were rejected; %s",
				 r.counts.n_refused, r.counts.n_refused + r.counts.n_pieces, gpul_netqueue_explain(&r.reports[0], text));
	return GPUL_OK;
}

/* ---- reports ------------------------------------------------------------------------------------------------- */

const char *gpul_netqueue_field_name(uint32_t field)
{
	static const char *const names[] = {
		"none", "lap", "length", "source", "source end", "slot end", "destination", "destination end"
	};

	_Static_assert(sizeof names / sizeof *names == GPUL_NETQUEUE_N_FIELDS, "a name for each field");
	return field < GPUL_NETQUEUE_N_FIELDS ? names[field] : "?";
}

const char *gpul_netqueue_explain(const gpul_netqueue_report *r, char out[GPUL_NETQUEUE_TEXT_BYTES])
{
	/* clang-format off */
	static const char *const formats[] = {
		[GPUL_NETQUEUE_ACCEPTED] = "entry %" PRIu64 " was accepted (%" PRIu64 ", %" PRIu64 ")",
		[GPUL_NETQUEUE_LAP] = "entry %" PRIu64 ": its lap number is %" PRIu64 ", expected %" PRIu64,
		[GPUL_NETQUEUE_LENGTH] = "entry %" PRIu64 ": its length is %" PRIu64 " bytes, expected 1 to %" PRIu64,
		[GPUL_NETQUEUE_SOURCE] = "entry %" PRIu64 ": the data begins at byte %" PRIu64 " of the bounce memory, which has %" PRIu64 " bytes",
		[GPUL_NETQUEUE_SOURCE_END] = "entry %" PRIu64 ": the data ends at byte %" PRIu64 " of the bounce memory, which has %" PRIu64 " bytes",
		[GPUL_NETQUEUE_SLOT_END] = "entry %" PRIu64 ": the data ends at byte %" PRIu64
			" of the bounce memory, but its slot ends at byte %" PRIu64,
		[GPUL_NETQUEUE_DESTINATION] = "entry %" PRIu64 ": the data would go to byte %" PRIu64 " of the destination, which has %" PRIu64 " bytes",
		[GPUL_NETQUEUE_DESTINATION_END] = "entry %" PRIu64 ": the data ends at byte %" PRIu64 " of the destination, which has %" PRIu64 " bytes",
	};
	/* clang-format on */

	if (r->field < GPUL_NETQUEUE_N_FIELDS)
		(void)snprintf(out, GPUL_NETQUEUE_TEXT_BYTES, formats[r->field], r->entry, r->value, r->limit);
	else
		(void)snprintf(out, GPUL_NETQUEUE_TEXT_BYTES,
			       "block %u has waited %.1f s for entry %" PRIu64 " of the ring, but the CPU has not written that entry",
			       r->block, (double)r->value / 1e9, r->entry);
	return out;
}
