/* cu_refused_calls_internal.h — declares the functions of cu_refused.c: soft_refused_cuX is exported as cuX. */
#ifndef GPULOAD_SOFTCUDA_API_CU_REFUSED_CALLS_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_CU_REFUSED_CALLS_INTERNAL_H

#include <cuda.h>

#include "softcuda/api/cu_refused_internal.h"

#define CALL(name, since, symbol, why) CUresult soft_refused_##symbol(void) __asm__(#symbol);
#define PTDS(name, since, symbol, per_thread, why) \
	CUresult soft_refused_##symbol(void) __asm__(#symbol); \
	CUresult soft_refused_##per_thread(void) __asm__(#per_thread);
SOFT_REFUSED(CALL, PTDS)
#undef CALL
#undef PTDS

#endif
