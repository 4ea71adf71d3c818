/* trial.c — opens the driver and the arrays of the lesson, launches a kernel, and checks its result. */
#include "trial.h"

#include <stdio.h>

static gpul_status make_array(struct trial *t, CUdeviceptr *out, float step)
{
	const gpul_driver *drv = t->drv;
	gpul_error *err = &t->err;
	float x[TRIAL_N];
	gpul_status st = gpul_cu(drv, err, cuMemAlloc(out, sizeof x));

	for (int i = 0; i < TRIAL_N; i++)
		x[i] = (float)i * step;
	return st ? st : gpul_cu(drv, err, cuMemcpyHtoD(*out, x, sizeof x));
}

int trial_open(struct trial *t)
{
	gpul_status st;

	*t = (struct trial){ 0 };
	st = gpul_driver_open(GPUL_DRIVER_AUTO, &t->drv, &t->err);
	if (!st)
		st = gpul_context_open(t->drv, 0, &t->context, &t->err);
	if (!st)
		st = make_array(t, &t->a, 1);
	if (!st)
		st = make_array(t, &t->b, 2);
	if (!st)
		st = make_array(t, &t->c, 0);
	if (st)
		trial_close(t);
	return st != GPUL_OK;
}

void trial_close(struct trial *t)
{
	const CUdeviceptr all[] = { t->a, t->b, t->c };

	if (t->err.status)
		fprintf(stderr, "%s\n", t->err.text);
	for (int i = 0; i < 3; i++)
		if (all[i])
			t->drv->cuMemFree(all[i]);
	gpul_context_close(&t->context);
}

gpul_status trial_launch(struct trial *t, const gpul_kernel *k)
{
	static const gpul_launch_config config = { .grid = { (TRIAL_N + 255) / 256, 1, 1 }, .block = { 256, 1, 1 } };
	const gpul_driver *drv = t->drv;
	gpul_error *err = &t->err;
	int n = TRIAL_N;
	float by = 0.5f;
	void *add[] = { &t->a, &t->b, &t->c, &n }, *scale[] = { &t->c, &by, &n };
	const size_t add_bytes[] = { 8, 8, 8, 4 }, scale_bytes[] = { 8, 4, 4 };
	gpul_status st;

	if (gpul_kernel_signature(k)->n_params == 4)
		st = gpul_kernel_launch(k, &config, add, add_bytes, 4, err);
	else
		st = gpul_kernel_launch(k, &config, scale, scale_bytes, 3, err);
	return st ? st : gpul_cu(drv, err, cuCtxSynchronize());
}

int trial_compare(const char *what, const float *c, float factor)
{
	for (int i = 0; i < TRIAL_N; i++)
		if (c[i] != (float)i * factor) {
			printf("%s: c[%d] is %g, expected %g\n", what, i, (double)c[i], (double)((float)i * factor));
			return 1;
		}
	printf("%s: %d correct results\n", what, TRIAL_N);
	return 0;
}

int trial_check(struct trial *t, const char *what, float factor)
{
	const gpul_driver *drv = t->drv;
	gpul_error *err = &t->err;
	float c[TRIAL_N];

	if (gpul_cu(drv, err, cuMemcpyDtoH(c, t->c, sizeof c)))
		return 1;
	return trial_compare(what, c, factor);
}
