/* other.cu — relocatable code: one kernel, which no host code refers to. */
extern "C" __global__ void Unreferenced(float *x)
{
	x[0] = 3;
}
