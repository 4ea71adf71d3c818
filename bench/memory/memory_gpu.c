/* memory_gpu.c — the rate at which kernels read memory, and the round-trip time of a word from CPU to
 * GPU and back. */
#include "bench/memory/memory.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "cli/sum/cli_sum.h"
#include "loader/loader.h"

/* ---- round trips of a word --------------------------------------------------------------- */

enum { ROUND_TRIPS = 10000, ANSWER_AT = 256 };

/* clang-format off */  /* PTX, one statement on each line */
/* One thread of each warp polls a word until it changes.  The first thread that claims the new number (in shared memory) stores it to
 * the answer word.  The kernel ends after the last number.  Several warps poll, because a load takes a microsecond over PCIe, and a
 * warp has only one load in flight. */
#define PONG(name, load, fence, store) \
	".visible .entry " name "(.param .u64 at, .param .u64 last)\n{\n" \
	"	.reg .u64 %a, %l, %v, %seen, %old;\n	.reg .pred %p;\n	.reg .u32 %t;\n" \
	"	.shared .align 8 .b64 claimed;\n" \
	"	mov.u64 %seen, 0;\n	st.shared.u64 [claimed], %seen;\n	bar.sync 0;\n" \
	"	mov.u32 %t, %tid.x;\n	and.b32 %t, %t, 31;\n" \
	"	setp.ne.u32 %p, %t, 0;\n	@%p ret;\n" \
	"	ld.param.u64 %a, [at];\n	ld.param.u64 %l, [last];\n" \
	"wait:	ld." load ".sys.global.u64 %v, [%a];\n" \
	"	setp.eq.u64 %p, %v, %seen;\n	@%p bra wait;\n" \
	"	atom.shared.max.u64 %old, [claimed], %v;\n" \
	"	setp.ge.u64 %p, %old, %v;\n	@%p bra next;\n" fence \
	"	st." store ".sys.global.u64 [%a+256], %v;\n" \
	"next:	mov.u64 %seen, %v;\n	setp.lt.u64 %p, %v, %l;\n	@%p bra wait;\n" \
	"	ret;\n}\n"
static const char pong[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
	PONG("relaxed", "relaxed", "", "relaxed")
	PONG("ordered", "acquire", "", "release")
	PONG("fenced", "relaxed", "	fence.acq_rel.sys;\n", "relaxed");
/* clang-format on */

/* Relaxed: only the word itself is transferred.  The other variants also make earlier writes of
 * each side visible to the other, by acquire and release, or by one fence between load and
 * store. */
static const struct variant {
	const char *kernel, *what;
	unsigned warps;
} variants[] = {
	{ "relaxed", "flag in host-numa memory, CPU to GPU to CPU, relaxed", 1 },
	{ "relaxed", "flag ... relaxed, 8 warps poll", 8 },
	{ "ordered", "flag ... ordered: acquire and release", 1 },
	{ "fenced", "flag ... ordered: relaxed and one fence", 1 },
	{ "fenced", "flag ... ordered: relaxed and one fence, 8 warps poll", 8 },
};

/* Send one number and wait for the answer.  Returns false after 5 s without an answer. */
static bool round_trip(_Atomic uint64_t *word, const _Atomic uint64_t *answer, uint64_t i)
{
	uint64_t start = gpul_clock_ns();

	atomic_store_explicit(word, i, memory_order_release);
	for (unsigned spins = 1; atomic_load_explicit(answer, memory_order_acquire) != i; spins++) {
		if (spins % 4096)
			continue;
		sched_yield(); /* the software driver may need this CPU */
		if (gpul_clock_ns() - start > 5000000000u)
			return false;
	}
	return true;
}

static gpul_status run_round_trips(const struct memory_bench *b, gpul_mem *m, const gpul_module *module, const struct variant *v,
				   gpul_error *err)
{
	const gpul_launch_config config = { .grid = { 1, 1, 1 }, .block = { 32 * v->warps, 1, 1 } };
	const gpul_kernel *k = NULL;
	static const size_t sizes[] = { 8, 8 };
	static double us[ROUND_TRIPS];
	_Atomic uint64_t *word = gpul_mem_cpu(m);
	const _Atomic uint64_t *answer = word + ANSWER_AT / sizeof *word;
	uint64_t at = gpul_mem_gpu(m), last = ROUND_TRIPS + 100;
	void *args[] = { &at, &last };
	gpul_status st = gpul_kernel_find(module, v->kernel, &k, err);

	memset(gpul_mem_cpu(m), 0, 4096);
	st = st ? st : gpul_kernel_launch(k, &config, args, sizes, 2, err);
	for (uint64_t i = 1; !st && i <= last; i++) {
		uint64_t start = gpul_clock_ns();

		if (!round_trip(word, answer, i))
			st = gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the kernel did not answer %lu", (unsigned long)i);
		if (i > 100) /* the first round trips include the launch and cold caches */
			us[i - 101] = memory_us(start);
	}
	atomic_store(word, last); /* the kernel ends when it reads the last number */
	if (!st)
		st = gpul_cu(b->drv, err, cuCtxSynchronize());
	if (!st)
		memory_row(v->what, "us", us, NULL, ROUND_TRIPS);
	return st;
}

static gpul_status measure_flag(const struct memory_bench *b, gpul_error *err)
{
	const gpul_mem_desc desc = memory_desc(GPUL_MEM_HOST_NUMA, 4096);
	gpul_module *module = NULL;
	gpul_mem *m = NULL;
	gpul_status st = gpul_mem_create(b->drv, &desc, &m, err);

	if (st)
		return st;
	st = gpul_module_load_ptx(b->drv, pong, sizeof pong - 1, "pong.ptx", NULL, &module, err);
	for (size_t i = 0; !st && i < sizeof variants / sizeof *variants; i++)
		st = run_round_trips(b, m, module, &variants[i], err);
	gpul_module_unload(module);
	gpul_mem_destroy(m);
	return st;
}

/* ---- rates ------------------------------------------------------------------------------- */

struct rates {
	const struct memory_bench *b;
	struct timed timed;
	CUdeviceptr copy; /* destination of copies; as large as the memory that is read */
	struct sum_gpu *sum;
	double gbs[2][MEMORY_MAX_SAMPLES]; /* rates of the kernel [0] and of the copy [1] */
};

static gpul_status queue_read(struct rates *r, CUdeviceptr at, bool is_copy, gpul_error *err)
{
	const size_t bytes = r->b->big_bytes;

	return is_copy ? gpul_cu(r->b->drv, err, cuMemcpyAsync(r->copy, at, bytes, r->timed.stream))
		       : sum_gpu_start(r->sum, at, bytes / sizeof(float), r->timed.stream, err);
}

static gpul_status time_read(struct rates *r, CUdeviceptr at, bool is_copy, double *gbs, gpul_error *err)
{
	double ms = 0;
	gpul_status st = timed_begin(&r->timed, err);

	st = st ? st : queue_read(r, at, is_copy, err);
	st = st ? st : timed_end(&r->timed, &ms, err);
	*gbs = ms > 0 ? (double)r->b->big_bytes / ms * 1e-6 : 0;
	return st;
}

static gpul_status measure_rate(struct rates *r, const char *what, CUdeviceptr at, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int i = -1; !st && i < r->b->runs; i++) {
		st = time_read(r, at, false, &r->gbs[0][i < 0 ? 0 : i], err);
		st = st ? st : time_read(r, at, true, &r->gbs[1][i < 0 ? 0 : i], err);
	}
	if (!st)
		memory_row(what, "GB/s", r->gbs[0], r->gbs[1], r->b->runs);
	return st;
}

