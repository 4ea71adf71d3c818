/* rt_refuse_internal.h — declares how calls that are not implemented fail, without NVIDIA's header (rt_refused.c). */
#ifndef GPULOAD_NVIDIA_CUDART_RT_REFUSE_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_RT_REFUSE_INTERNAL_H

/* Make cudaErrorNotSupported the last error of the thread and return it; the log gets the name and the reason. */
int gpul_rt_refuse(const char *name, const char *reason);

#endif
