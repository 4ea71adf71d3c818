/* vec.h — what libvec.a offers to C and C++ that nvcc does not compile. */
#ifndef VEC_H
#define VEC_H

#ifdef __cplusplus
extern "C"
#endif
/* c[i] = a[i] + b[i] on the GPU; the arrays are the host's, n long.  0, or a cudaError_t. */
int invoke_VecAdd(const float *a, const float *b, float *c, int n);

#endif
