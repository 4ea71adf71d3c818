/* process.c — open a driver; fill shared memory; sum it by CPU and GPU and compare. */
#include "tests/fault/process.h"

#include <stdlib.h>

#include "tests/fault/ledger.h"
#include "tests/fault/step.h"

/* The kernel has one block.  Each thread adds the words at its index, index + 128, ... in each round, and finally adds its
 * sum to *total; with integers the order does not matter. */
static const char kernel[] = ".version 6.5\n.target sm_75\n.address_size 64\n"
			     ".visible .entry sum(.param .u64 at, .param .u64 n, .param .u64 rounds, .param .u64 total)\n"
			     "{\n"
			     "	.reg .u64 %base, %n, %rounds, %total, %i, %p, %acc, %word, %first, %step;\n"
			     "	.reg .u32 %t;\n	.reg .pred %more;\n"
			     "	ld.param.u64 %base, [at];\n	ld.param.u64 %n, [n];\n"
			     "	ld.param.u64 %rounds, [rounds];\n	ld.param.u64 %total, [total];\n"
			     "	mov.u32 %t, %tid.x;\n	cvt.u64.u32 %first, %t;\n"
			     "	mov.u32 %t, %ntid.x;\n	cvt.u64.u32 %step, %t;\n"
			     "	mov.u64 %acc, 0;\n"
			     "again:\n"
			     "	mov.u64 %i, %first;\n"
			     "next:\n"
			     "	setp.ge.u64 %more, %i, %n;\n	@%more bra done;\n"
			     "	shl.b64 %p, %i, 2;\n	add.u64 %p, %base, %p;\n"
			     "	ld.volatile.global.u32 %t, [%p];\n	cvt.u64.u32 %word, %t;\n"
			     "	add.u64 %acc, %acc, %word;\n	add.u64 %i, %i, %step;\n	bra next;\n"
			     "done:\n"
			     "	sub.u64 %rounds, %rounds, 1;\n	setp.ne.u64 %more, %rounds, 0;\n	@%more bra again;\n"
			     "	red.global.add.u64 [%total], %acc;\n"
			     "	ret;\n"
			     "}\n";

uint64_t shared_sum(size_t n_words)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n_words; i++)
		sum += shared_word((uint32_t)i);
	return sum;
}

gpul_status process_open(const struct fault *f, struct process *p, gpul_error *err)
{
	const gpul_driver *drv;
	gpul_status st = gpul_driver_open(f->driver, &drv, err);

	*p = (struct process){ 0 };
	if (st)
		return st;
	step_wrap(drv, &p->drv);
	ledger_wrap(&p->drv);
	return gpul_context_open(&p->drv, 0, &p->context, err);
}

void process_close(struct process *p)
{
	if (p->total)
		p->drv.cuMemFree(p->total);
	if (p->library)
		p->drv.cuLibraryUnload(p->library);
	gpul_context_close(&p->context);
}

gpul_status process_fill(struct process *p, const gpul_ipc_view *v, gpul_error *err)
{
	size_t n = v->bytes / sizeof(uint32_t);
	uint32_t *words = v->cpu ? v->cpu : malloc(v->bytes);
	gpul_status st = GPUL_OK;

	if (!words)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory (%zu words)", n);
	for (size_t i = 0; i < n; i++)
		words[i] = shared_word((uint32_t)i);
	if (!v->cpu) {
		st = gpul_cu(&p->drv, err, cuMemcpyHtoD(v->gpu, words, v->bytes));
		free(words);
	}
	return st;
}

static gpul_status load(struct process *p, gpul_error *err)
{
	CUkernel k;
	gpul_status st;

	if (p->sum)
		return GPUL_OK;
	st = gpul_cu(&p->drv, err, cuMemAlloc(&p->total, sizeof(uint64_t)));
	if (!st)
		st = gpul_cu(&p->drv, err, cuLibraryLoadData(&p->library, kernel, NULL, NULL, 0, NULL, NULL, 0));
	if (!st)
		st = gpul_cu(&p->drv, err, cuLibraryGetKernel(&k, p->library, "sum"));
	if (!st)
		st = gpul_cu(&p->drv, err, cuKernelGetFunction(&p->sum, k));
	return st;
}

gpul_status process_sum_start(struct process *p, const gpul_ipc_view *v, int64_t rounds, gpul_error *err)
{
	CUdeviceptr at = v->gpu;
	uint64_t n = v->bytes / sizeof(uint32_t), zero = 0;
	void *args[] = { &at, &n, &rounds, &p->total };
	gpul_status st = load(p, err);

	if (!st)
		st = gpul_cu(&p->drv, err, cuMemcpyHtoD(p->total, &zero, sizeof zero));
	if (!st)
		st = gpul_cu(&p->drv, err, cuLaunchKernel(p->sum, 1, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
	return st;
}

gpul_status process_sum_end(struct process *p, const gpul_ipc_view *v, int64_t rounds, gpul_error *err)
{
	uint64_t sum = 0, expected = shared_sum(v->bytes / sizeof(uint32_t)) * (uint64_t)rounds;
	gpul_status st = gpul_cu(&p->drv, err, cuCtxSynchronize());

	if (!st)
		st = gpul_cu(&p->drv, err, cuMemcpyDtoH(&sum, p->total, sizeof sum));
	if (!st && sum != expected)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "the GPU's sum is %llu instead of %llu", (unsigned long long)sum,
			       (unsigned long long)expected);
	return st;
}

gpul_status process_sums_right(struct process *p, const gpul_ipc_view *v, gpul_error *err)
{
	const volatile uint32_t *words = v->cpu;
	uint64_t sum = 0;
	gpul_status st = process_sum_start(p, v, 1, err);

	if (!st)
		st = process_sum_end(p, v, 1, err);
	if (st || !words)
		return st;
	for (size_t i = 0; i < v->bytes / sizeof *words; i++)
		sum += words[i];
	if (sum != shared_sum(v->bytes / sizeof *words))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "the CPU's sum is %llu", (unsigned long long)sum);
	return st;
}
