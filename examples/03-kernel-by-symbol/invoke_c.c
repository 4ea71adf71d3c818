/* invoke_c.c — calls a function of the archive that launches the kernel, so this program needs no CUDA header.
 *
 * invoke.cpp is this file, compiled as C++. */
#include <stdio.h>

#include "trial.h"
#include "vec.h"

int main(void)
{
	static float a[TRIAL_N], b[TRIAL_N], c[TRIAL_N];
	int e;

	for (int i = 0; i < TRIAL_N; i++) {
		a[i] = (float)i;
		b[i] = 2 * (float)i;
	}
	e = invoke_VecAdd(a, b, c, TRIAL_N);
	if (e) {
		fprintf(stderr, "invoke_VecAdd: cudaError_t %d\n", e);
		return 1;
	}
	return trial_compare("invoke_VecAdd of libvec.a", c, 3);
}
