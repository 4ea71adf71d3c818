/* machine_code.c — modules without PTX: the driver tells the kernels' names and their
 * parameters' sizes. */
#include <stdlib.h>

#include "loader/loader_internal.h"

#define MAX_PARAMS                                                                             \
	4096 /* a kernel's parameters fit in 32764 bytes; this ends a driver that never says   \
		no */

/* cuFuncGetParamCount is newer than cuFuncGetParamInfo: ask until the driver refuses. */
static uint32_t count_params(const gpul_driver *drv, CUfunction fn)
{
	size_t offset, bytes;
	uint32_t n = 0;

	while (n < MAX_PARAMS &&
	       drv->cuFuncGetParamInfo(fn, n, &offset, &bytes) == CUDA_SUCCESS)
		n++;
	return n;
}

gpul_status gpul_kernel_describe(gpul_kernel *k, CUfunction fn, gpul_error *err)
{
	const gpul_driver *drv = k->m->drv;
	gpul_signature_owned *s = gpul_signature_blank(k->name, count_params(drv, fn));

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a signature");
	for (size_t i = 0; i < s->s.n_params; i++) {
		size_t offset = 0, bytes = 0;
		gpul_status st = gpul_cu(drv, err, cuFuncGetParamInfo(fn, i, &offset, &bytes));

		if (st) {
			gpul_signature_destroy(&s->s);
			return st;
		}
		s->s.params[i] = (gpul_param){ .offset = (uint32_t)offset,
					       .bytes = (uint32_t)bytes,
					       .align = 1 };
	}
	gpul_signature_doubt(s,
			     "machine code tells the sizes of its parameters, not their types");
	k->declared = s;
	return GPUL_OK;
}

static gpul_status add_kernel(gpul_module *m, CUkernel handle, gpul_error *err)
{
	gpul_kernel *k = &m->kernels[m->n_kernels];
	CUfunction fn = NULL;
	gpul_status st;

	k->m = m;
	k->handle = handle;
	st = gpul_cu(m->drv, err, cuKernelGetName(&k->name, handle));
	if (!st)
		st = gpul_cu(m->drv, err, cuKernelGetFunction(&fn, handle));
	if (!st)
		st = gpul_kernel_describe(k, fn, err);
	if (!st)
		m->n_kernels++;
	return st;
}

gpul_status gpul_module_enumerate(gpul_module *m, const char *name, gpul_error *err)
{
	CUkernel *handles = NULL;
	unsigned n = 0;
	gpul_status st = gpul_cu(m->drv, err, cuLibraryGetKernelCount(&n, m->library));

	if (st)
		return st;
	if (n == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%.160s has no kernels for this device",
				 name);
	handles = calloc(n, sizeof *handles);
	m->kernels = calloc(n, sizeof *m->kernels);
	if (!handles || !m->kernels)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u kernels", n);
	else
		st = gpul_cu(m->drv, err, cuLibraryEnumerateKernels(handles, n, m->library));
	for (unsigned i = 0; !st && i < n; i++)
		st = add_kernel(m, handles[i], err);
	free(handles);
	return st;
}
