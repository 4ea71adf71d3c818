/* cu_library.c — libraries and kernels (CUlibrary, CUkernel), which are loaded once and can be used in every context.
 *
 * The PTX is parsed when the library is loaded, so that the load call returns its errors.  The first context that uses the library gets
 * the program that this call decoded.  Every other context has its own variables, so it gets its own program, decoded from the same
 * parsed PTX; if the library has no variables, it gets the same program. */
#include "softcuda/api/code/cu_code_internal.h"
#include "softcuda/api/memory/cu_memory_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

static void free_library(struct library *l)
{
	while (!list_empty(&l->instances))
		soft_module_destroy(CONTAINER(l->instances.next, struct module, of_library));
	for (size_t i = 0; l->kernels && i < l->n_kernels; i++)
		soft_handle_free(l->kernels[i].handle);
	free(l->kernels);
	soft_handle_free(l->handle);
	list_remove(&l->link);
	if (l->code)
		soft_code_unref(l->code);
	free(l);
}

static CUresult create_kernels(struct library *l)
{
	l->n_kernels = gpul_exec_n_kernels(l->code->program);
	l->kernels = calloc(l->n_kernels + 1, sizeof *l->kernels);
	if (!l->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < l->n_kernels; i++) {
		struct kernel *k = &l->kernels[i];

		k->library = l;
		k->index = i;
		k->max_dynamic_shared = -1;
		k->carveout = -1;
		k->handle = soft_handle_new(HANDLE_KERNEL, k);
		if (!k->handle)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* Create the handles of l; l->code is set.  The caller holds the lock. */
static CUresult create_handles(struct library *l)
{
	l->handle = soft_handle_new(HANDLE_LIBRARY, l);
	return l->handle ? create_kernels(l) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Create a library from PTX text.  no_code: why the library has no kernels; "": it has kernels. */
static CUresult load_text(CUlibrary *out, struct soft_image *image, const char *no_code, const char *name, const struct jit_log *log)
{
	struct library *l = calloc(1, sizeof *l);
	char refused[2048];
	CUresult r;

	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list_init(&l->link);
	list_init(&l->instances);
	r = soft_code_create(image, name, log, &l->code);
	soft_lock();
	if (!r)
		r = create_handles(l);
	if (r) {
		free_library(l);
	} else {
		list_append(&soft.libraries, &l->link);
		*out = l->handle;
		snprintf(l->no_code, sizeof l->no_code, "%s", no_code);
		soft_jit_done(log, *no_code || !log->info ? no_code : soft_refused_kernels(l->code->program, refused, sizeof refused));
	}
	soft_unlock();
	return r;
}

static CUresult load_library(CUlibrary *out, const void *data, size_t n_bytes, const char *name, const struct jit_log *log)
{
	static const char no_kernels[] = ".version 8.0\n.target sm_50\n.address_size 64\n";
	struct soft_image image;
	char why[256] = "";
	CUresult r = soft_image_open(data, n_bytes, &image, why, sizeof why); /* on success, `why` may contain text, too */
	const bool is_empty = r && r != CUDA_ERROR_INVALID_VALUE && soft_image_is_other(data, n_bytes);

	if (is_empty) {
		gpul_log(GPUL_LOG_INFO, "softcuda", "%s; the library was loaded, but without kernels", why);
		image = (struct soft_image){ .text = no_kernels, .text_bytes = sizeof no_kernels - 1 };
		r = CUDA_SUCCESS;
	}
	if (r)
		return soft_jit_error(log, r, why);
	r = load_text(out, &image, is_empty ? why : "", name, log);
	soft_image_close(&image);
	return r;
}

/* Check the options.  Library options are ignored: they state whether the caller keeps the image's memory, but the image is copied. */
static CUresult check_options(unsigned n_jit, CUjit_option *jit, void **jit_values, unsigned n, CUlibraryOption *options,
			      struct jit_log *log)
{
	CUresult r = soft_check_initialised();

	if (!r)
		r = soft_jit_options(n_jit, jit, jit_values, log);
	if (!r && n && !options)
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; !r && i < n; i++)
		if ((unsigned)options[i] >= CU_LIBRARY_NUM_OPTIONS)
			r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *jit, void **jit_values, unsigned int n_jit,
				  CUlibraryOption *options, void **values, unsigned int n_options)
{
	struct jit_log log;
	CUresult r = check_options(n_jit, jit, jit_values, n_options, options, &log);

	(void)values;
	if (r)
		return r;
	return out && image ? load_library(out, image, 0, soft_image_name(), &log) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit, void **jit_values, unsigned int n_jit,
				      CUlibraryOption *options, void **values, unsigned int n_options)
{
	const char *name = path ? strrchr(path, '/') : NULL;
	struct jit_log log;
	gpul_file file;
	CUresult r = check_options(n_jit, jit, jit_values, n_options, options, &log);

	(void)values;
	if (r)
		return r;
	if (!out || !path)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_open_file(path, &file);
	if (r)
		return r;
	r = load_library(out, file.bytes, file.n_bytes, name ? name + 1 : path, &log);
	gpul_file_close(&file);
	return r;
}

/* Find the library; the lock is held on success. */
static CUresult enter_library(CUlibrary handle, struct library **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_LIBRARY, handle);
	if (*out)
		return CUDA_SUCCESS;
	r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_LIBRARY, handle);
	soft_unlock();
	return r;
}

