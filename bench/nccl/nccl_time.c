/* nccl_time.c — checks and times one operation of one size, on a stream or in a CUDA graph. */
#include "bench/nccl/nccl.h"
#include "cli/lib/bench/samples.h"
#include "core/clock.h"

enum { WARM_UPS = 5, GRAPH_NODES = 20, SMALL_BATCHES = 5 };

/* Write the pattern of this rank to the send buffer (in place: to the only buffer); out of place, fill the recv buffer with NaNs. */
static gpul_status prepare_data(const struct nccl_rank *b, const struct nccl_call *c, gpul_error *err)
{
	size_t n = c->bytes / sizeof(float);
	CUdeviceptr whole = c->in_place ? b->recv : b->send;
	gpul_status st = GPUL_OK;

	for (size_t i = 0; i < n; i++)
		b->host[i] = nccl_value(b->rank, i);
	if (!c->in_place)
		st = gpul_cu(b->drv, err, cuMemsetD8Async(b->recv, 0xff, c->bytes, b->stream));
	st = st ? st : gpul_cu(b->drv, err, cuMemcpyHtoDAsync(whole, b->host, c->bytes, b->stream));
	return st ? st : gpul_cu(b->drv, err, cuStreamSynchronize(b->stream));
}

static gpul_status count_wrong(const struct nccl_rank *b, const struct nccl_call *c, size_t *n_wrong, gpul_error *err)
{
	size_t n = gpul_comm_call_info(c->op->call)->receives_parts ? c->count * (size_t)b->ranks : c->count;
	gpul_status st = gpul_cu(b->drv, err, cuMemcpyDtoHAsync(b->host, c->recv, n * sizeof(float), b->stream));

	st = st ? st : gpul_cu(b->drv, err, cuStreamSynchronize(b->stream));
	*n_wrong = 0;
	for (size_t i = 0; !st && i < n; i++)
		*n_wrong += !(b->host[i] == c->op->expected(b, c, i));
	return st;
}

static gpul_status queue_calls(const struct nccl_rank *b, const struct nccl_call *c, int n, gpul_error *err)
{
	int bad = 0;

	for (int i = 0; !bad && i < n; i++)
		bad = c->op->queue(b, c);
	return nccl_check(b, bad, gpul_comm_call_name(c->op->call), err);
}

static gpul_status call_graph(const struct nccl_rank *b, CUresult result, const char *what, gpul_error *err)
{
	return gpul_cu_status(b->drv, err, result, what);
}

/* Enqueue n calls, or launch the graph as often as needed for n calls, and wait for them. */
static gpul_status time_batch(const struct nccl_rank *b, const struct nccl_call *c, CUgraphExec graph, int n, double *us, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	uint64_t start;

	nccl_meet(b);
	start = gpul_clock_ns();
	if (!graph)
		st = queue_calls(b, c, n, err);
	for (int i = 0; graph && !st && i < n; i += GRAPH_NODES)
		st = call_graph(b, b->graphs.cuGraphLaunch(graph, b->stream), "cuGraphLaunch", err);
	st = st ? st : gpul_cu(b->drv, err, cuStreamSynchronize(b->stream));
	*us = (double)(gpul_clock_ns() - start) * 1e-3 / n;
	return st;
}

/* Measure the median time of the batches: 5 batches of 100 calls for small sizes, one of 20 calls for large ones. */
static gpul_status time_batches(const struct nccl_rank *b, const struct nccl_call *c, CUgraphExec graph, double *us, gpul_error *err)
{
	const bool small = c->bytes < (size_t)1 << 20;
	const int n_batches = small ? SMALL_BATCHES : 1;
	double all[SMALL_BATCHES];
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i < n_batches; i++)
		st = time_batch(b, c, graph, small ? 100 : 20, &all[i], err);
	if (st)
		return st;
	*us = samples_spread_of(all, (size_t)n_batches).median;
	return GPUL_OK;
}

static gpul_status time_plain(const struct nccl_rank *b, const struct nccl_call *c, double *us, gpul_error *err)
{
	gpul_status st = queue_calls(b, c, WARM_UPS, err);

	st = st ? st : gpul_cu(b->drv, err, cuStreamSynchronize(b->stream));
	return st ? st : time_batches(b, c, NULL, us, err);
}

static gpul_status time_graph(const struct nccl_rank *b, const struct nccl_call *c, double *us, gpul_error *err)
{
	const struct graph_calls *g = &b->graphs;
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	gpul_status st = call_graph(b, g->cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture",
				    err);

	st = st ? st : queue_calls(b, c, GRAPH_NODES, err);
	st = st ? st : call_graph(b, g->cuStreamEndCapture(b->stream, &graph), "cuStreamEndCapture", err);
	st = st ? st : call_graph(b, g->cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate", err);
	st = st ? st : call_graph(b, g->cuGraphLaunch(exec, b->stream), "cuGraphLaunch", err);
	st = st ? st : gpul_cu(b->drv, err, cuStreamSynchronize(b->stream));
	st = st ? st : time_batches(b, c, exec, us, err);
	if (exec)
		g->cuGraphExecDestroy(exec);
	if (graph)
		g->cuGraphDestroy(graph);
	return st;
}

/* Find the time of the slowest rank, and sum up the wrong elements of all ranks. */
static void join_results(const struct nccl_rank *b, double *us, size_t *n_wrong)
{
	struct nccl_meeting *m = b->request->meeting;

	m->us[b->rank] = *us;
	m->n_wrong[b->rank] = *n_wrong;
	nccl_meet(b);
	*n_wrong = 0;
	for (int r = 0; r < b->ranks; r++) {
		*us = m->us[r] > *us ? m->us[r] : *us;
		*n_wrong += m->n_wrong[r];
	}
	nccl_meet(b);
}

gpul_status nccl_warm_up(const struct nccl_rank *b, gpul_error *err)
{
	const struct nccl_call c = { .op = &nccl_ops[0], .bytes = sizeof(float), .count = 1, .send = b->send, .recv = b->recv };
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i < 500; i++) {
		st = queue_calls(b, &c, 100, err);
		st = st ? st : gpul_cu(b->drv, err, cuStreamSynchronize(b->stream));
	}
	return st;
}

gpul_status nccl_measure(const struct nccl_rank *b, const struct nccl_call *c, bool graph, double *us, size_t *n_wrong, gpul_error *err)
{
	gpul_status st = prepare_data(b, c, err);

	if (st)
		return st;
	nccl_meet(b);
	st = queue_calls(b, c, 1, err);
	st = st ? st : count_wrong(b, c, n_wrong, err);
	if (!st)
		st = graph ? time_graph(b, c, us, err) : time_plain(b, c, us, err);
	if (!st)
		join_results(b, us, n_wrong);
	return st;
}
