/* rt_load.c — loads the fatbin of a program as a library (CUlibrary) of the driver.
 *
 *     wrapper version 1:  fatbin ──> fat binary ── cuLibraryLoadData ──> library
 *     wrapper version 2:  fatbin ──> fat binary that nvlink wrote for the GPUs in nvcc's options
 *                         parts ──> the relocatable parts, NULL-terminated: linked here if fatbin
 *                                   has no image for this device
 *
 * The driver accepts the wrapper and selects the image. */
#include <stdlib.h>
#include <string.h>

#include "nvidia/cudart/rt_calls_internal.h"

enum { LOG_BYTES = 512 };

struct header { /* the start of a fat binary of CUDA 11 to 13 */
	unsigned magic;
	unsigned short version, header_bytes;
	unsigned long long payload_bytes;
};

static cudaError_t add_parts(const gpul_driver *drv, CUlinkState link, const void *const *parts)
{
	cudaError_t e = cudaSuccess;

	for (; *parts && !e; parts++) {
		const struct header *h = *parts;
		void *data;

		memcpy(&data, parts, sizeof data); /* copied, because the driver's prototype has no const */
		e = gpul_rt_cu(drv, cuLinkAddData(link, CU_JIT_INPUT_FATBINARY, data, h->header_bytes + (size_t)h->payload_bytes,
						  "relocatable device code", 0, NULL, NULL));
	}
	return e;
}

/* Link the relocatable parts with the driver's linker, as nvlink does at build time. */
static cudaError_t link_parts(const gpul_driver *drv, const void *const *parts, CUlibrary *out)
{
	char log[LOG_BYTES] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)(size_t)LOG_BYTES };
	CUlinkState link = NULL;
	void *image = NULL;
	size_t image_bytes = 0;
	cudaError_t e = gpul_rt_cu(drv, cuLinkCreate(2, options, values, &link));

	if (e)
		return e;
	e = add_parts(drv, link, parts);
	if (!e)
		e = gpul_rt_cu(drv, cuLinkComplete(link, &image, &image_bytes));
	if (e && *log)
		(void)gpul_rt_fail(e, "%s", log);
	if (!e)
		e = gpul_rt_cu(drv, cuLibraryLoadData(out, image, NULL, NULL, 0, NULL, NULL, 0));
	(void)drv->cuLinkDestroy(link);
	return e;
}

cudaError_t gpul_rt_load(const gpul_driver *drv, const void *wrapper, CUlibrary *out)
{
	const gpul_rt_wrapper *w = wrapper;
	const void *const *parts;
	CUresult r;

	if (!w || w->magic != GPUL_RT_WRAPPER_MAGIC || (w->version != GPUL_RT_WHOLE && w->version != GPUL_RT_LINKED))
		return gpul_rt_fail(cudaErrorInvalidKernelImage,
				    "the fat binary that the program registered at %p has version %d, which CUDA 11 to 13 do not use",
				    wrapper, w ? w->version : 0);
	r = drv->cuLibraryLoadData(out, wrapper, NULL, NULL, 0, NULL, NULL, 0);
	parts = w->version == GPUL_RT_LINKED ? w->parts : NULL;
	/* nvlink's image may be empty, or contain only machine code for other GPUs; then link the relocatable parts now */
	if ((r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_INVALID_IMAGE) && parts && *parts)
		return link_parts(drv, parts, out);
	return gpul_rt_record(drv, r, "cuLibraryLoadData");
}
