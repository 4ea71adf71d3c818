/* ofi_lib.c — opens libfabric, and fills in the table of its functions. */
#include "rdma/ofi/ofi_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

static const struct gpul_ofi *of_test;

void gpul_ofi_use(const struct gpul_ofi *table)
{
	of_test = table;
}

#if GPUL_HAVE_LIBFABRIC

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the next two variables */
static struct gpul_ofi library;
static bool ready;

/* dlsym() returns functions as void *; ISO C has no conversion to a function pointer, hence memcpy(). */
static bool find_symbol(void *handle, const char *name, void *function)
{
	void *symbol = dlsym(handle, name);

	memcpy(function, &symbol, sizeof symbol);
	return symbol != NULL;
}

/* ofi_rxm, libfabric's layer over tcp, allocates 4,096 receive buffers for each endpoint, 150 MB by default, for messages, which
 * gpuload does not use.  Their size can be set only through an environment variable; a value that the user has set is kept. */
static void shrink_buffers(void)
{
	(void)setenv("FI_OFI_RXM_BUFFER_SIZE", "1024", 0);
}

/* Open the library and remove the signal handlers that it installs: libpsm_infinipath, a provider in Debian's build, handles SIGINT
 * and others by printing a backtrace and calling exit(). */
static void *open_without_handlers(const char *path)
{
	static const int signals[] = { SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV, SIGTERM };
	enum { N = sizeof signals / sizeof *signals };
	struct sigaction before[N];
	void *handle;

	for (unsigned i = 0; i < N; i++)
		sigaction(signals[i], NULL, &before[i]);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	for (unsigned i = 0; i < N; i++)
		sigaction(signals[i], &before[i], NULL);
	return handle;
}

static gpul_status open_library(gpul_error *err)
{
	const char *asked = secure_getenv("GPULOAD_LIBFABRIC");
	const char *path = asked && *asked ? asked : "libfabric.so.1";
	void *handle = open_without_handlers(path);
	struct gpul_ofi table;
	const char *lack = NULL;

	shrink_buffers();
	if (!handle)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "cannot load libfabric: %.180s", dlerror());
#define X(fn) \
	if (!find_symbol(handle, #fn, &table.fn)) \
		lack = #fn;
	GPUL_OFI_CALLS(X)
#undef X
	if (lack) {
		dlclose(handle);
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s has no %s: libfabric 1.10 or later is needed", path, lack);
	}
	gpul_log(GPUL_LOG_DEBUG, "libfabric", "opened %s", path);
	library = table;
	ready = true;
	return GPUL_OK;
}

gpul_status gpul_ofi_open(const struct gpul_ofi **out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	if (of_test) {
		*out = of_test;
		return GPUL_OK;
	}
	pthread_mutex_lock(&lock);
	if (!ready)
		st = open_library(err);
	pthread_mutex_unlock(&lock);
	if (!st)
		*out = &library;
	return st;
}

#else

gpul_status gpul_ofi_open(const struct gpul_ofi **out, gpul_error *err)
{
	(void)out;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "gpuload was built without libfabric: install libfabric-dev, and build again");
}

#endif
