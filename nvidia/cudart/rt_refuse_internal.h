/* rt_refuse_internal.h — how a call that is not implemented fails; without NVIDIA's header, see rt_refused.c. */
#ifndef GPULOAD_NVIDIA_CUDART_RT_REFUSE_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_RT_REFUSE_INTERNAL_H

/* Make cudaErrorNotSupported the last error of the thread and return it; the log has the name and the reason. */
int gpul_rt_refuse(const char *name, const char *reason);

#endif
