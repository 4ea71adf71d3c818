/* replay.c — launches repeated calls as graphs of one kernel.
 *
 *     first call with these arguments        cuLaunchKernel; the arguments are kept
 *     second call                            a graph of one kernel is captured and instantiated
 *     all further calls                      cuGraphLaunch
 *
 * Launching an instantiated graph costs the CPU 1 us, cuLaunchKernel with the same arguments 3 us, which is more than a
 * whole small all-reduce takes on the GPU.  The kernels find the number of their call in device memory, so the same
 * arguments can be launched any number of times. */
#include <string.h>

#include "comm/comm_internal.h"

static void forget(gpul_comm *c, struct repeated *r)
{
	if (r->exec)
		(void)c->drv->cuGraphExecDestroy(r->exec);
	*r = (struct repeated){ 0 };
}

/* Return the number of bytes of a launch's argument that the kernel reads. */
static size_t argument_bytes(const struct launch *l)
{
	const gpul_comm_few_transfers *few = l->argument;

	return l->id != KERNEL_sendrecv_few ? sizeof(gpul_comm_work)
					    : offsetof(gpul_comm_few_transfers, items) + few->n * sizeof *few->items;
}

/* Find the entry with these arguments, or replace the least recently used one.  The entry becomes the most recently used. */
static struct repeated *find_entry(gpul_comm *c, const struct launch *l)
{
	struct repeated *oldest = &c->replay.entries[0];

	for (unsigned i = 0; i < GPUL_COMM_REPLAYS; i++) {
		struct repeated *r = &c->replay.entries[i];

		if (r->used && r->id == l->id && r->n_blocks == l->n_blocks && r->n_threads == l->n_threads &&
		    memcmp(&r->argument, l->argument, argument_bytes(l)) == 0) {
			r->used = ++c->replay.clock;
			return r;
		}
		if (r->used < oldest->used)
			oldest = r;
	}
	forget(c, oldest);
	oldest->id = l->id;
	oldest->n_blocks = l->n_blocks;
	oldest->n_threads = l->n_threads;
	memcpy(&oldest->argument, l->argument, argument_bytes(l));
	oldest->used = ++c->replay.clock;
	return oldest;
}

static gpul_status make_graph(gpul_comm *c, struct repeated *r, CUfunction kernel, gpul_error *err)
{
	void *arguments[] = { &c->view, &r->argument };
	CUgraph graph = NULL;
	gpul_status st = GPUL_OK;

	if (!c->replay.capture)
		st = gpul_cu(c->drv, err, cuStreamCreate(&c->replay.capture, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(c->drv, err, cuStreamBeginCapture(c->replay.capture, CU_STREAM_CAPTURE_MODE_RELAXED));
	if (st)
		return st;
	st = gpul_cu(c->drv, err, cuLaunchKernel(kernel, r->n_blocks, 1, 1, r->n_threads, 1, 1, 0, c->replay.capture, arguments, NULL));
	if (c->drv->cuStreamEndCapture(c->replay.capture, &graph) == CUDA_SUCCESS && !st)
		st = gpul_cu(c->drv, err, cuGraphInstantiate(&r->exec, graph, 0));
	if (graph)
		(void)c->drv->cuGraphDestroy(graph);
	return st;
}

/* Get the graph for a repeated call; NULL: use cuLaunchKernel().  If the driver cannot create a graph, no graph is tried again. */
CUgraphExec gpul_comm_replay(gpul_comm *c, const struct launch *l)
{
	struct repeated *r;

	if (c->replay.off)
		return NULL;
	r = find_entry(c, l);
	if (r->n_calls++ == 1 && make_graph(c, r, l->kernel, NULL))
		c->replay.off = true;
	return r->exec;
}

void gpul_comm_replay_destroy(gpul_comm *c)
{
	for (unsigned i = 0; i < GPUL_COMM_REPLAYS; i++)
		forget(c, &c->replay.entries[i]);
	if (c->replay.capture)
		(void)c->drv->cuStreamDestroy(c->replay.capture);
}

/* ---- captures of the program ------------------------------------------------------------------------- */

CUstreamCaptureMode gpul_comm_relax(const gpul_comm *c)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	return c->drv->cuThreadExchangeStreamCaptureMode(&mode) ? CU_STREAM_CAPTURE_MODE_RELAXED : mode;
}

void gpul_comm_unrelax(const gpul_comm *c, CUstreamCaptureMode mode)
{
	if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		(void)c->drv->cuThreadExchangeStreamCaptureMode(&mode);
}
