/* parts.cu — relocatable code: one kernel that host code launches, one that calls a function of
 * another file. */
extern "C" __device__ float helper(float x);

extern "C" __global__ void Launched(float *x)
{
	x[0] = 1;
}

extern "C" __global__ void UsesHelper(float *x)
{
	x[0] = helper(x[0]);
}

extern "C" void launch(float *x)
{
	Launched<<<1, 1>>>(x);
}
