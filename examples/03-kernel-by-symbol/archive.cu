/* archive.cu — launches kernels of libvec.a from C++, by <<<>>> and by the address of the host stub.
 *
 * This file only declares the kernels.  Because it refers to their stubs, the linker takes vec.o, which
 * contains the device code, from the archive. */
#include <cstdio>

#include "trial.h"

extern "C" __global__ void VecAdd(const float *a, const float *b, float *c, int n);
__global__ void VecScale(float *x, float by, int n);

static int launch_with_chevrons(struct trial *t)
{
	VecAdd<<<(TRIAL_N + 255) / 256, 256>>>((float *)t->a, (float *)t->b, (float *)t->c, TRIAL_N);
	cudaError_t e = cudaGetLastError(); /* <<<>>> does not return an error */

	if (!e)
		e = cudaDeviceSynchronize();
	if (e) {
		fprintf(stderr, "<<<>>>: %s\n", cudaGetErrorString(e));
		return 1;
	}
	return trial_check(t, "VecAdd of libvec.a, <<<>>>", 3);
}

int main()
{
	struct trial t;
	int bad = trial_open(&t) || launch_with_chevrons(&t) ||
		  trial_by_symbol(&t, (const void *)VecAdd, "VecAdd of libvec.a, by symbol", 3) ||
		  trial_by_symbol(&t, (const void *)VecScale, "VecScale of libvec.a, by symbol", 1.5f);

	trial_close(&t);
	return bad;
}
