/* trial.h — shared by the programs of this lesson: opens a driver and three arrays, and launches a kernel by its stub. */
#ifndef TRIAL_H
#define TRIAL_H

#include "driver/context.h"
#include "loader/symbol/symbol.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TRIAL_N = 1000 };

struct trial {
	const gpul_driver *drv;
	gpul_context context;
	CUdeviceptr a, b, c; /* TRIAL_N floats: a[i] = i, b[i] = 2 i, c[i] = 0 */
	gpul_error err;
};

/* Open the driver and allocate the arrays.  Returns 0, or 1 after printing the error. */
int trial_open(struct trial *t);
void trial_close(struct trial *t);

/* Launch a kernel, by its number of parameters either as void (float *c, float by, int n) or as
 * void (const float *a, const float *b, float *c, int n). */
gpul_status trial_launch(struct trial *t, const gpul_kernel *k);

/* Check that c[i] == i * factor in the device array, and print the result after `what`.  Returns 0 if so. */
int trial_check(struct trial *t, const char *what, float factor);

/* Check that c[i] == i * factor in a host array, and print the result.  Returns 0 if so. */
int trial_compare(const char *what, const float *c, float factor);

#ifdef __cplusplus
}
#endif

/* Find the kernel of a stub, launch it, check its result.  This is in the header because
 * gpul_kernel_by_symbol() must be compiled into the program that is linked with the runtime. */
static inline int trial_by_symbol(struct trial *t, const void *stub, const char *what, float factor)
{
	gpul_kernel *k = NULL;
	gpul_status st = gpul_kernel_by_symbol(t->drv, stub, &k, &t->err);

	if (!st)
		st = trial_launch(t, k);
	gpul_kernel_release(k);
	return st ? 1 : trial_check(t, what, factor);
}

#endif
