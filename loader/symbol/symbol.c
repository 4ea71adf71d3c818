/* symbol.c — wraps a function of the driver or the runtime in a gpul_kernel.
 *
 * The kernel belongs to a module that owns no code in the driver, so that names, signatures and launches work as for the kernels of
 * loaded modules. The code stays loaded until the program that loaded it unloads it. */
#include "loader/symbol/symbol.h"

#include <stdlib.h>

#include "loader/loader_internal.h"

static gpul_status fill_module(gpul_module *m, CUfunction fn, gpul_error *err)
{
	gpul_kernel *k;
	CUdevice device = 0;
	gpul_status st = gpul_cu(m->drv, err, cuCtxGetDevice(&device));

	if (!st)
		st = gpul_limits_read(m->drv, device, &m->limits, err);
	if (st)
		return st;
	m->kernels = calloc(1, sizeof *m->kernels);
	if (!m->kernels)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a kernel");
	m->n_kernels = 1;
	k = &m->kernels[0];
	k->m = m;
	st = gpul_cu(m->drv, err, cuFuncGetName(&k->name, fn));
	if (!st)
		st = gpul_kernel_describe(k, fn, err);
	return st ? st : gpul_kernel_bind(k, fn, err);
}

gpul_status gpul_kernel_of(const gpul_driver *drv, CUfunction fn, gpul_kernel **out, gpul_error *err)
{
	gpul_module *m = calloc(1, sizeof *m);
	gpul_status st;

	if (!m)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a kernel");
	m->drv = drv;
	pthread_mutex_init(&m->lock, NULL);
	st = fill_module(m, fn, err);
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = &m->kernels[0];
	return GPUL_OK;
}

void gpul_kernel_release(gpul_kernel *k)
{
	if (k)
		gpul_module_unload(k->m);
}
