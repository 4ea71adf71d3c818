/* pack.cuh — 16 bytes as the unit of copies and reductions, from buffers of any alignment.
 *
 * A buffer of n bytes is (n + 15) / 16 packs; the last one may be short.  Loads fill the missing bytes with zeros, stores leave
 * them alone. */
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

/* The largest power of two, at most 16, that divides the address. */
static __device__ __forceinline__ uint32_t gpul_alignment(const void *at)
{
	const uint32_t low = (uint32_t)(uintptr_t)at | 16;

	return low & (0u - low);
}

static __device__ __noinline__ uint4 gpul_load_short(const unsigned char *from, uint32_t n_bytes)
{
	uint32_t words[4] = { 0, 0, 0, 0 };

	for (uint32_t i = 0; i < 16; i++)
		if (i < n_bytes)
			words[i / 4] |= (uint32_t)((const volatile unsigned char *)from)[i] << (i % 4 * 8);
	return make_uint4(words[0], words[1], words[2], words[3]);
}

static __device__ __noinline__ void gpul_store_short(unsigned char *to, uint4 pack, uint32_t n_bytes)
{
	const uint32_t words[4] = { pack.x, pack.y, pack.z, pack.w };

	for (uint32_t i = 0; i < 16; i++)
		if (i < n_bytes)
			((volatile unsigned char *)to)[i] = (unsigned char)(words[i / 4] >> (i % 4 * 8));
}

/* Load pack i of a buffer. */
static __device__ __forceinline__ uint4 gpul_load_pack(const unsigned char *buffer, uint64_t i, uint64_t buffer_bytes)
{
	const unsigned char *from = buffer + i * GPUL_PACK_BYTES;
	const uint64_t left = buffer_bytes - i * GPUL_PACK_BYTES;

	if (left >= GPUL_PACK_BYTES && gpul_alignment(buffer) == GPUL_PACK_BYTES)
		return *(const uint4 *)from;
	return gpul_load_short(from, left < GPUL_PACK_BYTES ? (uint32_t)left : GPUL_PACK_BYTES);
}

static __device__ __forceinline__ void gpul_store_pack(unsigned char *buffer, uint64_t i, uint64_t buffer_bytes, uint4 pack)
{
	unsigned char *to = buffer + i * GPUL_PACK_BYTES;
	const uint64_t left = buffer_bytes - i * GPUL_PACK_BYTES;

	if (left >= GPUL_PACK_BYTES && gpul_alignment(buffer) == GPUL_PACK_BYTES)
		*(uint4 *)to = pack;
	else
		gpul_store_short(to, pack, left < GPUL_PACK_BYTES ? (uint32_t)left : GPUL_PACK_BYTES);
}

#endif
