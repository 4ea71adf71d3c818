/* trial.h — what the programs of this lesson share: a driver, two arrays, a kernel from its stub. */
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

/* 0: ready.  Else the reason was printed. */
int trial_open(struct trial *t);
void trial_close(struct trial *t);

/* Launch the kernel behind a stub, as void (float *c, float by, int n) or as void (const float *a,
 * const float *b, float *c, int n), by the number of parameters that it says it has. */
gpul_status trial_launch(struct trial *t, const gpul_kernel *k);

/* Is c[i] == i * factor?  Prints what, and the answer; 0: yes. */
int trial_check(struct trial *t, const char *what, float factor);

/* The same for an array of the host. */
int trial_compare(const char *what, const float *c, float factor);

#ifdef __cplusplus
}
#endif

/* From the stub's address to a checked result.  Here and not in trial.c: gpul_kernel_by_symbol() asks
 * the runtime that this program is linked with. */
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
