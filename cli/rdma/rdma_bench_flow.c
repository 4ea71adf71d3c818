/* rdma_bench_flow.c — sends and receives the control messages of a flow; counts latencies in a histogram. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/rdma/rdma_bench_run.h"
#include "core/clock.h"
#include "core/log_buckets.h"

enum { PAGE = 4096, SPIN_NS = 200000, NAP_NS = 50000, BUCKET_BITS = 6 };

/* ---- latencies ------------------------------------------------------------------------------------------ */

void rdma_histogram_add(struct rdma_histogram *h, uint64_t ns)
{
	const unsigned bucket = gpul_log_bucket(ns, BUCKET_BITS);

	h->n++;
	h->count[bucket < RDMA_BUCKETS ? bucket : RDMA_BUCKETS - 1]++;
}

void rdma_histogram_merge(struct rdma_histogram *h, const struct rdma_histogram *other)
{
	h->n += other->n;
	for (unsigned i = 0; i < RDMA_BUCKETS; i++)
		h->count[i] += other->count[i];
}

uint64_t rdma_histogram_at(const struct rdma_histogram *h, double part)
{
	const double wanted = part * (double)h->n;
	uint64_t n = 0;

	for (unsigned i = 0; i < RDMA_BUCKETS && h->n; i++) {
		n += h->count[i];
		if ((double)n >= wanted && n)
			return gpul_log_bucket_middle(i, BUCKET_BITS);
	}
	return 0;
}

/* ---- a flow ----------------------------------------------------------------------------------------------- */

gpul_status rdma_flow_open(gpul_rdma *r, struct rdma_flow *f, gpul_error *err)
{
	gpul_rdma_conn_info info;

	f->mail = aligned_alloc(PAGE, (sizeof *f->mail + PAGE - 1) / PAGE * PAGE);
	if (!f->mail)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	memset(f->mail, 0, sizeof *f->mail);
	gpul_rdma_conn_about(f->conn, &info);
	f->n_lanes = info.n_qps < RDMA_MAX_LANES ? info.n_qps : RDMA_MAX_LANES;
	return gpul_rdma_register(r, f->mail, sizeof *f->mail, GPUL_RDMA_STEPS, &f->mail_region, err);
}

void rdma_flow_close(struct rdma_flow *f)
{
	gpul_rdma_conn_close(f->conn);
	gpul_rdma_unregister(f->mail_region);
	free(f->mail);
	*f = (struct rdma_flow){ 0 };
}

/* ---- statistics ---------------------------------------------------------------------------------------------- */

void rdma_take_stats(const struct rdma_session *s, unsigned first, unsigned step)
{
	for (unsigned i = first; s->watch->live && i < s->shape.n_flows; i += step)
		if (s->flow[i].conn)
			reliable_live_take(s->watch->live, i, s->flow[i].conn);
}

void rdma_read_stats(const struct rdma_session *s, struct rdma_bench_result *out)
{
	struct reliable_conn *all = calloc(s->shape.n_flows, sizeof *all);
	bool any = false;

	for (unsigned i = 0; all && i < s->shape.n_flows; i++) {
		if (s->flow[i].conn)
			all[i].n_paths = gpul_rdma_conn_stats(s->flow[i].conn, &all[i].n, all[i].paths, GPUL_REL_MAX_PATHS);
		any |= all[i].n_paths > 0;
	}
	out->reliable = any ? all : NULL;
	if (!any)
		free(all);
}

/* Whether the message of --trace may be one of this flow and phase. */
static bool is_traced(const struct rdma_session *s, const struct rdma_phase *p, const struct rdma_flow *f)
{
	return s->watch->trace && f->number == 0 && p->kind == (p->mode == RDMA_BASIC ? RDMA_PLAN_CHECK : RDMA_PLAN_MEASURE);
}

void rdma_trace_begin(const struct rdma_session *s, const struct rdma_phase *p, const struct rdma_flow *f, uint64_t at)
{
	if (is_traced(s, p, f))
		reliable_trace_begin(s->watch->trace, f->conn, f->send.posted, at, p->bytes);
}

void rdma_trace_end(const struct rdma_session *s, const struct rdma_phase *p, const struct rdma_flow *f)
{
	if (is_traced(s, p, f))
		reliable_trace_end(s->watch->trace, f->conn, f->send.done);
}

/* ---- control messages ---------------------------------------------------------------------------------------- */

/* Start to send or to receive a control message.  *request is 0 if the caller must try again later. */
static gpul_status start_control(struct rdma_flow *f, void *at, uint64_t bytes, bool send, int timeout_ms, gpul_rdma_request *request,
				 gpul_error *err)
{
	const gpul_rdma_buffer b = { .region = f->mail_region, .at = (uint64_t)(uintptr_t)at, .bytes = bytes, .tag = RDMA_TAG_CONTROL };

	return send ? gpul_rdma_isend(f->conn, &b, timeout_ms, request, err) : gpul_rdma_irecv(f->conn, &b, 1, timeout_ms, request, err);
}

gpul_status rdma_control(const struct rdma_session *s, struct rdma_flow *f, void *at, uint64_t bytes, int timeout_ms, uint64_t *got,
			 gpul_error *err)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	const uint64_t begun_ns = gpul_clock_ns();
	gpul_rdma_request request = 0;
	bool done = false;
	gpul_status st = GPUL_OK;

	while (!st && !done) {
		if (atomic_load(&s->watch->stop))
			return gpul_fail(err, GPUL_ESYS, ECANCELED, "stopped");
		rdma_take_stats(s, 0, 1);
		if (!request)
			st = start_control(f, at, bytes, !got, timeout_ms, &request, err);
		/* make progress on all flows: the other end may need their acknowledgements before it can answer on this one */
		for (unsigned i = 0; !st && s->flow && i < s->shape.n_flows; i++)
			st = s->flow[i].conn ? gpul_rdma_progress(s->flow[i].conn, NULL, err) : GPUL_OK;
		if (!st && request)
			st = gpul_rdma_test(f->conn, request, &done, got, err);
		else if (!st)
			st = gpul_rdma_progress(f->conn, NULL, err);
		if (!st && !done && gpul_clock_ns() - begun_ns > SPIN_NS)
			nanosleep(&nap, NULL); /* sleep, because the other end may need this CPU, for example to check its data */
	}
	return st;
}
