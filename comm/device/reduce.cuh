/* reduce.cuh — the operations of reductions (sum, product, ...), on packs of 16 bytes.
 *
 * One function has all types and operations, and is called, not inlined: a kernel is compiled once instead of once for each of the
 * 24 combinations, and a call costs little compared with a load over NVLink.  All threads of a kernel take the same branch. */
#ifndef GPULOAD_COMM_DEVICE_REDUCE_CUH
#define GPULOAD_COMM_DEVICE_REDUCE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "comm/layout.h"
#include "comm/types.h"

template <class T> struct gpul_vector {
	T of[16 / sizeof(T)];
};

template <class T> static __device__ __forceinline__ gpul_vector<T> gpul_unpack(uint4 pack)
{
	gpul_vector<T> v;

	memcpy(&v, &pack, 16);
	return v;
}

template <class T> static __device__ __forceinline__ uint4 gpul_repack(gpul_vector<T> v)
{
	uint4 pack;

	memcpy(&pack, &v, 16);
	return pack;
}

#define GPUL_BY_ELEMENT(T, expression) \
	do { \
		gpul_vector<T> x = gpul_unpack<T>(a); \
		const gpul_vector<T> y = gpul_unpack<T>(b); \
		_Pragma("unroll") for (unsigned i = 0; i < 16 / sizeof(T); i++) x.of[i] = expression; \
		return gpul_repack<T>(x); \
	} while (0)
#define GPUL_CASES(dtype, T, plus, times, lower, higher) \
	case dtype *GPUL_COMM_N_OPS + GPUL_COMM_AVG: \
	case dtype *GPUL_COMM_N_OPS + GPUL_COMM_SUM: \
		GPUL_BY_ELEMENT(T, plus(x.of[i], y.of[i])); \
	case dtype *GPUL_COMM_N_OPS + GPUL_COMM_PROD: \
		GPUL_BY_ELEMENT(T, times(x.of[i], y.of[i])); \
	case dtype *GPUL_COMM_N_OPS + GPUL_COMM_MIN: \
		GPUL_BY_ELEMENT(T, lower(x.of[i], y.of[i])); \
	case dtype *GPUL_COMM_N_OPS + GPUL_COMM_MAX: \
		GPUL_BY_ELEMENT(T, higher(x.of[i], y.of[i]))

static __device__ __forceinline__ uint32_t gpul_i32_add(uint32_t a, uint32_t b)
{
	return a + b;
}
static __device__ __forceinline__ uint32_t gpul_i32_mul(uint32_t a, uint32_t b)
{
	return a * b;
}
static __device__ __forceinline__ uint32_t gpul_i32_min(uint32_t a, uint32_t b)
{
	return (uint32_t)min((int32_t)a, (int32_t)b);
}
static __device__ __forceinline__ uint32_t gpul_i32_max(uint32_t a, uint32_t b)
{
	return (uint32_t)max((int32_t)a, (int32_t)b);
}
static __device__ __forceinline__ uint8_t gpul_u8_add(uint8_t a, uint8_t b)
{
	return (uint8_t)(a + b);
}
static __device__ __forceinline__ uint8_t gpul_u8_mul(uint8_t a, uint8_t b)
{
	return (uint8_t)(a * b);
}
static __device__ __forceinline__ uint8_t gpul_u8_min(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}
static __device__ __forceinline__ uint8_t gpul_u8_max(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

static __device__ __noinline__ uint4 gpul_reduce(uint4 a, uint4 b, uint32_t dtype, uint32_t op)
{
	switch (dtype * GPUL_COMM_N_OPS + op) {
		GPUL_CASES(GPUL_COMM_F16, __half2, __hadd2_rn, __hmul2_rn, __hmin2, __hmax2);
		GPUL_CASES(GPUL_COMM_BF16, __nv_bfloat162, __hadd2_rn, __hmul2_rn, __hmin2, __hmax2);
		GPUL_CASES(GPUL_COMM_F32, float, __fadd_rn, __fmul_rn, fminf, fmaxf);
		GPUL_CASES(GPUL_COMM_F64, double, __dadd_rn, __dmul_rn, fmin, fmax);
		GPUL_CASES(GPUL_COMM_I32, uint32_t, gpul_i32_add, gpul_i32_mul, gpul_i32_min, gpul_i32_max);
		GPUL_CASES(GPUL_COMM_U8, uint8_t, gpul_u8_add, gpul_u8_mul, gpul_u8_min, gpul_u8_max);
	}
	return a;
}

/* True for the most common reduction, a sum of f32, which callers inline. */
static __device__ __forceinline__ bool gpul_adds_f32(const gpul_comm_work *work)
{
	return work->dtype == GPUL_COMM_F32 && (work->op == GPUL_COMM_SUM || work->op == GPUL_COMM_AVG);
}

static __device__ __forceinline__ uint4 gpul_add_f32(uint4 a, uint4 b)
{
	return make_uint4(__float_as_uint(__fadd_rn(__uint_as_float(a.x), __uint_as_float(b.x))),
			  __float_as_uint(__fadd_rn(__uint_as_float(a.y), __uint_as_float(b.y))),
			  __float_as_uint(__fadd_rn(__uint_as_float(a.z), __uint_as_float(b.z))),
			  __float_as_uint(__fadd_rn(__uint_as_float(a.w), __uint_as_float(b.w))));
}

#define GPUL_EACH(T, expression) \
	do { \
		gpul_vector<T> x = gpul_unpack<T>(a); \
		_Pragma("unroll") for (unsigned i = 0; i < 16 / sizeof(T); i++) x.of[i] = expression; \
		return gpul_repack<T>(x); \
	} while (0)

/* Divide the sums by n if op is AVG; integers are rounded towards zero.  With other operations, return `a` unchanged. */
static __device__ __noinline__ uint4 gpul_finish(uint4 a, uint32_t dtype, uint32_t op, uint32_t n)
{
	if (op != GPUL_COMM_AVG)
		return a;
	switch (dtype) {
	case GPUL_COMM_F16:
		GPUL_EACH(__half, __float2half_rn(__fdiv_rn(__half2float(x.of[i]), (float)n)));
	case GPUL_COMM_BF16:
		GPUL_EACH(__nv_bfloat16, __float2bfloat16_rn(__fdiv_rn(__bfloat162float(x.of[i]), (float)n)));
	case GPUL_COMM_F32:
		GPUL_EACH(float, __fdiv_rn(x.of[i], (float)n));
	case GPUL_COMM_F64:
		GPUL_EACH(double, __ddiv_rn(x.of[i], (double)n));
	case GPUL_COMM_I32:
		GPUL_EACH(int32_t, x.of[i] / (int32_t)n);
	case GPUL_COMM_U8:
		GPUL_EACH(uint8_t, (uint8_t)(x.of[i] / n));
	}
	return a;
}

#endif
