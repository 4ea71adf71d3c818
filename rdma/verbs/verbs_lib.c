/* verbs_lib.c — opens libibverbs, and fills in the table of its functions. */
#include "rdma/verbs/verbs_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

static const struct gpul_verbs *of_test;

void gpul_verbs_use(const struct gpul_verbs *table)
{
	of_test = table;
}

#if GPUL_HAVE_LIBIBVERBS

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the next two variables */
static struct gpul_verbs library;
static bool ready;

/* Exported functions that inline functions of the header call; set before a caller gets the table. */
static __typeof__(_ibv_query_gid_table) *exported_gid_table;
static int (*exported_query_port)(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr);

int gpul_verbs_errno(int returned)
{
	return returned == -1 ? errno : abs(returned);
}

static ssize_t query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max_entries, uint32_t flags)
{
	return exported_gid_table(ctx, entries, max_entries, flags, sizeof *entries);
}

/* Does the same as ibv_query_port(), which is inline in the header: the exported function fills only the fields of the first version. */
static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct verbs_context *extended = __extension__ verbs_get_ctx_op(ctx, query_port);

	if (extended)
		return extended->query_port(ctx, port, attr, sizeof *attr);
	memset(attr, 0, sizeof *attr);
	return exported_query_port(ctx, port, (struct _compat_ibv_port_attr *)attr);
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr)
{
	struct verbs_context *extended = __extension__ verbs_get_ctx_op(ctx, query_device_ex);
	int r = extended ? extended->query_device_ex(ctx, input, attr, sizeof *attr) : EOPNOTSUPP;

	if (r != EOPNOTSUPP && r != ENOSYS)
		return r;
	memset(attr, 0, sizeof *attr);
	return library.query_device(ctx, &attr->orig_attr);
}

static struct ibv_mr *reg_no_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t n_bytes, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)n_bytes, (void)iova, (void)fd, (void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

/* Get a function of the library.  dlsym() returns void *, which ISO C cannot convert to a function pointer, hence memcpy(). */
static bool find_symbol(void *handle, const char *name, void *function)
{
	void *symbol = dlsym(handle, name);

	memcpy(function, &symbol, sizeof symbol);
	return symbol != NULL;
}

static gpul_status fill_table(void *handle, const char *path, struct gpul_verbs *v, gpul_error *err)
{
	const char *lack = NULL;

#define X(name) \
	if (!find_symbol(handle, "ibv_" #name, &v->name)) \
		lack = "ibv_" #name;
	GPUL_VERBS_CALLS(X)
#undef X
	if (!find_symbol(handle, "_ibv_query_gid_table", &exported_gid_table))
		lack = "_ibv_query_gid_table";
	if (!find_symbol(handle, "ibv_query_port", &exported_query_port))
		lack = "ibv_query_port";
	if (lack)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s has no %s: rdma-core 32 or later is needed", path, lack);
	if (!find_symbol(handle, "ibv_reg_dmabuf_mr", &v->reg_dmabuf_mr))
		v->reg_dmabuf_mr = reg_no_dmabuf;
	v->path = path;
	v->query_gid_table = query_gid_table;
	v->query_port = query_port;
	v->query_device_ex = query_device_ex;
	v->alloc_null_mr = ibv_alloc_null_mr;
	v->post_send = ibv_post_send;
	v->post_recv = ibv_post_recv;
	v->poll_cq = ibv_poll_cq;
	v->req_notify_cq = ibv_req_notify_cq;
	return GPUL_OK;
}

static gpul_status open_library(gpul_error *err)
{
	const char *path = secure_getenv("GPULOAD_IBVERBS");
	void *handle = dlopen(path && *path ? path : "libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	struct gpul_verbs v = { 0 };
	gpul_status st;

	if (!handle)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "cannot load libibverbs: %.180s", dlerror());
	st = fill_table(handle, path && *path ? strdup(path) : "libibverbs.so.1", &v, err);
	if (st)
		return st;
	gpul_log(GPUL_LOG_DEBUG, "verbs", "opened %s", v.path);
	library = v;
	ready = true;
	return GPUL_OK;
}

gpul_status gpul_verbs_open(const struct gpul_verbs **out, gpul_error *err)
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

gpul_status gpul_verbs_open(const struct gpul_verbs **out, gpul_error *err)
{
	(void)out, (void)of_test;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "gpuload was built without libibverbs: install libibverbs-dev and build again");
}

#endif