EXPORT CUresult cuLibraryUnload(CUlibrary handle)
{
	struct library *l;
	CUresult r = enter_library(handle, &l);

	if (r)
		return r;
	/* the wait releases the lock, and the list may change: start again at its head after each wait */
	for (struct link *i = l->instances.next; i != &l->instances;) {
		struct context *ctx = CONTAINER(i, struct module, of_library)->ctx;
		bool busy = !list_empty(&ctx->pending);

		soft_context_wait(ctx);
		i = busy ? l->instances.next : i->next;
	}
	free_library(l);
	soft_unlock();
	return CUDA_SUCCESS;
}

static CUresult kernel_not_found(const struct library *l, const char *name)
{
	char text[512];

	if (!*l->no_code)
		return CUDA_ERROR_NOT_FOUND;
	snprintf(text, sizeof text, "kernel '%s' not found: %s", name, l->no_code);
	soft_report_fault(text);
	return soft_refuse(CUDA_ERROR_INVALID_IMAGE, "%s", text);
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
	struct library *l;
	const gpul_exec_kernel *k;
	CUresult r = enter_library(handle, &l);

	if (r)
		return r;
	k = out && name ? gpul_exec_find_kernel(l->code->program, name) : NULL;
	if (k)
		*out = l->kernels[gpul_exec_kernel_index(l->code->program, k)].handle;
	else
		r = out && name ? kernel_not_found(l, name) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

EXPORT CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle)
{
	struct library *l;
	CUresult r = count ? enter_library(handle, &l) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*count = (unsigned)l->n_kernels;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int n, CUlibrary handle)
{
	struct library *l;
	CUresult r;

	if (!kernels || !n)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter_library(handle, &l);
	if (r)
		return r;
	for (size_t i = 0; i < n && i < l->n_kernels; i++)
		kernels[i] = l->kernels[i].handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* ---- the module of a library in a context ------------------------------------------------ */

static struct module *find_instance(struct library *l, struct context *ctx)
{
	for (struct link *i = l->instances.next; i != &l->instances; i = i->next) {
		struct module *m = CONTAINER(i, struct module, of_library);

		if (m->ctx == ctx)
			return m;
	}
	return NULL;
}

CUresult soft_library_instance(struct library *l, struct context *ctx, struct module **out)
{
	struct code *code = l->code;
	CUresult r;

	if (*l->no_code)
		return soft_refuse(CUDA_ERROR_INVALID_IMAGE, "%s", l->no_code);
	*out = find_instance(l, ctx);
	if (*out)
		return CUDA_SUCCESS;
	if (!l->code_lent || gpul_exec_program_is_stateless(code->program)) {
		code->refs++;
	} else {
		r = soft_code_again(l->code, &code);
		if (r)
			return r;
		*out = find_instance(l, ctx); /* another thread may have created the instance meanwhile */
		if (*out) {
			soft_code_unref(code);
			return CUDA_SUCCESS;
		}
	}
	r = soft_module_create(ctx, code, out);
	soft_code_unref(code);
	if (r)
		return r;
	l->code_lent = true;
	(*out)->library = l;
	list_append(&l->instances, &(*out)->of_library);
	for (size_t i = 0; i < l->n_kernels; i++) {
		struct function *f = &(*out)->functions[i];

		if (l->kernels[i].max_dynamic_shared >= 0)
			f->max_dynamic_shared = l->kernels[i].max_dynamic_shared;
		f->carveout = l->kernels[i].carveout;
		f->non_portable_cluster = l->kernels[i].non_portable_cluster;
	}
	return CUDA_SUCCESS;
}

/* Find the library's module in the current context; the lock is held on success. */
static CUresult enter_instance(CUlibrary handle, struct module **out)
{
	struct context *ctx;
	struct library *l;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	l = soft_handle_find(HANDLE_LIBRARY, handle);
	r = l ? soft_library_instance(l, ctx, out) : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_LIBRARY, handle);
	if (r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuLibraryGetModule(CUmodule *out, CUlibrary handle)
{
	struct module *m;
	CUresult r = out ? enter_instance(handle, &m) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = m->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
	struct module *m;
	CUresult r = enter_instance(handle, &m);
	CUmodule module;

	if (r)
		return r;
	module = m->handle;
	soft_unlock();
	return cuModuleGetGlobal_v2(address, bytes, module, name);
}

/* Each context has its own copy of a library's variables; this call returns the address in the current context. */
EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
	struct module *m;
	const struct allocation *a;
	uint64_t at;
	size_t n;
	CUresult r = enter_instance(handle, &m);

	if (r)
		return r;
	if (!name || (!address && !bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!gpul_exec_find_variable(m->code->program, name, &at, &n) || !(a = soft_allocation_at(at)) || !a->managed)
		r = CUDA_ERROR_NOT_FOUND;
	if (!r && address)
		*address = at;
	if (!r && bytes)
		*bytes = n;
	soft_unlock();
	return r;
}
