/* test_ranges.c — every copy and fill, with valid, too long, freed, reserved, unmapped and protected ranges in each kind of memory.
 *
 * Each call in one table is applied to each kind of memory in another.  A call must accept the whole range, refuse a range that is
 * one byte longer, and not change the bytes around the range. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES ((size_t)64 << 10) /* size of each tested range of memory */
enum { SLACK = 4096, STRIDE = 8192, ROW = 4096 };

/* ---- the calls: each copies n bytes, or fills n bytes of dst ------------------------------------------------------------- */

static CUstream stream;
static CUcontext context;

typedef CUresult call_fn(CUdeviceptr dst, CUdeviceptr src, size_t n);

static void *host(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

/* clang-format off */
static CUresult plain(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpy(dst, src, n); }
static CUresult plain_async(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyAsync(dst, src, n, stream); }
static CUresult h_to_d(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyHtoD(dst, host(src), n); }
static CUresult h_to_d_async(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyHtoDAsync(dst, host(src), n, stream); }
static CUresult d_to_h(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyDtoH(host(dst), src, n); }
static CUresult d_to_h_async(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyDtoHAsync(host(dst), src, n, stream); }
static CUresult d_to_d(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyDtoD(dst, src, n); }
static CUresult d_to_d_async(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyDtoDAsync(dst, src, n, stream); }
static CUresult peer(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyPeer(dst, context, src, context, n); }
static CUresult peer_async(CUdeviceptr dst, CUdeviceptr src, size_t n) { return cuMemcpyPeerAsync(dst, context, src, context, n, stream); }
static CUresult fill_8(CUdeviceptr dst, CUdeviceptr src, size_t n) { (void)src; return cuMemsetD8(dst, 7, n); }
static CUresult fill_8_async(CUdeviceptr dst, CUdeviceptr src, size_t n) { (void)src; return cuMemsetD8Async(dst, 7, n, stream); }
static CUresult fill_16(CUdeviceptr dst, CUdeviceptr src, size_t n) { (void)src; return cuMemsetD16(dst, 0x707, (n + 1) / 2); }
static CUresult fill_32(CUdeviceptr dst, CUdeviceptr src, size_t n) { (void)src; return cuMemsetD32Async(dst, 0x7070707, (n + 3) / 4, stream); }
/* clang-format on */

/* A 2D fill of one row. */
/* clang-format off */
static CUresult fill_2d(CUdeviceptr dst, CUdeviceptr src, size_t n) { (void)src; return cuMemsetD2D8(dst, n, 7, n, 1); }
/* clang-format on */

/* Return the number of rows of ROW bytes, STRIDE apart, that fit into a range of n bytes if the last row ends where the range ends. */
static size_t rows(size_t n)
{
	return (n - ROW) / STRIDE + 1;
}

static CUdeviceptr first_row(CUdeviceptr at, size_t n)
{
	return at + n - ROW - (rows(n) - 1) * STRIDE;
}

static CUDA_MEMCPY3D box(CUmemorytype dst_type, CUdeviceptr dst, CUmemorytype src_type, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D c;

	memset(&c, 0, sizeof c);
	c.srcMemoryType = src_type;
	c.srcHost = host(src);
	c.srcDevice = src;
	c.dstMemoryType = dst_type;
	c.dstHost = host(dst);
	c.dstDevice = dst;
	c.WidthInBytes = n;
	c.Height = c.Depth = 1;
	return c;
}

static CUresult box_3d(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D c = box(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, n);

	return cuMemcpy3D(&c);
}

static CUresult box_3d_async(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D c = box(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, n);

	return cuMemcpy3DAsync(&c, stream);
}

static CUresult box_3d_peer(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D_PEER c;

	memset(&c, 0, sizeof c);
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = src;
	c.dstDevice = dst;
	c.srcContext = c.dstContext = context;
	c.WidthInBytes = n;
	c.Height = c.Depth = 1;
	return cuMemcpy3DPeer(&c);
}

static CUDA_MEMCPY2D rows_of(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY2D c;

	memset(&c, 0, sizeof c);
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = first_row(src, n);
	c.dstDevice = first_row(dst, n);
	c.srcPitch = c.dstPitch = STRIDE;
	c.WidthInBytes = ROW;
	c.Height = rows(n);
	return c;
}

static CUresult rows_2d(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY2D c = rows_of(dst, src, n);

	return cuMemcpy2D(&c);
}

static CUresult rows_2d_unaligned(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY2D c = rows_of(dst, src, n);

	return cuMemcpy2DUnaligned(&c);
}

static CUresult rows_2d_async(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY2D c = rows_of(dst, src, n);

	return cuMemcpy2DAsync(&c, stream);
}

static CUresult graph_copy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D c = box(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, n);
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	CUresult r;

	ok(cuGraphCreate(&graph, 0));
	r = cuGraphAddMemcpyNode(&node, graph, NULL, 0, &c, context);
	if (!r) {
		ok(cuGraphInstantiate(&exec, graph, 0));
		r = cuGraphLaunch(exec, stream);
		ok(cuStreamSynchronize(stream));
		ok(cuGraphExecDestroy(exec));
	}
	ok(cuGraphDestroy(graph));
	return r;
}

