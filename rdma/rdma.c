/* rdma.c — opens and closes: chooses a backend, opens its device, starts the watching thread. */
#include "rdma/rdma_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

static void fill_defaults(gpul_rdma_desc *d)
{
	if (!d->n_qps)
		d->n_qps = 1;
	if (!d->depth)
		d->depth = 256;
	if (!d->segment_bytes)
		d->segment_bytes = 1 << 20;
	if (!d->stripe_bytes)
		d->stripe_bytes = 16 << 10;
	if (!d->lease_ms)
		d->lease_ms = 5000;
	if (!d->n_stages)
		d->n_stages = 16;
}

static gpul_status open_named(gpul_rdma *r, const char *name, gpul_error *err)
{
	static const gpul_rdma_backend *const backends[] = { &gpul_rdma_verbs, &gpul_rdma_libfabric, &gpul_rdma_udp,
							     &gpul_rdma_verbs_reliable };

	for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
		if (strcmp(backends[i]->name, name))
			continue;
		r->backend = backends[i];
		if (r->backend == &gpul_rdma_verbs_reliable && r->desc.device.qp_type == GPUL_RDMA_RC)
			r->desc.device.qp_type = GPUL_RDMA_UC;
		return r->backend->open(&r->desc.device, &r->device, err);
	}
	return gpul_fail(err, GPUL_EINVAL, 0, "unknown backend '%.40s': expected verbs, libfabric, reliable-udp, reliable-verbs or auto",
			 name);
}

/* Choose libfabric if the user gives a provider, and verbs if the user gives a device; else verbs if there is a usable NIC, else
 * libfabric. */
static gpul_status open_auto(gpul_rdma *r, gpul_error *err)
{
	gpul_error no_verbs = { 0 }, no_libfabric = { 0 };

	if (r->desc.device.provider && !strcmp(r->desc.device.provider, gpul_rdma_udp.name))
		return open_named(r, gpul_rdma_udp.name, err);
	if (r->desc.device.provider)
		return open_named(r, "libfabric", err);
	if (r->desc.device.device)
		return open_named(r, "verbs", err);
	if (!open_named(r, "verbs", &no_verbs))
		return GPUL_OK;
	if (open_named(r, "libfabric", &no_libfabric))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "neither verbs nor libfabric can be used: verbs: %.100s; libfabric: %.100s",
				 no_verbs.text, no_libfabric.text);
	r->backend->about(r->device, &r->info);
	gpul_log(GPUL_LOG_NOTICE, "rdma", "no RDMA NIC can be used (%s): using libfabric instead, %s", no_verbs.text, r->info.name);
	return GPUL_OK;
}

/* ---- asynchronous events ------------------------------------------------------------------------------- */

/* Handle an asynchronous event of the NIC: if the device cannot work any more, fail all its connections. */
static void on_event(void *context)
{
	gpul_rdma *r = context;
	gpul_rdma_failure why = { 0 };

	if (!r->backend->async_read(r->device, &why))
		return;
	pthread_mutex_lock(&r->lock);
	for (gpul_rdma_conn *c = r->conns; c; c = c->next)
		gpul_rdma_conn_fail(c, &why, NULL);
	pthread_mutex_unlock(&r->lock);
}

static gpul_status start_watch(gpul_rdma *r, gpul_error *err)
{
	const int fd = r->backend->async_fd ? r->backend->async_fd(r->device) : -1;
	gpul_status st = gpul_rdma_watch_create(&r->watch, err);

	if (st || fd < 0)
		return st;
	st = gpul_rdma_watch_add_fd(r->watch, fd, on_event, r, &r->events, err);
	if (st)
		gpul_rdma_watch_destroy(r->watch);
	return st;
}

/* ---- open, close --------------------------------------------------------------------------------------------- */

gpul_status gpul_rdma_open(const gpul_rdma_desc *desc, gpul_rdma **out, gpul_error *err)
{
	gpul_rdma *r = calloc(1, sizeof *r);
	gpul_reg_ops ops;
	gpul_status st;

	if (!r)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for an RDMA device");
	if (desc)
		r->desc = *desc;
	else
		r->desc.device.gpu = r->desc.device.gid_index = -1;
	fill_defaults(&r->desc);
	r->has_secret = r->desc.secret && r->desc.secret[0];
	if (r->has_secret)
		gpul_rdma_make_key(r->desc.secret, r->key);
	st = r->desc.backend && strcmp(r->desc.backend, "auto") ? open_named(r, r->desc.backend, err) : open_auto(r, err);
	if (st)
		goto free_r;
	r->backend->about(r->device, &r->info);
	gpul_log(GPUL_LOG_INFO, "rdma", "%s: %s (%s); flush: %s", r->info.backend, r->info.name, r->info.why, r->info.flush);
	ops = gpul_rdma_reg_ops(r);
	if (r->desc.cache_bytes)
		st = gpul_regcache_create(&ops, r->desc.cache_bytes, &r->cache, err);
	if (st)
		goto close_device;
	pthread_mutex_init(&r->lock, NULL);
	st = start_watch(r, err);
	if (st)
		goto destroy_cache;
	*out = r;
	return GPUL_OK;
destroy_cache:
	pthread_mutex_destroy(&r->lock);
	gpul_regcache_destroy(r->cache);
close_device:
	r->backend->close(r->device);
free_r:
	free(r);
	return st;
}

void gpul_rdma_close(gpul_rdma *r)
{
	if (!r)
		return;
	gpul_rdma_watch_remove(r->events);
	gpul_rdma_watch_destroy(r->watch);
	pthread_mutex_destroy(&r->lock);
	gpul_regcache_destroy(r->cache);
	r->backend->close(r->device);
	free(r);
}

void gpul_rdma_about(const gpul_rdma *r, gpul_rdma_device_info *out)
{
	*out = r->info;
}
