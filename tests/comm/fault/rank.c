/* rank.c — one rank: works until a call fails, then records the failure and any leaks. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

#include "core/clock.h"
#include "driver/context.h"
#include "rdma/rdma.h"
#include "tests/comm/fault/fault.h"
#include "tests/fault/count.h"
#include "tests/fault/ledger.h"

enum { MOST_FAILING = 32 };

#if defined(__SANITIZE_THREAD__)
static const bool has_thread_sanitizer = true;
#else
static const bool has_thread_sanitizer = false;
#endif

static gpul_driver table, below; /* below: the driver; table: a copy with counted calls, one of which can fail */
static unsigned n_until_failure; /* the call with this number, from 1, fails; 0: none */

static bool fails_now(void)
{
	return n_until_failure > 0 && --n_until_failure == 0;
}

#define CAN_FAIL(call, parameters, ...) \
	static CUresult call##_or_fail parameters \
	{ \
		return fails_now() ? CUDA_ERROR_OUT_OF_MEMORY : below.call(__VA_ARGS__); \
	}
CAN_FAIL(cuMemCreate, (CUmemGenericAllocationHandle * out, size_t n, const CUmemAllocationProp *p, unsigned long long f), out, n, p, f)
CAN_FAIL(cuMemAddressReserve, (CUdeviceptr * out, size_t n, size_t a, CUdeviceptr hint, unsigned long long f), out, n, a, hint, f)
CAN_FAIL(cuMemMap, (CUdeviceptr at, size_t n, size_t offset, CUmemGenericAllocationHandle h, unsigned long long f), at, n, offset, h, f)
CAN_FAIL(cuMemSetAccess, (CUdeviceptr at, size_t n, const CUmemAccessDesc *d, size_t count), at, n, d, count)
CAN_FAIL(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle * out, void *h, CUmemAllocationHandleType t), out, h, t)
CAN_FAIL(cuMemAlloc, (CUdeviceptr * out, size_t n), out, n)
CAN_FAIL(cuMemHostAlloc, (void **out, size_t n, unsigned flags), out, n, flags)
CAN_FAIL(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t n), to, from, n)
CAN_FAIL(cuEventCreate, (CUevent * out, unsigned flags), out, flags)

static void wrap_calls(const gpul_driver *drv)
{
	table = *drv;
	ledger_wrap(&table);
	below = table;
	table.cuMemCreate = cuMemCreate_or_fail;
	table.cuMemAddressReserve = cuMemAddressReserve_or_fail;
	table.cuMemMap = cuMemMap_or_fail;
	table.cuMemSetAccess = cuMemSetAccess_or_fail;
	table.cuMemImportFromShareableHandle = cuMemImportFromShareableHandle_or_fail;
	table.cuMemAlloc = cuMemAlloc_or_fail;
	table.cuMemHostAlloc = cuMemHostAlloc_or_fail;
	table.cuMemcpyHtoD = cuMemcpyHtoD_or_fail;
	table.cuEventCreate = cuEventCreate_or_fail;
}

void step(struct worker *w, enum phase phase)
{
	const uint32_t n = atomic_fetch_add(&w->o->steps, 1);

	atomic_store(&w->o->phase, phase);
	if (w->rank != w->s->victim || n < w->s->at_step)
		return;
	if (w->s->deed == DEED_KILLS_ITSELF)
		(void)kill(getpid(), SIGKILL);
	if (w->s->deed == DEED_EXITS)
		_exit(0);
	if (w->s->deed == DEED_NO_WINDOW && phase == PHASE_ALLOC)
		n_until_failure = 1;
	if (w->s->deed == DEED_NO_MEMORY && phase == PHASE_CREATE)
		n_until_failure = 1 + (unsigned)(w->s->seed % MOST_FAILING);
}

uint64_t draw(struct worker *w, uint64_t limit)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (w->random >> 33) % limit;
}

/* Check that each later call fails with the text of the first failure. */
static void try_later_calls(struct worker *w)
{
	gpul_error errors[3] = { 0 };
	CUdeviceptr at = 0;
	const gpul_status results[] = {
		gpul_comm_alloc(w->comm, 4096, &at, &errors[0]),
		gpul_comm_send(w->comm, w->send, 1, GPUL_COMM_U8, (w->rank + 1) % w->n_ranks, w->stream, &errors[1]),
		gpul_comm_wait(w->comm, w->stream, &errors[2]),
	};

	for (int i = 0; i < 3; i++)
		if (results[i] != GPUL_ECOMM || strcmp(errors[i].text, w->o->failure.text) != 0)
			(void)snprintf(w->o->complaint, sizeof w->o->complaint, "call %d after the failure returns %d: %.150s", i,
				       (int)results[i], errors[i].text);
}

