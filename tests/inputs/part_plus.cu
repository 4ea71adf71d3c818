// part_plus.cu — the second half of the program: the function, without a kernel.
extern "C" __device__ float plus(float x, float y)
{
	return x + y;
}
