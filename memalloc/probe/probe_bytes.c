/* probe_bytes.c — writes and checks patterns of bytes, on the GPU and on the CPU. */
#include "memalloc/probe/probe_internal.h"

#include <string.h>

static unsigned char pattern_byte(unsigned char seed, size_t i)
{
	return (unsigned char)(seed * 59u + i * 7u + (i >> 8));
}

void gpul_probe_cpu_write(void *at, unsigned char seed)
{
	for (size_t i = 0; i < PROBE_BYTES; i++)
		((unsigned char *)at)[i] = pattern_byte(seed, i);
}

static gpul_status compare_pattern(const unsigned char *found, unsigned char seed, const char *reader, gpul_error *err)
{
	for (size_t i = 0; i < PROBE_BYTES; i++)
		if (found[i] != pattern_byte(seed, i))
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
					 "the %s reads different data than was written: byte %zu is %02x instead of %02x", reader, i,
					 found[i], pattern_byte(seed, i));
	return GPUL_OK;
}

/* Copy through scratch memory of the device, in either direction: bytes <─ copy ─> scratch <─ copy engine ─> at. */
static gpul_status copy_through_scratch(const gpul_driver *drv, CUdeviceptr at, unsigned char bytes[PROBE_BYTES], bool write,
					gpul_error *err)
{
	CUdeviceptr scratch = 0;
	gpul_status st = gpul_cu(drv, err, cuMemAlloc(&scratch, PROBE_BYTES));

	if (st)
		return st;
	st = gpul_cu(drv, err, cuMemcpyHtoD(scratch, bytes, PROBE_BYTES));
	if (!st)
		st = gpul_cu(drv, err, cuMemcpy(write ? at : scratch, write ? scratch : at, PROBE_BYTES));
	if (!st)
		st = gpul_cu(drv, err, cuCtxSynchronize());
	if (!st && !write)
		st = gpul_cu(drv, err, cuMemcpyDtoH(bytes, scratch, PROBE_BYTES));
	drv->cuMemFree(scratch);
	return st;
}

gpul_status gpul_probe_gpu_write(const gpul_driver *drv, CUdeviceptr at, unsigned char seed, gpul_error *err)
{
	unsigned char bytes[PROBE_BYTES];

	gpul_probe_cpu_write(bytes, seed);
	return copy_through_scratch(drv, at, bytes, true, err);
}

gpul_status gpul_probe_gpu_check(const gpul_driver *drv, CUdeviceptr at, unsigned char seed, gpul_error *err)
{
	unsigned char bytes[PROBE_BYTES] = { 0 };
	gpul_status st = copy_through_scratch(drv, at, bytes, false, err);

	return st ? st : compare_pattern(bytes, seed, "GPU", err);
}

gpul_status gpul_probe_cpu_check(const void *at, unsigned char seed, gpul_error *err)
{
	return compare_pattern(at, seed, "CPU", err);
}

gpul_status gpul_probe_answer(const gpul_driver *drv, const struct probe_question *q, int fd, gpul_error *err)
{
	const gpul_mem_desc desc = { .devices = &q->device, .n_devices = 1 };
	gpul_mem *m = NULL;
	gpul_status st = gpul_mem_import(drv, &q->offer, fd, q->has_handle ? &q->handle : NULL, &desc, &m, err);

	if (!st && gpul_mem_cpu(m))
		st = gpul_probe_cpu_check(gpul_mem_cpu(m), q->seed, err);
	if (!st)
		st = gpul_probe_gpu_check(drv, gpul_mem_gpu(m), q->seed, err);
	if (!st)
		st = gpul_probe_gpu_write(drv, gpul_mem_gpu(m), (unsigned char)(q->seed + 1), err);
	gpul_mem_destroy(m);
	return st;
}
