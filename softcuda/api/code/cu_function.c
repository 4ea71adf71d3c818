/* cu_function.c — attributes, parameters and names of functions and kernels.
 *
 * A CUkernel may be cast to CUfunction and passed to any call, which then uses the kernel's function in the current context. */
#include "softcuda/api/code/cu_code_internal.h"
#include "softcuda/exec/shown_name_internal.h"

CUresult soft_find_function(struct context *ctx, CUfunction handle, struct function **out)
{
	struct function *f = soft_handle_find(HANDLE_FUNCTION, handle);
	struct kernel *k;
	struct module *m;
	CUresult r;

	if (f) {
		*out = f;
		return f->module->ctx->fault;
	}
	k = soft_handle_find(HANDLE_KERNEL, handle);
	if (!k)
		return soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_FUNCTION, handle);
	r = soft_library_instance(k->library, ctx, &m);
	if (!r)
		*out = &m->functions[k->index];
	return r;
}

/* A CUfunction belongs to the context of its module, so a current context is needed only for a CUkernel. */
CUresult soft_enter_function(CUfunction handle, struct function **out)
{
	struct context *ctx = NULL;
	CUresult r = soft_lock_initialised();

	if (r)
		return r;
	if (!soft_handle_find(HANDLE_FUNCTION, handle)) {
		soft_unlock();
		r = soft_enter(&ctx);
		if (r)
			return r;
	}
	r = soft_find_function(ctx, handle, out);
	if (r)
		soft_unlock();
	return r;
}

CUresult soft_enter_prepared(CUfunction handle, struct function **out)
{
	CUresult r = soft_enter_function(handle, out);

	if (r)
		return r;
	r = soft_prepare((*out)->kernel);
	if (r)
		soft_unlock();
	return r;
}

int soft_max_dynamic(const struct function *f)
{
	return f->max_dynamic_shared >= 0 ? f->max_dynamic_shared : DEFAULT_SHARED_BYTES - (int)f->info->shared_bytes;
}

/* Find a kernel; no context needs to be current.  The lock is held on success. */
static CUresult enter_kernel(CUkernel handle, struct kernel **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_KERNEL, handle);
	if (*out)
		return CUDA_SUCCESS;
	r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_KERNEL, handle);
	soft_unlock();
	return r;
}

static const gpul_exec_kernel *kernel_of(const struct kernel *k)
{
	return gpul_exec_kernel_at(k->library->code->program, k->index);
}

static const gpul_exec_kernel_info *kernel_info(const struct kernel *k)
{
	return gpul_exec_kernel_info_of(kernel_of(k));
}

/* Find a kernel and call soft_prepare() for it; the lock is held on success. */
static CUresult enter_prepared_kernel(CUkernel handle, CUdevice dev, struct kernel **out)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (!r)
		r = enter_kernel(handle, out);
	if (r)
		return r;
	r = soft_prepare(kernel_of(*out));
	if (r)
		soft_unlock();
	return r;
}

/* ---- attributes ------------------------------------------------------------------------- */

static CUresult get_attribute(int *value, CUfunction_attribute attribute, const gpul_exec_kernel_info *info, int target_sm, int max_dynamic,
			      int carveout, bool non_portable)
{
	if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*value = 0; /* cache mode and cluster scheduling policy, which have no branch below, are always 0 */
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
		*value = (int)info->max_threads;
	else if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
		*value = (int)info->shared_bytes;
	else if (attribute == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)
		*value = (int)info->const_bytes;
	else if (attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
		*value = (int)info->local_bytes;
	else if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS)
		*value = (int)info->n_regs;
	else if (attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION)
		*value = target_sm;
	else if (attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION)
		*value = (int)soft.cc;
	else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		*value = max_dynamic;
	else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		*value = carveout;
	else if (attribute == CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)
		*value = info->explicit_cluster;
	else if (attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH && attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)
		*value = (int)info->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
	else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
		*value = non_portable;
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction_attribute attribute, int value, const gpul_exec_kernel_info *info, int *max_dynamic, int *carveout,
			      bool *non_portable)
{
	int most = MAX_SHARED_BYTES - (int)info->shared_bytes;

	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
		if (value < 0 || value > most)
			return soft_refuse(CUDA_ERROR_INVALID_VALUE,
					   "%s: %d bytes of dynamic shared memory were requested, but the limit is %d "
					   "in addition to %u static bytes",
					   SHOWN_NAME(info->name), value, most, info->shared_bytes);
		*max_dynamic = value;
		return CUDA_SUCCESS;
	}
	if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		*carveout = value;
		return CUDA_SUCCESS;
	}
	if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
		*non_portable = value != 0;
		return CUDA_SUCCESS;
	}
	if (attribute == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
		return CUDA_SUCCESS;     /* ignored: the attribute is only a hint */
	return CUDA_ERROR_INVALID_VALUE; /* all other attributes are read-only */
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
	struct function *f;
	CUresult r = soft_enter_prepared(handle, &f);

	if (r)
		return r;
	r = get_attribute(value, attribute, f->info, f->module->code->target_sm, soft_max_dynamic(f), f->carveout, f->non_portable_cluster);
	soft_unlock();
	return r;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
	struct function *f;
	CUresult r = soft_enter_prepared(handle, &f);

	if (r)
		return r;
	r = set_attribute(attribute, value, f->info, &f->max_dynamic_shared, &f->carveout, &f->non_portable_cluster);
	soft_unlock();
	return r;
}

