/* function_pointer.cu — the address of a device function that is declared but not defined. */
typedef float (*function_pointer)(float);

__device__ float elsewhere(float x);
__device__ function_pointer pointer = elsewhere;

extern "C" __global__ void use(float *x)
{
	x[0] = pointer(x[0]);
}
