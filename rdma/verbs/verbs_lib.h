/* verbs_lib.h — libibverbs as a table of functions, opened when it is first needed, so that programs without RDMA do not load it.
 *
 * Calls report errors as in libibverbs: functions that return a pointer return NULL and set errno; functions that return int
 * return an errno number, or, with older providers, -1 and set errno.  gpul_verbs_errno() converts the result of the latter. */
#ifndef GPULOAD_RDMA_VERBS_VERBS_LIB_H
#define GPULOAD_RDMA_VERBS_VERBS_LIB_H

#include "core/error.h"

#if GPUL_HAVE_LIBIBVERBS
#include <infiniband/verbs.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if GPUL_HAVE_LIBIBVERBS
/* X() for each function that the library exports, without the prefix ibv_. */
/* clang-format off */
#define GPUL_VERBS_CALLS(X)                                                                     \
	X(get_device_list) X(free_device_list) X(get_device_name) X(get_device_guid)            \
	X(open_device) X(close_device) X(query_device) X(query_gid) X(query_pkey)               \
	X(get_async_event) X(ack_async_event)                                                   \
	X(alloc_pd) X(dealloc_pd) X(reg_mr) X(reg_mr_iova2) X(dereg_mr)                         \
	X(create_comp_channel) X(destroy_comp_channel) X(get_cq_event) X(ack_cq_events)         \
	X(create_cq) X(destroy_cq) X(create_qp) X(modify_qp) X(query_qp) X(destroy_qp)          \
	X(create_ah) X(destroy_ah)                                                              \
	X(wc_status_str) X(event_type_str) X(port_state_str) X(node_type_str)
/* clang-format on */

struct gpul_verbs {
	const char *path; /* path of the shared object; for messages */
#define X(name) __typeof__(ibv_##name) *name;
	GPUL_VERBS_CALLS(X)
#undef X
	/* Since libibverbs 1.12.  With an older library, this points to a function that fails with EOPNOTSUPP. */
	__typeof__(ibv_reg_dmabuf_mr) *reg_dmabuf_mr;

	/* Inline functions of <infiniband/verbs.h>, which call the provider through the context. */
	ssize_t (*query_gid_table)(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max_entries, uint32_t flags);
	int (*query_port)(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
	int (*query_device_ex)(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr);
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *pd);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
};

/* Convert the result of a failed function that returns int to an errno number. */
int gpul_verbs_errno(int returned);
#endif

struct gpul_verbs;

/** Open libibverbs.
 *
 * $GPULOAD_IBVERBS: path of the library to use instead of libibverbs.so.1.
 *
 * @out  the table; valid until the process ends, because providers cannot be unloaded safely
 * @err  explains a failure
 * Errors  GPUL_EUNSUPPORTED there is no such library, it is too old, or gpuload was built without its header
 * Threads any thread; every call returns the same table
 * Source  libibverbs manual pages; rdma-core, libibverbs/verbs.h */
gpul_status gpul_verbs_open(const struct gpul_verbs **out, gpul_error *err);

/* For tests: make gpul_verbs_open() return this table from now on; NULL: the library's table again.  Call before threads are started. */
void gpul_verbs_use(const struct gpul_verbs *table);

#ifdef __cplusplus
}
#endif

#endif
