/* post.c — operations become fi_writemsg, completions become events. */
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rdma/ofi/ofi_internal.h"

enum { ENTRIES = 64 };

static const char *advice_for(int error)
{
	switch (error) {
	case FI_EACCES:
	case FI_EPERM:
		return "the key or the range of the peer's memory is wrong: offer the memory again";
	case FI_ECONNREFUSED:
	case FI_EHOSTUNREACH:
	case FI_ENETUNREACH:
		return "check that the peer's interface is reachable from here (choose one with --device), and its firewall";
	default:
		return "check that the peer's process runs, and the network between the machines";
	}
}

static gpul_status fail_post(const struct ofi_path *p, long code, gpul_rdma_failure *why)
{
	return gpul_rdma_fail(why, GPUL_ESYS, (int)-code, "fi_writemsg", advice_for((int)-code), "%s",
			      p->device->ofi->fi_strerror((int)-code));
}

static ssize_t write_one(struct ofi_path *p, const gpul_rdma_op *op, uint64_t more)
{
	struct iovec from = { .iov_base = (void *)(uintptr_t)op->local, .iov_len = op->bytes };
	struct fi_rma_iov to = { .addr = op->remote, .len = op->bytes, .key = op->remote_key };
	void *desc = (void *)(uintptr_t)op->local_key;
	const struct fi_msg_rma msg = {
		.msg_iov = &from, .desc = &desc, .iov_count = 1, .addr = p->peers[op->qp], .rma_iov = &to, .rma_iov_count = 1,
		.context = (void *)(uintptr_t)op->id, .data = op->imm,
	};

	return fi_writemsg(p->eps[op->qp], &msg, more | (op->kind == GPUL_RDMA_OP_WRITE_IMM ? FI_REMOTE_CQ_DATA : 0) |
						 (op->flags & GPUL_RDMA_SIGNALED ? FI_COMPLETION : 0) |
						 (op->flags & GPUL_RDMA_DELIVERED ? FI_DELIVERY_COMPLETE : 0) |
						 (op->flags & GPUL_RDMA_INLINE ? FI_INJECT : 0));
}

gpul_status gpul_ofi_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why)
{
	struct ofi_path *p = path;
	unsigned i;

	for (i = 0; i < n; i++) {
		ssize_t r;

		if (ops[i].kind == GPUL_RDMA_OP_RECV)  /* libfabric's writes with data need no receives */
			continue;
		r = write_one(p, &ops[i], i + 1 < n && ops[i + 1].qp == ops[i].qp && ops[i + 1].kind != GPUL_RDMA_OP_RECV ? FI_MORE : 0);
		if (r == -FI_EAGAIN)
			break;
		if (r) {
			*n_posted = i;
			return fail_post(p, r, why);
		}
	}
	*n_posted = i;
	return GPUL_OK;
}

static gpul_status read_error(struct ofi_path *p, gpul_rdma_failure *why)
{
	struct fi_cq_err_entry e = { 0 };
	const ssize_t r = fi_cq_readerr(p->cq, &e, 0);
	char detail[80] = "";
	gpul_status st;

	if (r < 0)
		return gpul_rdma_fail(why, GPUL_ESYS, (int)-r, "fi_cq_readerr", NULL, "%s", p->device->ofi->fi_strerror((int)-r));
	fi_cq_strerror(p->cq, e.prov_errno, e.err_data, detail, sizeof detail);
	st = gpul_rdma_fail(why, GPUL_ESYS, e.err, "completion", advice_for(e.err), "%s%s%s",
			    p->device->ofi->fi_strerror(e.err), *detail ? ": " : "", detail);
	why->vendor = (uint32_t)e.prov_errno;
	return st;
}

gpul_status gpul_ofi_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	struct ofi_path *p = path;
	struct fi_cq_data_entry entries[ENTRIES];
	const ssize_t n = fi_cq_read(p->cq, entries, max < ENTRIES ? max : ENTRIES);

	*n_events = 0;
	if (n == -FI_EAGAIN)
		return GPUL_OK;
	if (n == -FI_EAVAIL)
		return read_error(p, why);
	if (n < 0)
		return gpul_rdma_fail(why, GPUL_ESYS, (int)-n, "fi_cq_read", NULL, "%s", p->device->ofi->fi_strerror((int)-n));
	for (ssize_t i = 0; i < n; i++) {
		const bool arrival = (entries[i].flags & FI_REMOTE_CQ_DATA) != 0;

		events[(*n_events)++] = (gpul_rdma_event){
			.kind = arrival ? GPUL_RDMA_EVENT_ARRIVED : GPUL_RDMA_EVENT_DONE,
			.imm = arrival ? (uint32_t)entries[i].data : 0,
			.id = arrival ? 0 : (uint64_t)(uintptr_t)entries[i].op_context,
		};
	}
	return GPUL_OK;
}

#else
typedef int no_libfabric;
#endif
