/* rt_registry.c — keeps the table that maps host addresses to kernels and variables.
 *
 *     &stub ── table ──> symbol { name, image } ── image ──> CUlibrary, loaded when needed
 *                                 └── cuLibraryGetKernel(library, name) ──> CUkernel
 *
 * A CUkernel is valid on every device: the driver loads the code on a device when it is first launched there.  So one
 * look-up is enough for all devices. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "nvidia/cudart/rt_runtime_internal.h"

struct gpul_rt_image {
	const void *wrapper;
	CUlibrary library;      /* the loaded image; NULL: not loaded yet */
	const gpul_driver *drv; /* the driver that loaded the library */
	struct gpul_rt_image *next;
};

/* Protects the variables below.  Also held while the driver loads an image, which is safe, because the driver does not call this file. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gpul_rt_image *images;
static gpul_rt_symbol **buckets;    /* each bucket is a list of symbols, newest first */
static size_t n_buckets, n_symbols; /* n_buckets is a power of two, or 0 */
static _Bool out_of_memory;         /* memory ran out during a registration, which cannot return an error */

static gpul_rt_symbol **bucket_of(const void *host)
{
	uint64_t h = (uint64_t)(uintptr_t)host * 0x9e3779b97f4a7c15u; /* Fibonacci hashing */

	return &buckets[(h >> 32) & (n_buckets - 1)];
}

static gpul_rt_symbol *find_symbol(const void *host, gpul_rt_kind kind)
{
	gpul_rt_symbol *s = n_buckets ? *bucket_of(host) : NULL;

	while (s && (s->host != host || s->kind != kind))
		s = s->next_in_bucket;
	return s;
}

static void insert_symbol(gpul_rt_symbol *s)
{
	gpul_rt_symbol **bucket = bucket_of(s->host);

	s->next_in_bucket = *bucket;
	*bucket = s;
}

/* Double the number of buckets, or create the first 64.  If memory runs out, the old buckets remain. */
static void grow_buckets(void)
{
	size_t n_old = n_buckets, n_new = n_old ? 2 * n_old : 64;
	gpul_rt_symbol **old = buckets, **new = calloc(n_new, sizeof(gpul_rt_symbol *));

	if (!new)
		return;
	buckets = new;
	n_buckets = n_new;
	for (size_t i = 0; i < n_old; i++) {
		for (gpul_rt_symbol *s = old[i], *next; s; s = next) {
			next = s->next_in_bucket;
			insert_symbol(s);
		}
	}
	free(old);
}

gpul_rt_image *gpul_rt_add_image(const void *wrapper)
{
	gpul_rt_image *image = calloc(1, sizeof *image);

	pthread_mutex_lock(&lock);
	if (image) {
		image->wrapper = wrapper;
		image->next = images;
		images = image;
	} else {
		out_of_memory = 1;
	}
	pthread_mutex_unlock(&lock);
	return image;
}

static _Bool add_symbol_locked(gpul_rt_symbol symbol)
{
	gpul_rt_symbol *s = calloc(1, sizeof *s);

	if (s && n_symbols >= n_buckets)
		grow_buckets();
	if (!s || !n_buckets) {
		free(s);
		return 0;
	}
	*s = symbol;
	insert_symbol(s);
	n_symbols++;
	return 1;
}

void gpul_rt_add_symbol(gpul_rt_image *image, gpul_rt_kind kind, const void *host, const char *name, size_t bytes)
{
	pthread_mutex_lock(&lock);
	if (!image || !add_symbol_locked((gpul_rt_symbol){ .host = host, .name = name, .image = image, .bytes = bytes, .kind = kind }))
		out_of_memory = 1;
	pthread_mutex_unlock(&lock);
}

/* Add a CUkernel as a symbol whose host address is the handle, so that it is accepted in place of a stub. */
cudaError_t gpul_rt_add_handle(CUkernel kernel)
{
	_Bool added;

	pthread_mutex_lock(&lock);
	added = find_symbol(kernel, GPUL_RT_KERNEL) || add_symbol_locked((gpul_rt_symbol){ .host = kernel, .kernel = kernel });
	pthread_mutex_unlock(&lock);
	return added ? cudaSuccess : gpul_rt_fail(cudaErrorMemoryAllocation, "out of memory");
}

const void *gpul_rt_stub(const gpul_driver *drv, CUkernel kernel, CUfunction f)
{
	const void *stub = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_buckets; i++)
		for (gpul_rt_symbol *s = buckets[i]; s; s = s->next_in_bucket) {
			CUfunction own = NULL;

			if (s->kind != GPUL_RT_KERNEL || !s->kernel || (stub && s->host == s->kernel))
				continue;
			if (s->kernel == kernel || (f && !drv->cuKernelGetFunction(&own, s->kernel) && own == f))
				stub = s->host;
		}
	pthread_mutex_unlock(&lock);
	return stub;
}

static void remove_symbols(const gpul_rt_image *image)
{
	for (size_t i = 0; i < n_buckets; i++) {
		for (gpul_rt_symbol **link = &buckets[i]; *link;) {
			gpul_rt_symbol *s = *link;

			if (s->image != image) {
				link = &s->next_in_bucket;
				continue;
			}
			*link = s->next_in_bucket;
			free(s);
			n_symbols--;
		}
	}
	if (!n_symbols) {
		free(buckets);
		buckets = NULL;
		n_buckets = 0;
	}
}

/* Remove an image.  At exit it is not unloaded: unloading would wait for running kernels, and the driver's exit handlers may have
 * run already. */
