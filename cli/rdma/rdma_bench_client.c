/* rdma_bench_client.c — the client's side of a session: connects, and decides which phases run. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/rdma/rdma_bench_session.h"
#include "core/clock.h"

enum { WELCOME_MS = 30000, GOODBYE_MS = 2000, WARM_NS = 20000000, MOST_TRIALS = 12, CHECK_BYTES = 64 << 20 };

struct client {
	struct rdma_session s;
	const struct rdma_bench_request *q;
	struct rdma_bench_result *out;
	uint64_t n_plans;
};

/* ---- connecting ------------------------------------------------------------------------------------------ */

static gpul_status say_hello(struct client *c, struct rdma_flow *f, uint64_t id, gpul_error *err)
{
	const struct rdma_shape *shape = &c->s.shape;
	struct rdma_hello *h = &f->mail->hello;
	gpul_status st;

	*h = (struct rdma_hello){ .magic = RDMA_WIRE_MAGIC,
				  .id = id,
				  .buffer_bytes = shape->buffer_bytes,
				  .flow = f->number,
				  .n_flows = shape->n_flows,
				  .mode = shape->mode,
				  .n_parts = shape->n_parts,
				  .n_requests = shape->n_requests,
				  .flush = shape->flush,
				  .client = c->out->here };
	st = rdma_session_offer(&c->s, f, &h->in, &h->signals, err);
	return st ? st : rdma_control(&c->s, f, h, sizeof *h, WELCOME_MS, NULL, err);
}

static gpul_status await_welcome(struct client *c, struct rdma_flow *f, gpul_error *err)
{
	struct rdma_welcome w;
	uint64_t got = 0;
	gpul_status st = rdma_control(&c->s, f, &f->mail->welcome, sizeof w, WELCOME_MS, &got, err);

	w = f->mail->welcome; /* a copy, because the peer could change the message in the registered memory */
	st = st ? st : rdma_wire_check_welcome(&w, got, err);
	f->peer_in = w.in;
	f->peer_signals = w.signals;
	c->out->there = w.server;
	return st;
}

/* Send the hello of a flow.  If it does not arrive, the fabric does not work, and the server cannot report the reason. */
static gpul_status greet_server(struct client *c, struct rdma_flow *f, uint64_t id, gpul_error *err)
{
	gpul_error why = { 0 };
	const gpul_status st = say_hello(c, f, id, &why);

	if (!st || why.native == ECANCELED)
		return st ? gpul_fail(err, st, why.native, "%s", why.text) : st;
	return gpul_fail(err, st, why.native,
			 "%s; the first message did not arrive: is the server gpuload rdma serve, with the same provider?", why.text);
}

/* Open all connections, then send a hello on each; the server answers when it has received all of them. */
static gpul_status connect_flows(struct client *c, const char *address, gpul_error *err)
{
	struct rdma_session *s = &c->s;
	uint64_t id = 0;
	gpul_status st = GPUL_OK;

	if (getrandom(&id, sizeof id, 0) != sizeof id)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	for (unsigned i = 0; !st && i < s->shape.n_flows; i++) {
		s->flow[i].number = i;
		if (atomic_load(&s->watch->stop))
			return gpul_fail(err, GPUL_ESYS, ECANCELED, "stopped");
		st = gpul_rdma_connect(s->r, address, c->q->wait_ms, &s->flow[i].conn, err);
		st = st ? st : rdma_flow_open(s->r, &s->flow[i], err);
		st = st ? st : greet_server(c, &s->flow[i], id, err);
	}
	for (unsigned i = 0; !st && i < s->shape.n_flows; i++)
		st = await_welcome(c, &s->flow[i], err);
	if (!st)
		gpul_rdma_conn_about(s->flow[0].conn, &c->out->conn);
	return st;
}

/* ---- phases ------------------------------------------------------------------------------------------------ */

static gpul_status await_answer(struct client *c, bool ran, struct rdma_answer *out, gpul_error *err)
{
	struct rdma_flow *f = &c->s.flow[0];
	uint64_t got = 0;
	gpul_status st;

	st = rdma_control(&c->s, f, &f->mail->answer, sizeof *out, c->s.deadline_ms, &got, err);
	*out = f->mail->answer;
	return st ? st : rdma_wire_check_answer(out, got, c->n_plans, ran, err);
}

/* Return the number of positions for messages in each buffer: one for each message in flight, unless --buffers sets fewer. */
static unsigned n_places(const struct client *c, enum rdma_plan_kind kind, const struct rdma_row *row)
{
	const unsigned all = row->window * row->n_parts, wanted = c->q->n_buffers;

	return kind == RDMA_PLAN_CHECK || !wanted || wanted > all ? all : wanted;
}

static gpul_status send_plan(struct client *c, enum rdma_plan_kind kind, const struct rdma_row *row, uint64_t count, gpul_error *err)
{
	struct rdma_flow *f = &c->s.flow[0];

	f->mail->plan = (struct rdma_plan){ .magic = RDMA_WIRE_MAGIC,
					    .number = ++c->n_plans,
					    .kind = (uint32_t)kind,
					    .bytes = row ? row->bytes : 0,
					    .count = count,
					    .window = row ? row->window : 0,
					    .n_parts = row ? row->n_parts : 0,
					    .n_places = row ? n_places(c, kind, row) : 0 };
	return rdma_control(&c->s, f, &f->mail->plan, sizeof f->mail->plan, c->s.deadline_ms, NULL, err);
}

