/* udp_device.c — the device of the backend reliable-udp: its name and its registered memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rdma/udp/udp_internal.h"

static gpul_status check_desc(const gpul_rdma_device_desc *d, gpul_error *err)
{
	if (d->device)
		return gpul_fail(
			err, GPUL_EINVAL, 0,
			"reliable-udp has no device '%.40s': it uses the interface of the connection's address; leave --device out",
			d->device);
	if (d->qp_type != GPUL_RDMA_RC || d->control_datagrams)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "reliable-udp has no queue pairs: UC, and datagrams for slots, can be chosen only with verbs");
	if (d->n_paths > GPUL_REL_MAX_PATHS)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u paths: expected 1 to %d", d->n_paths, GPUL_REL_MAX_PATHS);
	return GPUL_OK;
}

gpul_status gpul_udp_device_open(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	gpul_status st = check_desc(desc, err);
	struct udp_device *d;

	if (st)
		return st;
	d = calloc(1, sizeof *d);
	if (!d)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a device");
	d->desc = *desc;
	d->n_paths = desc->n_paths ? desc->n_paths : UDP_PATHS;
	gpul_rel_memory_create(&d->memory);
	*device = d;
	return GPUL_OK;
}

void gpul_udp_device_close(void *device)
{
	struct udp_device *d = device;

	gpul_rel_memory_destroy(&d->memory);
	free(d);
}

void gpul_udp_device_about(void *device, gpul_rdma_device_info *out)
{
	const struct udp_device *d = device;

	*out = (gpul_rdma_device_info){ .max_qps = GPUL_RDMA_MAX_QPS, .unnamed_arrivals = true };
	strcpy(out->backend, "reliable-udp");
	snprintf(out->name, sizeof out->name, "UDP sockets, %u paths", d->n_paths);
	strcpy(out->why, "chosen by the caller");
	strcpy(out->flush, "none: data is written by the CPU");
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

gpul_status gpul_udp_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err)
{
	struct udp_device *d = device;
	struct gpul_rel_range *r;

	if (memory->dmabuf_fd >= 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "reliable-udp cannot access GPU memory");
	r = calloc(1, sizeof *r);
	if (!r)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a registration");
	r->at = memory->at;
	r->bytes = memory->bytes;
	if (getrandom(&r->key, sizeof r->key, 0) != sizeof r->key) {
		free(r);
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	}
	*piece = (gpul_rdma_piece){ .at = memory->at, .bytes = memory->bytes, .remote = memory->at, .remote_key = r->key };
	*token = r;
	if (memory->source) { /* no peer may write it, so it is not in the table */
		piece->remote_key = 0;
		r->bytes = 0;
		return GPUL_OK;
	}
	gpul_rel_memory_add(&d->memory, r);
	return GPUL_OK;
}

void gpul_udp_dereg(void *device, void *token)
{
	struct udp_device *d = device;

	gpul_rel_memory_remove(&d->memory, token);
	free(token);
}
