/* Arithmetic of 16-bit floating point, of single values and of pairs, with the operators of the toolkit's headers. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void halfops(const unsigned short *a, const unsigned short *b, unsigned short *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	__half x = __ushort_as_half(a[i]), y = __ushort_as_half(b[i]);
	__half2 p = __halves2half2(x, y), q = __halves2half2(y, x), sum = p + q, both = __hfma2(p, q, p);
	__half r[] = { x + y, x - y, x * y, __hfma(x, y, x), -x, __hmin(x, y), __hmax(x, y), hfloor(x), hrint(x),
		       __float2half(3.0f * __half2float(x)), __double2half(__half2float(x) / 3.0),
		       __ushort_as_half((x < y) | (x == y) << 1 | (x != y) << 2 | __hisnan(x) << 3),
		       __low2half(sum), __high2half(sum), __low2half(both), __high2half(both) };

	for (int k = 0; k < 16; k++)
		out[k * n + i] = __half_as_ushort(r[k]);
}

extern "C" __global__ void bfloat(const unsigned short *a, const unsigned short *b, unsigned short *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	__nv_bfloat16 x = __ushort_as_bfloat16(a[i]), y = __ushort_as_bfloat16(b[i]);
	__nv_bfloat16 r[] = { x * y, -x, __habs(y), __float2bfloat16(3.0f * __bfloat162float(x)),
			      __int2bfloat16_rn(i * 12345) };

	for (int k = 0; k < 5; k++)
		out[k * n + i] = __bfloat16_as_ushort(r[k]);
}

extern "C" __global__ void halfsum(__half *sum, __half2 *pair, __nv_bfloat16 *wide)
{
	atomicAdd(sum, __float2half(1.0f));
	atomicAdd(pair, __floats2half2_rn(1.0f, 0.5f));
	atomicAdd(wide, __float2bfloat16(1.0f));
}
