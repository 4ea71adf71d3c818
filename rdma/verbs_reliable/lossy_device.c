/* lossy_device.c — the table of the backend reliable-verbs, its device, and registered memory. */
#include "rdma/verbs_reliable/lossy_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpul_status check_desc(const gpul_rdma_device_desc *d, gpul_error *err)
{
	if (d->control_datagrams)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "reliable-verbs sends all control messages reliably: leave out datagrams for slots");
	if (d->n_paths > GPUL_RDMA_MAX_QPS)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u paths: expected 1 to %d, because each path is a queue pair", d->n_paths,
				 GPUL_RDMA_MAX_QPS);
	if (d->mtu == 256)
		return gpul_fail(err, GPUL_EINVAL, 0, "MTU 256 is too small for reliable-verbs: expected 512, 1024, 2048 or 4096");
	return GPUL_OK;
}

static gpul_status open_device(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	gpul_rdma_device_desc of_nic = *desc;
	struct lossy_device *d;
	void *nic = NULL;
	gpul_status st = check_desc(desc, err);

	if (st)
		return st;
	d = calloc(1, sizeof *d);
	if (!d)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for an RDMA device");
	d->ud = desc->qp_type == GPUL_RDMA_UD;
	d->n_paths = desc->n_paths ? desc->n_paths : LOSSY_PATHS;
	of_nic.qp_type = d->ud ? GPUL_RDMA_RC : GPUL_RDMA_UC;
	of_nic.lossless = true; /* rdma/verbs refuses UC otherwise; here it may lose packets */
	st = gpul_rdma_verbs.open(&of_nic, &nic, err);
	d->nic = nic;
	if (!st && d->nic->mtu < IBV_MTU_512) {
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the MTU of %s is %u: reliable-verbs needs at least 512", d->nic->info.name,
			       128u << d->nic->mtu);
		gpul_rdma_verbs.close(nic);
	}
	if (st) {
		free(d);
		return st;
	}
	gpul_rel_memory_create(&d->memory);
	*device = d;
	return GPUL_OK;
}

static void close_device(void *device)
{
	struct lossy_device *d = device;

	gpul_rel_memory_destroy(&d->memory);
	gpul_rdma_verbs.close(d->nic);
	free(d);
}

void gpul_lossy_about(void *device, gpul_rdma_device_info *out)
{
	const struct lossy_device *d = device;
	const gpul_rdma_device_info *nic = &d->nic->info;

	*out = (gpul_rdma_device_info){ .max_qps = GPUL_RDMA_MAX_QPS, .unnamed_arrivals = true };
	strcpy(out->backend, "reliable-verbs");
	snprintf(out->name, sizeof out->name, "%.40s, %s, %u paths", nic->name, d->ud ? "UD" : "UC", d->n_paths);
	memcpy(out->why, nic->why, sizeof out->why);
	memcpy(out->flush, nic->flush, sizeof out->flush);
}

static gpul_status reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err)
{
	struct lossy_device *d = device;
	struct lossy_memory *m;
	gpul_rdma_piece got;
	gpul_status st;

	if (memory->dmabuf_fd >= 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "reliable-verbs cannot access GPU memory, because the CPU copies what is sent again");
	m = calloc(1, sizeof *m);
	if (!m)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a registration");
	st = gpul_verbs_reg(d->nic, memory, &got, &m->mr, err);
	if (st) {
		free(m);
		return st;
	}
	m->range = (struct gpul_rel_range){ .key = got.remote_key, .at = memory->at, .bytes = memory->source ? 0 : memory->bytes };
	if (m->range.bytes)
		gpul_rel_memory_add(&d->memory, &m->range);
	*piece = got;
	*token = m;
	return GPUL_OK;
}

static void dereg(void *device, void *token)
{
	struct lossy_device *d = device;
	struct lossy_memory *m = token;

	if (!m)
		return;
	if (m->range.bytes)
		gpul_rel_memory_remove(&d->memory, &m->range);
	gpul_verbs_dereg(d->nic, m->mr);
	free(m);
}

static int async_fd(void *device)
{
	return gpul_verbs_async_fd(((struct lossy_device *)device)->nic);
}

static bool async_read(void *device, gpul_rdma_failure *why)
{
	return gpul_verbs_async_read(((struct lossy_device *)device)->nic, why);
}

const gpul_rdma_backend gpul_rdma_verbs_reliable = {
	.name = "reliable-verbs",
	.open = open_device,
	.close = close_device,
	.about = gpul_lossy_about,
	.reg = reg,
	.dereg = dereg,
	.create_path = gpul_lossy_create,
	.describe = gpul_lossy_describe,
	.connect_path = gpul_lossy_connect,
	.post = gpul_lossy_post,
	.poll = gpul_lossy_poll,
	.break_path = gpul_lossy_break,
	.destroy_path = gpul_lossy_destroy,
	.stats = gpul_lossy_stats,
	.record = gpul_lossy_record,
	.async_fd = async_fd,
	.async_read = async_read,
};

#else

static gpul_status open_device(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	return gpul_rdma_verbs.open(desc, device, err); /* which says that libibverbs is missing */
}

const gpul_rdma_backend gpul_rdma_verbs_reliable = { .name = "reliable-verbs", .open = open_device };

#endif
