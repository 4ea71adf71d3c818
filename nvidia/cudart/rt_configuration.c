/* rt_configuration.c — passes the four values of <<<>>> to the stub on a stack.
 *
 * One variable is not enough, because an argument may launch another kernel: k<<<1, 1>>>(f()) pushes its values before it calls f. */
#include "nvidia/cudart/rt_calls_internal.h"

enum { DEEPEST = 64 };

static _Thread_local struct {
	struct configuration {
		dim3 grid, block;
		size_t shared_bytes;
		cudaStream_t stream;
	} at[DEEPEST];
	int n;
} stack;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, struct CUstream_st *stream)
{
	if (stack.n == DEEPEST) {
		(void)gpul_rt_fail(cudaErrorLaunchMaxDepthExceeded, "more than %d launch configurations are nested", DEEPEST);
		return 1;
	}
	stack.at[stack.n++] = (struct configuration){ grid, block, shared_bytes, stream };
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
	const struct configuration *c;

	if (!stack.n)
		return gpul_rt_fail(cudaErrorMissingConfiguration,
				    "the host function of a kernel was called without a launch configuration (<<<...>>>)");
	c = &stack.at[--stack.n];
	*grid = c->grid;
	*block = c->block;
	*shared_bytes = c->shared_bytes;
	*(cudaStream_t *)stream = c->stream;
	return cudaSuccess;
}

/* The stub keeps the result of its first call, even an error.  So this returns the stub as the handle: each launch then finds the
 * kernel, and reports its own error. */
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *stub)
{
	void *handle;

	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the kernel is NULL");
	_Static_assert(sizeof handle == sizeof stub, "only the const differs");
	__builtin_memcpy(&handle, &stub, sizeof handle);
	*out = handle;
	return cudaSuccess;
}
