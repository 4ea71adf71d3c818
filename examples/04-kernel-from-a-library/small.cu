/* small.cu — a library with one kernel, and without a function that launches it.
 *
 * nvcc -shared hides the kernel's host stub, so a program cannot link against it.  gpuload finds the
 * kernel by its name in the device code. */
extern "C" __global__ void small_axpy(float a, const float *x, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}
