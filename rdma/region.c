/* region.c — registers memory: CPU memory directly or through the cache, GPU memory by dma-buf or for staging. */
#include "rdma/rdma_internal.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "driver/context.h"
#include "rdma/gpu/dmabuf.h"

/* ---- the cache's functions ------------------------------------------------------------------------- */

static gpul_status register_pages(void *user, void *at, size_t bytes, void **token, gpul_error *err)
{
	gpul_rdma *r = user;
	const gpul_rdma_memory memory = { .at = (uint64_t)(uintptr_t)at, .bytes = bytes, .dmabuf_fd = -1, .relaxed = true };
	struct registration *reg = malloc(sizeof *reg);
	gpul_status st;

	if (!reg)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a registration");
	st = r->backend->reg(r->device, &memory, &reg->piece, &reg->token, err);
	if (st)
		free(reg);
	else
		*token = reg;
	return st;
}

static void deregister_pages(void *user, void *at, size_t bytes, void *token)
{
	gpul_rdma *r = user;
	struct registration *reg = token;

	(void)at;
	(void)bytes;
	r->backend->dereg(r->device, reg->token);
	free(reg);
}

gpul_reg_ops gpul_rdma_reg_ops(gpul_rdma *r)
{
	return (gpul_reg_ops){ .reg = register_pages, .dereg = deregister_pages, .may_overlap = true, .user = r };
}

/* ---- regions -------------------------------------------------------------------------------------------- */

static gpul_rdma_region *new_region(gpul_rdma *r, gpul_error *err)
{
	gpul_rdma_region *region = calloc(1, sizeof *region);

	if (region)
		region->r = r;
	else
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a region");
	return region;
}

void gpul_rdma_unregister(gpul_rdma_region *region)
{
	if (!region)
		return;
	if (region->cached)
		gpul_regcache_put(region->r->cache, region->cached);
	for (unsigned i = 0; i < GPUL_RDMA_MAX_PIECES; i++)
		if (region->tokens[i])
			region->r->backend->dereg(region->r->device, region->tokens[i]);
	free(region);
}

void gpul_rdma_forget(gpul_rdma *r, void *at, size_t bytes)
{
	if (r->cache)
		(void)gpul_regcache_invalidate(r->cache, at, bytes);
}

static gpul_status register_cached(gpul_rdma_region *region, void *at, size_t bytes, gpul_error *err)
{
	gpul_rdma_piece *piece = &region->area.pieces[0];
	const struct registration *reg;
	gpul_status st = gpul_regcache_get(region->r->cache, at, bytes, &region->cached, err);

	if (st)
		return st;
	reg = region->cached->token;
	*piece = reg->piece;
	piece->at = (uint64_t)(uintptr_t)at;
	piece->bytes = bytes;
	piece->remote += piece->at - reg->piece.at;
	region->area.n_pieces = 1;
	return GPUL_OK;
}

static gpul_status register_pieces(gpul_rdma_region *region, const gpul_rdma_memory *pieces, unsigned n, gpul_error *err)
{
	gpul_rdma *r = region->r;

	for (unsigned i = 0; i < n; i++) {
		gpul_rdma_memory memory = pieces[i];
		gpul_status st;

		memory.flushed = region->area.on_device;
		st = r->backend->reg(r->device, &memory, &region->area.pieces[i], &region->tokens[i], err);

		if (st)
			return st;
		region->area.n_pieces++;
	}
	region->area.strict = !pieces[0].relaxed;
	region->area.source = pieces[0].source;
	return GPUL_OK;
}

gpul_status gpul_rdma_register(gpul_rdma *r, void *at, size_t bytes, gpul_rdma_use use, gpul_rdma_region **out, gpul_error *err)
{
	const gpul_rdma_memory memory = { .at = (uint64_t)(uintptr_t)at,
					  .bytes = bytes,
					  .dmabuf_fd = -1,
					  .relaxed = use != GPUL_RDMA_STEPS,
					  .source = use == GPUL_RDMA_SOURCE };
	gpul_rdma_region *region;
	gpul_status st;

	if (!bytes || memory.at + bytes < memory.at)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "cannot register %zu bytes at %p: expected at least 1 byte that ends below the end of the "
				 "address space",
				 bytes, at);
	region = new_region(r, err);
	if (!region)
		return GPUL_ENOMEM;
	st = r->cache && use == GPUL_RDMA_DATA ? register_cached(region, at, bytes, err) : register_pieces(region, &memory, 1, err);
	if (st)
		gpul_rdma_unregister(region);
	else
		*out = region;
	return st;
}

