/* fake_gpu.c — the failing driver with queues of copies, segments of memory and dma-bufs. */
#include "tests/rdma/gpu/fake_gpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_STREAMS = 4, MAX_WAITING = 512 };

struct fake_event {
	int waiting; /* number of cuEventRecord calls that have not been executed */
};

struct work { /* a queued copy or cuEventRecord */
	void *to;
	const void *from;
	size_t bytes;
	struct fake_event *event;
};

struct fake_stream {
	struct work queue[MAX_WAITING];
	int first, end;
	bool used;
};

static fake_gpu state;
static const gpul_driver *memory; /* tests/fake's driver, to which this driver adds queues and segments */
static struct fake_stream streams[MAX_STREAMS];

fake_gpu *fake_gpu_state(void)
{
	return &state;
}

/* ---- queues ------------------------------------------------------------------------------------ */

static void run_next(struct fake_stream *s)
{
	const struct work *w = &s->queue[s->first++ % MAX_WAITING];

	if (w->event)
		w->event->waiting--;
	else
		memcpy(w->to, w->from, w->bytes);
}

static void run_stream(struct fake_stream *s, int n)
{
	while (n-- > 0 && s->first < s->end)
		run_next(s);
}

void fake_gpu_run(int n)
{
	for (int i = 0; i < MAX_STREAMS; i++)
		run_stream(&streams[i], n);
}

int fake_gpu_waiting(void)
{
	int n = 0;

	for (int i = 0; i < MAX_STREAMS; i++)
		n += streams[i].end - streams[i].first;
	return n;
}

static CUresult enqueue(CUstream stream, struct work w)
{
	struct fake_stream *s = (struct fake_stream *)stream;
	CUcontext current = NULL;
	CUresult r = fake_step();

	(void)memory->cuCtxGetCurrent(&current);
	if (r)
		return r;
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (w.event)
		w.event->waiting++;
	s->queue[s->end++ % MAX_WAITING] = w;
	if (!state.held)
		run_stream(s, MAX_WAITING);
	return CUDA_SUCCESS;
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
	state.n_copies++;
	return enqueue(s, (struct work){ .to = (void *)(uintptr_t)to, .from = from, .bytes = bytes });
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
	state.n_copies++;
	return enqueue(s, (struct work){ .to = to, .from = (const void *)(uintptr_t)from, .bytes = bytes });
}

