/* rt_refuse_internal.h — declares how a call that is not implemented fails; NVIDIA's header is not included (rt_refused.c says why). */
#ifndef GPULOAD_NVIDIA_CUDART_RT_REFUSE_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_RT_REFUSE_INTERNAL_H

/* Make cudaErrorNotSupported the last error of the thread and return it; the log gets the name and the reason. */
int gpul_rt_refuse(const char *name, const char *reason);

#endif
