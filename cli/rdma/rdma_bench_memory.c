/* rdma_bench_memory.c — allocates the buffers of the messages; writes and checks their pattern. */
#include "cli/rdma/rdma_bench_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ODD = 64, PAGE = 4096, HUGE_PAGE = 2 << 20, CHUNK_WORDS = 8192, CLEARED = 0xa5 };

uint64_t rdma_memory_limit(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	return (uint64_t)(pages > 0 ? pages : 1 << 18) * (uint64_t)(page_bytes > 0 ? page_bytes : PAGE) / 4;
}

uint64_t rdma_memory_stride(uint64_t bytes)
{
	const uint64_t unit = bytes >= PAGE ? PAGE : ODD;

	return (bytes + ODD + unit - 1) / unit * unit;
}

/* ---- allocation --------------------------------------------------------------------------------------- */

static gpul_status open_host(gpul_rdma *r, struct rdma_buffers *b, gpul_error *err)
{
	void *at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return gpul_fail(err, GPUL_ENOMEM, errno, "no memory for %" PRIu64 " MiB of messages: %s", b->bytes >> 20, strerror(errno));
	b->host = b->cpu = at;
	b->at = (uint64_t)(uintptr_t)at;
	madvise(at, b->bytes, MADV_HUGEPAGE); /* a failure is ignored, because it costs only speed */
	memset(at, CLEARED, b->bytes);        /* allocates the pages before the measurement */
	return gpul_rdma_register(r, at, b->bytes, GPUL_RDMA_DATA, &b->region, err);
}

static gpul_status open_mem(gpul_rdma *r, struct rdma_buffers *b, gpul_error *err)
{
	const struct devices_arg *d = &b->setup->devices;
	const gpul_mem_desc desc = { .kind = b->setup->memory == RDMA_DEVICE ? GPUL_MEM_DEVICE : GPUL_MEM_HOST_NUMA,
				     .bytes = b->bytes,
				     .node = GPUL_MEM_NODE_OF_GPU,
				     .devices = d->ordinal,
				     .n_devices = 1 };
	gpul_status st = gpul_context_open(d->drv, d->ordinal[0], &b->context, err);

	st = st ? st : gpul_mem_create(d->drv, &desc, &b->mem, err);
	if (st)
		return st;
	b->cpu = gpul_mem_cpu(b->mem);
	b->at = b->cpu ? (uint64_t)(uintptr_t)b->cpu : (uint64_t)gpul_mem_gpu(b->mem);
	return gpul_rdma_register_mem(r, b->mem, GPUL_RDMA_DATA, &b->region, err);
}

gpul_status rdma_buffers_open(gpul_rdma *r, const struct rdma_setup *setup, const struct rdma_shape *shape, struct rdma_buffers *out,
			      gpul_error *err)
{
	const uint64_t unit = shape->n_flows * shape->buffer_bytes > HUGE_PAGE ? HUGE_PAGE : PAGE;
	gpul_status st;

	*out = (struct rdma_buffers){ .setup = setup, .buffer_bytes = shape->buffer_bytes };
	out->bytes = (2 * shape->n_flows * shape->buffer_bytes + unit - 1) / unit * unit;
	st = setup->memory == RDMA_HOST ? open_host(r, out, err) : open_mem(r, out, err);
	if (st)
		rdma_buffers_close(out);
	return st;
}

void rdma_buffers_close(struct rdma_buffers *b)
{
	gpul_rdma_unregister(b->region);
	gpul_mem_destroy(b->mem);
	if (b->host)
		munmap(b->host, b->bytes);
	gpul_context_close(&b->context);
	*b = (struct rdma_buffers){ 0 };
}

uint64_t rdma_buffers_at(const struct rdma_buffers *b, unsigned flow, bool in)
{
	return b->at + (2ull * flow + in) * b->buffer_bytes;
}

gpul_status rdma_buffers_use(const struct rdma_buffers *b, gpul_error *err)
{
	const gpul_driver *drv = b->setup->devices.drv;

	return b->context.handle ? gpul_cu(drv, err, cuCtxSetCurrent(b->context.handle)) : GPUL_OK;
}

