/* calls_internal.h — the calls that nvcc writes into a program and no manual lists.
 *
 *     nvcc turns                  into (see it with nvcc --cuda)
 *     __global__ void k(int n);   static void k(int n): the stub, which calls __cudaLaunchKernel
 *     k<<<grid, block>>>(5);      __cudaPushCallConfiguration(grid, block) ? (void)0 : k(5);
 *     the file as a whole         a constructor: __cudaRegisterFatBinary(&wrapper); for each
 *                                 kernel __cudaRegisterFunction(handle, k, ..., "_Z1ki", ...),
 *                                 for each variable __cudaRegisterVar; then
 *                                 __cudaRegisterFatBinaryEnd(handle), and, at exit,
 *                                 __cudaUnregisterFatBinary(handle)
 *
 * Seen in the output of CUDA 13.0 (crt/host_runtime.h, crt/device_functions.h); up to 12.x the
 * stub calls cudaLaunchKernel instead.  The names begin with two underscores because NVIDIA's
 * do. */
#ifndef GPULOAD_LOADER_RUNTIME_CALLS_INTERNAL_H
#define GPULOAD_LOADER_RUNTIME_CALLS_INTERNAL_H

#include "loader/runtime/runtime_internal.h"

/* What nvcc puts into .nvFatBinSegment, one a file: __fatBinC_Wrapper_t of its
 * fatbinary_section.h, which only the compiler's package has. */
typedef struct gpul_rt_wrapper {
	int magic;
	int version;
	const void *fatbin;
	const void *const *parts; /* version 2: the relocatable fat binaries, then NULL */
} gpul_rt_wrapper;
_Static_assert(sizeof(gpul_rt_wrapper) == 24, "as nvcc lays it out");

enum { GPUL_RT_WRAPPER_MAGIC = 0x466243b1, GPUL_RT_WHOLE = 1, GPUL_RT_LINKED = 2 };

/* wrapper: a gpul_rt_wrapper.  Returns a handle for the calls below. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);

/* stub: the host function; name: the kernel's in the device code.  The rest tells nothing that
 * the code itself does not. */
void __cudaRegisterFunction(void **handle, const char *stub, char *stub_again, const char *name,
			    int thread_limit, uint3 *thread, uint3 *block, dim3 *block_dim,
			    dim3 *grid_dim, int *warp_size);

/* host: a variable of the host that stands for the device's; name: of that one. */
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external,
		       size_t bytes, int constant, int global);

/* __managed__ variables are refused: see the README.  cudaErrorNotSupported at the first call.
 */
void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
			      int external, size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);

/* <<<>>>'s four values wait here for the stub.  Push: 0, or the launch is left out. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
				     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
				       void *stream);

/* The stub asks once, keeps the answer in a static, and launches with it. */
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				    size_t shared_bytes, cudaStream_t stream);

#endif
