/* way_end.c — one end of the path: its memory, its connection, its proxy and its kernel. */
#include "tests/rdma/put/way.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file/file.h"
#include "driver/context.h"
#include "proxy/proxy.h"
#include "rdma/put/put.h"
#include "tests/rdma/put/work.h"

enum { LOOK_NS = 200 * 1000, SLOTS_PER_LANE = 32 };

struct end {
	const struct way_options *o;
	bool sender;
	int socket;
	const gpul_driver *drv;
	gpul_context context;
	CUlibrary library;
	CUfunction kernel;
	CUstream stream;
	gpul_mem *data, *steps, *results;
	gpul_fifo *fifo;
	gpul_rdma *rdma;
	gpul_rdma_region *data_region, *step_region;
	gpul_rdma_listener *listener;
	gpul_rdma_conn *conn;
	gpul_rdma_remote to, to_steps; /* memory and step counters of the peer */
	gpul_rdma_putter *putter;
	gpul_proxy *proxy;
	struct way_work work;
};

/* ---- the socket between the processes ------------------------------------------------------ */

static gpul_status send_to_peer(const struct end *e, const void *what, size_t n_bytes, gpul_error *err)
{
	if (write(e->socket, what, n_bytes) == (ssize_t)n_bytes)
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, EPIPE, "the other process has ended");
}

static gpul_status receive_peer(const struct end *e, void *out, size_t n_bytes, gpul_error *err)
{
	if (read(e->socket, out, n_bytes) == (ssize_t)n_bytes)
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, EPIPE, "the other process has ended");
}

/* ---- preparation ------------------------------------------------------------------------------ */

static gpul_status load_kernel(struct end *e, gpul_error *err)
{
	gpul_file ptx;
	CUkernel kernel;
	int registers;
	gpul_status st = gpul_file_open(e->o->ptx, &ptx, err);

	if (st)
		return st;
	st = gpul_cu(e->drv, err, cuLibraryLoadData(&e->library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0));
	gpul_file_close(&ptx);
	st = st ? st : gpul_cu(e->drv, err, cuLibraryGetKernel(&kernel, e->library, e->sender ? "way_send" : "way_receive"));
	st = st ? st : gpul_cu(e->drv, err, cuKernelGetFunction(&e->kernel, kernel));
	/* Query an attribute, which loads the kernel: a driver may load it lazily, but cannot while another kernel runs. */
	st = st ? st : gpul_cu(e->drv, err, cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, e->kernel));
	return st ? st : gpul_cu(e->drv, err, cuStreamCreate(&e->stream, CU_STREAM_NON_BLOCKING));
}

static gpul_status allocate(const struct end *e, size_t n_bytes, gpul_mem **out, gpul_error *err)
{
	const int device = 0;
	const gpul_mem_desc desc = {
		.kind = GPUL_MEM_AUTO, .bytes = n_bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1
	};
	const gpul_status st = gpul_mem_create(e->drv, &desc, out, err);

	if (!st)
		memset(gpul_mem_cpu(*out), 0, n_bytes);
	return st;
}

static gpul_status open_memory(struct end *e, gpul_error *err)
{
	const struct way_options *o = e->o;
	const size_t stride = (o->bytes + 15) / 16 * 16;
	gpul_fifo_shape shape = { .slots = 1, .lanes = 1 };
	gpul_status st = GPUL_OK;

	while (shape.lanes < o->blocks)
		shape.lanes *= 2;
	shape.slots = shape.lanes * SLOTS_PER_LANE;
	st = gpul_fifo_create(e->drv, GPUL_MEM_AUTO, 0, &shape, &e->fifo, err);
	st = st ? st : allocate(e, (stride ? stride : 16) * o->blocks * o->window, &e->data, err);
	st = st ? st : allocate(e, o->blocks * sizeof(uint64_t), &e->steps, err);
	st = st ? st : allocate(e, o->blocks * sizeof(struct way_result), &e->results, err);
	if (st)
		return st;
	e->work = (struct way_work){
		.fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(e->fifo)),
		.data = (unsigned long long *)(uintptr_t)gpul_mem_gpu(e->data),
		.steps = (unsigned long long *)(uintptr_t)gpul_mem_gpu(e->steps),
		.results = (struct way_result *)(uintptr_t)gpul_mem_gpu(e->results),
		.rounds = (o->puts + o->blocks - 1) / o->blocks,
		.timeout_ns = o->timeout_s * 1000000000,
		.seed = 1,
		.bytes = (unsigned)o->bytes,
		.stride = (unsigned)stride,
		.window = (unsigned)o->window,
		.ack_every = o->window > 1 ? (unsigned)o->window / 2 : 1,
		.bad_round = ~0ull,
	};
	if (e->sender && o->broken == BREAK_DATA)
		e->work.bad_round = e->work.rounds / 2;
	return GPUL_OK;
}

