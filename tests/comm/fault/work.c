/* work.c — the calls of a rank: correct ones, in a ring, with random sizes; and wrong ones. */
#include <pthread.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/comm/fault/fault.h"

enum { BUFFER_BYTES = 1 << 20, WINDOW_BYTES = 64 << 10, LONG_BYTES = BUFFER_BYTES, N_CALLS = 4, N_LAUNCHES = 3 };

/* PTX of a kernel that executes trap, and so ends with an error. */
static const char trap[] = ".version 6.5\n.target sm_75\n.address_size 64\n.visible .entry fail()\n{\n\ttrap;\n}\n";

gpul_status work_open(struct worker *w, gpul_error *err)
{
	gpul_status st = gpul_cu(w->drv, err, cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));

	st = st ? st : gpul_cu(w->drv, err, cuMemAlloc(&w->send, BUFFER_BYTES));
	return st ? st : gpul_cu(w->drv, err, cuMemAlloc(&w->recv, BUFFER_BYTES));
}

/* Errors are ignored, because all driver calls fail after a kernel has faulted. */
void work_close(struct worker *w)
{
	if (w->stream)
		(void)w->drv->cuStreamDestroy(w->stream);
	(void)w->drv->cuMemFree(w->send);
	(void)w->drv->cuMemFree(w->recv);
	w->stream = NULL;
	w->send = w->recv = w->window = 0;
}

/* ---- calls that all ranks make -------------------------------------------------------------------------------------- */

static gpul_status send_around(struct worker *w, size_t n_send, size_t n_recv, gpul_error *err)
{
	const int next = (w->rank + 1) % w->n_ranks, before = (w->rank + w->n_ranks - 1) % w->n_ranks;
	gpul_status st = gpul_comm_group_begin(w->comm, err);

	st = st ? st : gpul_comm_send(w->comm, w->send, n_send, GPUL_COMM_U8, next, w->stream, err);
	st = st ? st : gpul_comm_recv(w->comm, w->recv, n_recv, GPUL_COMM_U8, before, w->stream, err);
	return st ? st : gpul_comm_group_end(w->comm, err);
}

static gpul_status call_sendrecv(struct worker *w, size_t bytes, gpul_error *err)
{
	return send_around(w, bytes, bytes, err);
}

/* Return the number of elements in a rank's part of a buffer of this size. */
static size_t elements(const struct worker *w, size_t bytes)
{
	return bytes / sizeof(float) / (size_t)w->n_ranks;
}

static gpul_status call_allreduce(struct worker *w, size_t bytes, gpul_error *err)
{
	return gpul_comm_allreduce(w->comm, w->send, w->recv, bytes / sizeof(float), GPUL_COMM_F32, GPUL_COMM_SUM, w->stream, err);
}

static gpul_status call_reducescatter(struct worker *w, size_t bytes, gpul_error *err)
{
	return gpul_comm_reducescatter(w->comm, w->send, w->recv, elements(w, bytes), GPUL_COMM_F32, GPUL_COMM_MAX, w->stream, err);
}

static gpul_status call_allgather(struct worker *w, size_t bytes, gpul_error *err)
{
	return gpul_comm_allgather(w->comm, w->send, w->recv, elements(w, bytes), GPUL_COMM_F32, w->stream, err);
}

static gpul_status call_broadcast(struct worker *w, size_t bytes, gpul_error *err)
{
	return gpul_comm_broadcast(w->comm, w->send, w->recv, bytes, GPUL_COMM_U8, w->n_ranks - 1, w->stream, err);
}

static gpul_status call_alltoall(struct worker *w, size_t bytes, gpul_error *err)
{
	return gpul_comm_alltoall(w->comm, w->send, w->recv, elements(w, bytes), GPUL_COMM_F32, w->stream, err);
}

typedef gpul_status one_call(struct worker *w, size_t bytes, gpul_error *err);
static one_call *const calls[] = { call_sendrecv, call_allreduce, call_reducescatter, call_allgather, call_broadcast, call_alltoall };
enum { N_KINDS = sizeof calls / sizeof *calls };

