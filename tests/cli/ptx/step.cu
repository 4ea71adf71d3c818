// step.cu: the source to which the .loc lines of step.ptx refer; it is not compiled.
__device__ unsigned twice(unsigned x)
{	unsigned y = x + x;
	return y;
}

extern "C" __global__ void steps(unsigned *out)
{
	__shared__ unsigned cells[64]; unsigned t = threadIdx.x;
	if (t % 32 < 8)
		t += 1000;
	else
		t += 100;
	cells[threadIdx.x] = t;
	__syncthreads();
	t = twice(cells[threadIdx.x ^ 32]);
	out[blockIdx.x * 64 + threadIdx.x] = t;
}
