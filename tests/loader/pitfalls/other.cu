/* other.cu — relocatable code with one kernel that no host code refers to. */
extern "C" __global__ void Unreferenced(float *x)
{
	x[0] = 3;
}
