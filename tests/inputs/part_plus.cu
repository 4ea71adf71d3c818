// part_plus.cu — the other half: the function, and no kernel.
extern "C" __device__ float plus(float x, float y)
{
	return x + y;
}
