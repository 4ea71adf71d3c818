/* rt_graph_internal.h — converts the parameters of graph nodes between the runtime and the driver. */
#ifndef GPULOAD_NVIDIA_CUDART_GRAPH_RT_GRAPH_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_GRAPH_RT_GRAPH_INTERNAL_H

#include <stddef.h>

#include "nvidia/cudart/rt_runtime_internal.h"

/* Convert the parameters of a kernel node.  Errors: cudaErrorInvalidValue if p is NULL, and those of finding the kernel. */
cudaError_t gpul_rt_describe_kernel(const gpul_driver *drv, const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *out);

#endif
