/* The functions of the device runtime: printf, assert, malloc and free. */
#include <cassert>
#include <cstdio>

extern "C" __global__ void pf(int x, double d, const char *s)
{
	printf("thread %d: x=%d d=%f s=%s\n", threadIdx.x, x, d, s);
	assert(x != 42);
}

extern "C" __global__ void dynmem(int **o, int n)
{
	int *p = (int *)malloc(n * sizeof(int));

	if (!p)
		__trap();
	p[0] = n;
	o[threadIdx.x] = p;
	free(p);
}
