/* sum_stage.c — copies host memory to the GPU in pieces, ahead of the sum kernel, with three buffers. */
#include "cli/sum/sum_stage.h"

#include <stdlib.h>

enum { N_BUFFERS = 3 };

struct sum_stage {
	const gpul_driver *drv;
	CUstream copies;
	CUevent begun;
	struct buffer {
		CUevent arrived, used;
	} buffer[N_BUFFERS];
	CUdeviceptr memory;
	unsigned n_copied; /* number of pieces that were copied since the sum began */
};

bool sum_stage_pays(const gpul_driver *drv, CUdeviceptr data, size_t bytes)
{
	unsigned type = 0;
	CUdevice device;
	int integrated = 1;

	if (bytes <= SUM_PIECE_BYTES || drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data) ||
	    type != CU_MEMORYTYPE_HOST)
		return false;
	return !drv->cuCtxGetDevice(&device) && !drv->cuDeviceGetAttribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device) &&
	       !integrated;
}

gpul_status sum_stage_create(const gpul_driver *drv, struct sum_stage **out, gpul_error *err)
{
	struct sum_stage *s = calloc(1, sizeof *s);
	gpul_status st;

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to compute a sum");
	s->drv = drv;
	st = gpul_cu(drv, err, cuStreamCreate(&s->copies, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(drv, err, cuEventCreate(&s->begun, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; !st && i < N_BUFFERS; i++) {
		st = gpul_cu(drv, err, cuEventCreate(&s->buffer[i].arrived, CU_EVENT_DISABLE_TIMING));
		st = st ? st : gpul_cu(drv, err, cuEventCreate(&s->buffer[i].used, CU_EVENT_DISABLE_TIMING));
	}
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&s->memory, (size_t)N_BUFFERS * SUM_PIECE_BYTES));
	if (st) {
		sum_stage_destroy(s);
		return st;
	}
	*out = s;
	return GPUL_OK;
}

static void destroy_event(const struct sum_stage *s, CUevent event)
{
	if (event)
		(void)s->drv->cuEventDestroy(event);
}

void sum_stage_destroy(struct sum_stage *s)
{
	if (!s)
		return;
	if (s->memory)
		(void)s->drv->cuMemFree(s->memory);
	for (int i = 0; i < N_BUFFERS; i++) {
		destroy_event(s, s->buffer[i].arrived);
		destroy_event(s, s->buffer[i].used);
	}
	destroy_event(s, s->begun);
	if (s->copies)
		(void)s->drv->cuStreamDestroy(s->copies);
	free(s);
}

gpul_status sum_stage_begin(struct sum_stage *s, CUstream stream, gpul_error *err)
{
	gpul_status st = gpul_cu(s->drv, err, cuEventRecord(s->begun, stream));

	s->n_copied = 0;
	return st ? st : gpul_cu(s->drv, err, cuStreamWaitEvent(s->copies, s->begun, 0));
}

gpul_status sum_stage_copy(struct sum_stage *s, CUdeviceptr data, size_t bytes, CUstream stream, CUdeviceptr *out, gpul_error *err)
{
	const unsigned i = s->n_copied % N_BUFFERS;
	const struct buffer *b = &s->buffer[i];
	const CUdeviceptr at = s->memory + (CUdeviceptr)i * SUM_PIECE_BYTES;
	gpul_status st = GPUL_OK;

	if (s->n_copied >= N_BUFFERS)
		st = gpul_cu(s->drv, err, cuStreamWaitEvent(s->copies, b->used, 0));
	st = st ? st : gpul_cu(s->drv, err, cuMemcpyAsync(at, data, bytes, s->copies));
	st = st ? st : gpul_cu(s->drv, err, cuEventRecord(b->arrived, s->copies));
	st = st ? st : gpul_cu(s->drv, err, cuStreamWaitEvent(stream, b->arrived, 0));
	if (!st)
		*out = at;
	return st;
}

gpul_status sum_stage_release(struct sum_stage *s, CUstream stream, gpul_error *err)
{
	const struct buffer *b = &s->buffer[s->n_copied++ % N_BUFFERS];

	return gpul_cu(s->drv, err, cuEventRecord(b->used, stream));
}