static gpul_status open_fabric(struct end *e, struct way_report *out, gpul_error *err)
{
	const struct way_options *o = e->o;
	const gpul_rdma_desc desc = { .backend = o->backend,
				      .n_qps = (unsigned)o->qps,
				      .device = { .provider = o->provider, .device = o->device, .gpu = -1, .gid_index = -1 } };
	gpul_rdma_device_info info;
	gpul_status st = gpul_rdma_open(&desc, &e->rdma, err);

	st = st ? st : gpul_rdma_register_mem(e->rdma, e->data, GPUL_RDMA_DATA, &e->data_region, err);
	st = st ? st : gpul_rdma_register_mem(e->rdma, e->steps, GPUL_RDMA_STEPS, &e->step_region, err);
	if (st)
		return st;
	gpul_rdma_about(e->rdma, &info);
	snprintf(out->fabric, sizeof out->fabric, "%s, %s", info.backend, info.name);
	return GPUL_OK;
}

/* The receiver listens, the sender connects; then each offers its memory to the other. */
static gpul_status connect_ends(struct end *e, gpul_error *err)
{
	const int timeout_ms = (int)e->o->timeout_s * 1000;
	gpul_rdma_remote mine[2], theirs[2];
	char address[128] = "";
	gpul_status st;

	if (e->sender) {
		st = receive_peer(e, address, sizeof address, err);
		st = st ? st : gpul_rdma_connect(e->rdma, address, timeout_ms, &e->conn, err);
	} else {
		st = gpul_rdma_listen(e->rdma, "127.0.0.1:0", &e->listener, err);
		if (!st)
			snprintf(address, sizeof address, "%s", gpul_rdma_listener_address(e->listener));
		st = st ? st : send_to_peer(e, address, sizeof address, err);
		st = st ? st : gpul_rdma_accept(e->listener, timeout_ms, &e->conn, err);
	}
	st = st ? st : gpul_rdma_offer(e->data_region, (uintptr_t)gpul_mem_cpu(e->data), gpul_mem_about(e->data)->bytes, &mine[0], err);
	st = st ? st : gpul_rdma_offer(e->step_region, (uintptr_t)gpul_mem_cpu(e->steps), gpul_mem_about(e->steps)->bytes, &mine[1], err);
	st = st ? st : send_to_peer(e, mine, sizeof mine, err);
	st = st ? st : receive_peer(e, theirs, sizeof theirs, err);
	if (st)
		return st;
	e->to = theirs[0];
	e->to_steps = theirs[1];
	return GPUL_OK;
}

static gpul_status start_proxy(struct end *e, gpul_error *err)
{
	const gpul_rdma_put_route route = {
		.conn = e->conn, .from = e->data_region, .to = e->to, .steps = e->to_steps, .n_steps = (unsigned)e->o->blocks
	};
	const gpul_rdma_putter_desc desc = { .routes = &route, .n_routes = 1, .timeout_ms = (int)e->o->timeout_s * 1000 };
	gpul_status st = gpul_rdma_putter_create(&desc, &e->putter, err);
	const gpul_proxy_desc proxy = { .fifos = &e->fifo,
					.n_fifos = 1,
					.kinds = { { gpul_rdma_put_handle, e->putter } },
					.progress = gpul_rdma_put_progress,
					.progress_context = e->putter,
					.pin = GPUL_PROXY_PIN_NONE,
					.release_later = true };

	return st ? st : gpul_proxy_start(&proxy, &e->proxy, err);
}

/* ---- the run ----------------------------------------------------------------------------------- */