static CUresult graph_fill(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMSET_NODE_PARAMS p;
	CUgraphNode node;
	CUgraph graph;
	CUresult r;

	(void)src;
	memset(&p, 0, sizeof p);
	p.dst = dst;
	p.elementSize = 1;
	p.width = n;
	p.height = 1;
	ok(cuGraphCreate(&graph, 0));
	r = cuGraphAddMemsetNode(&node, graph, NULL, 0, &p, context);
	ok(cuGraphDestroy(graph));
	return r;
}

static CUresult captured_copy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUgraph graph;
	CUresult r;

	ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	r = cuMemcpyAsync(dst, src, n, stream);
	ok(cuStreamEndCapture(stream, &graph));
	ok(cuGraphDestroy(graph));
	return r;
}

#if CUDA_VERSION >= 13000
static CUresult batch(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUmemcpyAttributes a;
	size_t index = 0;

	memset(&a, 0, sizeof a);
	a.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	return cuMemcpyBatchAsync(&dst, &src, &n, 1, &a, &index, 1, stream);
}

static CUresult batch_3d(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUDA_MEMCPY3D_BATCH_OP b;

	memset(&b, 0, sizeof b);
	b.src.type = b.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	b.src.op.ptr.ptr = src;
	b.dst.op.ptr.ptr = dst;
	b.extent.width = n;
	b.extent.height = b.extent.depth = 1;
	b.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	return cuMemcpy3DBatchAsync(1, &b, 0, stream);
}
#endif

static CUarray array; /* one row of BYTES bytes */

static CUresult d_to_a_to_d(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	CUresult r = cuMemcpyDtoA(array, 0, src, n > BYTES ? BYTES : n);

	if (n > BYTES)
		src += n - BYTES, dst += n - BYTES;
	r = r ? r : cuMemcpyDtoA(array, 0, src, n > BYTES ? BYTES : n);
	return r ? r : cuMemcpyAtoD(dst, array, 0, n > BYTES ? BYTES : n);
}

/* DST_DEVICE, SRC_DEVICE: the destination or source must be device memory.  FILLS: the call fills memory and has no source. */
enum { ANYWHERE = 0, DST_DEVICE = 1, SRC_DEVICE = 2, FILLS = 4 };

