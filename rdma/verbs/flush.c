/* flush.c — FLUSH: makes data that has arrived in GPU memory visible to kernels.
 *
 * The NIC's writes travel to the GPU as posted PCIe writes.  The CPU sees their completion in its own memory, perhaps before they
 * have reached the GPU's memory.  A read of GPU memory by the same NIC cannot overtake them on PCIe: when the read has ended,
 * they have arrived.  So a queue pair that is connected to itself reads a few bytes of the data (policy READ), or performs an
 * atomic compare-and-swap of 0 with 0 on them, which changes nothing, and whose result goes to a null MR (policy ATOMIC).  The
 * CUDA driver can flush by itself (policy CUDA), and some platforms order the writes without a flush (policy NONE). */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Read a device attribute of the GPU; 0 if it cannot be read. */
static int gpu_attribute(const gpul_rdma_device_desc *desc, CUdevice_attribute which)
{
	CUdevice gpu;
	int value;

	if (desc->drv->cuDeviceGet(&gpu, desc->gpu >= 0 ? desc->gpu : 0) != CUDA_SUCCESS ||
	    desc->drv->cuDeviceGetAttribute(&value, which, gpu) != CUDA_SUCCESS)
		return 0;
	return value;
}

static void decide(gpul_verbs_device *d, gpul_rdma_flush flush, const char *text)
{
	d->flush = flush;
	snprintf(d->info.flush, sizeof d->info.flush, "%s", text);
}

static bool has_cuda_flush(const gpul_rdma_device_desc *desc)
{
	return desc->drv &&
	       gpu_attribute(desc, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST;
}

static gpul_status use_read(gpul_verbs_device *d, const char *text, gpul_error *err)
{
	decide(d, GPUL_RDMA_FLUSH_READ, text);
	d->scratch_mr = d->v->reg_mr(d->pd, &d->scratch, sizeof d->scratch, IBV_ACCESS_LOCAL_WRITE);
	return d->scratch_mr ? GPUL_OK
			     : gpul_verbs_fail(err, errno, sizeof d->scratch, "ibv_reg_mr of %zu bytes for flushes", sizeof d->scratch);
}

/* Use an atomic operation; if the NIC has no null MR (rxe has none), use a read. */
static gpul_status use_atomic(gpul_verbs_device *d, gpul_error *err)
{
	gpul_status st;

	if (d->attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE)
		return use_read(d, "loop-back read: no atomics", err);
	d->null_mr = d->v->alloc_null_mr(d->pd);
	if (!d->null_mr && errno != EOPNOTSUPP)
		return gpul_verbs_fail(err, errno, 0, "ibv_alloc_null_mr");
	st = use_read(d, "loop-back read: no null MR", err); /* policy ATOMIC also needs the read, for data of less than 8 bytes */
	if (!st && d->null_mr)
		decide(d, GPUL_RDMA_FLUSH_ATOMIC, "loop-back atomic on null MR");
	return st;
}

gpul_status gpul_verbs_choose_flush(gpul_verbs_device *d, const gpul_rdma_device_desc *desc, gpul_error *err)
{
	switch (desc->flush) {
	case GPUL_RDMA_FLUSH_NONE:
		decide(d, GPUL_RDMA_FLUSH_NONE, "none: user's choice");
		return GPUL_OK;
	case GPUL_RDMA_FLUSH_READ:
		return use_read(d, "loop-back read: user's choice", err);
	case GPUL_RDMA_FLUSH_ATOMIC:
		return use_atomic(d, err);
	case GPUL_RDMA_FLUSH_CUDA:
		if (!has_cuda_flush(desc))
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "CUDA cannot flush writes to GPU memory: %s",
					 desc->drv ? "this GPU and driver have no cuFlushGPUDirectRDMAWrites() for the host"
						   : "no CUDA driver is in use");
		decide(d, GPUL_RDMA_FLUSH_CUDA, "cuFlushGPUDirectRDMAWrites");
		return GPUL_OK;
	case GPUL_RDMA_FLUSH_AUTO:
		break;
	}
	if (!desc->drv)
		decide(d, GPUL_RDMA_FLUSH_NONE, "none: no GPU memory");
	else if (desc->drv->interprets)
		decide(d, GPUL_RDMA_FLUSH_NONE, "none: GPU memory is host memory");
	else if (gpu_attribute(desc, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING) >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER)
		decide(d, GPUL_RDMA_FLUSH_NONE, "none: the GPU orders writes");
	else
		return use_read(d, "loop-back read", err);
	return GPUL_OK;
}

