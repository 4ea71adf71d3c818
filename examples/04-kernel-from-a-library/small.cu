/* small.cu — a library with one kernel, and with no function that launches it.
 *
 * nvcc -shared hides the kernel's stub: no program could name it.  By its name in the device code it
 * is there all the same. */
extern "C" __global__ void small_axpy(float a, const float *x, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}