static const struct call {
	const char *name;
	call_fn *fn;
	unsigned kind;
} calls[] = {
	{ "cuMemcpy", plain, ANYWHERE },
	{ "cuMemcpyAsync", plain_async, ANYWHERE },
	{ "cuMemcpyHtoD", h_to_d, DST_DEVICE },
	{ "cuMemcpyHtoDAsync", h_to_d_async, DST_DEVICE },
	{ "cuMemcpyDtoH", d_to_h, SRC_DEVICE },
	{ "cuMemcpyDtoHAsync", d_to_h_async, SRC_DEVICE },
	{ "cuMemcpyDtoD", d_to_d, DST_DEVICE | SRC_DEVICE },
	{ "cuMemcpyDtoDAsync", d_to_d_async, DST_DEVICE | SRC_DEVICE },
	{ "cuMemcpyPeer", peer, DST_DEVICE | SRC_DEVICE },
	{ "cuMemcpyPeerAsync", peer_async, DST_DEVICE | SRC_DEVICE },
	{ "cuMemcpy2D", rows_2d, ANYWHERE },
	{ "cuMemcpy2DUnaligned", rows_2d_unaligned, ANYWHERE },
	{ "cuMemcpy2DAsync", rows_2d_async, ANYWHERE },
	{ "cuMemcpy3D", box_3d, ANYWHERE },
	{ "cuMemcpy3DAsync", box_3d_async, ANYWHERE },
	{ "cuMemcpy3DPeer", box_3d_peer, ANYWHERE },
	{ "cuGraphAddMemcpyNode", graph_copy, ANYWHERE },
	{ "a captured copy", captured_copy, ANYWHERE },
#if CUDA_VERSION >= 13000
	{ "cuMemcpyBatchAsync", batch, ANYWHERE },
	{ "cuMemcpy3DBatchAsync", batch_3d, ANYWHERE },
#endif
	{ "cuMemcpyDtoA, AtoD", d_to_a_to_d, DST_DEVICE | SRC_DEVICE },
	{ "cuMemsetD8", fill_8, DST_DEVICE | FILLS },
	{ "cuMemsetD8Async", fill_8_async, DST_DEVICE | FILLS },
	{ "cuMemsetD16", fill_16, DST_DEVICE | FILLS },
	{ "cuMemsetD32Async", fill_32, DST_DEVICE | FILLS },
	{ "cuMemsetD2D8", fill_2d, DST_DEVICE | FILLS },
	{ "cuGraphAddMemsetNode", graph_fill, DST_DEVICE | FILLS },
};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

/* ---- the kinds of memory ------------------------------------------------------------------------------------------------ */

struct memory {
	const char *name;
	CUdeviceptr (*make)(void);
	void (*release)(CUdeviceptr p);
};

/* clang-format off */
static CUdeviceptr make_device(void) { CUdeviceptr p; ok(cuMemAlloc(&p, BYTES)); return p; }
static CUdeviceptr make_managed(void) { CUdeviceptr p; ok(cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL)); return p; }
static CUdeviceptr make_locked(void) { void *p; ok(cuMemHostAlloc(&p, BYTES, 0)); return (uintptr_t)p; }
/* clang-format on */
/* clang-format off */
static void release_locked(CUdeviceptr p) { ok(cuMemFreeHost(host(p))); }
/* clang-format on */
/* clang-format off */
static void release_device(CUdeviceptr p) { ok(cuMemFree(p)); }
/* clang-format on */

static CUdeviceptr make_async(void)
{
	CUdeviceptr p;

	ok(cuMemAllocAsync(&p, BYTES, stream));
	ok(cuStreamSynchronize(stream));
	return p;
}

static void release_async(CUdeviceptr p)
{
	ok(cuMemFreeAsync(p, stream));
	ok(cuStreamSynchronize(stream));
}

