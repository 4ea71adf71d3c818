/* parts.cu — relocatable code: a kernel that host code launches, and a kernel that calls a function of helper.cu. */
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
