/* memory_bare.c — allocate, export, import: gpuload's functions and the driver's bare calls, alternately. */
#include "bench/memory/memory.h"

#include <unistd.h>

static CUmemLocation location_of(gpul_mem_kind kind)
{
	return (CUmemLocation){ .type = kind == GPUL_MEM_DEVICE ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA };
}

static gpul_status bare_map(const gpul_driver *drv, gpul_mem_kind kind, struct bare *b, gpul_error *err)
{
	const CUmemAccessDesc access[] = {
		{ location_of(GPUL_MEM_DEVICE), CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
		{ location_of(GPUL_MEM_HOST_NUMA), CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
	};
	gpul_status st = gpul_cu(drv, err, cuMemAddressReserve(&b->at, b->bytes, 0, 0, 0));

	st = st ? st : gpul_cu(drv, err, cuMemMap(b->at, b->bytes, 0, b->physical, 0));
	return st ? st : gpul_cu(drv, err, cuMemSetAccess(b->at, b->bytes, access, kind == GPUL_MEM_DEVICE ? 1 : 2));
}

gpul_status bare_create(const gpul_driver *drv, gpul_mem_kind kind, size_t bytes, struct bare *out, gpul_error *err)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = location_of(kind),
					   .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
	size_t grain = 0;
	gpul_status st;

	*out = (struct bare){ 0 };
	st = gpul_cu(drv, err, cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (st)
		return st;
	out->bytes = (bytes + grain - 1) / grain * grain;
	st = gpul_cu(drv, err, cuMemCreate(&out->physical, out->bytes, &prop, 0));
	return st ? st : bare_map(drv, kind, out, err);
}

gpul_status bare_import(const gpul_driver *drv, gpul_mem_kind kind, size_t bytes, int fd, struct bare *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct bare){ .bytes = bytes };
	st = gpul_cu(drv, err,
		     cuMemImportFromShareableHandle(&out->physical, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	return st ? st : bare_map(drv, kind, out, err);
}

void bare_destroy(const gpul_driver *drv, const struct bare *b)
{
	drv->cuMemUnmap(b->at, b->bytes);
	drv->cuMemAddressFree(b->at, b->bytes);
	drv->cuMemRelease(b->physical);
}

gpul_mem_desc memory_desc(gpul_mem_kind kind, size_t bytes)
{
	static const int device = 0;

	return (gpul_mem_desc){
		.kind = kind, .bytes = bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1, .exportable = true
	};
}

struct times {
	double create[2][MEMORY_MAX_SAMPLES], destroy[2][MEMORY_MAX_SAMPLES]; /* durations: [0] of gpuload, [1] of the bare calls */
};

static gpul_status time_ours(const struct memory_bench *b, gpul_mem_kind kind, struct times *t, int i, gpul_error *err)
{
	const gpul_mem_desc desc = memory_desc(kind, b->bytes);
	gpul_mem *m = NULL;
	uint64_t start = gpul_clock_ns();
	gpul_status st = gpul_mem_create(b->drv, &desc, &m, err);

	t->create[0][i] = memory_us(start);
	start = gpul_clock_ns();
	gpul_mem_destroy(m);
	t->destroy[0][i] = memory_us(start);
	return st;
}

static gpul_status time_bare(const struct memory_bench *b, gpul_mem_kind kind, struct times *t, int i, gpul_error *err)
{
	struct bare bare;
	uint64_t start = gpul_clock_ns();
	gpul_status st = bare_create(b->drv, kind, b->bytes, &bare, err);

	t->create[1][i] = memory_us(start);
	if (st)
		return st;
	start = gpul_clock_ns();
	bare_destroy(b->drv, &bare);
	t->destroy[1][i] = memory_us(start);
	return GPUL_OK;
}

typedef gpul_status timed(const struct memory_bench *b, gpul_mem_kind kind, struct times *t, int i, gpul_error *err);

/* Time gpuload's function and the bare calls alternately; each goes first in half of the pairs.  The
 * first pair is a warm-up. */
static gpul_status time_alternately(const struct memory_bench *b, gpul_mem_kind kind, timed *ours, timed *bare, struct times *t,
				    gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int i = -1; !st && i < b->runs; i++) {
		int at = i < 0 ? 0 : i;

		st = i % 2 ? ours(b, kind, t, at, err) : bare(b, kind, t, at, err);
		if (!st)
			st = i % 2 ? bare(b, kind, t, at, err) : ours(b, kind, t, at, err);
	}
	return st;
}

/* The memory that is imported; fd: its descriptor, a new one for each import. */
static struct {
	gpul_mem *m;
	int fd;
} shared;

static gpul_status import_ours(const struct memory_bench *b, gpul_mem_kind kind, struct times *t, int i, gpul_error *err)
{
	const gpul_mem_info *is = gpul_mem_about(shared.m);
	const gpul_mem_offer offer = { .kind = kind, .bytes = is->bytes, .mapped_bytes = is->mapped_bytes };
	const gpul_mem_desc desc = memory_desc(kind, is->bytes);
	gpul_mem *m = NULL;
	uint64_t start = gpul_clock_ns();
	gpul_status st = gpul_mem_import(b->drv, &offer, shared.fd, NULL, &desc, &m, err);

	t->create[0][i] = memory_us(start);
	start = gpul_clock_ns();
	gpul_mem_destroy(m);
	t->destroy[0][i] = memory_us(start);
	return st;
}

static gpul_status import_bare(const struct memory_bench *b, gpul_mem_kind kind, struct times *t, int i, gpul_error *err)
{
	struct bare bare;
	uint64_t start = gpul_clock_ns();
	gpul_status st = bare_import(b->drv, kind, gpul_mem_about(shared.m)->mapped_bytes, shared.fd, &bare, err);

	t->create[1][i] = memory_us(start);
	if (st)
		return st;
	start = gpul_clock_ns();
	bare_destroy(b->drv, &bare);
	t->destroy[1][i] = memory_us(start);
	return GPUL_OK;
}

/* gpul_mem exports once and keeps the descriptor, so each sample needs a new object. */
static gpul_status export_ours(const struct memory_bench *b, gpul_mem_kind kind, struct times *t, int i, gpul_error *err)
{
	const gpul_mem_desc desc = memory_desc(kind, b->bytes);
	gpul_mem *m = NULL;
	gpul_status st = gpul_mem_create(b->drv, &desc, &m, err);
	uint64_t start = gpul_clock_ns();
	int fd;

	if (!st)
		st = gpul_mem_export_fd(m, &fd, err);
	t->create[0][i] = memory_us(start);
	start = gpul_clock_ns();
	if (!st)
		st = gpul_mem_export_fd(m, &fd, err);
	t->destroy[0][i] = memory_us(start);
	gpul_mem_destroy(m);
	return st;
}

static gpul_status export_bare(const struct memory_bench *b, gpul_mem_kind kind, struct times *t, int i, gpul_error *err)
{
	struct bare bare;
	gpul_status st = bare_create(b->drv, kind, b->bytes, &bare, err);
	uint64_t start = gpul_clock_ns();
	int fd = -1;

	if (st)
		return st;
	st = gpul_cu(b->drv, err, cuMemExportToShareableHandle(&fd, bare.physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	t->create[1][i] = memory_us(start);
	close(fd);
	bare_destroy(b->drv, &bare);
	return st;
}

static gpul_status measure_kind(const struct memory_bench *b, gpul_mem_kind kind, const char *const names[6], gpul_error *err)
{
	static struct times t;
	const gpul_mem_desc desc = memory_desc(kind, b->bytes);
	gpul_status st = time_alternately(b, kind, time_ours, time_bare, &t, err);

	if (st)
		return st;
	memory_row(names[0], "us", t.create[0], t.create[1], b->runs);
	memory_row(names[1], "us", t.destroy[0], t.destroy[1], b->runs);
	st = time_alternately(b, kind, export_ours, export_bare, &t, err);
	if (st)
		return st;
	memory_row(names[2], "us", t.create[0], t.create[1], b->runs);
	memory_row(names[3], "us", t.destroy[0], NULL, b->runs);
	st = gpul_mem_create(b->drv, &desc, &shared.m, err);
	if (!st)
		st = gpul_mem_export_fd(shared.m, &shared.fd, err);
	if (!st)
		st = time_alternately(b, kind, import_ours, import_bare, &t, err);
	gpul_mem_destroy(shared.m);
	shared.m = NULL;
	if (st)
		return st;
	memory_row(names[4], "us", t.create[0], t.create[1], b->runs);
	memory_row(names[5], "us", t.destroy[0], t.destroy[1], b->runs);
	return GPUL_OK;
}

gpul_status memory_alloc(struct memory_bench *b, gpul_error *err)
{
	static const char *const host[] = { "host-numa: create",        "host-numa: destroy", "host-numa: export, first",
					    "host-numa: export, again", "host-numa: import",  "host-numa: import, undone" };
	static const char *const device[] = { "device: create",        "device: destroy", "device: export, first",
					      "device: export, again", "device: import",  "device: import, undone" };
	gpul_status st = measure_kind(b, GPUL_MEM_HOST_NUMA, host, err);

	return st ? st : measure_kind(b, GPUL_MEM_DEVICE, device, err);
}