/* Memory in the middle of a larger mapping of the program, registered by cuMemHostRegister. */
static CUdeviceptr make_registered(void)
{
	char *p = mmap(NULL, BYTES + 2 * SLACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	ok(cuMemHostRegister(p + SLACK, BYTES, 0));
	return (uintptr_t)p + SLACK;
}

static void release_registered(CUdeviceptr p)
{
	ok(cuMemHostUnregister(host(p)));
	munmap((char *)host(p) - SLACK, BYTES + 2 * SLACK);
}

/* The last BYTES of a mapping; the addresses after it are reserved, but not mapped. */
static CUdeviceptr make_mapped(void)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	const CUmemAccessDesc access = { .location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;

	ok(cuMemCreate(&handle, 2 << 20, &prop, 0));
	ok(cuMemAddressReserve(&p, 4 << 20, 0, 0, 0));
	ok(cuMemMap(p, 2 << 20, 0, handle, 0));
	ok(cuMemSetAccess(p, 2 << 20, &access, 1));
	ok(cuMemRelease(handle));
	return p + (2 << 20) - BYTES;
}

static void release_mapped(CUdeviceptr p)
{
	const CUdeviceptr base = p - (2 << 20) + BYTES;

	ok(cuMemUnmap(base, 2 << 20));
	ok(cuMemAddressFree(base, 4 << 20));
}

static const struct memory memories[] = {
	{ "cuMemAlloc", make_device, release_device },
	{ "cuMemAllocAsync", make_async, release_async },
	{ "cuMemAllocManaged", make_managed, release_device },
	{ "cuMemHostAlloc", make_locked, release_locked },
	{ "cuMemHostRegister", make_registered, release_registered },
	{ "cuMemMap", make_mapped, release_mapped },
};
enum { N_MEMORIES = sizeof memories / sizeof memories[0] };

/* cmocka installs its own SIGSEGV handlers in each test, which the driver replaces at the next tick of its clock. */
static void wait_for_a_tick(void)
{
	const struct timespec tick = { .tv_nsec = 20000000 };

	nanosleep(&tick, NULL);
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------ */

static char *program; /* 4 * BYTES of memory that is not the driver's */

static void expect(CUresult r, CUresult expected, const struct call *c, const struct memory *m, const char *what)
{
	if (r != expected)
		fail_msg("%s, %s, %s: %d, expected %d", c->name, m->name, what, (int)r, (int)expected);
	r = cuCtxSynchronize();
	if (r)
		fail_msg("%s, %s, %s: the context failed: %d", c->name, m->name, what, (int)r);
}

/* Apply the call to n bytes; p is its destination, or its source if as_source. */
static CUresult use(const struct call *c, bool as_source, CUdeviceptr p, CUdeviceptr other, size_t n)
{
	return as_source ? c->fn(other, p, n) : c->fn(p, other, n);
}

static void each_call_uses_an_allocation_up_to_its_last_byte(void **state)
{
	CUdeviceptr neighbour, other;

	(void)state;
	other = make_mapped() - BYTES; /* has enough memory for every copy */
	for (unsigned k = 0; k < N_MEMORIES; k++) {
		const struct memory *m = &memories[k];
		const CUdeviceptr p = m->make();

		neighbour = make_device();
		ok(cuMemsetD8(neighbour, 0x55, BYTES));
		for (unsigned n = 0; n < 2 * N_CALLS; n++) {
			const struct call *c = &calls[n / 2];
			const bool as_source = n % 2;
			CUdeviceptr end = c->kind & (as_source ? DST_DEVICE : SRC_DEVICE) ? other : (uintptr_t)program;

			if (as_source && c->kind & FILLS)
				continue;
			expect(use(c, as_source, p, end, BYTES), CUDA_SUCCESS, c, m, "all bytes");
			expect(use(c, as_source, p + SLACK, end, BYTES - SLACK), CUDA_SUCCESS, c, m, "the last bytes");
			expect(use(c, as_source, p, end, BYTES + 1), CUDA_ERROR_INVALID_VALUE, c, m, "a byte more");
			expect(use(c, as_source, p + SLACK, end, BYTES), CUDA_ERROR_INVALID_VALUE, c, m, "a page behind the end");
			expect(use(c, as_source, p, end, 2 * BYTES - SLACK), CUDA_ERROR_INVALID_VALUE, c, m, "nearly twice the bytes");
		}
		ok(cuMemcpyDtoH(program, neighbour, BYTES));
		for (size_t i = 0; i < BYTES; i++)
			assert_int_equal(program[i], 0x55);
		ok(cuMemFree(neighbour));
		m->release(p);
	}
	release_mapped(other + BYTES);
}

static void no_call_uses_memory_that_was_freed(void **state)
{
	const CUdeviceptr other = make_device();

	(void)state;
	wait_for_a_tick();
	for (unsigned k = 0; k < N_MEMORIES; k++) {
		const struct memory *m = &memories[k];
		const CUdeviceptr p = m->make();

		m->release(p);
		for (unsigned n = 0; n < 2 * N_CALLS; n++) {
			const struct call *c = &calls[n / 2];
			const bool as_source = n % 2;

			/* Creating a node or a captured copy of unknown memory succeeds; only launching the node would fail the context. */
			if ((as_source && c->kind & FILLS) ||
			    ((c->fn == graph_copy || c->fn == captured_copy) && (m->make == make_registered || m->make == make_mapped)))
				continue;
			expect(use(c, as_source, p, other, BYTES), CUDA_ERROR_INVALID_VALUE, c, m, "freed");
		}
	}
	ok(cuMemFree(other));
}

static void no_call_uses_addresses_that_are_only_reserved(void **state)
{
	const struct memory reserved = { "cuMemAddressReserve", NULL, NULL };
	const CUdeviceptr other = make_device();
	CUdeviceptr p;

	(void)state;
	ok(cuMemAddressReserve(&p, 4 << 20, 0, 0, 0));
	for (unsigned n = 0; n < 2 * N_CALLS; n++)
		if (n % 2 == 0 || !(calls[n / 2].kind & FILLS))
			expect(use(&calls[n / 2], n % 2, p + BYTES, other, BYTES), CUDA_ERROR_INVALID_VALUE, &calls[n / 2], &reserved,
			       "reserved");
	ok(cuMemAddressFree(p, 4 << 20));
	ok(cuMemFree(other));
}

/* The driver does not know the program's own memory, so it detects that a page is unmapped only when it accesses the page. */
static void a_copy_of_unmapped_or_protected_memory_is_refused(void **state)
{
	const CUdeviceptr other = make_device();
	static const struct {
		const char *name;
		int protection;
		bool as_source, as_destination;
	} states[] = { { "unmapped", -1, true, true }, { "no access", PROT_NONE, true, true }, { "read-only", PROT_READ, false, true } };

	(void)state;
	wait_for_a_tick();
	for (unsigned k = 0; k < 3; k++) {
		const struct memory m = { states[k].name, NULL, NULL };
		char *p = map_apart(3 * BYTES);

		if (states[k].protection < 0)
			munmap(p + BYTES, BYTES);
		else
			mprotect(p + BYTES, BYTES, states[k].protection);
		for (unsigned n = 0; n < 2 * N_CALLS; n++) {
			const struct call *c = &calls[n / 2];
			const bool as_source = n % 2;

			if (c->kind & FILLS || c->fn == graph_copy || c->fn == captured_copy ||
			    !(as_source ? states[k].as_source : states[k].as_destination))
				continue;
			expect(use(c, as_source, (uintptr_t)p + BYTES, other, BYTES), CUDA_ERROR_INVALID_VALUE, c, &m, "all of it");
			expect(use(c, as_source, (uintptr_t)p + BYTES / 2, other, BYTES), CUDA_ERROR_INVALID_VALUE, c, &m,
			       "its second half");
			expect(use(c, as_source, (uintptr_t)p + 2 * BYTES - 2 * SLACK, other, BYTES / 2), CUDA_ERROR_INVALID_VALUE, c, &m,
			       "its first half");
		}
		munmap(p, 3 * BYTES);
	}
	ok(cuMemFree(other));
}

static void mappings_without_a_gap_are_one_range_and_allocations_are_not(void **state)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	const CUmemAccessDesc access = { .location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	const size_t step = 2 << 20;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p, a = 0, b = 0;

	(void)state;
	ok(cuMemAddressReserve(&p, 4 * step, 0, 0, 0));
	for (unsigned k = 0; k < 3; k++) {
		ok(cuMemCreate(&handle, step, &prop, 0));
		ok(cuMemMap(p + k * step, step, 0, handle, 0));
		ok(cuMemRelease(handle));
	}
	ok(cuMemSetAccess(p, 3 * step, &access, 1));
	ok(cuMemcpyHtoD(p + step - BYTES, program, 2 * BYTES));
	ok(cuMemcpy(p + 2 * step - BYTES, (uintptr_t)program, 2 * BYTES));
	ok(cuMemsetD8(p, 1, 3 * step));
	fails(cuMemsetD8(p, 1, 3 * step + 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemUnmap(p + step, step));
	fails(cuMemcpy(p + step - BYTES, (uintptr_t)program, 2 * BYTES), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD8(p, 1, 3 * step), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemUnmap(p, 4 * step));
	ok(cuMemAddressFree(p, 4 * step));
	for (unsigned k = 0; k < 64 && b != a + BYTES; k++) { /* cuCtxDestroy frees these allocations */
		a = b;
		b = make_device();
	}
	fails(cuMemsetD8(a, 1, BYTES + 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpy(a, (uintptr_t)program, BYTES + 4), CUDA_ERROR_INVALID_VALUE);
}

static void a_copy_may_contain_registered_parts_of_the_programs_memory(void **state)
{
	const CUdeviceptr p = make_mapped() - BYTES;

	(void)state;
	ok(cuMemHostRegister(program + SLACK, SLACK, 0));
	ok(cuMemcpyHtoD(p, program, BYTES));
	ok(cuMemcpy((uintptr_t)program, p, BYTES));
	fails(cuMemcpyHtoD(p, program + SLACK, BYTES), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostUnregister(program + SLACK));
	release_mapped(p + BYTES);
}

static void variables_of_modules_end_with_their_last_byte(void **state)
{
	const CUdeviceptr other = make_device();
	CUdeviceptr table;
	CUmodule module;
	size_t bytes;

	(void)state;
	ok(cuModuleLoadData(&module, kernels_ptx));
	ok(cuModuleGetGlobal(&table, &bytes, module, "table"));
	ok(cuMemcpy(table, (uintptr_t)program, bytes));
	fails(cuMemcpy(table, (uintptr_t)program, bytes + 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpy((uintptr_t)program, table + 4, bytes), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD8(table, 1, bytes + 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuModuleUnload(module));
	fails(cuMemcpy(table, (uintptr_t)program, 4),
	      CUDA_ERROR_INVALID_VALUE); /* the driver remembers that this address is freed device memory */
	fails(cuMemcpy((uintptr_t)program, table, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyDtoH(host(table), other, 4), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(other));
}

static int set_up(void **state)
{
	CUDA_ARRAY_DESCRIPTOR d;

	make_context(state);
	memset(&d, 0, sizeof d);
	d.Width = BYTES / 4;
	d.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	d.NumChannels = 1;
	ok(cuCtxGetCurrent(&context));
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuArrayCreate(&array, &d));
	program = calloc(4, BYTES);
	return !program;
}

static int tear_down(void **state)
{
	free(program);
	return destroy_context(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_call_uses_an_allocation_up_to_its_last_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_call_uses_memory_that_was_freed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_call_uses_addresses_that_are_only_reserved, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_copy_of_unmapped_or_protected_memory_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(mappings_without_a_gap_are_one_range_and_allocations_are_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_copy_may_contain_registered_parts_of_the_programs_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(variables_of_modules_end_with_their_last_byte, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
