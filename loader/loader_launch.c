/* loader_launch.c — gpul_kernel_launch(): checks arguments and limits before the launch, so that an error names
 * the argument or the limit. */
#include <stdio.h>

#include "loader/loader_internal.h"

gpul_status gpul_kernel_bind(gpul_kernel *k, CUfunction fn, gpul_error *err)
{
	const gpul_module *m = k->m;
	int threads = 0, shared = 0;
	gpul_status st = gpul_cu(m->drv, err, cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fn));

	if (!st)
		st = gpul_cu(m->drv, err, cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, fn));
	if (st)
		return st;
	k->fn = fn;
	k->max_threads = threads > 0 ? (uint32_t)threads : m->limits.threads;
	k->static_shared = shared > 0 ? (uint32_t)shared : 0;
	if (k->static_shared < m->limits.shared)
		atomic_store(&k->dynamic_allowed, m->limits.shared - k->static_shared);
	/* stored last, because other threads then read the other fields without the lock */
	atomic_store(&k->resolved, true);
	return GPUL_OK;
}

static gpul_status resolve_locked(gpul_kernel *k, gpul_error *err)
{
	const gpul_module *m = k->m;
	CUfunction fn = NULL;
	gpul_status st = GPUL_OK;

	if (!k->handle)
		st = gpul_cu(m->drv, err, cuLibraryGetKernel(&k->handle, m->library, k->name));
	if (!st)
		st = gpul_cu(m->drv, err, cuKernelGetFunction(&fn, k->handle));
	return st ? st : gpul_kernel_bind(k, fn, err);
}

gpul_status gpul_kernel_resolve(gpul_kernel *k, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	if (atomic_load_explicit(&k->resolved, memory_order_acquire))
		return GPUL_OK;
	pthread_mutex_lock(&k->m->lock);
	if (!atomic_load(&k->resolved))
		st = resolve_locked(k, err);
	pthread_mutex_unlock(&k->m->lock);
	return st;
}

/* Return k without const, so that results of driver calls can be stored in it. */
static gpul_kernel *writable(const gpul_kernel *k)
{
	return &k->m->kernels[k - k->m->kernels];
}

gpul_status gpul_kernel_prepare(const gpul_kernel *k, gpul_error *err)
{
	return gpul_kernel_resolve(writable(k), err);
}

gpul_status gpul_kernel_function(const gpul_kernel *k, CUfunction *out, gpul_error *err)
{
	gpul_status st = gpul_kernel_resolve(writable(k), err);

	if (!st)
		*out = k->fn;
	return st;
}

/* ---- checks ---------------------------------------------------------------------- */

static gpul_status fail_args(const gpul_kernel *k, const size_t *arg_bytes, size_t n_args, size_t i, gpul_error *err)
{
	const gpul_signature *s = gpul_kernel_signature(k);
	char text[160];

	gpul_signature_print(s, text, sizeof text);
	if (n_args != s->n_params)
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu argument%s given, but the kernel has %zu parameters: %s", n_args,
				 n_args == 1 ? "" : "s", s->n_params, text);
	return gpul_fail(err, GPUL_EINVAL, 0, "argument %zu has %zu bytes, but its parameter has %u: %s", i, arg_bytes[i],
			 s->params[i].bytes, text);
}

static gpul_status check_args(const gpul_kernel *k, const size_t *arg_bytes, size_t n_args, gpul_error *err)
{
	const gpul_signature *s = &k->declared->s;

	if (n_args != s->n_params)
		return fail_args(k, arg_bytes, n_args, 0, err);
	for (size_t i = 0; i < n_args; i++)
		if (arg_bytes[i] != s->params[i].bytes)
			return fail_args(k, arg_bytes, n_args, i, err);
	return GPUL_OK;
}

static gpul_status fail_shape(const char *what, const uint32_t v[3], const char *problem, const uint32_t limit[3], gpul_error *err)
{
	return gpul_fail(err, GPUL_EINVAL, 0, "a %s of %u x %u x %u %s %u x %u x %u", what, v[0], v[1], v[2], problem, limit[0], limit[1],
			 limit[2]);
}

