/* verbs_device.c — opens and closes a NIC for the send path. */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpul_status check_wishes(const gpul_rdma_device_desc *desc, gpul_error *err)
{
	const struct {
		const char *what;
		int value, least, most;
	} wishes[] = {
		{ "port", desc->port, 0, 255 },
		{ "GID index", desc->gid_index, -1, 65535 },
		{ "timeout exponent", desc->timeout, 0, 31 },
		/* 7 means "retry forever" to rxe and to some NICs. */
		{ "number of retries", desc->retry, 0, 6 },
		{ "traffic class", desc->traffic_class, 0, 255 },
	};

	for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
		if (wishes[i].value < wishes[i].least || wishes[i].value > wishes[i].most)
			return gpul_fail(err, GPUL_EINVAL, wishes[i].value, "%s %d is out of range: %d to %d", wishes[i].what,
					 wishes[i].value, wishes[i].least, wishes[i].most);
	if (desc->qp_type == GPUL_RDMA_UD)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "UD has no RDMA writes: use it with the backend reliable-verbs (--reliable)");
	if (desc->mtu && (desc->mtu < 256 || desc->mtu > 4096 || desc->mtu & (desc->mtu - 1)))
		return gpul_fail(err, GPUL_EINVAL, desc->mtu, "MTU %d is not 256, 512, 1024, 2048 or 4096", desc->mtu);
	return GPUL_OK;
}

/* Find out by creating queue pairs how many bytes of inline data one can have, because no attribute reports the limit. */
static gpul_status probe_inline(gpul_verbs_device *d, gpul_error *err)
{
	static const uint32_t sizes[] = { 128, 64, 32, 0 };
	struct ibv_cq *cq = d->v->create_cq(d->ctx, 1, NULL, NULL, 0);
	struct ibv_qp *qp = NULL;
	gpul_status st = GPUL_OK;

	if (!cq)
		return gpul_verbs_fail(err, errno, 4096, "ibv_create_cq");
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = d->uc ? IBV_QPT_UC : IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = sizes[i] },
		};

		qp = d->v->create_qp(d->pd, &attr);
		d->info.inline_bytes = sizes[i];
		if (qp || errno != EINVAL)
			break;
	}
	if (!qp)
		st = gpul_verbs_fail(err, errno, 4096, "ibv_create_qp");
	else
		(void)d->v->destroy_qp(qp);
	(void)d->v->destroy_cq(cq);
	return st;
}

/* Find out whether dma-bufs are supported: registering descriptor -1 always fails, but the error then differs from "not supported". */
static bool probe_dmabuf(const gpul_verbs_device *d)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = d->v->reg_dmabuf_mr(d->pd, 0, 1, 0, -1, 0);
	if (mr)
		(void)d->v->dereg_mr(mr);
	return mr || (errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS && errno != ENOTTY && errno != EINVAL);
}

static void fill_info(gpul_verbs_device *d)
{
	gpul_rdma_device_info *info = &d->info;
	const int most = d->attr.orig_attr.max_qp_wr;

	snprintf(info->backend, sizeof info->backend, "verbs");
	info->max_depth = 4096;
	while (info->max_depth > 1 && info->max_depth > (unsigned)most)
		info->max_depth /= 2;
	info->ordered = info->completes_in_order = true;
	info->dmabuf = probe_dmabuf(d);
	info->max_qps = GPUL_RDMA_MAX_QPS;
	/* IB specification 9.9.2.1.2: the ACK timeout is 4.096 us * 2^timeout (a NIC may take up to 4 times as long). */
	info->notice_ns = d->uc ? 0 : (d->retry + UINT64_C(1)) * (UINT64_C(4096) << d->timeout);
}

/* Create the remaining objects of the device, after gpul_verbs_choose().  On failure, close_device() releases those that exist. */
static gpul_status prepare_device(gpul_verbs_device *d, const gpul_rdma_device_desc *desc, gpul_error *err)
{
	gpul_status st;

	d->pd = d->v->alloc_pd(d->ctx);
	if (!d->pd)
		return gpul_verbs_fail(err, errno, 4096, "ibv_alloc_pd");
	st = probe_inline(d, err);
	if (!st)
		st = gpul_verbs_choose_flush(d, desc, err);
	if (st)
		return st;
	if (fcntl(d->ctx->async_fd, F_SETFL, fcntl(d->ctx->async_fd, F_GETFL) | O_NONBLOCK) < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "fcntl on the asynchronous events of %s: %s", d->info.name, strerror(errno));
	fill_info(d);
	gpul_log(GPUL_LOG_INFO, "verbs", "%s: %s; MTU %u; flush: %s", d->info.name, d->info.why, 128U << d->mtu, d->info.flush);
	return GPUL_OK;
}

static void close_device(void *device)
{
	gpul_verbs_device *d = device;

	if (!d)
		return;
	gpul_verbs_end_flush(d);
	if (d->pd)
		(void)d->v->dealloc_pd(d->pd);
	if (d->ctx)
		(void)d->v->close_device(d->ctx);
	free(d);
}

static gpul_status open_device(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	gpul_verbs_device *d;
	gpul_status st = check_wishes(desc, err);

	if (st)
		return st;
	d = calloc(1, sizeof *d);
	if (!d)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for an RDMA device");
	d->drv = desc->drv;
	d->uc = desc->qp_type == GPUL_RDMA_UC;
	d->control_datagrams = desc->control_datagrams;
	d->timeout = (uint8_t)(desc->timeout ? desc->timeout : 18);
	d->retry = (uint8_t)(desc->retry ? desc->retry : 6);
	d->traffic_class = (uint8_t)desc->traffic_class;
	st = gpul_verbs_open(&d->v, err);
	if (!st)
		st = gpul_verbs_choose(d, desc, err);
	if (!st)
		st = prepare_device(d, desc, err);
	if (st) {
		close_device(d);
		return st;
	}
	*device = d;
	return GPUL_OK;
}

static void about_device(void *device, gpul_rdma_device_info *out)
{
	*out = ((gpul_verbs_device *)device)->info;
}

const gpul_rdma_backend gpul_rdma_verbs = {
	.name = "verbs",
	.open = open_device,
	.close = close_device,
	.about = about_device,
	.reg = gpul_verbs_reg,
	.dereg = gpul_verbs_dereg,
	.create_path = gpul_verbs_create_path,
	.describe = gpul_verbs_describe,
	.connect_path = gpul_verbs_connect,
	.post = gpul_verbs_post,
	.poll = gpul_verbs_poll,
	.break_path = gpul_verbs_break,
	.destroy_path = gpul_verbs_destroy_path,
	.async_fd = gpul_verbs_async_fd,
	.async_read = gpul_verbs_async_read,
};

#else

static gpul_status open_device(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	const struct gpul_verbs *none;

	(void)desc, (void)device;
	return gpul_verbs_open(&none, err);
}

const gpul_rdma_backend gpul_rdma_verbs = { .name = "verbs", .open = open_device };

#endif
