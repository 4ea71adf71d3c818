/* loader_module.c — creates a module from code that is ready for the driver, and unloads it.  load.c finds that code in files. */
#include <stdlib.h>

#include "loader/loader_internal.h"

/* ---- create and unload ----------------------------------------------------------- */

gpul_status gpul_module_create(const gpul_driver *drv, const gpul_load_options *options, gpul_module **out, gpul_error *err)
{
	gpul_module *m = calloc(1, sizeof *m);
	CUdevice device = 0;
	gpul_status st;

	if (!m)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a module");
	m->drv = drv;
	pthread_mutex_init(&m->lock, NULL);
	st = gpul_cu(drv, err, cuDeviceGet(&device, options ? options->device : 0));
	if (!st)
		st = gpul_limits_read(drv, device, &m->limits, err);
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = m;
	return GPUL_OK;
}

void gpul_module_unload(gpul_module *m)
{
	if (!m)
		return;
	if (m->library)
		(void)m->drv->cuLibraryUnload(m->library); /* loaded by cuLibraryLoadData */
	for (size_t i = 0; i < m->n_kernels; i++) {
		gpul_signature_destroy(m->kernels[i].inferred);
		if (m->kernels[i].declared)
			gpul_signature_destroy(&m->kernels[i].declared->s);
		free(m->kernels[i].demangled);
	}
	free(m->kernels);
	gpul_kernel_table_free(&m->table);
	gpul_ptx_module_destroy(m->beside);
	free(m->beside_text);
	while (m->n_variables)
		free(m->variables[--m->n_variables]);
	free(m->variables);
	gpul_ptx_module_destroy(m->ptx);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static bool is_kernel(const gpul_ptx_func *f)
{
	return f->kind == GPUL_PTX_FUNC_ENTRY && f->has_body;
}

static gpul_status list_kernels(gpul_module *m, const char *name, gpul_error *err)
{
	size_t n = 0;

	for (uint32_t i = 0; i < m->ptx->n_funcs; i++)
		n += is_kernel(&m->ptx->funcs[i]);
	if (n == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s has no kernel (.entry with a body)", name);
	m->kernels = calloc(n, sizeof *m->kernels);
	if (!m->kernels)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu kernels", n);
	for (uint32_t i = 0; i < m->ptx->n_funcs; i++) {
		const gpul_ptx_func *f = &m->ptx->funcs[i];
		gpul_kernel *k = &m->kernels[m->n_kernels];
		gpul_status st;

		if (!is_kernel(f))
			continue;
		st = gpul_signature_declared(m->ptx, f, &k->declared, err);
		if (st)
			return st;
		k->m = m;
		k->f = f;
		k->name = gpul_ptx_name(m->ptx, f->name);
		m->n_kernels++;
	}
	return GPUL_OK;
}

static gpul_status fill_ptx(gpul_module *m, const gpul_code *code, const gpul_load_options *options, gpul_error *err)
{
	gpul_status st = gpul_ptx_parse(code->bytes, code->n_bytes, code->name, &m->ptx, err);

	if (!st)
		st = list_kernels(m, code->name, err);
	if (!st)
		st = gpul_jit_load(m, code, options, err);
	return st;
}

gpul_status gpul_module_fill(gpul_module *m, const gpul_code *code, const gpul_load_options *options, gpul_error *err)
{
	return code->kind == GPUL_IMAGE_PTX ? fill_ptx(m, code, options, err) : gpul_machine_code_load(m, code, err);
}

/* ---- queries --------------------------------------------------------------------- */

size_t gpul_module_n_kernels(const gpul_module *m)
{
	return m->n_kernels;
}

const gpul_kernel *gpul_module_kernel(const gpul_module *m, size_t i)
{
	return &m->kernels[i];
}

const gpul_ptx_module *gpul_module_ptx(const gpul_module *m)
{
	return m->ptx;
}

const char *gpul_kernel_name(const gpul_kernel *k)
{
	return k->name;
}

const gpul_ptx_func *gpul_kernel_ptx(const gpul_kernel *k)
{
	return k->f;
}

const gpul_signature *gpul_kernel_signature(const gpul_kernel *k)
{
	gpul_kernel *mine = &k->m->kernels[k - k->m->kernels]; /* k without const, because the signature is stored in it */
	const gpul_signature *s;

	pthread_mutex_lock(&k->m->lock);
	if (!mine->inferred && !k->f)
		mine->inferred = gpul_beside_signature(k);
	if (!mine->inferred && !k->f)
		mine->inferred = gpul_signature_of_name(k, gpul_kernel_demangled_locked(mine));
	if (!mine->inferred && k->f && gpul_signature_infer(k->m->ptx, k->f, &mine->inferred, NULL))
		gpul_incomplete(k->declared, "no memory to analyse the kernel's code");
	s = mine->inferred ? mine->inferred : &k->declared->s;
	pthread_mutex_unlock(&k->m->lock);
	return s;
}

/* ---- the launch limits of a device, read once per module ------------------------- */

gpul_status gpul_limits_read(const gpul_driver *drv, CUdevice device, gpul_limits *out, gpul_error *err)
{
	uint32_t major = 0, minor = 0;
	const struct {
		CUdevice_attribute which;
		uint32_t *to;
	} wanted[] = {
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &out->threads },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &out->block[0] },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &out->block[1] },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &out->block[2] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &out->grid[0] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &out->grid[1] },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &out->grid[2] },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &out->shared },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &out->shared_optin },
	};
	gpul_status st = GPUL_OK;

	for (size_t i = 0; !st && i < sizeof wanted / sizeof wanted[0]; i++) {
		int value = 0;

		st = gpul_cu(drv, err, cuDeviceGetAttribute(&value, wanted[i].which, device));
		*wanted[i].to = (uint32_t)value;
	}
	out->cc = 10 * major + minor;
	if (out->shared_optin < out->shared)
		out->shared_optin = out->shared; /* devices before Volta have no opt-in */
	return st;
}