static gpul_status check_shape(const gpul_kernel *k, const gpul_launch_config *c, gpul_error *err)
{
	const gpul_limits *l = &k->m->limits;
	const gpul_signature *s = &k->declared->s;
	uint64_t threads = (uint64_t)c->block[0] * c->block[1];

	for (int i = 0; i < 3; i++) {
		static const uint32_t least[3] = { 1, 1, 1 };

		if (!c->grid[i] || !c->block[i])
			return fail_shape(c->grid[i] ? "block" : "grid", c->grid[i] ? c->block : c->grid, "is empty: the minimum is", least,
					  err);
		if (c->grid[i] > l->grid[i])
			return fail_shape("grid", c->grid, "is too big: the device's limit is", l->grid, err);
	}
	/* cannot overflow: the product of two factors is below 2^64, and the third factor is used only
	 * if that product is at most 2^32 - 1 */
	threads = threads > UINT32_MAX ? threads : threads * c->block[2];
	if (threads > l->threads)
		return gpul_fail(err, GPUL_EINVAL, 0, "a block of %llu threads is too big: the device's limit is %u",
				 (unsigned long long)threads, l->threads);
	for (int i = 0; i < 3; i++)
		if (c->block[i] > l->block[i])
			return fail_shape("block", c->block, "is too big: the device's limit is", l->block, err);
	for (int i = 0; i < 3 && s->reqntid[0]; i++)
		if (c->block[i] != s->reqntid[i])
			return fail_shape("block", c->block, "does not match: the kernel was compiled for (.reqntid)", s->reqntid, err);
	if (threads > k->max_threads)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a block of %llu threads is too big for %.120s: its limit is %u, "
				 "set by its registers or .maxntid",
				 (unsigned long long)threads, gpul_kernel_demangled(k), k->max_threads);
	return GPUL_OK;
}

/* Allow the kernel more dynamic shared memory than the default.  If two threads do this, the larger value remains. */
static gpul_status opt_in_shared(gpul_kernel *k, uint32_t bytes, gpul_error *err)
{
	const gpul_limits *l = &k->m->limits;
	gpul_status st = GPUL_OK;

	if ((uint64_t)bytes + k->static_shared > l->shared_optin)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%llu bytes of shared memory per block (%u static + %u dynamic) are "
				 "too much: the device's limit is %u",
				 (unsigned long long)bytes + k->static_shared, k->static_shared, bytes, l->shared_optin);
	pthread_mutex_lock(&k->m->lock);
	if (bytes > atomic_load(&k->dynamic_allowed)) {
		st = gpul_cu(k->m->drv, err, cuFuncSetAttribute(k->fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
		if (!st)
			atomic_store(&k->dynamic_allowed, bytes);
	}
	pthread_mutex_unlock(&k->m->lock);
	return st;
}

/* ---- the launch ------------------------------------------------------------------ */

static void complete_shape(uint32_t v[3])
{
	v[1] = v[0] && !v[1] ? 1 : v[1];
	v[2] = v[0] && !v[2] ? 1 : v[2];
}

gpul_status gpul_kernel_launch(const gpul_kernel *k, const gpul_launch_config *config, void *const *args, const size_t *arg_bytes,
			       size_t n_args, gpul_error *err)
{
	gpul_launch_config whole = *config, *c = &whole;
	gpul_kernel *mine = writable(k);
	const gpul_driver *drv = k->m->drv;
	gpul_status st = gpul_kernel_resolve(mine, err);

	complete_shape(whole.grid);
	complete_shape(whole.block);
	if (!st)
		st = check_args(k, arg_bytes, n_args, err);
	if (!st)
		st = check_shape(k, c, err);
	if (!st && c->shared_bytes > atomic_load_explicit(&k->dynamic_allowed, memory_order_relaxed))
		st = opt_in_shared(mine, c->shared_bytes, err);
	if (st)
		return st;
	if (c->cooperative)
		return gpul_cu(drv, err,
			       cuLaunchCooperativeKernel(k->fn, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
							 c->shared_bytes, c->stream, (void **)args));
	return gpul_cu(drv, err,
		       cuLaunchKernel(k->fn, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared_bytes,
				      c->stream, (void **)args, NULL));
}