/* ---- the pattern --------------------------------------------------------------------------------------- */

/* Hash the fields of a pattern with the mixer of splitmix64, so that patterns that differ in any field get unrelated seeds. */
static uint64_t seed_of(const struct rdma_pattern *p)
{
	uint64_t x = p->phase << 32 ^ (uint64_t)p->to_client << 31 ^ (uint64_t)p->flow << 16 ^ p->place;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Write n words of the pattern, beginning with word `first`; p NULL: write the words of a cleared buffer. */
static void make_words(const struct rdma_pattern *p, uint64_t first, uint64_t *words, size_t n)
{
	const uint64_t seed = p ? seed_of(p) : 0;

	if (!p) {
		memset(words, CLEARED, n * sizeof *words);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const uint64_t x = (seed + first + i) * 0x9e3779b97f4a7c15u;

		words[i] = x ^ x >> 29;
	}
}

/* Copy a chunk to the buffers; copy_from() is the reverse. */
static gpul_status copy_to(const struct rdma_buffers *b, uint64_t at, const void *from, size_t bytes, gpul_error *err)
{
	if (!b->cpu) {
		const gpul_status st = gpul_cu(b->setup->devices.drv, err, cuMemcpyHtoD(at, from, bytes));

		/* Synchronise: a small copy from pageable memory may still be in flight, and the send path copies in other streams. */
		return st ? st : gpul_cu(b->setup->devices.drv, err, cuCtxSynchronize());
	}
	memcpy(b->cpu + (at - b->at), from, bytes);
	return GPUL_OK;
}

static gpul_status copy_from(const struct rdma_buffers *b, uint64_t at, void *to, size_t bytes, gpul_error *err)
{
	if (!b->cpu)
		return gpul_cu(b->setup->devices.drv, err, cuMemcpyDtoH(to, at, bytes));
	memcpy(to, b->cpu + (at - b->at), bytes);
	return GPUL_OK;
}

gpul_status rdma_buffers_fill(const struct rdma_buffers *b, uint64_t at, uint64_t bytes, const struct rdma_pattern *pattern,
			      gpul_error *err)
{
	uint64_t words[CHUNK_WORDS];
	gpul_status st = GPUL_OK;

	for (uint64_t done = 0; !st && done < bytes; done += sizeof words) {
		const size_t n = bytes - done < sizeof words ? bytes - done : sizeof words;

		make_words(pattern, done / sizeof *words, words, (n + 7) / 8);
		st = copy_to(b, at + done, words, n, err);
	}
	return st;
}

static gpul_status report_difference(const unsigned char *seen, const unsigned char *expected, uint64_t before, uint64_t bytes,
				     const struct rdma_pattern *p, gpul_error *err)
{
	size_t i = 0;

	while (seen[i] == expected[i])
		i++;
	return gpul_fail(err, GPUL_EFORMAT, 0,
			 "wrong data: flow %u, message %u of %" PRIu64 " bytes to the %s: byte %" PRIu64 " is 0x%02x, expected 0x%02x",
			 p->flow, p->place, bytes, p->to_client ? "client" : "server", before + i, seen[i], expected[i]);
}

gpul_status rdma_buffers_check(const struct rdma_buffers *b, uint64_t at, uint64_t bytes, const struct rdma_pattern *pattern,
			       gpul_error *err)
{
	uint64_t expected[CHUNK_WORDS], seen[CHUNK_WORDS];
	gpul_status st = GPUL_OK;

	for (uint64_t done = 0; !st && done < bytes; done += sizeof seen) {
		const size_t n = bytes - done < sizeof seen ? bytes - done : sizeof seen;

		make_words(pattern, done / sizeof *seen, expected, (n + 7) / 8);
		st = copy_from(b, at + done, seen, n, err);
		if (!st && memcmp(seen, expected, n))
			st = report_difference((const unsigned char *)seen, (const unsigned char *)expected, done, bytes, pattern, err);
	}
	return st;
}