void gpul_verbs_end_flush(gpul_verbs_device *d)
{
	if (d->scratch_mr)
		(void)d->v->dereg_mr(d->scratch_mr);
	if (d->null_mr)
		(void)d->v->dereg_mr(d->null_mr);
}

/* Create a queue pair that is connected to itself.  It is of type RC even if the path uses UC, because its packets never leave the NIC. */
gpul_status gpul_verbs_create_loop(gpul_verbs_path *p, gpul_error *err)
{
	gpul_verbs_device *d = p->d;
	gpul_verbs_remote self;
	gpul_status st;

	if (d->flush != GPUL_RDMA_FLUSH_READ && d->flush != GPUL_RDMA_FLUSH_ATOMIC)
		return GPUL_OK;
	st = gpul_verbs_queue_create(p, &p->loop, IBV_QPT_RC, GPUL_VERBS_FLUSHES, 1,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					     (d->flush == GPUL_RDMA_FLUSH_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0u),
				     err);
	if (st)
		return st;
	self = (gpul_verbs_remote){
		.qpn = p->loop.qp->qp_num,
		.psn = p->loop.psn,
		.lid = d->port_attr.lid,
		.gid = d->gid.gid,
		.mtu = d->mtu,
		.global = d->ethernet || !d->port_attr.lid,
	};
	return gpul_verbs_queue_connect(p, &p->loop, IBV_QPT_RC, &self, err);
}

static gpul_status post_loop(gpul_verbs_path *p, const gpul_rdma_op *op, gpul_rdma_failure *why)
{
	gpul_verbs_device *d = p->d;
	struct ibv_sge to = { .addr = (uintptr_t)&d->scratch, .length = op->bytes < 8 ? op->bytes : 8 };
	struct ibv_send_wr wr = {
		.wr_id = op->id,
		.sg_list = &to,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = op->remote, .rkey = (uint32_t)op->remote_key },
	};
	struct ibv_send_wr *bad;
	int r;

	to.lkey = d->scratch_mr->lkey;
	if (d->flush == GPUL_RDMA_FLUSH_ATOMIC && op->bytes >= 8 && op->remote % 8 == 0) {
		to = (struct ibv_sge){ .addr = 0, .length = 8, .lkey = d->null_mr->lkey };
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.remote_addr = op->remote;
		wr.wr.atomic.compare_add = wr.wr.atomic.swap = 0;
		wr.wr.atomic.rkey = (uint32_t)op->remote_key;
	}
	r = d->v->post_send(p->loop.qp, &wr, &bad);
	if (r)
		return gpul_rdma_fail(why, GPUL_EVERBS, gpul_verbs_errno(r), "ibv_post_send", NULL, "flush: %s",
				      strerror(gpul_verbs_errno(r)));
	gpul_verbs_count_post(&p->loop, true);
	return GPUL_OK;
}

gpul_status gpul_verbs_flush(gpul_verbs_path *p, const gpul_rdma_op *op, bool *accepted, gpul_rdma_failure *why)
{
	const bool by_loop = p->loop.qp && op->bytes;
	gpul_error err = { 0 };

	*accepted = by_loop ? gpul_verbs_room(&p->loop) > 0 : p->flushed_head - p->flushed_tail < GPUL_VERBS_FLUSHES;
	if (!*accepted)
		return GPUL_OK;
	if (by_loop)
		return post_loop(p, op, why);
	if (p->d->flush == GPUL_RDMA_FLUSH_CUDA && gpul_cu(p->d->drv, &err,
							   cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
										      CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER)))
		return gpul_rdma_fail(why, err.status, err.native, "cuFlushGPUDirectRDMAWrites", NULL, "%s", err.text);
	p->flushed[p->flushed_head++ % GPUL_VERBS_FLUSHES] = op->id;
	return GPUL_OK;
}

#endif
