/* rt_abi_internal.h — declares functions whose parameters differ between CUDA 12 and CUDA 13.
 *
 *     CUDA 12                                          CUDA 13
 *     cudaMemAdvise(p, n, advice, int device)          -
 *     cudaMemAdvise_v2(p, n, advice, location)         cudaMemAdvise(p, n, advice, location)
 *
 * A file that defines such functions is compiled for both interfaces, with GPUL_RT_ABI = 12 and 13. NVIDIA's installed header has one
 * version only, and may declare the name with other parameters. So such a function gets a C name of its own, and the symbol with which
 * programs link is given as a string:
 *     GPUL_RT_NEW("cudaMemAdvise")  the interface of CUDA 13; in CUDA 12 its symbol ends in _v2
 *     GPUL_RT_OLD("cudaMemAdvise")  the interface that only CUDA 12 has */
#ifndef GPULOAD_NVIDIA_CUDART_RT_ABI_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_RT_ABI_INTERNAL_H

#include "nvidia/cudart/rt_runtime_internal.h"

/* The version of the interface; 12090 is the last version of CUDA 12. */
#define GPUL_RT_VERSION (GPUL_RT_ABI == CUDART_VERSION / 1000 ? CUDART_VERSION : 12090)

#if GPUL_RT_ABI < 13
#define GPUL_RT_VERSION_2 "_v2"
#else
#define GPUL_RT_VERSION_2 ""
#endif

/* The symbol of a function with a stream argument, in files that are also compiled for per-thread default streams. */
#ifdef GPUL_RT_PER_THREAD
#define GPUL_RT_PTSZ "_ptsz"
#else
#define GPUL_RT_PTSZ ""
#endif

#define GPUL_RT_NEW(symbol)      symbol GPUL_RT_VERSION_2
#define GPUL_RT_NEW_PTSZ(symbol) symbol GPUL_RT_VERSION_2 GPUL_RT_PTSZ
#define GPUL_RT_OLD(symbol)      symbol
#define GPUL_RT_OLD_PTSZ(symbol) symbol GPUL_RT_PTSZ

/* Declare the C function `name`, which programs call by the symbol `symbol`. */
#define GPUL_RT_DECLARE(symbol, name, parameters) cudaError_t name parameters __asm__(symbol);

/* Like GPUL_RT_FORWARD, for a function that programs call by the symbol `symbol`. */
#define GPUL_RT_FORWARD_AS(symbol, name, parameters, call) \
	GPUL_RT_DECLARE(symbol, name, parameters) \
	GPUL_RT_FORWARD(name, parameters, call)

#endif
