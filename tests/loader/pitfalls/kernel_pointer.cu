/* kernel_pointer.cu — the address of a kernel that is declared but not defined. */
typedef void (*kernel_pointer)(float *);

__global__ void VecAdd2(float *x);
__device__ kernel_pointer pointer = VecAdd2;

extern "C" __global__ void use(float *x)
{
	pointer(x);
}