static gpul_status check_results(const struct end *e, gpul_error *err)
{
	const struct way_result *results = gpul_mem_cpu(e->results);
	const struct way_work *w = &e->work;

	for (unsigned b = 0; b < e->o->blocks; b++)
		if (results[b].result == WAY_BAD_DATA)
			return gpul_fail(err, GPUL_EFORMAT, (int)b, "block %u, put %llu: word %u is 0x%llx: expected 0x%llx", b,
					 results[b].rounds, results[b].word, results[b].found, results[b].expected);
	if (gpul_proxy_failed(e->proxy, err))
		return err->status;
	for (unsigned b = 0; b < e->o->blocks; b++)
		if (results[b].result || results[b].rounds != w->rounds)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "block %u ended with result %u after %llu of %llu puts", b,
					 results[b].result, results[b].rounds, w->rounds);
	return GPUL_OK;
}

static bool dies_now(const struct end *e)
{
	const uint64_t *steps = gpul_mem_cpu(e->steps);

	return e->o->broken == (e->sender ? BREAK_SENDER : BREAK_RECEIVER) &&
	       __atomic_load_n(steps, __ATOMIC_RELAXED) * (e->sender ? e->work.ack_every : 1) >= e->work.rounds / 2;
}

static gpul_status run_kernel(struct end *e, struct way_report *out, gpul_error *err)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	void *args[] = { &e->work };
	const uint64_t begun = gpul_clock_ns();
	CUresult r;
	gpul_status st = gpul_cu(e->drv, err,
				 cuLaunchKernel(e->kernel, (unsigned)e->o->blocks, 1, 1, WAY_THREADS, 1, 1, 0, e->stream, args, NULL));

	if (st)
		return st;
	while ((r = e->drv->cuStreamQuery(e->stream)) == CUDA_ERROR_NOT_READY) {
		nanosleep(&pause, NULL);
		if (dies_now(e))
			raise(SIGKILL);
	}
	out->elapsed_ns = gpul_clock_ns() - begun;
	out->rounds = e->work.rounds;
	st = gpul_cu_status(e->drv, err, r, "cuStreamQuery(stream)");
	st = st ? st : check_results(e, err);
	return st ? st : gpul_proxy_drain(e->proxy, (int)e->o->timeout_s * 1000, err);
}

/* Wait until both ends have finished, before either closes the connection. */
static gpul_status meet_at_end(const struct end *e, gpul_error *err)
{
	char done = 'd';
	const gpul_status st = send_to_peer(e, &done, 1, err);

	return st ? st : receive_peer(e, &done, 1, err);
}

static void close_end(struct end *e)
{
	(void)gpul_proxy_stop(e->proxy, NULL);
	gpul_rdma_putter_destroy(e->putter);
	gpul_rdma_conn_close(e->conn);
	gpul_rdma_listener_close(e->listener);
	gpul_rdma_unregister(e->step_region);
	gpul_rdma_unregister(e->data_region);
	gpul_rdma_close(e->rdma);
	gpul_fifo_close(e->fifo);
	gpul_mem_destroy(e->results);
	gpul_mem_destroy(e->steps);
	gpul_mem_destroy(e->data);
	if (e->stream)
		e->drv->cuStreamDestroy(e->stream);
	if (e->library)
		e->drv->cuLibraryUnload(e->library);
	gpul_context_close(&e->context);
}

gpul_status way_run_end(const struct way_options *o, bool sender, int socket, struct way_report *out, gpul_error *err)
{
	struct end e = { .o = o, .sender = sender, .socket = socket };
	gpul_status st = gpul_driver_open(o->driver, &e.drv, err);

	*out = (struct way_report){ 0 };
	st = st ? st : gpul_context_open(e.drv, 0, &e.context, err);
	st = st ? st : load_kernel(&e, err);
	st = st ? st : open_memory(&e, err);
	st = st ? st : open_fabric(&e, out, err);
	st = st ? st : connect_ends(&e, err);
	st = st ? st : start_proxy(&e, err);
	st = st ? st : run_kernel(&e, out, err);
	st = st ? st : meet_at_end(&e, err);
	if (e.data) {
		snprintf(out->driver, sizeof out->driver, "%s", e.drv->name);
		snprintf(out->memory, sizeof out->memory, "%s", gpul_mem_kind_name(gpul_mem_about(e.data)->kind));
	}
	close_end(&e);
	return st;
}
