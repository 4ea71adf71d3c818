/* pmix.c — the number of ranks from the PMIx server of mpirun or srun.
 *
 * libpmix is opened at run time, so that the program does not depend on it. */
#include "comm/bootstrap/job_internal.h"

#include <limits.h>
#include <stdlib.h>

#if GPUL_HAVE_LIBPMIX

#include <dlfcn.h>
#include <pmix.h>
#include <stdbool.h>
#include <string.h>

struct pmix {
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Finalize) *finalize;
};

/* dlsym() returns a void *; memcpy turns it into a function pointer without a cast. */
static bool find_entry(void *handle, const char *name, void *function)
{
	void *p = dlsym(handle, name);

	memcpy(function, &p, sizeof p);
	return p != NULL;
}

/* The library is never closed: its thread may still run when PMIx_Finalize() returns. */
static gpul_status open_pmix(struct pmix *out, gpul_error *err)
{
	const char *path = secure_getenv("GPULOAD_LIBPMIX");
	void *handle = dlopen(path && *path ? path : "libpmix.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s", dlerror());
	if (!find_entry(handle, "PMIx_Init", &out->init) || !find_entry(handle, "PMIx_Get", &out->get) ||
	    !find_entry(handle, "PMIx_Finalize", &out->finalize))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "libpmix.so.2 lacks PMIx_Init, PMIx_Get or PMIx_Finalize");
	return GPUL_OK;
}

/* A number that holds for the whole job.  The value is not released: PMIX_VALUE_RELEASE needs more of the library. */
static gpul_status get_number(const struct pmix *p, const pmix_proc_t *me, const char *key, int *out, gpul_error *err)
{
	pmix_proc_t job = *me;
	pmix_value_t *value = NULL;
	pmix_status_t r;

	job.rank = PMIX_RANK_WILDCARD;
	r = p->get(&job, key, NULL, 0, &value);
	if (r != PMIX_SUCCESS || !value || value->type != PMIX_UINT32 || value->data.uint32 > INT_MAX)
		return gpul_fail(err, GPUL_EUNSUPPORTED, r, "PMIx_Get(%s): status %d", key, r);
	*out = (int)value->data.uint32;
	return GPUL_OK;
}

gpul_status gpul_comm_pmix_size(int *size, int *n_local, gpul_error *err)
{
	struct pmix p = { 0 };
	pmix_proc_t me;
	pmix_status_t r;
	gpul_status st = open_pmix(&p, err);

	if (st)
		return st;
	r = p.init(&me, NULL, 0);
	if (r != PMIX_SUCCESS)
		return gpul_fail(err, GPUL_EUNSUPPORTED, r, "PMIx_Init: status %d", r);
	st = get_number(&p, &me, PMIX_JOB_SIZE, size, err);
	if (!st)
		st = get_number(&p, &me, PMIX_LOCAL_SIZE, n_local, err);
	(void)p.finalize(NULL, 0);
	return st;
}

#else

gpul_status gpul_comm_pmix_size(int *size, int *n_local, gpul_error *err)
{
	(void)size;
	(void)n_local;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "this build has no support for libpmix");
}

#endif
