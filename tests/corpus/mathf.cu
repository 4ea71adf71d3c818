/* The mathematical functions of CUDA C++ for float that are not correctly rounded. */
#define EACH(X) \
	X(sinf(x)) X(cosf(x)) X(tanf(x)) X(asinf(x)) X(acosf(x)) X(atanf(x)) X(sinhf(x)) \
	X(coshf(x)) X(tanhf(x)) X(expf(x)) X(exp2f(x)) X(expm1f(x)) X(logf(x)) X(log2f(x)) \
	X(log10f(x)) X(log1pf(x)) X(sqrtf(x)) X(rsqrtf(x)) X(cbrtf(x)) X(erff(x)) X(erfcf(x)) \
	X(tgammaf(x)) X(powf(x, y)) X(fmodf(x, y)) X(atan2f(x, y)) X(hypotf(x, y)) \
	X(__sinf(x)) X(__cosf(x)) X(__expf(x)) X(__logf(x)) X(__powf(x, y)) X(__fdividef(x, y))

extern "C" __global__ void mathf(const float *a, const float *b, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float x = a[i], y = b[i];
#define X(call) out[i] = call; out += n;
	EACH(X)
#undef X
}