/* Make a random call.  Half of the small calls use memory that all ranks map (gpul_comm_alloc). */
static gpul_status call_some(struct worker *w, enum phase phase, gpul_error *err)
{
	one_call *call = calls[draw(w, N_KINDS)];
	const size_t bytes = 1 + draw(w, (uint64_t)1 << draw(w, 20));
	const CUdeviceptr send = w->send, recv = w->recv;
	gpul_status st;

	if (draw(w, 2) && bytes <= WINDOW_BYTES / 2) {
		w->send = w->window;
		w->recv = w->window + WINDOW_BYTES / 2;
	}
	step(w, phase);
	st = call(w, bytes, err);
	w->send = send;
	w->recv = recv;
	return st;
}

static gpul_status call_directly(struct worker *w, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i < N_CALLS; i++) {
		st = call_some(w, PHASE_CALL, err);
		if (draw(w, 2) == 0 && !st) {
			step(w, PHASE_CALL);
			st = gpul_comm_wait(w->comm, w->stream, err);
		}
	}
	return st ? st : gpul_comm_wait(w->comm, w->stream, err);
}

static gpul_status launch_graph(struct worker *w, CUgraph graph, gpul_error *err)
{
	CUgraphExec launchable = NULL;
	gpul_status st = gpul_cu(w->drv, err, cuGraphInstantiate(&launchable, graph, 0));

	for (int i = 0; !st && i < N_LAUNCHES; i++) {
		step(w, PHASE_GRAPH);
		st = gpul_cu(w->drv, err, cuGraphLaunch(launchable, w->stream));
	}
	st = st ? st : gpul_comm_wait(w->comm, w->stream, err);
	(void)w->drv->cuStreamSynchronize(w->stream);
	if (launchable)
		(void)w->drv->cuGraphExecDestroy(launchable);
	return st;
}