/* Create memory on the device of `owner`, or on its NUMA node; device 0 will read it. */
static gpul_status create_memory(struct rates *r, gpul_mem_kind kind, const gpul_context *owner, gpul_mem **out, gpul_error *err)
{
	const bool is_peer = owner != &r->b->context;
	const int devices[] = { is_peer ? 1 : 0, 0 };
	gpul_mem_desc desc = memory_desc(kind, r->b->big_bytes);
	gpul_status st = gpul_cu(r->b->drv, err, cuCtxSetCurrent(owner->handle));

	desc.devices = devices;
	desc.n_devices = is_peer ? 2 : 1;
	st = st ? st : gpul_mem_create(r->b->drv, &desc, out, err);
	return st ? st : gpul_cu(r->b->drv, err, cuCtxSetCurrent(r->b->context.handle));
}

static gpul_status measure_kind(struct rates *r, const char *what, gpul_mem_kind kind, const gpul_context *owner, gpul_error *err)
{
	gpul_mem *m = NULL;
	gpul_status st = create_memory(r, kind, owner, &m, err);

	if (st)
		return st;
	if (gpul_mem_cpu(m))
		memset(gpul_mem_cpu(m), 1, r->b->big_bytes);
	else
		st = gpul_cu(r->b->drv, err, cuMemcpy(gpul_mem_gpu(m), r->copy, r->b->big_bytes));
	st = st ? st : measure_rate(r, what, gpul_mem_gpu(m), err);
	gpul_mem_destroy(m);
	return st;
}

static gpul_status measure_peer(struct rates *r, gpul_error *err)
{
	static const char what[] = "sum of device 1's memory (bare: copy from device 1)";
	gpul_context other = { 0 };
	gpul_error why = { 0 };
	gpul_status st;

	if (r->b->n_devices < 2) {
		memory_row_skipped(what, "one device");
		return GPUL_OK;
	}
	st = gpul_context_open(r->b->drv, 1, &other, err);
	if (!st && measure_kind(r, what, GPUL_MEM_DEVICE, &other, &why))
		memory_row_skipped(what, why.text);
	gpul_context_close(&other);
	return st ? st : gpul_cu(r->b->drv, err, cuCtxSetCurrent(r->b->context.handle));
}

static gpul_status measure_rates(struct rates *r, gpul_error *err)
{
	const gpul_driver *drv = r->b->drv;
	gpul_status st = timed_open(&r->timed, drv, err);

	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&r->copy, r->b->big_bytes));
	st = st ? st : gpul_cu(drv, err, cuMemsetD8Async(r->copy, 1, r->b->big_bytes, r->timed.stream));
	st = st ? st : sum_gpu_create(drv, GPUL_F32, r->b->big_bytes / sizeof(float), &r->sum, err);
	st = st ? st : measure_kind(r, "sum of host-numa memory (bare: copy to the device)", GPUL_MEM_HOST_NUMA, &r->b->context, err);
	st = st ? st : measure_kind(r, "sum of device memory (bare: copy within the device)", GPUL_MEM_DEVICE, &r->b->context, err);
	return st ? st : measure_peer(r, err);
}

static void free_memory(struct rates *r)
{
	const gpul_driver *drv = r->b->drv;

	sum_gpu_destroy(r->sum);
	if (r->copy)
		drv->cuMemFree(r->copy);
	timed_close(&r->timed);
}

gpul_status memory_gpu(struct memory_bench *b, gpul_error *err)
{
	static struct rates r;
	gpul_status st = measure_flag(b, err);

	if (st)
		return st;
	r.b = b;
	st = measure_rates(&r, err);
	free_memory(&r);
	return st;
}
