/* module.c — see loader.h: from a file to a module in the driver, and what a module knows of
 * its kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "loader/image/recognise.h"
#include "loader/loader_internal.h"
#include "ptx/nvrtc.h"

/* ---- making and unmaking --------------------------------------------------------- */

static gpul_status module_create(const gpul_driver *drv, const gpul_load_options *options,
				 gpul_module **out, gpul_error *err)
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
		(void)m->drv->cuLibraryUnload(m->library); /* acquired by cuLibraryLoadData */
	for (size_t i = 0; i < m->n_kernels; i++) {
		gpul_signature_destroy(m->kernels[i].inferred);
		if (m->kernels[i].declared)
			gpul_signature_destroy(&m->kernels[i].declared->s);
		free(m->kernels[i].demangled);
	}
	free(m->kernels);
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
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%.160s has no kernel (.entry with a body)", name);
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

/* ---- loading --------------------------------------------------------------------- */

/* text[text_bytes] is NUL: the driver is told no size. */
static gpul_status fill(gpul_module *m, const char *text, size_t text_bytes, const char *name,
			const gpul_load_options *options, gpul_error *err)
{
	gpul_status st = gpul_ptx_parse(text, text_bytes, name, &m->ptx, err);

	if (!st)
		st = list_kernels(m, name, err);
	if (!st)
		st = gpul_jit_load(m, text, name, options, err);
	return st;
}

/* CUDA C++ for the architecture of the device: NVRTC makes PTX of it. */
static gpul_status compile(gpul_module *m, const char *source, const char *name,
			   const gpul_load_options *options, gpul_error *err)
{
	gpul_nvrtc_result result = { 0 };
	char arch[32];
	gpul_status st;

	snprintf(arch, sizeof arch, "compute_%u", m->limits.cc);
	st = gpul_nvrtc_compile(source, name, options ? options->nvrtc_args : NULL, arch,
				&result, err);
	gpul_loader_log(result.log);
	if (!st)
		st = fill(m, result.image, result.image_bytes, name, options, err);
	gpul_nvrtc_result_free(&result);
	return st;
}

static gpul_status load_text(const gpul_driver *drv, gpul_content kind, const char *text,
			     size_t text_bytes, const char *name,
			     const gpul_load_options *options, gpul_module **out,
			     gpul_error *err)
{
	gpul_module *m = NULL;
	gpul_status st = module_create(drv, options, &m, err);

	if (st)
		return st;
	st = kind == GPUL_CONTENT_CUDA ? compile(m, text, name, options, err)
				     : fill(m, text, text_bytes, name, options, err);
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = m;
	return GPUL_OK;
}

gpul_status gpul_module_load_ptx(const gpul_driver *drv, const char *text, size_t text_bytes,
				 const char *name, const gpul_load_options *options,
				 gpul_module **out, gpul_error *err)
{
	char *copy;
	gpul_status st;

	copy = strndup(text, text_bytes); /* stops at a NUL, as the driver would */
	if (!copy)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes of PTX",
				 text_bytes);
	st = load_text(drv, GPUL_CONTENT_PTX, copy, strlen(copy), name, options, out, err);
	free(copy);
	return st;
}

static gpul_status load_machine_code(const gpul_driver *drv, const gpul_file *file,
				     const gpul_recognised *image, const char *path,
				     const gpul_load_options *options, gpul_module **out,
				     gpul_error *err)
{
	gpul_module *m = NULL;
	gpul_status st;

	if (strcmp(drv->name, "soft") == 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, CUDA_ERROR_NO_BINARY_FOR_GPU,
				 "%.100s is %s: the software "
				 "driver runs PTX only; give it the PTX (nvcc -ptx), or use "
				 "--driver nvidia",
				 path, gpul_content_text(image->kind));
	if (image->bytes_needed >
	    file->n_bytes) /* the driver is told no size: it would read beyond the end */
		return gpul_fail(err, GPUL_EFORMAT, (int)file->n_bytes,
				 "%.100s is cut short: %s of %zu bytes, its "
				 "headers speak of %llu",
				 path, gpul_content_text(image->kind), file->n_bytes,
				 (unsigned long long)image->bytes_needed);
	st = module_create(drv, options, &m, err);
	if (st)
		return st;
	st = gpul_cu(drv, err,
		     cuLibraryLoadData(&m->library, file->bytes, NULL, NULL, 0, NULL, NULL, 0));
	if (st == GPUL_ECUDA && image->sm && image->sm / 10 != m->limits.cc / 10 && err) {
		*err = (gpul_error){ 0 };
		gpul_fail(err, st, CUDA_ERROR_NO_BINARY_FOR_GPU,
			  "%.100s is machine code for sm_%u, the device is "
			  "sm_%u: load its PTX instead",
			  path, image->sm, m->limits.cc);
	}
	if (!st)
		st = gpul_module_enumerate(m, path, err);
	if (st) {
		gpul_module_unload(m);
		return st;
	}
	*out = m;
	return GPUL_OK;
}

static gpul_status refuse(const gpul_recognised *image, const char *path, gpul_error *err)
{
	const char *advice = "expected PTX text, CUDA C++ (.cu) or a cubin";

	switch (image->kind) {
	case GPUL_CONTENT_HOST_ELF:
	case GPUL_CONTENT_ARCHIVE:
		advice = "expected PTX or CUDA C++; cuobjdump -xptx all FILE takes the PTX out "
			 "of it";
		break;
	case GPUL_CONTENT_BITCODE:
		advice = "expected PTX: compile it with llc or nvcc -ptx first";
		break;
	default:
		break;
	}
	return gpul_fail(err, GPUL_EFORMAT, 0, "%.100s is %s: %s", path,
			 gpul_content_text(image->kind), advice);
}

gpul_status gpul_module_load_file(const gpul_driver *drv, const char *path,
				  const gpul_load_options *options, gpul_module **out,
				  gpul_error *err)
{
	gpul_file file = { 0 };
	gpul_status st = gpul_file_open(path, &file, err);
	gpul_recognised image;

	if (st)
		return st;
	image = gpul_recognise(file.bytes, file.n_bytes, path);
	switch (image.kind) {
	case GPUL_CONTENT_PTX:
	case GPUL_CONTENT_CUDA:
		st = load_text(drv, image.kind, file.bytes, strnlen(file.bytes, file.n_bytes),
			       path, options, out, err);
		break;
	case GPUL_CONTENT_CUBIN:
	case GPUL_CONTENT_FATBIN:
		st = load_machine_code(drv, &file, &image, path, options, out, err);
		break;
	default:
		st = refuse(&image, path, err);
		break;
	}
	gpul_file_close(&file);
	return st;
}

/* ---- what it knows --------------------------------------------------------------- */

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
	gpul_kernel *mine = &k->m->kernels[k - k->m->kernels]; /* the same row, to cache in */
	const gpul_signature *s;

	pthread_mutex_lock(&k->m->lock);
	if (!mine->inferred && k->f &&
	    gpul_signature_infer(k->m->ptx, k->f, &mine->inferred, NULL))
		gpul_signature_doubt(k->declared,
				     "there is no memory to follow the kernel's code");
	s = mine->inferred ? mine->inferred : &k->declared->s;
	pthread_mutex_unlock(&k->m->lock);
	return s;
}