static gpul_status create(struct worker *w, gpul_error *err)
{
	const struct shared *s = w->s;
	gpul_comm_options o = { .device = -1,
				.timeout_ms = s->timeout_ms,
				.create_timeout_ms = s->create_timeout_ms,
				.transport = s->transport,
				.algo = s->algo,
				.proto = s->proto };
	gpul_status st;

	if (s->deed == DEED_OTHER_OPTIONS && w->rank == s->victim)
		o.slot_bytes = 4096;
	step(w, PHASE_CREATE);
	st = gpul_comm_create(w->drv, &o, &w->comm, err);
	n_until_failure = 0;
	return st;
}

static gpul_status run_cycle(struct worker *w, gpul_error *err)
{
	gpul_status st = create(w, err);

	if (st)
		return st;
	st = work_open(w, err);
	if (!st)
		st = w->s->deed > DEED_EXITS ? work_wrongly(w, err) : work_cycle(w, err);
	if (gpul_comm_failed(w->comm, &w->o->failure))
		try_later_calls(w);
	else if (st && w->s->deed != DEED_NO_WINDOW)
		(void)snprintf(w->o->complaint, sizeof w->o->complaint, "a call failed, but not the communicator: %.200s", err->text);
	work_close(w);
	step(w, PHASE_DESTROY);
	gpul_comm_destroy(w->comm);
	return st;
}

static void find_leaks(struct worker *w, const struct counts *before)
{
	char text[FAULT_TEXT];

	/* After a kernel's error no memory can be freed, so do not check for leaks. */
	if (w->s->deed == DEED_FAULTS && w->rank == w->s->victim)
		return;
	if (!w->o->complaint[0] && !counts_same(before, text))
		(void)snprintf(w->o->complaint, sizeof w->o->complaint, "left after '%.160s': %.180s", w->o->failure.text, text);
}

/* Open the driver, its context and the network once, before descriptors are counted: the software driver and libfabric keep some
 * descriptors open. */
static gpul_status open_driver(struct worker *w, gpul_error *err)
{
	const gpul_driver *drv;
	gpul_context ctx;
	CUdeviceptr at;
	gpul_status st = gpul_driver_open(GPUL_DRIVER_AUTO, &drv, err);

	if (st)
		return st;
	wrap_calls(drv);
	w->drv = &table;
	st = gpul_context_open(w->drv, 0, &ctx, err);
	if (st)
		return st;
	st = gpul_cu(w->drv, err, cuMemAlloc(&at, 1 << 20));
	if (!st)
		(void)w->drv->cuMemFree(at);
	if (!st && w->s->has_network) {
		gpul_rdma *net = NULL;

		st = gpul_rdma_open(NULL, &net, err);
		gpul_rdma_close(net);
	}
	return st; /* the context stays open, as in a program that also uses the GPU itself */
}

int rank_main(struct shared *s)
{
	gpul_comm_job job;
	gpul_error err = { 0 };
	struct counts before;
	gpul_status st = gpul_comm_job_find(&job, &err);
	struct worker w = { .s = s, .rank = job.rank, .n_ranks = s->n_ranks, .random = s->seed, .o = &s->ranks[job.rank] };

	if (st)
		return 2;
	w.o->pid = getpid();
	step(&w, PHASE_START);
	while (s->deed == DEED_IS_ABSENT && job.rank == s->victim && !s->others_done)
		(void)usleep(1000);
	st = open_driver(&w, &err);
	counts_take(&before);
	/* Do not count mapped files if NVIDIA's driver or ThreadSanitizer may map more of its own files later. */
	if (!st && (!w.drv->interprets || has_thread_sanitizer))
		before.n_mapped_files = INT_MAX;
	if (s->has_network)
		before.n_fds += s->n_ranks - 1; /* libfabric 1.17 keeps the socket of a killed peer whose request it has not read */
	for (uint32_t i = 0; !st && (s->n_cycles == 0 || i < s->n_cycles); i++) {
		st = run_cycle(&w, &err);
		find_leaks(&w, &before);
	}
	w.o->status = st;
	w.o->native = err.native;
	memcpy(w.o->text, err.text, sizeof w.o->text);
	w.o->ended_ns = gpul_clock_ns();
	atomic_store(&w.o->done, 1);
	return st != GPUL_OK;
}
