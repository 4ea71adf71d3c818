/* vec.h — declares the function of libvec.a that C and C++ code without nvcc can call. */
#ifndef VEC_H
#define VEC_H

#ifdef __cplusplus
extern "C"
#endif
	/* c[i] = a[i] + b[i] on the GPU, for host arrays of n elements.  Returns 0, or a cudaError_t. */
	int
	invoke_VecAdd(const float *a, const float *b, float *c, int n);

#endif
