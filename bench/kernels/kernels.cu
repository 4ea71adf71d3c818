/* kernels.cu — the kernels of bench_soft. */

/* Executes only fused multiply-add instructions: the interpreter's best case for arithmetic. */
extern "C" __global__ void fmaloop(float *x, int rounds)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float v = x[i];

	for (int k = 0; k < rounds; k++)
		v = v * 0.999f + 0.001f;
	x[i] = v;
}

/* The lanes of a warp leave the loop after different numbers of iterations, so they diverge. */
extern "C" __global__ void mandel(int *out, int width, int height, int limit)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x >= width || y >= height)
		return;
	float cr = -2.0f + 3.0f * x / width, ci = -1.5f + 3.0f * y / height, zr = 0, zi = 0;
	int k = 0;
	while (k < limit && zr * zr + zi * zi < 4) {
		float t = zr * zr - zi * zi + cr;
		zi = 2 * zr * zi + ci;
		zr = t;
		k++;
	}
	out[y * width + x] = k;
}

/* Computes the forces between all pairs of bodies; shared memory holds the positions of one tile of bodies.  n must be
 * a multiple of the block size. */
extern "C" __global__ void nbody(const float4 *position, float4 *acceleration, int n)
{
	__shared__ float4 tile[256];
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float4 p = position[i];
	float ax = 0, ay = 0, az = 0;

	for (int base = 0; base < n; base += blockDim.x) {
		tile[threadIdx.x] = position[base + threadIdx.x];
		__syncthreads();
		for (int j = 0; j < blockDim.x; j++) {
			float4 q = tile[j];
			float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
			float inv = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f);
			float s = q.w * inv * inv * inv;
			ax += dx * s;
			ay += dy * s;
			az += dz * s;
		}
		__syncthreads();
	}
	acceleration[i] = make_float4(ax, ay, az, 0);
}
