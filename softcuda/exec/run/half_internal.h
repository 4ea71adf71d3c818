/* half_internal.h — rows of f16 and bf16 to float and back, as vector code.
 *
 * n is a multiple of 8.  Narrowing rounds to nearest even; every NaN becomes 0x7fff. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_HALF_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_HALF_INTERNAL_H

#include "softcuda/exec/run/float_internal.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

/* One f16 by integer operations: a normal moves its exponent; a subnormal is scaled by float
 * multiplication, which is exact; infinity and NaN get the exponent 255. */
static inline float f16_to_float(uint16_t h)
{
	const uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
	const float scaled = float_of(magnitude << 13) * 0x1p112f;
	const uint32_t special = (magnitude << 13) | 0x7f800000;
	return float_of(sign | (magnitude >= 0x7c00 ? special : bits_of(scaled)));
}

/* To nearest even.  A result that is subnormal: adding 0.5 puts its last bit at the float's last bit. */
static inline uint16_t f16_from_float(float x)
{
	const uint32_t u = bits_of(x), magnitude = u & 0x7fffffff, sign = u >> 16 & 0x8000;
	const uint32_t rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13;
	const uint32_t normal = rounded - (112u << 10);
	const uint32_t tiny = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000;
	uint32_t h = magnitude < 0x38800000 ? tiny : magnitude >= 0x477ff000 ? 0x7c00 : normal;
	h |= sign;
	return (uint16_t)(magnitude > 0x7f800000 ? 0x7fff : h);
}

static inline void widen_f16(float *x, const uint16_t *h, unsigned n)
{
#if defined(__F16C__)
	for (unsigned k = 0; k < n; k += 8)
		_mm256_storeu_ps(x + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(h + k))));
#else
	for (unsigned k = 0; k < n; k++)
		x[k] = f16_to_float(h[k]);
#endif
}

static inline void narrow_f16(uint16_t *h, const float *x, unsigned n)
{
#if defined(__F16C__)
	for (unsigned k = 0; k < n; k += 8) {
		const __m128i v = _mm256_cvtps_ph(_mm256_loadu_ps(x + k), _MM_FROUND_TO_NEAREST_INT);
		_mm_storeu_si128((__m128i *)(h + k), v);
	}
	for (unsigned k = 0; k < n; k++)
		h[k] = (uint16_t)((h[k] & 0x7fff) > 0x7c00 ? 0x7fff : h[k]);
#else
	for (unsigned k = 0; k < n; k++)
		h[k] = f16_from_float(x[k]);
#endif
}

static inline void widen_bf16(float *x, const uint16_t *h, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		x[k] = float_of((uint32_t)h[k] << 16);
}

static inline uint16_t bf16_from_float(float x)
{
	const uint32_t u = bits_of(x);
	return (uint16_t)(x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline void narrow_bf16(uint16_t *h, const float *x, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		h[k] = bf16_from_float(x[k]);
}

/* The format is known at compile time wherever these are called. */
static inline void widen_half(float *x, const uint16_t *h, unsigned n, bool bf16)
{
	if (bf16)
		widen_bf16(x, h, n);
	else
		widen_f16(x, h, n);
}

static inline void narrow_half(uint16_t *h, const float *x, unsigned n, bool bf16)
{
	if (bf16)
		narrow_bf16(h, x, n);
	else
		narrow_f16(h, x, n);
}

#endif
