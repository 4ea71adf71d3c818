/* packed.c — allocates the memory of packed blocks: device memory from which the NIC sends them, or
 * host memory.
 *
 *                    blocks that other ranks sum        blocks that this rank sums
 *     GPU-direct     device memory, registered          host memory: the CPU reads them
 *     staged         host memory, registered ────────── the same memory
 */
#include <stdio.h>

#include "lab/sparse/sparse_internal.h"

enum { LEAST_BYTES = 1 << 20 };

/* Allocate device memory that the NICs can access. */
static gpul_status device_memory(gpul_comm_sparse *s, size_t n_bytes, struct memory *out, gpul_error *err)
{
	const gpul_mem_desc desc = { .kind = GPUL_MEM_DEVICE, .bytes = n_bytes, .devices = &s->device, .n_devices = 1 };
	struct memory m = { .n_bytes = n_bytes };
	gpul_status st = gpul_mem_create(s->drv, &desc, &m.mem, err);

	if (st)
		return st;
	m.gpu = m.at = gpul_mem_gpu(m.mem);
	st = gpul_rdma_register_mem(s->rdma, m.mem, GPUL_RDMA_DATA, &m.region, err);
	if (!st && gpul_rdma_region_area(m.region)->staged)
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the network connections can access host memory only");
	if (st)
		gpul_sparse_memory_free(&m);
	else
		*out = m;
	return st;
}

static void stage(gpul_comm_sparse *s, const char *why)
{
	s->direct = false;
	(void)snprintf(s->where, sizeof s->where, "staged in host memory: %.90s", why);
}

gpul_status gpul_sparse_choose_packed(gpul_comm_sparse *s, gpul_error *err)
{
	const gpul_rdma_gpu_direct wanted = s->options.gpu_direct;
	gpul_error why = { 0 };

	if (wanted == GPUL_RDMA_GPU_DIRECT_NO)
		stage(s, "requested");
	else if (wanted == GPUL_RDMA_GPU_DIRECT_AUTO && s->drv->interprets)
		stage(s, "the device memory of the software driver is host memory");
	else if (!device_memory(s, LEAST_BYTES, &s->packed[PACKED_SENT], &why)) {
		s->direct = true;
		(void)snprintf(s->where, sizeof s->where, "GPU-direct");
	} else if (wanted == GPUL_RDMA_GPU_DIRECT_AUTO)
		stage(s, why.text);
	else
		return gpul_fail(err, why.status, why.native,
				 "GPU-direct is not possible: %.170s; set gpu_direct to auto or no to copy through host memory", why.text);
	return GPUL_OK;
}

/* Allocate at least twice the previous size, so that memory is not registered in each call if the number of blocks grows slowly. */
static gpul_status grow(gpul_comm_sparse *s, unsigned which, uint32_t n_blocks, gpul_error *err)
{
	const bool on_device = s->direct && which == PACKED_SENT;
	struct memory *packed = &s->packed[which], m;
	const size_t wanted = (size_t)n_blocks * s->block_bytes, least = packed->n_bytes ? 2 * packed->n_bytes : LEAST_BYTES;
	const size_t n_bytes = wanted > least ? wanted : least;
	gpul_status st;

	if (wanted <= packed->n_bytes)
		return GPUL_OK;
	st = on_device ? device_memory(s, n_bytes, &m, err) : gpul_sparse_memory(s, n_bytes, which == PACKED_SENT, &m, err);
	if (st)
		return st;
	gpul_sparse_memory_free(packed);
	*packed = m;
	return GPUL_OK;
}

static gpul_status place_streams(gpul_comm_sparse *s, gpul_error *err)
{
	uint32_t n[N_PACKED] = { 0 };
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; i < s->n_streams; i++) {
		struct stream *t = &s->streams[i];

		t->packed = s->direct && t->aggregator == s->rank ? PACKED_OWN : PACKED_SENT;
		t->place = n[t->packed];
		n[t->packed] += t->n;
	}
	for (unsigned k = 0; !st && k < N_PACKED; k++)
		st = grow(s, k, n[k], err);
	return st;
}

/* If device memory cannot be used, use host memory: large allocations may fail, and a NIC may allow only a few registrations. */
gpul_status gpul_sparse_room_for_packed(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = place_streams(s, &why);

	if (st && s->direct && s->options.gpu_direct == GPUL_RDMA_GPU_DIRECT_AUTO) {
		gpul_sparse_memory_free(&s->packed[PACKED_SENT]);
		stage(s, why.text);
		return place_streams(s, err);
	}
	return st ? gpul_fail(err, st, why.native, "%s", why.text) : GPUL_OK;
}

size_t gpul_sparse_packed_at(const gpul_comm_sparse *s, const struct stream *t, uint32_t n)
{
	return (size_t)(t->place + n) * s->block_bytes;
}