/* Run one phase at both ends; row->here and row->there get the results of this end and of the server. */
static gpul_status run_phase(struct client *c, enum rdma_plan_kind kind, struct rdma_row *row, uint64_t count, gpul_error *err)
{
	struct rdma_answer answer;
	struct rdma_phase p;
	uint64_t checked = 0;
	gpul_error late = { 0 };
	gpul_status st = send_plan(c, kind, row, count, err);

	p = (struct rdma_phase){ .mode = c->s.shape.mode,
				 .kind = kind,
				 .number = c->n_plans,
				 .bytes = row->bytes,
				 .count = count,
				 .window = row->window,
				 .n_parts = row->n_parts,
				 .n_places = n_places(c, kind, row),
				 .flush = c->s.shape.flush };
	st = st ? st : rdma_phase_prepare(&c->s, &p, err);
	st = st ? st : await_answer(c, false, &answer, err);
	st = st ? st : rdma_phase_run(&c->s, &p, &row->here, err);
	if (!st && kind == RDMA_PLAN_CHECK)
		(void)rdma_phase_check(&c->s, &p, &checked, &late); /* continue after a failure: the server sends its answer in any case */
	st = st ? st : await_answer(c, true, &answer, err);
	if (!st && late.status)
		return gpul_fail(err, late.status, late.native, "%s", late.text);
	if (!st) {
		row->there = answer.figures;
		row->checked += checked + answer.checked;
	}
	return st;
}

/* Find the number of groups that take the requested time: run increasing numbers until a run is long enough to extrapolate from. */
static gpul_status choose_count(struct client *c, struct rdma_row *row, uint64_t *count, gpul_error *err)
{
	const uint64_t wanted_ns = (uint64_t)c->q->time_ms * 1000000;
	uint64_t n = row->window;
	gpul_status st = GPUL_OK;

	if (c->q->iterations) {
		*count = c->q->iterations;
		return run_phase(c, RDMA_PLAN_WARM, row, n < *count ? n : *count, err);
	}
	for (unsigned trial = 0; !st && trial < MOST_TRIALS; trial++) {
		st = run_phase(c, RDMA_PLAN_WARM, row, n, err);
		if (st || row->here.ns >= WARM_NS || row->here.ns >= wanted_ns / 4)
			break;
		n *= row->here.ns < WARM_NS / 16 ? 8 : 2;
	}
	*count = row->here.ns ? (uint64_t)((double)n * (double)wanted_ns / (double)row->here.ns) : n;
	*count = *count < row->window ? row->window : *count;
	return st;
}

/* Return the number of groups in a CHECK phase: one window, or fewer if the messages are large. */
static uint64_t check_count(const struct rdma_row *row)
{
	const uint64_t group = row->bytes * row->n_parts, fit = group ? CHECK_BYTES / group : row->window;

	return fit < 1 ? 1 : fit < row->window ? fit : row->window;
}

/* Measure one size, then check the data of one window. */
static gpul_status measure_row(struct client *c, struct rdma_row *row, gpul_error *err)
{
	struct rdma_row check;
	gpul_status st = choose_count(c, row, &row->iterations, err);

	row->checked = 0;
	st = st ? st : run_phase(c, RDMA_PLAN_MEASURE, row, row->iterations, err);
	check = *row;
	st = st ? st : run_phase(c, RDMA_PLAN_CHECK, &check, check_count(row), err);
	row->checked = check.checked;
	return st;
}

/* In mode basic, send one window of messages, and check all of them. */
static gpul_status check_row(struct client *c, struct rdma_row *row, gpul_error *err)
{
	row->iterations = row->window;
	return run_phase(c, RDMA_PLAN_CHECK, row, row->window, err);
}

static gpul_status measure_rows(struct client *c, gpul_error *err)
{
	const struct rdma_shape *shape = &c->s.shape;
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < c->q->n_sizes; i++) {
		struct rdma_row *row = &c->out->row[i];

		atomic_store(&c->s.watch->permille, 0);
		atomic_store(&c->s.watch->row, i);
		row->bytes = c->q->bytes[i];
		row->n_parts = rdma_bench_parts(shape, row->bytes, c->out->conn.segment_bytes);
		row->window = rdma_bench_window(shape, row->bytes, row->n_parts);
		st = shape->mode == RDMA_BASIC ? check_row(c, row, err) : measure_row(c, row, err);
		c->out->n_rows += !st;
	}
	return st;
}

/* Send the plan "end", and wait until the server closes the connection.  It may close it before the send has completed, which is not
 * an error, because all results have arrived. */
static void say_goodbye(struct client *c)
{
	const uint64_t until_ns = gpul_clock_ns() + GOODBYE_MS * 1000000ull;
	gpul_error closed = { 0 };
	gpul_status st = send_plan(c, RDMA_PLAN_END, NULL, 0, &closed);

	while (!st && gpul_clock_ns() < until_ns) {
		st = gpul_rdma_progress(c->s.flow[0].conn, NULL, &closed);
		poll(NULL, 0, 1);
	}
}

gpul_status rdma_bench_measure(const struct rdma_bench_request *q, gpul_rdma *r, const char *address, struct rdma_watch *watch,
			       struct rdma_bench_result *out, gpul_error *err)
{
	struct client c = { .q = q, .out = out };
	gpul_status st;

	*out = (struct rdma_bench_result){ .client = true, .shape = q->shape };
	st = rdma_session_open(&c.s, &q->setup, &q->shape, watch, true, err);
	if (!st) {
		c.s.r = r;
		rdma_session_describe(&c.s, &out->here);
		out->n_threads = c.s.n_threads;
		st = rdma_buffers_open(c.s.r, &q->setup, &q->shape, &c.s.buffers, err);
	}
	st = st ? st : connect_flows(&c, address, err);
	st = st ? st : measure_rows(&c, err);
	rdma_read_stats(&c.s, out);
	if (!st)
		say_goodbye(&c);
	rdma_session_close(&c.s);
	return st;
}
