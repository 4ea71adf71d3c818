/* check.h — checks for the programs in this folder: the first failure is printed and ends the program. */
#ifndef GPULOAD_TESTS_NVIDIA_CUDART_CHECK_H
#define GPULOAD_TESTS_NVIDIA_CUDART_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			printf("%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

#define CUDA(call) \
	do { \
		cudaError_t error_ = (call); \
		if (error_ != cudaSuccess) { \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_)); \
			exit(1); \
		} \
	} while (0)

/* Check that a call returns this error. */
#define FAILS(error, call) \
	do { \
		cudaError_t error_ = (call); \
		if (error_ != (error)) { \
			printf("%s:%d: %s: %s instead of %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_), #error); \
			exit(1); \
		} \
	} while (0)

#endif
