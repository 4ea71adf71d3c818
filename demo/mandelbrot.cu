/* mandelbrot.cu: prints the Mandelbrot set with printf in the kernel.
 *
 *     gpuload run demo/mandelbrot.cu
 *
 * Threads of a warp leave the loop at different times: they diverge.
 */
// gpuload run: out:i8[1560] i32=64 i32=24 --grid 1 --block 24 --expect 0=sum:64004

/* The number of iterations of z = z*z + c before |z| exceeds 2, up to a limit.
 * fmaf, __fmul_rn and __fadd_rn fix the rounding, so that every compiler produces the same picture. */
__device__ int steps(float cr, float ci, int limit)
{
	float zr = 0, zi = 0;
	int k = 0;

	while (k < limit && fmaf(zr, zr, __fmul_rn(zi, zi)) < 4) {
		float next = __fadd_rn(fmaf(zr, zr, -__fmul_rn(zi, zi)), cr);
		zi = fmaf(__fadd_rn(zr, zr), zi, ci);
		zr = next;
		k++;
	}
	return k;
}

/* Each thread writes one row of width characters and a NUL; then thread 0 prints the rows in order. */
extern "C" __global__ void mandelbrot(char *rows, int width, int height)
{
	const char shade[] = " .:-=+*#%@";
	int y = threadIdx.x;

	if (y < height) {
		char *row = rows + y * (width + 1);
		for (int x = 0; x < width; x++) {
			float cr = fmaf((float)x, 3.0f / 64, -2.2f), ci = fmaf((float)y, 2.0f / 20, -1.15f);
			row[x] = shade[steps(cr, ci, 54) / 6];
		}
		row[width] = 0;
	}
	__syncthreads();
	if (threadIdx.x == 0)
		for (y = 0; y < height; y++)
			printf("%s\n", rows + y * (width + 1));
}