static CUresult stream_create(CUstream *out, unsigned flags)
{
	CUresult r = fake_step();

	(void)flags;
	for (int i = 0; !r && i < MAX_STREAMS; i++) {
		if (streams[i].used)
			continue;
		streams[i].used = true;
		*out = (CUstream)&streams[i];
		fake_count(FAKE_STREAM, 1);
		return CUDA_SUCCESS;
	}
	return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult stream_destroy(CUstream s)
{
	((struct fake_stream *)s)->used = false;
	fake_count(FAKE_STREAM, -1);
	return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream s)
{
	run_stream((struct fake_stream *)s, MAX_WAITING);
	return fake_step();
}

static CUresult event_create(CUevent *out, unsigned flags)
{
	CUresult r = fake_step();
	struct fake_event *e = r || !(flags & CU_EVENT_DISABLE_TIMING) ? NULL : calloc(1, sizeof *e);

	if (!e)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*out = (CUevent)e;
	fake_count(FAKE_EVENT, 1);
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent e)
{
	free(e);
	fake_count(FAKE_EVENT, -1);
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s)
{
	state.n_event_records++;
	return enqueue(s, (struct work){ .event = (struct fake_event *)e });
}

static CUresult event_query(CUevent e)
{
	CUresult r = fake_step();

	state.n_event_queries++;
	return r ? r : ((struct fake_event *)e)->waiting ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* ---- segments ------------------------------------------------------------------------------------ */

static const fake_segment *find_segment(uint64_t at)
{
	for (unsigned i = 0; i < state.n_segments; i++)
		if (at >= state.segments[i].at && at - state.segments[i].at < state.segments[i].bytes)
			return &state.segments[i];
	return NULL;
}

static unsigned long long attribute(CUpointer_attribute which, const fake_segment *s)
{
	const bool on_device = s->kind == GPUL_RDMA_DEVICE || s->kind == GPUL_RDMA_MANAGED;

	switch ((int)which) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return s->kind == GPUL_RDMA_MANAGED;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return s->kind == GPUL_RDMA_DEVICE && !s->not_for_nics;
	default:
		return 0; /* the device ordinal, which is 0 */
	}
}

static CUresult pointer_attributes(unsigned n, CUpointer_attribute *which, void **values, CUdeviceptr p)
{
	const fake_segment *s = find_segment(p);

	for (unsigned i = 0; s && i < n; i++) {
		unsigned value = (unsigned)attribute(which[i], s);

		memcpy(values[i], &value, sizeof value);
	}
	return fake_step();
}

static CUresult retain_handle(CUmemGenericAllocationHandle *out, void *at)
{
	const fake_segment *s = find_segment((uintptr_t)at);

	if (!s || !s->mapped)
		return CUDA_ERROR_INVALID_VALUE;
	*out = s->at;
	fake_count(FAKE_VMM, 1);
	return CUDA_SUCCESS;
}

static CUresult release_handle(CUmemGenericAllocationHandle h)
{
	if (!find_segment(h))
		return memory->cuMemRelease(h);
	fake_count(FAKE_VMM, -1);
	return CUDA_SUCCESS;
}

static CUresult properties(CUmemAllocationProp *prop, CUmemGenericAllocationHandle h)
{
	const fake_segment *s = find_segment(h);

	if (!s)
		return memory->cuMemGetAllocationPropertiesFromHandle(prop, h);
	*prop = (CUmemAllocationProp){ .location.type = s->kind == GPUL_RDMA_DEVICE ? CU_MEM_LOCATION_TYPE_DEVICE
										    : CU_MEM_LOCATION_TYPE_HOST_NUMA,
				       .allocFlags.gpuDirectRDMACapable = !s->not_for_nics };
	return fake_step();
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
	const fake_segment *s = find_segment(at);

	if (!s)
		return CUDA_ERROR_NOT_FOUND;
	*base = s->at;
	*bytes = s->bytes;
	return fake_step();
}

static CUresult export_range(void *out, CUdeviceptr at, size_t bytes, CUmemRangeHandleType type, unsigned long long flags)
{
	CUresult r = fake_step();
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd;

	state.n_exports++;
	state.export_at = at;
	state.export_bytes = bytes;
	state.export_flags = flags;
	if (!r)
		r = state.export_result;
	if (r)
		return r;
	if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || at % page || bytes % page)
		return CUDA_ERROR_INVALID_VALUE;
	fd = state.bad_fd ? state.bad_fd : memfd_create("dmabuf", 0);
	if (!state.bad_fd && ftruncate(fd, (off_t)(state.dmabuf_bytes ? state.dmabuf_bytes : bytes)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(out, &fd, sizeof fd);
	return CUDA_SUCCESS;
}

const gpul_driver *fake_gpu_driver(int fail_at, CUresult with)
{
	static gpul_driver table;

	state = (fake_gpu){ 0 };
	memset(streams, 0, sizeof streams);
	memory = fake_memory_driver(fail_at, with);
	table = *memory;
	table.cuMemcpyHtoDAsync = copy_in;
	table.cuMemcpyDtoHAsync = copy_out;
	table.cuStreamCreate = stream_create;
	table.cuStreamDestroy = stream_destroy;
	table.cuStreamSynchronize = stream_synchronize;
	table.cuEventCreate = event_create;
	table.cuEventDestroy = event_destroy;
	table.cuEventRecord = event_record;
	table.cuEventQuery = event_query;
	table.cuPointerGetAttributes = pointer_attributes;
	table.cuMemRetainAllocationHandle = retain_handle;
	table.cuMemRelease = release_handle;
	table.cuMemGetAllocationPropertiesFromHandle = properties;
	table.cuMemGetAddressRange = address_range;
	table.cuMemGetHandleForAddressRange = export_range;
	return &table;
}
