/* The mathematical functions of CUDA C++ for double that are not correctly rounded. */
#define EACH(X) \
	X(sin(x)) X(cos(x)) X(tan(x)) X(exp(x)) X(exp2(x)) X(log(x)) X(log2(x)) X(log10(x)) \
	X(sqrt(x)) X(rsqrt(x)) X(cbrt(x)) X(tanh(x)) X(erf(x)) X(tgamma(x)) X(pow(x, y)) \
	X(fmod(x, y)) X(atan2(x, y)) X(hypot(x, y))

extern "C" __global__ void mathd(const double *a, const double *b, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	double x = a[i], y = b[i];
#define X(call) out[i] = call; out += n;
	EACH(X)
#undef X
}