static gpul_status call_in_graph(struct worker *w, gpul_error *err)
{
	CUgraph graph = NULL;
	gpul_error ignored = { 0 };
	const uint64_t same = w->random;
	gpul_status st = call_some(w, PHASE_GRAPH, err); /* loads the kernel, because loading is not permitted during a capture */

	st = st ? st : gpul_comm_wait(w->comm, w->stream, err);
	st = st ? st : gpul_cu(w->drv, err, cuStreamBeginCapture(w->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	if (st)
		return st;
	for (int i = 0; !st && i < 2; i++) {
		w->random = same;
		st = call_some(w, PHASE_GRAPH, err);
	}
	if (gpul_cu(w->drv, st ? &ignored : err, cuStreamEndCapture(w->stream, &graph)))
		return st ? st : err->status;
	if (!st)
		st = launch_graph(w, graph, err);
	if (graph)
		(void)w->drv->cuGraphDestroy(graph);
	return st;
}

gpul_status work_cycle(struct worker *w, gpul_error *err)
{
	gpul_status st;

	step(w, PHASE_ALLOC);
	st = gpul_comm_alloc(w->comm, WINDOW_BYTES, &w->window, err);
	st = st ? st : call_directly(w, err);
	st = st ? st : call_in_graph(w, err);
	if (st)
		return st;
	step(w, PHASE_FREE);
	return gpul_comm_free(w->comm, w->window, err);
}

/* ---- wrong calls ---------------------------------------------------------------------------------------------------- */

struct aborter {
	gpul_comm *comm;
	uint64_t begun_ns;
};

static void *abort_soon(void *arg)
{
	struct aborter *a = arg;

	(void)usleep(100 * 1000);
	a->begun_ns = gpul_clock_ns();
	gpul_comm_abort(a->comm);
	return NULL;
}

/* No rank sends, so the kernel runs until it is aborted. */
static gpul_status abort_own_kernel(struct worker *w, gpul_error *err)
{
	struct aborter a = { .comm = w->comm };
	gpul_status st = gpul_comm_recv(w->comm, w->recv, 1, GPUL_COMM_U8, (w->rank + 1) % w->n_ranks, w->stream, err);
	pthread_t thread;

	if (st || pthread_create(&thread, NULL, abort_soon, &a))
		return st;
	st = gpul_comm_wait(w->comm, w->stream, err);
	w->o->abort_ns = gpul_clock_ns();
	(void)pthread_join(thread, NULL);
	w->o->abort_ns -= a.begun_ns;
	return st;
}

/* Call a collective; or receive from the previous rank, then send to the next.  Because the victim makes no call, all other ranks wait for
 * it, most of them indirectly. */
static gpul_status pass_on(struct worker *w, gpul_error *err)
{
	const int next = (w->rank + 1) % w->n_ranks, before = (w->rank + w->n_ranks - 1) % w->n_ranks;
	gpul_status st;

	one_call *call = draw(w, 2) ? calls[1 + draw(w, N_KINDS - 1)] : NULL;

	if (w->rank == w->s->victim) {
		while (!gpul_comm_failed(w->comm, NULL))
			(void)usleep(1000);
		return gpul_comm_wait(w->comm, w->stream, err);
	}
	if (call) {
		st = call(w, LONG_BYTES, err);
		return st ? st : gpul_comm_wait(w->comm, w->stream, err);
	}
	st = gpul_comm_recv(w->comm, w->recv, 1000, GPUL_COMM_U8, before, w->stream, err);
	st = st ? st : gpul_comm_send(w->comm, w->send, 1000, GPUL_COMM_U8, next, w->stream, err);
	return st ? st : gpul_comm_wait(w->comm, w->stream, err);
}

static gpul_status send_first(struct worker *w, gpul_error *err)
{
	const int next = (w->rank + 1) % w->n_ranks, before = (w->rank + w->n_ranks - 1) % w->n_ranks;
	gpul_status st = gpul_comm_send(w->comm, w->send, LONG_BYTES, GPUL_COMM_U8, next, w->stream, err);

	st = st ? st : gpul_comm_recv(w->comm, w->recv, LONG_BYTES, GPUL_COMM_U8, before, w->stream, err);
	return st ? st : gpul_comm_wait(w->comm, w->stream, err);
}

static gpul_status run_trap(struct worker *w, gpul_error *err)
{
	CUlibrary library;
	CUkernel k;
	CUfunction f;
	gpul_status st = gpul_cu(w->drv, err, cuLibraryLoadData(&library, trap, NULL, NULL, 0, NULL, NULL, 0));

	st = st ? st : gpul_cu(w->drv, err, cuLibraryGetKernel(&k, library, "fail"));
	st = st ? st : gpul_cu(w->drv, err, cuKernelGetFunction(&f, k));
	return st ? st : gpul_cu(w->drv, err, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, w->stream, NULL, NULL));
}

static gpul_status make_wrong_call(struct worker *w, gpul_error *err)
{
	const bool victim = w->rank == w->s->victim;
	gpul_status st = GPUL_OK;

	switch (w->s->deed) {
	case DEED_ABORTS:
		if (victim)
			return abort_own_kernel(w, err);
		st = gpul_comm_recv(w->comm, w->recv, 1, GPUL_COMM_U8, w->s->victim, w->stream, err);
		return st ? st : gpul_comm_wait(w->comm, w->stream, err);
	case DEED_IS_LATE:
		return pass_on(w, err);
	case DEED_SENDS_FIRST:
		return send_first(w, err);
	case DEED_OTHER_SIZE:
		st = send_around(w, victim ? 2000 : 1000, 1000, err);
		return st ? st : gpul_comm_wait(w->comm, w->stream, err);
	case DEED_OTHER_CALL:
		st = victim ? call_broadcast(w, 4000, err) : call_allreduce(w, 4000, err);
		return st ? st : gpul_comm_wait(w->comm, w->stream, err);
	case DEED_FAULTS:
		if (victim)
			st = run_trap(w, err);
		break;
	default:
		break;
	}
	st = st ? st : send_around(w, 1000, 1000, err);
	return st ? st : gpul_comm_wait(w->comm, w->stream, err);
}

/* A rank whose own calls succeed then waits until another rank fails. */
gpul_status work_wrongly(struct worker *w, gpul_error *err)
{
	gpul_status st;

	if (w->s->deed >= DEED_NO_MEMORY)
		return work_cycle(w, err);
	st = make_wrong_call(w, err);
	while (!st && !gpul_comm_failed(w->comm, NULL))
		(void)usleep(1000);
	return st ? st : gpul_comm_wait(w->comm, w->stream, err);
}