EXPORT CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice dev)
{
	struct kernel *k;
	CUresult r = enter_prepared_kernel(handle, dev, &k);

	if (r)
		return r;
	const gpul_exec_kernel_info *info = kernel_info(k);
	int dynamic = k->max_dynamic_shared;

	if (dynamic < 0)
		dynamic = DEFAULT_SHARED_BYTES - (int)info->shared_bytes;
	r = get_attribute(value, attribute, info, k->library->code->target_sm, dynamic, k->carveout, k->non_portable_cluster);
	soft_unlock();
	return r;
}

/* Set the attribute of the kernel and of its functions in all contexts that already use the library. */
EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice dev)
{
	struct kernel *k;
	CUresult r = enter_prepared_kernel(handle, dev, &k);

	if (r)
		return r;
	r = set_attribute(attribute, value, kernel_info(k), &k->max_dynamic_shared, &k->carveout, &k->non_portable_cluster);
	struct link *i = k->library->instances.next;

	for (; !r && i != &k->library->instances; i = i->next) {
		struct function *f = &CONTAINER(i, struct module, of_library)->functions[k->index];

		r = soft_prepare(f->kernel);
		if (!r)
			r = set_attribute(attribute, value, f->info, &f->max_dynamic_shared, &f->carveout, &f->non_portable_cluster);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
	struct function *f;
	CUresult r = (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : soft_enter_function(handle, &f);

	if (!r)
		soft_unlock(); /* ignored: the cache configuration is only a hint, and the CPU has no such cache */
	return r;
}

EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
	struct function *f;
	CUresult r = (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
										  : soft_enter_function(handle, &f);

	if (!r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev)
{
	struct device *d;
	struct kernel *k;
	CUresult r = soft_find_device(dev, &d);

	if (!r && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = enter_kernel(handle, &k);
	if (!r)
		soft_unlock();
	return r;
}

/* ---- names, parameters, owners ---------------------------------------------------------- */

static CUresult param_info(const gpul_exec_kernel_info *info, size_t index, size_t *offset, size_t *bytes)
{
	if (!offset || index >= info->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = info->params[index].offset;
	if (bytes)
		*bytes = info->params[index].bytes;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes)
{
	struct function *f;
	CUresult r = soft_enter_function(handle, &f);

	if (r)
		return r;
	r = param_info(f->info, index, offset, bytes);
	soft_unlock();
	return r;
}

EXPORT CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *bytes)
{
	struct context *ctx;
	struct kernel *k;
	CUresult r = soft_enter(&ctx); /* NVIDIA's driver requires a current context, and cuda-core's tests expect an error without one */

	if (r)
		return r;
	k = soft_handle_find(HANDLE_KERNEL, handle);
	r = k ? param_info(kernel_info(k), index, offset, bytes) : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_KERNEL, handle);
	soft_unlock();
	return r;
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction handle)
{
	struct function *f;
	CUresult r = name && handle ? soft_enter_function(handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*name = f->info->name;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetName(const char **name, CUkernel handle)
{
	struct kernel *k;
	CUresult r = name && handle ? enter_kernel(handle, &k) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*name = kernel_info(k)->name;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetModule(CUmodule *out, CUfunction handle)
{
	struct function *f;
	CUresult r = out ? soft_enter_function(handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = f->module->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel handle)
{
	struct kernel *k;
	CUresult r = out ? enter_kernel(handle, &k) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = k->library->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *out, CUkernel handle)
{
	struct function *f;
	CUresult r = out ? soft_enter_function((CUfunction)handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = soft_check_request(f->kernel);
	if (!r)
		*out = f->handle;
	soft_unlock();
	return r;
}

/* Functions are decoded together with their module, so every function is always loaded. */
EXPORT CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
	struct function *f;
	CUresult r = state ? soft_enter_function(handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncLoad(CUfunction handle)
{
	struct function *f;
	CUresult r = soft_enter_function(handle, &f);

	if (r)
		return r;
	r = soft_check_kernel(f->kernel);
	soft_unlock();
	return r;
}
