/* comm_run.c — makes warm-up calls, timed calls, and one call whose data is compared, for each size. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "cli/comm/comm_data.h"
#include "cli/comm/trace/comm_trace.h"
#include "core/clock.h"

enum { STAGING_BYTES = 4 << 20, START_NS = 100 * 1000 };

gpul_status comm_rank_allocate(struct comm_rank *r, size_t n_bytes, bool registered, gpul_error *err)
{
	void *staging;
	gpul_status st = gpul_cu(r->drv, err, cuMemHostAlloc(&staging, STAGING_BYTES, 0));

	if (st)
		return st;
	r->staging = staging;
	r->buffer_bytes = n_bytes;
	r->registered = registered;
	if (registered) {
		st = gpul_comm_alloc(r->comm, n_bytes, &r->send, err);
		st = st ? st : gpul_comm_alloc(r->comm, n_bytes, &r->recv, err);
	} else {
		st = gpul_cu(r->drv, err, cuMemAlloc(&r->send, n_bytes));
		st = st ? st : gpul_cu(r->drv, err, cuMemAlloc(&r->recv, n_bytes));
	}
	st = st ? st : gpul_cu(r->drv, err, cuMemsetD8Async(r->send, 0, n_bytes, r->stream));
	st = st ? st : gpul_cu(r->drv, err, cuMemsetD8Async(r->recv, 0, n_bytes, r->stream));
	return st ? st : gpul_cu(r->drv, err, cuStreamSynchronize(r->stream));
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

struct calls {
	struct comm_rank *r;
	const struct comm_shape *shape;
	const struct comm_request *q;
	bool in;
	unsigned n;
	CUgraph graph; /* graph of the captured calls; NULL: not captured */
	CUgraphExec exec;
};

static CUdeviceptr send_address(const struct calls *c)
{
	return c->in ? c->r->recv + c->shape->send_at : c->r->send;
}

static CUdeviceptr recv_address(const struct calls *c)
{
	return c->in ? c->r->recv + c->shape->recv_at : c->r->recv;
}

static gpul_status enqueue_calls(const struct calls *c, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < c->n && !atomic_load(&c->r->stop); i++)
		st = comm_call_enqueue(c->r->comm, c->shape, c->q, send_address(c), recv_address(c), c->r->stream, err);
	return st;
}

