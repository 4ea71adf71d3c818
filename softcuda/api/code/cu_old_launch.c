/* cu_old_launch.c — the launch calls of CUDA 3: the block's shape and the parameters are stored in the function, and cuLaunchGrid
 * launches the function.  Deprecated since CUDA 4.0, but PyCUDA still calls cuFuncSetBlockShape. */
#include "softcuda/api/code/cu_code_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_OLD_BYTES = 4096 }; /* CUDA Driver API: the maximum size of the parameters, in bytes */

struct old_launch {
	unsigned block[3], shared_bytes;
	size_t param_bytes;
	unsigned char params[MAX_OLD_BYTES];
};

/* Find the function and its stored launch parameters, which are initially 0; the lock is held on success. */
static CUresult enter_old_launch(CUfunction handle, struct old_launch **out)
{
	struct function *f;
	CUresult r = soft_enter_function(handle, &f);

	if (r)
		return r;
	if (!f->old)
		f->old = calloc(1, sizeof *f->old);
	*out = f->old;
	if (*out)
		return CUDA_SUCCESS;
	soft_unlock();
	return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z)
{
	struct old_launch *old;
	CUresult r = x > 0 && y > 0 && z > 0 ? enter_old_launch(f, &old) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	old->block[0] = (unsigned)x;
	old->block[1] = (unsigned)y;
	old->block[2] = (unsigned)z;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetSharedSize(CUfunction f, unsigned int bytes)
{
	struct old_launch *old;
	CUresult r = enter_old_launch(f, &old);

	if (r)
		return r;
	old->shared_bytes = bytes;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuParamSetSize(CUfunction f, unsigned int bytes)
{
	struct old_launch *old;
	CUresult r = bytes <= MAX_OLD_BYTES ? enter_old_launch(f, &old) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	old->param_bytes = bytes;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuParamSetv(CUfunction f, int offset, void *value, unsigned int bytes)
{
	struct old_launch *old;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (value && offset >= 0 && offset <= MAX_OLD_BYTES && bytes <= MAX_OLD_BYTES - (unsigned)offset && soft_is_readable(value, bytes))
		r = enter_old_launch(f, &old);
	if (r)
		return r;
	memcpy(&old->params[offset], value, bytes);
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuParamSeti(CUfunction f, int offset, unsigned int value)
{
	return cuParamSetv(f, offset, &value, sizeof value);
}

EXPORT CUresult cuParamSetf(CUfunction f, int offset, float value)
{
	return cuParamSetv(f, offset, &value, sizeof value);
}

EXPORT CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
	struct old_launch *old, copy;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, copy.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &copy.param_bytes,
			  CU_LAUNCH_PARAM_END };
	CUresult r = width > 0 && height > 0 ? enter_old_launch(f, &old) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	copy = *old;
	soft_unlock();
	if (!copy.block[0])
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuLaunchGrid: call cuFuncSetBlockShape first");
	return cuLaunchKernel(f, (unsigned)width, (unsigned)height, 1, copy.block[0], copy.block[1], copy.block[2], copy.shared_bytes,
			      stream, NULL, extra);
}

EXPORT CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	return cuLaunchGridAsync(f, width, height, CU_STREAM_LEGACY);
}

EXPORT CUresult cuLaunch(CUfunction f)
{
	return cuLaunchGridAsync(f, 1, 1, CU_STREAM_LEGACY);
}
