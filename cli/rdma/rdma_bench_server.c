/* rdma_bench_server.c — the server's side of a session, and functions that both sides share. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/rdma/rdma_bench_session.h"

enum { DEADLINE_MS = 60000, WELCOME_MS = 10000, NEVER = 0 };

/* ---- both sides ------------------------------------------------------------------------------------------ */

gpul_status rdma_session_open(struct rdma_session *s, const struct rdma_setup *setup, const struct rdma_shape *shape,
			      struct rdma_watch *watch, bool client, gpul_error *err)
{
	*s = (struct rdma_session){ .client = client,
				    .setup = setup,
				    .watch = watch,
				    .shape = *shape,
				    .deadline_ms = DEADLINE_MS,
				    .n_threads = setup->n_threads < shape->n_flows ? setup->n_threads : shape->n_flows };
	s->flow = calloc(shape->n_flows, sizeof *s->flow);
	return s->flow ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u flows", shape->n_flows);
}

void rdma_session_close(struct rdma_session *s)
{
	for (unsigned i = 0; s->flow && i < s->shape.n_flows; i++)
		rdma_flow_close(&s->flow[i]);
	free(s->flow);
	s->flow = NULL;
	if (s->buffers.setup)
		rdma_buffers_close(&s->buffers);
}

void rdma_session_describe(const struct rdma_session *s, struct rdma_end *out)
{
	gpul_rdma_device_info info;

	gpul_rdma_about(s->r, &info);
	*out = (struct rdma_end){ .pid = (int)getpid() };
	snprintf(out->backend, sizeof out->backend, "%s", info.backend);
	snprintf(out->device, sizeof out->device, "%s", info.name);
	snprintf(out->why, sizeof out->why, "%s", info.why);
	snprintf(out->memory, sizeof out->memory, "%s", rdma_memory_names[s->setup->memory]);
	if (gethostname(out->host, sizeof out->host - 1))
		snprintf(out->host, sizeof out->host, "?");
}

gpul_status rdma_session_offer(const struct rdma_session *s, const struct rdma_flow *f, gpul_rdma_remote *in, gpul_rdma_remote *signals,
			       gpul_error *err)
{
	gpul_status st;

	if (s->shape.mode != RDMA_PUT && s->shape.mode != RDMA_PUT_LAT)
		return GPUL_OK;
	st = gpul_rdma_offer(s->buffers.region, rdma_buffers_at(&s->buffers, f->number, true), s->buffers.buffer_bytes, in, err);
	return st ? st : gpul_rdma_offer(f->mail_region, (uint64_t)(uintptr_t)f->mail->signals, sizeof f->mail->signals, signals, err);
}

/* ---- the server ------------------------------------------------------------------------------------------ */

/* Answer the hello of each flow.  If that fails, the answer reports the failure. */
static gpul_status welcome_client(struct rdma_session *s, struct rdma_end *self, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = rdma_buffers_open(s->r, s->setup, &s->shape, &s->buffers, &why), sent = GPUL_OK;

	rdma_session_describe(s, self);
	for (unsigned i = 0; i < s->shape.n_flows; i++) {
		struct rdma_flow *f = &s->flow[i];
		struct rdma_welcome *w = &f->mail->welcome;

		*w = (struct rdma_welcome){ .magic = RDMA_WIRE_MAGIC, .server = *self };
		st = st ? st : rdma_session_offer(s, f, &w->in, &w->signals, &why);
		w->err = why;
		sent = sent ? sent : rdma_control(s, f, w, sizeof *w, WELCOME_MS, NULL, err);
	}
	return st ? gpul_fail(err, st, why.native, "%s", why.text) : sent;
}

static gpul_status send_answer(struct rdma_session *s, const struct rdma_answer *answer, gpul_error *err)
{
	struct rdma_flow *f = &s->flow[0];

	f->mail->answer = *answer;
	f->mail->answer.magic = RDMA_WIRE_MAGIC;
	return rdma_control(s, f, &f->mail->answer, sizeof f->mail->answer, s->deadline_ms, NULL, err);
}

/* Run one phase, and send the results, or the error. */
static gpul_status serve_plan(struct rdma_session *s, const struct rdma_plan *plan, struct rdma_row *row, gpul_error *err)
{
	const struct rdma_phase p = { .mode = s->shape.mode,
				      .kind = (enum rdma_plan_kind)plan->kind,
				      .number = plan->number,
				      .bytes = plan->bytes,
				      .count = plan->count,
				      .window = plan->window,
				      .n_parts = plan->n_parts,
				      .n_places = plan->n_places,
				      .flush = s->shape.flush };
	struct rdma_answer answer = { .number = plan->number };
	gpul_status st = rdma_phase_prepare(s, &p, &answer.err), sent;

	sent = send_answer(s, &answer, err);
	if (!st && !sent) {
		st = rdma_phase_run(s, &p, &answer.figures, &answer.err);
		if (!st && p.kind == RDMA_PLAN_CHECK)
			st = rdma_phase_check(s, &p, &answer.checked, &answer.err);
		answer.ran = 1;
		gpul_error lost = { 0 };
		sent = send_answer(s, &answer, &lost); /* a failure is ignored: a broken connection may be the cause of st */
		if (sent && !st)
			gpul_fail(err, sent, lost.native, "%s", lost.text);
	}
	*row = (struct rdma_row){ .bytes = p.bytes,
				  .iterations = p.count,
				  .window = p.window,
				  .n_parts = p.n_parts,
				  .here = answer.figures,
				  .checked = answer.checked };
	return st ? gpul_fail(err, st, answer.err.native, "%s", answer.err.text) : sent;
}

/* Keep the rows that the client also prints: those of MEASURE phases, with the number of bytes checked in the CHECK phase that
 * follows; in mode basic, those of CHECK phases. */
static void keep_row(struct rdma_bench_result *out, enum rdma_plan_kind kind, const struct rdma_row *row)
{
	const bool basic = out->shape.mode == RDMA_BASIC;

	if (kind == (basic ? RDMA_PLAN_CHECK : RDMA_PLAN_MEASURE) && out->n_rows < RDMA_MOST_ROWS)
		out->row[out->n_rows++] = *row;
	else if (kind == RDMA_PLAN_CHECK && out->n_rows)
		out->row[out->n_rows - 1].checked += row->checked;
}

gpul_status rdma_session_serve(struct rdma_session *s, const struct rdma_end *client, struct rdma_bench_result *out, gpul_error *err)
{
	struct rdma_plan plan = { 0 };
	struct rdma_row row;
	gpul_status st;

	*out = (struct rdma_bench_result){ .shape = s->shape, .n_threads = s->n_threads, .there = *client };
	gpul_rdma_conn_about(s->flow[0].conn, &out->conn);
	st = welcome_client(s, &out->here, err);
	for (uint64_t number = 1; !st; number++) {
		uint64_t got = 0;

		st = rdma_control(s, &s->flow[0], &s->flow[0].mail->plan, sizeof plan, NEVER, &got, err);
		plan = s->flow[0].mail->plan; /* a copy, because the peer could change the message in the registered memory */
		st = st ? st : rdma_wire_check_plan(&plan, got, number, &s->shape, err);
		if (st || plan.kind == RDMA_PLAN_END)
			break;
		st = serve_plan(s, &plan, &row, err);
		if (!st)
			keep_row(out, (enum rdma_plan_kind)plan.kind, &row);
	}
	return st;
}