/* If --graph was given, capture the calls in a graph. */
static gpul_status prepare_calls(struct calls *c, gpul_error *err)
{
	const gpul_driver *drv = c->r->drv;
	gpul_status st;

	if (!c->q->graph)
		return GPUL_OK;
	st = gpul_cu(drv, err, cuStreamBeginCapture(c->r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	if (st)
		return st;
	st = enqueue_calls(c, err);
	st = st ? (void)drv->cuStreamEndCapture(c->r->stream, &c->graph),
	st      : gpul_cu(drv, err, cuStreamEndCapture(c->r->stream, &c->graph));
	return st ? st : gpul_cu(drv, err, cuGraphInstantiate(&c->exec, c->graph, 0));
}

static gpul_status launch_calls(const struct calls *c, gpul_error *err)
{
	return c->exec ? gpul_cu(c->r->drv, err, cuGraphLaunch(c->exec, c->r->stream)) : enqueue_calls(c, err);
}

static void free_calls(const struct calls *c)
{
	if (c->exec)
		(void)c->r->drv->cuGraphExecDestroy(c->exec);
	if (c->graph)
		(void)c->r->drv->cuGraphDestroy(c->graph);
}

/* ---- time ------------------------------------------------------------------------------------------------------ */

/* The ranks of a host agree on a start time, because the times at which they leave a barrier of boot.h differ by more than the time
 * of a call.  There is no common start time for several hosts, because the clock of each host starts when the host boots. */
gpul_status comm_start_together(struct comm_rank *r, gpul_error *err)
{
	uint64_t now = gpul_clock_ns(), all[GPUL_COMM_MAX_RANKS], start = 0;
	gpul_status st = gpul_boot_allgather(r->boot, &now, sizeof now, all, COMM_MEET_MS, err);

	for (int k = 0; !st && k < r->job.size; k++)
		if (gpul_boot_host(r->boot, k) == gpul_boot_host(r->boot, r->job.rank))
			start = all[k] > start ? all[k] : start;
	while (!st && gpul_clock_ns() < start + START_NS)
		;
	return st;
}

gpul_status comm_exchange_times(struct comm_rank *r, double us, struct comm_figures *out, gpul_error *err)
{
	double all[GPUL_COMM_MAX_RANKS], sum = 0;
	gpul_status st = gpul_boot_allgather(r->boot, &us, sizeof us, all, COMM_MEET_MS, err);

	if (st)
		return st;
	out->us = out->least_us = all[0];
	for (int k = 0; k < r->job.size; k++) {
		sum += all[k];
		out->us = all[k] > out->us ? all[k] : out->us;
		out->least_us = all[k] < out->least_us ? all[k] : out->least_us;
	}
	out->mean_us = sum / r->job.size;
	return GPUL_OK;
}

gpul_status comm_time_calls(struct comm_rank *r, const struct comm_shape *s, const struct comm_request *q, bool in,
			    struct comm_figures *out, gpul_error *err)
{
	struct calls warm = { .r = r, .shape = s, .q = q, .in = in, .n = (unsigned)q->warmups }, timed = warm;
	struct comm_section section = { .bytes = s->bytes, .in = in, .iterations = (uint32_t)q->iterations };
	gpul_status st = enqueue_calls(&warm, err);

	timed.n = (unsigned)q->iterations;
	st = st ? st : prepare_calls(&timed, err);
	if (!st && timed.exec) /* launch the graph once before the measurement, because the first launch uploads it */
		st = launch_calls(&timed, err);
	st = st ? st : gpul_comm_wait(r->comm, r->stream, err);
	st = st ? st : comm_trace_resume(r, err);
	st = st ? st : comm_start_together(r, err);
	section.begin_ns = gpul_clock_ns();
	st = st ? st : launch_calls(&timed, err);
	st = st ? st : gpul_comm_wait(r->comm, r->stream, err);
	section.end_ns = gpul_clock_ns();
	st = st ? st : comm_exchange_times(r, (double)(section.end_ns - section.begin_ns) / 1e3 / q->iterations, out, err);
	/* pause only now: after the exchange of times, the calls of all ranks have ended */
	st = st ? st : comm_trace_pause(r, &section, err);
	free_calls(&timed);
	return st;
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

static gpul_status upload(struct comm_rank *r, const struct comm_data *d, CUdeviceptr to, size_t n_bytes, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t at = 0; !st && at < n_bytes; at += STAGING_BYTES) {
		const size_t n = n_bytes - at < STAGING_BYTES ? n_bytes - at : STAGING_BYTES;

		comm_data_fill(d, at / d->element_bytes, n / d->element_bytes, r->staging);
		st = gpul_cu(r->drv, err, cuMemcpyHtoDAsync(to + at, r->staging, n, r->stream));
		st = st ? st : gpul_cu(r->drv, err, cuStreamSynchronize(r->stream));
	}
	return st;
}

static gpul_status download(struct comm_rank *r, const struct comm_data *d, CUdeviceptr from, size_t n_bytes, uint64_t *wrong,
			    uint64_t *hash, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t at = 0; !st && at < n_bytes && !atomic_load(&r->stop); at += STAGING_BYTES) {
		const size_t n = n_bytes - at < STAGING_BYTES ? n_bytes - at : STAGING_BYTES;

		st = gpul_cu(r->drv, err, cuMemcpyDtoHAsync(r->staging, from + at, n, r->stream));
		st = st ? st : gpul_cu(r->drv, err, cuStreamSynchronize(r->stream));
		if (!st) {
			*wrong += comm_data_check(d, at / d->element_bytes, n / d->element_bytes, r->staging);
			*hash = comm_data_hash(*hash, r->staging, n);
		}
	}
	return st;
}

/* Fill the recv buffer with bytes that no result contains, and the send buffer with this rank's data. */
static gpul_status fill_buffers(struct comm_rank *r, const struct comm_shape *s, const struct comm_data *d, const struct calls *c,
				gpul_error *err)
{
	gpul_status st = gpul_cu(r->drv, err, cuMemsetD8Async(r->recv, 0xff, s->bytes, r->stream));

	if (st || (c->in && gpul_comm_call_info(s->call)->has_root && d->desc.rank != d->desc.root))
		return st;
	return upload(r, d, send_address(c), s->send_bytes, err);
}

static gpul_status exchange_checks(struct comm_rank *r, const struct comm_shape *s, uint64_t wrong, uint64_t hash, struct comm_figures *out,
				   gpul_error *err)
{
	const uint64_t mine[2] = { wrong, hash };
	uint64_t all[GPUL_COMM_MAX_RANKS][2];
	gpul_status st = gpul_boot_allgather(r->boot, mine, sizeof mine, all, COMM_MEET_MS, err);

	out->wrong = 0;
	out->differs = false;
	for (int k = 0; !st && k < r->job.size; k++) {
		out->wrong += all[k][0];
		out->differs = out->differs || (s->call == GPUL_COMM_ALLREDUCE && all[k][1] != all[0][1]);
	}
	return st;
}

gpul_status comm_check_call(struct comm_rank *r, const struct comm_shape *s, const struct comm_request *q, bool in, uint64_t seed,
			    struct comm_figures *out, gpul_error *err)
{
	const struct comm_data_desc desc = { .call = s->call,
					     .dtype = q->dtype,
					     .op = q->op,
					     .rank = r->job.rank,
					     .n_ranks = r->job.size,
					     .root = q->root,
					     .count = s->count,
					     .seed = seed };
	struct calls one = { .r = r, .shape = s, .q = q, .in = in, .n = 1 };
	uint64_t wrong = 0, hash = 0;
	struct comm_data data;
	gpul_status st = comm_data_create(&desc, &data, err);

	if (st)
		return st;
	st = fill_buffers(r, s, &data, &one, err);
	st = st ? st : prepare_calls(&one, err);
	st = st ? st : launch_calls(&one, err);
	st = st ? st : gpul_comm_wait(r->comm, r->stream, err);
	st = st ? st : download(r, &data, recv_address(&one), s->recv_bytes, &wrong, &hash, err);
	free_calls(&one);
	comm_data_free(&data);
	return st ? st : exchange_checks(r, s, wrong, hash, out, err);
}

gpul_status comm_rank_print(struct comm_rank *r, struct out *o, gpul_error *err)
{
	gpul_status st;

	(void)pthread_mutex_lock(&r->output);
	progress_wipe(&r->progress);
	st = out_flush(o, err);
	if (!st && fflush(stdout) != 0)
		st = gpul_fail(err, GPUL_ESYS, 0, "the output could not be written");
	(void)pthread_mutex_unlock(&r->output);
	out_free(o);
	return st;
}
