/* cu_module.c — decodes PTX into a program, whose functions can be launched in one context. */
#include "softcuda/api/code/cu_code_internal.h"
#include "softcuda/api/memory/cu_memory_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "ptx/strict/strict.h"

enum { LEAST_LATER = 1 << 20 /* bytes of PTX: smaller texts are parsed and decoded when they are loaded, which takes at most 20 ms */ };

/* ---- code: a program, independent of contexts --------------------------------------------------- */

/* Refuse a PTX version that is newer than the driver.  Any .target is accepted: an interpreter needs no hardware, and a kernel that
 * reaches an instruction that is not implemented is refused later. */
static CUresult check_version(const gpul_ptx_module *m, const struct jit_log *log)
{
	char why[160];

	if (m->version_major <= 9)
		return CUDA_SUCCESS;
	snprintf(why, sizeof why, "PTX version %u.%u is not supported: the newest supported version is 9.x", m->version_major,
		 m->version_minor);
	return soft_jit_error(log, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, why);
}

static CUresult load_result(gpul_status st)
{
	return st == GPUL_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
}

/* With GPULOAD_SOFT_STRICT=1, refuse what NVIDIA's driver would refuse: PTX that ptxas rejects, or a .target above the device.  The
 * reason is printed, because most programs report only an error number. */
static gpul_status check_strict(const gpul_ptx_module *m, const char *text, size_t text_bytes, const char *name, gpul_error *err)
{
	const char *strict = secure_getenv("GPULOAD_SOFT_STRICT");
	gpul_status st;

	if (!strict || strcmp(strict, "1") != 0)
		return GPUL_OK;
	st = gpul_ptx_check_strict(m, text, text_bytes, name, gpul_ptx_newest_of_cuda(soft.cuda), err);
	if (!st && !gpul_ptx_runs_on(m, soft.cc))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%.100s: .target %.60s cannot run on the device, sm_%u", name,
			       gpul_ptx_name(m, m->target), soft.cc);
	if (st)
		gpul_log(GPUL_LOG_NOTICE, "softcuda", "strict: %s", err->text);
	return st;
}

CUresult soft_parse_ptx(const char *text, size_t text_bytes, const char *name, gpul_ptx_module **out, gpul_error *err)
{
	gpul_status st = gpul_ptx_parse(text, text_bytes, name, out, err);

	if (!st) {
		st = check_strict(*out, text, text_bytes, name, err);
		if (st) {
			gpul_ptx_module_destroy(*out);
			*out = NULL;
		}
	}
	return st == GPUL_EUNSUPPORTED ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : st ? load_result(st) : CUDA_SUCCESS;
}

/* Returns true if function bodies are parsed and decoded later, when they are needed.  GPULOAD_SOFT_LAZY=1 (for tests): in all PTX; 0: in
 * none.  is_known: the attributes of the image's kernels were in the cache. */
static bool parses_later(const struct soft_image *image, bool is_known)
{
	const char *wish = secure_getenv("GPULOAD_SOFT_LAZY"), *strict = secure_getenv("GPULOAD_SOFT_STRICT");

	if (strict && !strcmp(strict, "1"))
		return false;
	if (wish && (!strcmp(wish, "0") || !strcmp(wish, "1")))
		return *wish == '1';
	return image->is_valid && (is_known || image->text_bytes >= LEAST_LATER);
}

/* Copy the text, unless the image already owns it. */
static bool own_text(struct soft_image *image)
{
	if (image->own || image->unpacked.bytes)
		return true;
	image->own = malloc(image->text_bytes + 1);
	if (!image->own)
		return false;
	memcpy(image->own, image->text, image->text_bytes);
	image->own[image->text_bytes] = 0;
	image->text = image->own;
	return true;
}

/* Parse the declarations of the image, but not the bodies; on success *p owns the image. */
static bool parse_heads(struct soft_image *image, struct parsed *p)
{
	if (!own_text(image) || gpul_ptx_parse_lazy(image->text, image->text_bytes, p->name, &p->module, NULL))
		return false;
	p->image = *image;
	*image = (struct soft_image){ 0 };
	return true;
}

static CUresult parse_image(struct soft_image *image, bool is_known, const struct jit_log *log, struct parsed *p)
{
	const bool later = parses_later(image, is_known);
	gpul_ptx_module *whole;
	gpul_error err = { 0 };
	CUresult r;

	if (later && image->is_valid && parse_heads(image, p))
		return CUDA_SUCCESS;
	r = soft_parse_ptx(image->text, image->text_bytes, p->name, &whole, &err);
	if (r)
		return soft_jit_error(log, r, err.text);
	if (later && parse_heads(image, p))
		gpul_ptx_module_destroy(whole);
	else
		p->module = whole;
	return CUDA_SUCCESS;
}

