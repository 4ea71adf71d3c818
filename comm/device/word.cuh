/* word.cuh — loads, stores and fences on words that several ranks access.
 *
 * PTX ISA, Memory Consistency Model: a release (a fence and a relaxed store) and an acquire that reads its value order the
 * accesses before the release and after the acquire, including those of other GPUs and of the CPU (scope sys).  A word of 8 bytes
 * is read and written as a whole, also as an element of a vector; the order of a vector's elements is not guaranteed. */
#ifndef GPULOAD_COMM_DEVICE_WORD_CUH
#define GPULOAD_COMM_DEVICE_WORD_CUH

#include "comm/layout.h"

static __device__ __forceinline__ uint64_t gpul_load_acquire(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

static __device__ __forceinline__ uint64_t gpul_load_relaxed(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

static __device__ __forceinline__ uint32_t gpul_load_relaxed32(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

static __device__ __forceinline__ void gpul_store_relaxed(uint64_t *at, uint64_t value)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/* Store with release semantics, which is faster than a fence and a relaxed store: 1.4 us instead of 2.0 us for a barrier of two H200s. */
static __device__ __forceinline__ void gpul_store_release(uint64_t *at, uint64_t value)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

static __device__ __forceinline__ void gpul_store_relaxed32(uint32_t *at, uint32_t value)
{
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

static __device__ __forceinline__ void gpul_fence_sys(void)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Load two 8-byte words, each of them as a whole. */
static __device__ __forceinline__ void gpul_load_words(const void *at, uint64_t *a, uint64_t *b)
{
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(*a), "=l"(*b) : "l"(at) : "memory");
}

static __device__ __forceinline__ void gpul_store_words(void *at, uint64_t a, uint64_t b)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(a), "l"(b) : "memory");
}

/* Like gpul_load_words() and gpul_store_words(), but with acquire and release ordering. */
static __device__ __forceinline__ void gpul_load_words_acquire(const void *at, uint64_t *a, uint64_t *b)
{
	asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(*a), "=l"(*b) : "l"(at) : "memory");
}

static __device__ __forceinline__ void gpul_store_words_release(void *at, uint64_t a, uint64_t b)
{
	asm volatile("st.release.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(a), "l"(b) : "memory");
}

/* Acquire and release at GPU scope, which order accesses only among the blocks of one GPU. */
static __device__ __forceinline__ void gpul_load_words_acquire_gpu(const void *at, uint64_t *a, uint64_t *b)
{
	asm volatile("ld.acquire.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(*a), "=l"(*b) : "l"(at) : "memory");
}

static __device__ __forceinline__ void gpul_store_words_release_gpu(void *at, uint64_t a, uint64_t b)
{
	asm volatile("st.release.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(a), "l"(b) : "memory");
}

static __device__ __forceinline__ void gpul_store_release_gpu(uint64_t *at, uint64_t a)
{
	asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(a) : "memory");
}

static __device__ __forceinline__ uint64_t gpul_globaltimer_ns(void)
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

#endif
