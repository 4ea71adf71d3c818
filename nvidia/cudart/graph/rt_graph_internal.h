/* rt_graph_internal.h — conversions between the parameters of graph nodes in the runtime and in the driver. */
#ifndef GPULOAD_NVIDIA_CUDART_GRAPH_RT_GRAPH_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_GRAPH_RT_GRAPH_INTERNAL_H

#include <stddef.h>

#include "nvidia/cudart/rt_runtime_internal.h"

/* Errors: cudaErrorInvalidValue when p is NULL, and those of finding the kernel. */
cudaError_t gpul_rt_describe_kernel(const gpul_driver *drv, const struct cudaKernelNodeParams *p,
				    CUDA_KERNEL_NODE_PARAMS *out);

#endif