static void release_parsed(struct parsed *p)
{
	if (--p->refs)
		return;
	gpul_ptx_module_destroy(p->module);
	soft_image_close(&p->image);
	free(p);
}

/* Create a program from p.  The program points to p, but the caller increments p's reference count.  first: another program of p, or
 * NULL. */
static CUresult create_program(struct parsed *p, const gpul_exec_program *first, const struct jit_log *log, struct code **out)
{
	struct code *code = calloc(1, sizeof *code);
	gpul_error err = { 0 };
	gpul_status st;

	if (!code)
		return CUDA_ERROR_OUT_OF_MEMORY;
	code->refs = 1;
	code->parsed = p;
	code->target_sm = (int)p->module->sm;
	/* gpul_exec_program_create() takes over this reference to the module, even when it fails. */
	st = first ? gpul_exec_program_again(first, &code->program, &err)
		   : gpul_exec_program_create(soft.memory, gpul_ptx_module_share(p->module), p->name, &code->program, &err);
	if (st) {
		free(code);
		return soft_jit_error(log, load_result(st), err.text);
	}
	*out = code;
	return CUDA_SUCCESS;
}

CUresult soft_code_create(struct soft_image *image, const char *name, const struct jit_log *log, struct code **out)
{
	const gpul_cache_key *key = log->max_registers ? NULL : image->key; /* read now, because parse_image() may move the key into *p */
	struct parsed *p = calloc(1, sizeof *p);
	gpul_exec_attributes *known = NULL;
	size_t n_known = 0;
	CUresult r;

	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->refs = 1;
	snprintf(p->name, sizeof p->name, "%s", name);
	image->is_valid |= soft_known_find(key, &known, &n_known);
	r = parse_image(image, known, log, p);
	if (!r)
		r = check_version(p->module, log);
	if (!r) {
		gpul_ptx_limit_registers(p->module, log->max_registers);
		r = create_program(p, NULL, log, out);
	}
	if (!r && known)
		gpul_exec_program_describe((*out)->program, known, n_known);
	else if (!r && !p->module->bodies)
		soft_known_store(key, (*out)->program);
	free(known);
	if (r)
		release_parsed(p);
	return r;
}

CUresult soft_code_again(const struct code *c, struct code **out)
{
	const struct jit_log no_log = { 0 };
	struct parsed *p = c->parsed;
	CUresult r;

	p->refs++;
	soft_unlock();
	r = create_program(p, c->program, &no_log, out);
	soft_lock();
	if (r)
		release_parsed(p);
	return r;
}

void soft_code_unref(struct code *c)
{
	if (--c->refs)
		return;
	gpul_exec_program_destroy(c->program);
	release_parsed(c->parsed);
	free(c);
}

/* ---- modules ---------------------------------------------------------------------------- */

static CUresult create_functions(struct module *m)
{
	m->n_functions = gpul_exec_n_kernels(m->code->program);
	m->functions = calloc(m->n_functions + 1, sizeof *m->functions);
	if (!m->functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < m->n_functions; i++) {
		struct function *f = &m->functions[i];

		f->module = m;
		f->kernel = gpul_exec_kernel_at(m->code->program, i);
		f->info = gpul_exec_kernel_info_of(f->kernel);
		f->max_dynamic_shared = -1;
		f->carveout = -1;
		f->handle = soft_handle_new(HANDLE_FUNCTION, f);
		if (!f->handle)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* Set the access rights to the module's variables: only kernels on the module's device may access them, except managed variables.
 * NVIDIA's driver does not map variables for peer devices, either. */
static CUresult set_up_variables(struct module *m)
{
	const gpul_exec_program *p = m->code->program;
	const uint32_t others = ~(UINT32_C(1) << m->ctx->device->ordinal);
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; !r && i < gpul_exec_n_variables(p); i++) {
		const char *name;
		uint64_t address;
		size_t bytes;

		if (!gpul_exec_variable_at(p, i, &name, &address, &bytes))
			continue;
		if (gpul_exec_variable_is_managed(p, i))
			r = soft_variable_enter(m->ctx, address, bytes, &m->managed);
		else
			gpul_exec_memory_set_rights(soft.memory, address, others, 0);
	}
	return r;
}

CUresult soft_module_create(struct context *ctx, struct code *code, struct module **out)
{
	struct module *m = calloc(1, sizeof *m);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!m)
		return r;
	list_init(&m->link);
	list_init(&m->of_library);
	list_init(&m->managed);
	m->ctx = ctx;
	m->code = code;
	code->refs++;
	m->handle = soft_handle_new(HANDLE_MODULE, m);
	if (m->handle)
		r = create_functions(m);
	if (!r)
		r = set_up_variables(m);
	if (r) {
		soft_module_destroy(m);
		return r;
	}
	list_append(&ctx->modules, &m->link);
	*out = m;
	return CUDA_SUCCESS;
}