gpul_status gpul_rdma_register_pieces(gpul_rdma *r, const gpul_rdma_memory *pieces, unsigned n_pieces, bool on_device,
				      gpul_rdma_region **out, gpul_error *err)
{
	gpul_rdma_region *region;
	gpul_status st;

	if (n_pieces < 1 || n_pieces > GPUL_RDMA_MAX_PIECES)
		return gpul_fail(err, GPUL_EINVAL, 0, "a region has %u pieces: expected 1 to %d", n_pieces, GPUL_RDMA_MAX_PIECES);
	for (unsigned i = 0; i < n_pieces; i++)
		if (!pieces[i].bytes || (i && pieces[i].at != pieces[i - 1].at + pieces[i - 1].bytes))
			return gpul_fail(err, GPUL_EINVAL, 0, "piece %u of a region does not begin where the previous piece ends", i);
	region = new_region(r, err);
	if (!region)
		return GPUL_ENOMEM;
	region->area.on_device = region->area.flush = on_device;
	st = register_pieces(region, pieces, n_pieces, err);
	if (st)
		gpul_rdma_unregister(region);
	else
		*out = region;
	return st;
}

/* ---- GPU memory --------------------------------------------------------------------------------------------- */

static gpul_status register_dmabufs(gpul_rdma *r, uint64_t at, uint64_t bytes, gpul_rdma_use use, gpul_rdma_region **out, gpul_error *err)
{
	gpul_rdma_dmabuf bufs[GPUL_RDMA_MAX_PIECES];
	gpul_rdma_memory pieces[GPUL_RDMA_MAX_PIECES];
	unsigned n = 0;
	gpul_status st;

	if (!r->info.dmabuf)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s cannot register GPU memory", r->info.name);
	st = gpul_rdma_dmabuf_export(r->desc.device.drv, at, bytes, GPUL_RDMA_DMABUF_DEFAULT, bufs, &n, err);
	if (st)
		return st;
	for (unsigned i = 0; i < n; i++)
		pieces[i] = (gpul_rdma_memory){
			.at = bufs[i].at,
			.bytes = bufs[i].bytes,
			.dmabuf_fd = bufs[i].fd,
			.dmabuf_offset = bufs[i].offset,
			.relaxed = use != GPUL_RDMA_STEPS,
			.source = use == GPUL_RDMA_SOURCE,
		};
	st = gpul_rdma_register_pieces(r, pieces, n, true, out, err);
	gpul_rdma_dmabuf_close(bufs, n);
	return st;
}

/* Register memory that the fabric accesses itself. */
static gpul_status register_direct(gpul_rdma *r, uint64_t at, uint64_t bytes, gpul_rdma_use use, gpul_rdma_region **out, gpul_error *err)
{
	const gpul_rdma_memory memory = {
		.at = at, .bytes = bytes, .dmabuf_fd = -1, .relaxed = use != GPUL_RDMA_STEPS, .source = use == GPUL_RDMA_SOURCE
	};
	gpul_status st;

	if (r->desc.gpu_direct == GPUL_RDMA_GPU_DIRECT_NO)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "gpu_direct was set to no");
	if (r->desc.gpu_direct == GPUL_RDMA_GPU_DIRECT_AUTO || !r->desc.device.drv->interprets)
		return register_dmabufs(r, at, bytes, use, out, err);
	st = gpul_rdma_register_pieces(r, &memory, 1, true, out, err);
	if (!st)
		(*out)->area.flush = false; /* the GPU is interpreted, so its memory is CPU memory, which kernels read coherently */
	return st;
}

