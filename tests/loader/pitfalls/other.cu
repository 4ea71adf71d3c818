/* other.cu — relocatable code whose only kernel no host code refers to. */
extern "C" __global__ void NobodyAsks(float *x)
{
	x[0] = 3;
}