void soft_module_destroy(struct module *m)
{
	for (size_t i = 0; m->functions && i < m->n_functions; i++) {
		soft_handle_free(m->functions[i].handle);
		free(m->functions[i].old);
	}
	free(m->functions);
	soft_handle_free(m->handle);
	list_remove(&m->link);
	list_remove(&m->of_library);
	while (!list_empty(&m->managed))
		soft_variable_free(CONTAINER(m->managed.next, struct allocation, link));
	soft_code_unref(m->code);
	free(m);
}

/* ---- loading ---------------------------------------------------------------------------- */

static CUresult load_module(CUmodule *out, const void *image, size_t n_bytes, const char *name, const struct jit_log *log)
{
	struct context *ctx;
	struct module *m;
	struct code *code;
	struct soft_image found;
	char why[256], refused[2048];
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	soft_unlock();
	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_image_open(image, n_bytes, &found, why, sizeof why);
	if (r)
		return soft_jit_error(log, r, why);
	r = soft_code_create(&found, name, log, &code);
	soft_image_close(&found);
	if (r)
		return r;
	soft_lock();
	r = soft_module_create(ctx, code, &m);
	soft_code_unref(code);
	if (!r) {
		*out = m->handle;
		soft_jit_done(log, log->info ? soft_refused_kernels(m->code->program, refused, sizeof refused) : "");
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n, CUjit_option *options, void **values)
{
	struct jit_log log;
	CUresult r = soft_jit_options(n, options, values, &log);

	return r ? r : load_module(out, image, 0, soft_image_name(), &log);
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	return cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *out, const void *fatbin)
{
	return cuModuleLoadDataEx(out, fatbin, 0, NULL, NULL);
}

EXPORT CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	const char *name = path ? strrchr(path, '/') : NULL;
	struct jit_log log = { 0 };
	struct context *ctx;
	gpul_file file;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	soft_unlock();
	if (!out || !path)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_open_file(path, &file);
	if (r)
		return r;
	r = load_module(out, file.bytes, file.n_bytes, name ? name + 1 : path, &log);
	gpul_file_close(&file);
	return r;
}

EXPORT CUresult cuModuleUnload(CUmodule handle)
{
	struct context *ctx;
	struct module *m;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	m = soft_handle_find(HANDLE_MODULE, handle);
	if (m)
		soft_context_wait(m->ctx); /* kernels of the module may still run */
	m = soft_handle_find(HANDLE_MODULE, handle);
	if (!m)
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_MODULE, handle);
	else if (m->library)
		r = soft_refuse(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload: the module belongs to a library: call cuLibraryUnload");
	else
		soft_module_destroy(m);
	soft_unlock();
	return r;
}

EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_EAGER_LOADING;
	return soft_check_initialised();
}

/* ---- functions and variables of a module --------------------------------------------------------------------- */

/* Find the module.  No context needs to be current, because a module belongs to one context.  The lock is held on success. */
static CUresult enter_module(CUmodule handle, struct module **out)
{
	CUresult r = soft_lock_initialised();

	if (r)
		return r;
	*out = soft_handle_find(HANDLE_MODULE, handle);
	r = *out ? (*out)->ctx->fault : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_MODULE, handle);
	if (r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
	struct module *m;
	const gpul_exec_kernel *k;
	CUresult r = enter_module(handle, &m);

	if (r)
		return r;
	k = out && name ? gpul_exec_find_kernel(m->code->program, name) : NULL;
	if (k)
		r = soft_check_request(k);
	else
		r = out && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = m->functions[gpul_exec_kernel_index(m->code->program, k)].handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
	struct module *m;
	CUresult r = count ? enter_module(handle, &m) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*count = (unsigned)m->n_functions;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int n, CUmodule handle)
{
	struct module *m;
	CUresult r;

	if (!functions || !n)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter_module(handle, &m);
	if (r)
		return r;
	for (size_t i = 0; i < n && i < m->n_functions; i++)
		functions[i] = m->functions[i].handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name)
{
	struct module *m;
	uint64_t at;
	size_t n;
	CUresult r = enter_module(handle, &m);

	if (r)
		return r;
	if (!name || (!address && !bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!gpul_exec_find_variable(m->code->program, name, &at, &n))
		r = CUDA_ERROR_NOT_FOUND;
	if (!r && address)
		*address = at;
	if (!r && bytes)
		*bytes = n;
	soft_unlock();
	return r;
}