void gpul_rt_remove_image(gpul_rt_image *image)
{
	pthread_mutex_lock(&lock);
	for (gpul_rt_image **link = &images; *link; link = &(*link)->next) {
		if (*link != image)
			continue;
		*link = image->next;
		remove_symbols(image);
		if (image->library && !gpul_rt_exiting())
			image->drv->cuLibraryUnload(image->library);
		free(image);
		break;
	}
	pthread_mutex_unlock(&lock);
}

static cudaError_t load_library(const gpul_driver *drv, gpul_rt_image *image)
{
	cudaError_t e = image->library ? cudaSuccess : gpul_rt_load(drv, image->wrapper, &image->library);

	image->drv = drv;
	return e;
}

static cudaError_t fail_unknown(cudaError_t e, const char *what, const void *host)
{
	if (out_of_memory)
		return gpul_rt_fail(cudaErrorMemoryAllocation, "out of memory when the program registered its kernels");
	return gpul_rt_fail(e, "%p is not the host address of a registered %s", host, what);
}

static cudaError_t find_kernel(const gpul_driver *drv, const void *stub, cudaError_t none, CUkernel *out)
{
	gpul_rt_symbol *s = find_symbol(stub, GPUL_RT_KERNEL);
	cudaError_t e;
	CUresult r;

	if (!s)
		return fail_unknown(none, "kernel", stub);
	if (!s->kernel) {
		if ((e = load_library(drv, s->image)))
			return e;
		r = drv->cuLibraryGetKernel(&s->kernel, s->image->library, s->name);
		if (r == CUDA_ERROR_NOT_FOUND)
			return gpul_rt_fail(cudaErrorInvalidDeviceFunction, "the image for this device has no kernel %s", s->name);
		if (r)
			return gpul_rt_record(drv, r, "cuLibraryGetKernel");
		(void)add_symbol_locked((gpul_rt_symbol){ .host = s->kernel, .name = s->name, .image = s->image, .kernel = s->kernel });
	}
	*out = s->kernel;
	return cudaSuccess;
}

cudaError_t gpul_rt_kernel(const gpul_driver *drv, const void *stub, cudaError_t none, CUkernel *out)
{
	cudaError_t e;

	pthread_mutex_lock(&lock);
	e = find_kernel(drv, stub, none, out);
	pthread_mutex_unlock(&lock);
	return e;
}

cudaError_t gpul_rt_function(const gpul_driver *drv, const void *stub, CUfunction *out)
{
	CUkernel k;
	cudaError_t e = gpul_rt_kernel(drv, stub, cudaErrorInvalidDeviceFunction, &k);

	return e ? e : gpul_rt_cu(drv, cuKernelGetFunction(out, k));
}

/* Return the managed variable at an address. */
static gpul_rt_symbol *find_managed(const void *address)
{
	for (size_t i = 0; address && i < n_buckets; i++)
		for (gpul_rt_symbol *s = buckets[i]; s; s = s->next_in_bucket)
			if (s->kind == GPUL_RT_MANAGED && *(void *const *)s->host == address)
				return s;
	return NULL;
}

static cudaError_t find_variable(const gpul_driver *drv, const void *host, CUdeviceptr *address, size_t *bytes)
{
	gpul_rt_symbol *s = find_symbol(host, GPUL_RT_VARIABLE);
	cudaError_t e;
	CUresult r;

	if (!s && (s = find_managed(host))) {
		*address = gpul_rt_address(host);
		*bytes = s->bytes;
		return cudaSuccess;
	}
	if (!s)
		return fail_unknown(cudaErrorInvalidSymbol, "device variable", host);
	if ((e = load_library(drv, s->image)))
		return e;
	*bytes = s->bytes;
	r = drv->cuLibraryGetGlobal(address, NULL, s->image->library, s->name);
	if (r == CUDA_ERROR_NOT_FOUND)
		return gpul_rt_fail(cudaErrorInvalidSymbol, "the image for this device has no variable %s", s->name);
	return gpul_rt_record(drv, r, "cuLibraryGetGlobal");
}

cudaError_t gpul_rt_variable(const gpul_driver *drv, const void *host, CUdeviceptr *address, size_t *bytes)
{
	cudaError_t e;

	pthread_mutex_lock(&lock);
	e = find_variable(drv, host, address, bytes);
	pthread_mutex_unlock(&lock);
	return e;
}

/* ---- managed variables ------------------------------------------------------------------- */

/* Set the host's pointer to a managed variable.  Programs pass the value of this pointer as the symbol of the variable. */
static cudaError_t place_variable(const gpul_driver *drv, const gpul_rt_symbol *s)
{
	void **host = (void **)(uintptr_t)s->host;
	CUdeviceptr address = 0;
	cudaError_t e;

	if (*host)
		return cudaSuccess;
	if ((e = gpul_rt_cu(drv, cuLibraryGetManaged(&address, NULL, s->image->library, s->name))))
		return e;
	*host = (void *)(uintptr_t)address;
	return cudaSuccess;
}

cudaError_t gpul_rt_place_managed(const gpul_driver *drv, gpul_rt_image *image)
{
	cudaError_t e = cudaSuccess;

	pthread_mutex_lock(&lock);
	if (image)
		e = load_library(drv, image);
	for (size_t i = 0; !e && i < n_buckets; i++)
		for (gpul_rt_symbol *s = buckets[i]; s && !e; s = s->next_in_bucket)
			if (s->kind == GPUL_RT_MANAGED && s->image == image)
				e = place_variable(drv, s);
	pthread_mutex_unlock(&lock);
	return e;
}
