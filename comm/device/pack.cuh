/* pack.cuh — loads and stores packs: units of 16 bytes for copies and reductions, in buffers of any
 * alignment.
 *
 * A buffer of n bytes is (n + 15) / 16 packs; the last one may be short.  Loads fill the
 * missing bytes with zeros, and stores do not write them. */
#ifndef GPULOAD_COMM_DEVICE_PACK_CUH
#define GPULOAD_COMM_DEVICE_PACK_CUH

#include "comm/layout.h"

enum { GPUL_PACK_BYTES = 16 };

typedef union gpul_pack {
	uint4 words;
	uint64_t u64[2];
	uint32_t u32[4];
	uint16_t u16[8];
	uint8_t u8[16];
} gpul_pack;

/* Compute the largest power of two, at most 16, that divides the address. */
static __device__ __forceinline__ uint32_t gpul_alignment(const void *at)
{
	const uint32_t low = (uint32_t)(uintptr_t)at | 16;

	return low & (0u - low);
}

/* Whether a buffer consists of aligned words of 4 bytes. */
static __device__ __forceinline__ bool gpul_are_words(const void *buffer, uint64_t n_bytes)
{
	return ((uintptr_t)buffer | n_bytes) % 4 == 0;
}

/* Load and store fewer than 4 words.  They are inlined, because a call costs the smallest messages a tenth of their time. */
static __device__ __forceinline__ uint4 gpul_load_few_words(const uint32_t *from, uint32_t n)
{
	const volatile uint32_t *words = from;

	return make_uint4(words[0], n > 1 ? words[1] : 0, n > 2 ? words[2] : 0, 0);
}

static __device__ __forceinline__ void gpul_store_few_words(uint32_t *to, uint4 pack, uint32_t n)
{
	to[0] = pack.x;
	if (n > 1)
		to[1] = pack.y;
	if (n > 2)
		to[2] = pack.z;
}

/* Load fewer than 16 bytes: by words, as far as the address is aligned and words are whole, and the rest by bytes. */
static __device__ __noinline__ uint4 gpul_load_short(const unsigned char *from, uint32_t n_bytes)
{
	const uint32_t n_words = (uintptr_t)from % 4 == 0 ? n_bytes / 4 : 0;
	uint32_t words[4] = { 0, 0, 0, 0 };

#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
		if (i < n_words)
			words[i] = ((const volatile uint32_t *)from)[i];
	if (n_words * 4 == n_bytes)
		return make_uint4(words[0], words[1], words[2], words[3]);
	for (uint32_t i = 0; i < 16; i++)
		if (i >= n_words * 4 && i < n_bytes)
			words[i / 4] |= (uint32_t)((const volatile unsigned char *)from)[i] << (i % 4 * 8);
	return make_uint4(words[0], words[1], words[2], words[3]);
}

static __device__ __noinline__ void gpul_store_short(unsigned char *to, uint4 pack, uint32_t n_bytes)
{
	const uint32_t n_words = (uintptr_t)to % 4 == 0 ? n_bytes / 4 : 0;
	const uint32_t words[4] = { pack.x, pack.y, pack.z, pack.w };

#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
		if (i < n_words)
			((volatile uint32_t *)to)[i] = words[i];
	if (n_words * 4 == n_bytes)
		return;
	for (uint32_t i = 0; i < 16; i++)
		if (i >= n_words * 4 && i < n_bytes)
			((volatile unsigned char *)to)[i] = (unsigned char)(words[i / 4] >> (i % 4 * 8));
}

/* Load 16 bytes from an address that is not a multiple of 16, with the widest loads that its alignment allows. */
static __device__ __noinline__ uint4 gpul_load_unaligned(const unsigned char *from)
{
	const uint32_t alignment = gpul_alignment(from);
	uint32_t words[4];

	if (alignment == 8) {
		const uint64_t low = ((const volatile uint64_t *)from)[0], high = ((const volatile uint64_t *)from)[1];

		return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
	}
	if (alignment == 1)
		return gpul_load_short(from, GPUL_PACK_BYTES);
	for (uint32_t i = 0; i < 4; i++) {
		const volatile uint16_t *halves = (const volatile uint16_t *)from + 2 * i;

		words[i] = alignment == 4 ? ((const volatile uint32_t *)from)[i] : (uint32_t)halves[0] | (uint32_t)halves[1] << 16;
	}
	return make_uint4(words[0], words[1], words[2], words[3]);
}

static __device__ __noinline__ void gpul_store_unaligned(unsigned char *to, uint4 pack)
{
	const uint32_t alignment = gpul_alignment(to), words[4] = { pack.x, pack.y, pack.z, pack.w };

	if (alignment == 1) {
		gpul_store_short(to, pack, GPUL_PACK_BYTES);
		return;
	}
	for (uint32_t i = 0; i < 4; i++)
		if (alignment >= 4) {
			((volatile uint32_t *)to)[i] = words[i];
		} else {
			((volatile uint16_t *)to)[2 * i] = (uint16_t)words[i];
			((volatile uint16_t *)to)[2 * i + 1] = (uint16_t)(words[i] >> 16);
		}
}

static __device__ __forceinline__ uint4 gpul_load_pack(const unsigned char *buffer, uint64_t i, uint64_t buffer_bytes)
{
	const unsigned char *from = buffer + i * GPUL_PACK_BYTES;
	const uint64_t left = buffer_bytes - i * GPUL_PACK_BYTES;

	if (left < GPUL_PACK_BYTES)
		return gpul_load_short(from, (uint32_t)left);
	return gpul_alignment(buffer) == GPUL_PACK_BYTES ? *(const uint4 *)from : gpul_load_unaligned(from);
}

static __device__ __forceinline__ void gpul_store_pack(unsigned char *buffer, uint64_t i, uint64_t buffer_bytes, uint4 pack)
{
	unsigned char *to = buffer + i * GPUL_PACK_BYTES;
	const uint64_t left = buffer_bytes - i * GPUL_PACK_BYTES;

	if (left < GPUL_PACK_BYTES)
		gpul_store_short(to, pack, (uint32_t)left);
	else if (gpul_alignment(buffer) == GPUL_PACK_BYTES)
		*(uint4 *)to = pack;
	else
		gpul_store_unaligned(to, pack);
}

#endif
