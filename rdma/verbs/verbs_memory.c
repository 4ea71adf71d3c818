/* verbs_memory.c — registers memory, so that the NIC can read and write it.
 *
 * Relaxed ordering lets the NIC's writes reach memory in any order, which is faster on many machines; the completion still comes
 * after them.  But code that polls memory could see the end of a slot before its beginning, so slots and steps are never registered
 * with relaxed ordering.  A kernel or driver without relaxed ordering ignores the flag (ibv_reg_mr_iova2). */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>

gpul_status gpul_verbs_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err)
{
	gpul_verbs_device *d = device;
	/* The loop-back queue pair of a flush needs access for reads or atomics; the queue pairs of the paths do not give it to the
	 * peer. */
	const bool by_read = d->flush == GPUL_RDMA_FLUSH_READ, by_atomic = d->flush == GPUL_RDMA_FLUSH_ATOMIC;
	const unsigned access = IBV_ACCESS_LOCAL_WRITE | (memory->source ? 0u : IBV_ACCESS_REMOTE_WRITE) |
				(memory->flushed && (by_read || by_atomic) ? IBV_ACCESS_REMOTE_READ : 0u) |
				(memory->flushed && by_atomic ? IBV_ACCESS_REMOTE_ATOMIC : 0u) |
				(memory->relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0u);
	struct ibv_mr *mr;

	if (!memory->bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot register memory of 0 bytes");
	if (memory->dmabuf_fd >= 0)
		mr = d->v->reg_dmabuf_mr(d->pd, memory->dmabuf_offset, memory->bytes, memory->at, memory->dmabuf_fd, (int)access);
	else
		mr = d->v->reg_mr_iova2(d->pd, (void *)(uintptr_t)memory->at, memory->bytes, memory->at, access);
	if (!mr && memory->dmabuf_fd >= 0)
		return gpul_verbs_fail(err, errno, 0, "ibv_reg_dmabuf_mr of %llu bytes at offset %llu of the dmabuf",
				       (unsigned long long)memory->bytes, (unsigned long long)memory->dmabuf_offset);
	if (!mr)
		return gpul_verbs_fail(err, errno, memory->bytes, "ibv_reg_mr of %llu bytes", (unsigned long long)memory->bytes);
	*piece = (gpul_rdma_piece){
		.at = memory->at,
		.bytes = memory->bytes,
		.local_key = mr->lkey,
		.remote = memory->at,
		.remote_key = mr->rkey,
	};
	*token = mr;
	return GPUL_OK;
}

void gpul_verbs_dereg(void *device, void *token)
{
	if (token)
		(void)((gpul_verbs_device *)device)->v->dereg_mr(token);
}

#endif