static gpul_status register_device(gpul_rdma *r, const gpul_mem *mem, uint64_t offset, uint64_t bytes, gpul_rdma_use use,
				   gpul_rdma_region **out, gpul_error *err)
{
	const uint64_t at = gpul_mem_gpu(mem) + offset;
	const gpul_driver *drv = r->desc.device.drv;
	gpul_context context = { 0 };
	CUcontext before = NULL;
	gpul_error why = { 0 };
	gpul_status st;

	if (!drv)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "GPU memory cannot be registered: gpul_rdma_desc.device.drv is NULL");
	(void)drv->cuCtxGetCurrent(&before);
	st = gpul_context_open(drv, gpul_mem_about(mem)->device, &context, err);
	if (st)
		return st;
	st = register_direct(r, at, bytes, use, out, &why);
	(void)drv->cuCtxSetCurrent(before);
	(void)drv->cuDevicePrimaryCtxRelease(context.device);
	if (!st) {
		gpul_log(GPUL_LOG_INFO, "rdma", "GPU memory was registered %s in %u pieces",
			 drv->interprets ? "as CPU memory" : "by dma-buf", (*out)->area.n_pieces);
		return GPUL_OK;
	}
	if (r->desc.gpu_direct == GPUL_RDMA_GPU_DIRECT_YES)
		return gpul_fail(err, why.status, why.native, "%s", why.text);
	gpul_log(GPUL_LOG_INFO, "rdma", "GPU memory is copied through the host, because of this: %s", why.text);
	*out = new_region(r, err);
	if (!*out)
		return GPUL_ENOMEM;
	(*out)->area = (gpul_rdma_area){
		.pieces = { { .at = at, .bytes = bytes } },
		.n_pieces = 1,
		.staged = true,
		.on_device = true,
		.source = use == GPUL_RDMA_SOURCE,
	};
	return GPUL_OK;
}

gpul_status gpul_rdma_register_mem(gpul_rdma *r, const gpul_mem *mem, gpul_rdma_use use, gpul_rdma_region **out, gpul_error *err)
{
	return gpul_rdma_register_part(r, mem, 0, gpul_mem_about(mem)->bytes, use, out, err);
}

gpul_status gpul_rdma_register_part(gpul_rdma *r, const gpul_mem *mem, uint64_t offset, uint64_t bytes, gpul_rdma_use use,
				    gpul_rdma_region **out, gpul_error *err)
{
	const uint64_t all = gpul_mem_about(mem)->bytes;
	gpul_rdma_region *region = NULL;
	gpul_status st;

	if (offset > all || bytes > all - offset)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "cannot register %llu bytes at offset %llu: they are not inside the memory of %llu bytes",
				 (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)all);
	if (gpul_mem_cpu(mem))
		return gpul_rdma_register(r, (unsigned char *)gpul_mem_cpu(mem) + offset, bytes, use, out, err);
	st = register_device(r, mem, offset, bytes, use, &region, err);
	if (!st)
		*out = region;
	return st;
}

/* ---- the properties of a region --------------------------------------------------------------------------------------- */

const gpul_rdma_area *gpul_rdma_region_area(const gpul_rdma_region *region)
{
	return &region->area;
}

gpul_status gpul_rdma_offer(const gpul_rdma_region *region, uint64_t at, uint64_t bytes, gpul_rdma_remote *out, gpul_error *err)
{
	if (region->area.source)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "cannot offer the region to the peer: it is registered with GPUL_RDMA_SOURCE, so the peer "
				 "cannot write to it");
	if (region->area.staged)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the peer cannot put into GPU memory that the NIC cannot access: use host-NUMA memory, or use "
				 "send and receive");
	for (unsigned i = 0; i < region->area.n_pieces; i++) {
		const gpul_rdma_piece *p = &region->area.pieces[i];

		if (at < p->at || at - p->at > p->bytes || bytes > p->bytes - (at - p->at))
			continue;
		*out = (gpul_rdma_remote){ .address = p->remote + (at - p->at), .key = p->remote_key, .bytes = bytes };
		return GPUL_OK;
	}
	return gpul_fail(err, GPUL_EINVAL, 0, "%llu bytes at 0x%llx are not inside one piece of the region", (unsigned long long)bytes,
			 (unsigned long long)at);
}
