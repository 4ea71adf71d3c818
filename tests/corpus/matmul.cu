/* Product of square matrices, one 16 x 16 tile for each block.  n must be a multiple of 16. */
#define T 16

extern "C" __global__ void matmul(const float *__restrict__ A, const float *__restrict__ B,
				  float *C, int n)
{
	__shared__ float As[T][T], Bs[T][T];
	int tx = threadIdx.x, ty = threadIdx.y;
	int r = blockIdx.y * T + ty, c = blockIdx.x * T + tx;
	float s = 0;

	for (int k0 = 0; k0 < n; k0 += T) {
		As[ty][tx] = A[r * n + k0 + tx];
		Bs[ty][tx] = B[(k0 + ty) * n + c];
		__syncthreads();
		for (int k = 0; k < T; k++)
			s += As[ty][k] * Bs[k][tx];
		__syncthreads();
	}
	C[r * n + c] = s;
}
