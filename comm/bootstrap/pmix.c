/* pmix.c — gets the number of ranks from the PMIx server of mpirun or srun, and distributes the address of rank 0 through it.
 *
 * libpmix is opened at run time, so that the program does not depend on it. */
#include "comm/bootstrap/job_internal.h"

#include <limits.h>
#include <stdlib.h>

#if GPUL_HAVE_LIBPMIX

#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SHARE_SECONDS = 60 };
#define SHARE_KEY "gpuload.comm.rank0"

struct pmix {
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Put) *put;
	__typeof__(PMIx_Commit) *commit;
	__typeof__(PMIx_Fence) *fence;
};

/* memcpy() converts the void * of dlsym() to a function pointer, because ISO C forbids this cast. */
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
	    !find_entry(handle, "PMIx_Finalize", &out->finalize) || !find_entry(handle, "PMIx_Put", &out->put) ||
	    !find_entry(handle, "PMIx_Commit", &out->commit) || !find_entry(handle, "PMIx_Fence", &out->fence))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "libpmix.so.2 lacks PMIx_Init, PMIx_Get, PMIx_Put, PMIx_Commit, PMIx_Fence or PMIx_Finalize");
	return GPUL_OK;
}

/* Query a number that is equal for all ranks.  The value is not released, because PMIX_VALUE_RELEASE needs more functions
 * of the library. */
static gpul_status get_number(const struct pmix *p, const pmix_proc_t *me, const char *key, int *out, gpul_error *err)
{
	pmix_proc_t job = *me;
	pmix_value_t *value = NULL;
	pmix_status_t r;

	job.rank = PMIX_RANK_WILDCARD;
	r = p->get(&job, key, NULL, 0, &value);
	if (r != PMIX_SUCCESS || !value || value->type != PMIX_UINT32 || value->data.uint32 > INT_MAX)
		return gpul_fail(err, GPUL_EUNSUPPORTED, r, "PMIx_Get(%s) failed with status %d", key, r);
	*out = (int)value->data.uint32;
	return GPUL_OK;
}

/* Fill in one pmix_info_t, an attribute of a PMIx call.  The macros of pmix.h would need more functions of the library. */
static pmix_info_t attribute(const char *key, pmix_data_type_t type)
{
	pmix_info_t info;

	memset(&info, 0, sizeof info);
	strncpy(info.key, key, sizeof info.key - 1);
	info.value.type = type;
	return info;
}

/* Make the values that rank 0 has put visible to all ranks.  Every rank must call this. */
static gpul_status fence(const struct pmix *p, gpul_error *err)
{
	pmix_info_t options[2] = { attribute(PMIX_COLLECT_DATA, PMIX_BOOL), attribute(PMIX_TIMEOUT, PMIX_INT) };
	pmix_status_t r;

	options[0].value.data.flag = true;
	options[1].value.data.integer = SHARE_SECONDS;
	r = p->fence(NULL, 0, options, 2);
	if (r == PMIX_SUCCESS)
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, r == PMIX_ERR_TIMEOUT ? ETIMEDOUT : r,
			 "PMIx did not pass the address of rank 0 to all ranks within %d s: PMIx_Fence failed with status %d",
			 SHARE_SECONDS, r);
}

/* Pass rank 0's text "ADDRESS SECRET" to all ranks. */
static gpul_status exchange_text(const struct pmix *p, const pmix_proc_t *me, int rank, char *text, size_t text_bytes, gpul_error *err)
{
	pmix_value_t mine = { .type = PMIX_STRING, .data = { .string = text } }, *got = NULL;
	pmix_proc_t first = *me;
	pmix_status_t r = PMIX_SUCCESS;
	gpul_status st;

	if (rank == 0)
		r = p->put(PMIX_GLOBAL, SHARE_KEY, &mine);
	if (r == PMIX_SUCCESS)
		r = p->commit();
	if (r != PMIX_SUCCESS)
		return gpul_fail(err, GPUL_ESYS, r, "PMIx_Put or PMIx_Commit failed with status %d", r);
	st = fence(p, err);
	if (st || rank == 0)
		return st;
	first.rank = 0;
	r = p->get(&first, SHARE_KEY, NULL, 0, &got);
	if (r != PMIX_SUCCESS || !got || got->type != PMIX_STRING || !got->data.string || strlen(got->data.string) >= text_bytes)
		return gpul_fail(err, GPUL_ESYS, r, "PMIx_Get(" SHARE_KEY "): status %d", r);
	strcpy(text, got->data.string);
	return GPUL_OK;
}

static gpul_status share_address(const struct pmix *p, const pmix_proc_t *me, int rank, const char *interface, struct gpul_comm_pmix *out,
				 gpul_error *err)
{
	char text[GPUL_COMM_ADDRESS_BYTES + GPUL_COMM_SECRET_BYTES] = "";
	gpul_status st = GPUL_OK;

	if (rank == 0) {
		st = gpul_comm_reserve_address(interface, out->address, err);
		if (!st)
			st = gpul_comm_make_secret(out->secret, err);
		snprintf(text, sizeof text, "%s %s", out->address, out->secret);
	}
	if (!st)
		st = exchange_text(p, me, rank, text, sizeof text, err);
	if (!st && sscanf(text, "%263s %131s", out->address, out->secret) != 2)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "rank 0 published a malformed address by PMIx");
	return st;
}

/* All queries share one PMIx session, because some versions of the library are slow to start a second one. */
static gpul_status ask_once(int rank, const char *interface, bool share, struct gpul_comm_pmix *out, gpul_error *err)
{
	struct pmix p = { 0 };
	pmix_proc_t me;
	pmix_status_t r;
	gpul_status st = open_pmix(&p, err);

	if (st)
		return st;
	r = p.init(&me, NULL, 0);
	if (r != PMIX_SUCCESS)
		return gpul_fail(err, GPUL_EUNSUPPORTED, r, "PMIx_Init failed with status %d", r);
	st = get_number(&p, &me, PMIX_JOB_SIZE, &out->size, err);
	if (!st)
		st = get_number(&p, &me, PMIX_LOCAL_SIZE, &out->n_here, err);
	if (!st && share && out->size != out->n_here)
		st = share_address(&p, &me, rank, interface, out, err);
	(void)p.finalize(NULL, 0);
	return st;
}

gpul_status gpul_comm_pmix_query(int rank, const char *interface, bool share, struct gpul_comm_pmix *out, gpul_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct gpul_comm_pmix first; /* the result of the first query; size 0: not queried yet */
	gpul_status st = GPUL_OK;

	*out = (struct gpul_comm_pmix){ 0 };
	pthread_mutex_lock(&lock);
	if (first.size == 0 || (share && first.size != first.n_here && !first.address[0])) {
		st = ask_once(rank, interface, share, out, err);
		if (!st)
			first = *out;
	}
	*out = first;
	pthread_mutex_unlock(&lock);
	return st;
}

#else

gpul_status gpul_comm_pmix_query(int rank, const char *interface, bool share, struct gpul_comm_pmix *out, gpul_error *err)
{
	(void)rank;
	(void)interface;
	(void)share;
	*out = (struct gpul_comm_pmix){ 0 };
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "this build has no support for libpmix");
}

#endif
