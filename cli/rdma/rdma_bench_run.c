/* rdma_bench_run.c — runs one phase at one end: advances each flow in turn until it has sent and received all its messages. */
#include "cli/rdma/rdma_bench_run.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

/* LOOK_EVERY: iterations between two checks for a request to stop; IDLE_TURNS: iterations without progress until the thread yields */
enum { LOOK_EVERY = 64, IDLE_TURNS = 1000 };

/* One thread.  It serves the flows whose number modulo n_threads is the thread's index. */
struct worker {
	struct rdma_session *s;
	const struct rdma_phase *p;
	unsigned index;
	uint64_t begun_ns;
	uint64_t n_events; /* number of posts, of completed requests, and of arrived puts */
	struct rdma_histogram latency;
	gpul_error wrong; /* the first message in wrong order or of wrong size; the phase continues, so that the other end can finish */
	gpul_error err;   /* why the thread ended early */
	pthread_t thread;
	bool started;
};

static bool end_sends(const struct rdma_session *s, enum rdma_mode mode)
{
	return s->client || (mode != RDMA_TPT && mode != RDMA_PUT);
}

static bool end_receives(const struct rdma_session *s, enum rdma_mode mode)
{
	return !s->client || (mode != RDMA_TPT && mode != RDMA_PUT);
}

static bool uses_puts(enum rdma_mode mode)
{
	return mode == RDMA_PUT || mode == RDMA_PUT_LAT;
}

/* ---- positions of messages in the buffers ---------------------------------------------------------------- */

/* Return the offset of a message in its buffer.  In mode basic, messages begin at odd addresses, which differ between the two ends. */
static uint64_t place_offset(const struct rdma_phase *p, unsigned place, bool in)
{
	const uint64_t odd = p->mode == RDMA_BASIC ? (in ? place * 13 + 2 : place * 7 + 1) % 64 : 0;

	return place * rdma_memory_stride(p->bytes) + odd;
}

static uint64_t place_at(const struct worker *w, const struct rdma_flow *f, uint64_t message, bool in)
{
	const unsigned place = (unsigned)(message % w->p->n_places);

	return rdma_buffers_at(&w->s->buffers, f->number, in) + place_offset(w->p, place, in);
}

/* Return the CPU address of a message whose first 8 bytes carry its number.  NULL: messages carry no number, because they are too
 * short, contain a pattern, or are not accessible for the CPU, or because several messages in flight share a position. */
static unsigned char *stamp_of(const struct worker *w, uint64_t at)
{
	const struct rdma_buffers *b = &w->s->buffers;

	if (w->p->kind == RDMA_PLAN_CHECK || w->p->n_places < w->p->window * w->p->n_parts)
		return NULL;
	return w->p->bytes < 8 || !b->cpu ? NULL : b->cpu + (at - b->at);
}

static void stamp_message(const struct worker *w, uint64_t at, uint64_t message)
{
	unsigned char *stamp = stamp_of(w, at);

	if (stamp)
		memcpy(stamp, &message, sizeof message);
}

static void check_message(struct worker *w, const struct rdma_flow *f, uint64_t message, uint64_t bytes)
{
	const unsigned char *stamp = stamp_of(w, place_at(w, f, message, true));
	uint64_t seen = message;

	if (stamp)
		memcpy(&seen, stamp, sizeof seen);
	if (bytes != w->p->bytes)
		gpul_fail(&w->wrong, GPUL_EFORMAT, 0, "flow %u: message %" PRIu64 " has %" PRIu64 " bytes, expected %" PRIu64, f->number,
			  message, bytes, w->p->bytes);
	else if (seen != message)
		gpul_fail(&w->wrong, GPUL_EFORMAT, 0, "flow %u: message %" PRIu64 " arrived as message %" PRIu64, f->number, seen, message);
}

/* ---- times ------------------------------------------------------------------------------------------------ */

/* Record the time of a flow's first event: a post, or a completed receive, whose messages do not count in the rate. */
static void note_begin(struct rdma_flow *f, uint64_t now_ns, uint64_t n_messages)
{
	if (f->first_ns)
		return;
	f->first_ns = now_ns;
	f->n_first = n_messages;
}

/* ---- messages --------------------------------------------------------------------------------------------- */

static uint64_t n_messages(const struct rdma_phase *p)
{
	return p->count * p->n_parts;
}

static gpul_status send_next(struct worker *w, struct rdma_flow *f, bool *sent)
{
	const struct rdma_phase *p = w->p;
	const uint64_t message = f->send.posted, now_ns = gpul_clock_ns();
	const unsigned i = (unsigned)(message % (p->window * p->n_parts));
	const gpul_rdma_buffer b = { .region = w->s->buffers.region,
				     .at = place_at(w, f, message, false),
				     .bytes = p->bytes,
				     .tag = (uint32_t)(message % p->n_parts) };
	gpul_status st;

	stamp_message(w, b.at, message);
	st = gpul_rdma_isend(f->conn, &b, w->s->deadline_ms, &f->send.request[i], &w->err);
	*sent = !st && f->send.request[i];
	if (!*sent)
		return st;
	note_begin(f, now_ns, 0);
	rdma_trace_begin(w->s, p, f, b.at);
	f->send.begun_ns[i] = now_ns;
	f->send.posted++;
	w->n_events++;
	return GPUL_OK;
}

static gpul_status post_sends(struct worker *w, struct rdma_flow *f)
{
	const uint64_t ring = w->p->window * w->p->n_parts;
	bool sent = true;
	gpul_status st = GPUL_OK;

	while (!st && sent && f->send.posted < n_messages(w->p) && f->send.posted - f->send.done < ring)
		st = send_next(w, f, &sent);
	return st;
}

/* Complete the sends or puts that have ended, the oldest first. */
static gpul_status take_sends(struct worker *w, struct rdma_flow *f, bool measure)
{
	const uint64_t ring = w->p->window * w->p->n_parts;

	while (f->send.done < f->send.posted) {
		const unsigned i = (unsigned)(f->send.done % ring);
		bool done = false;
		gpul_status st = gpul_rdma_test(f->conn, f->send.request[i], &done, NULL, &w->err);

		if (st || !done)
			return st;
		rdma_trace_end(w->s, w->p, f);
		f->send.done++;
		w->n_events++;
		f->last_ns = gpul_clock_ns();
		if (measure)
			rdma_histogram_add(&w->latency, f->last_ns - f->send.begun_ns[i]);
	}
	return GPUL_OK;
}

/* Return the number of groups that have been received and, if the phase flushes, flushed. */
static uint64_t n_received(const struct worker *w, const struct rdma_flow *f)
{
	return w->p->flush ? f->flush.done : f->recv.done;
}

static gpul_status post_receives(struct worker *w, struct rdma_flow *f)
{
	const struct rdma_phase *p = w->p;

	while (f->recv.posted < p->count && f->recv.posted - n_received(w, f) < p->window) {
		const unsigned i = (unsigned)(f->recv.posted % p->window);
		gpul_rdma_buffer b[GPUL_RDMA_MAX_PARTS];
		gpul_status st;

		for (unsigned part = 0; part < p->n_parts; part++)
			b[part] = (gpul_rdma_buffer){ .region = w->s->buffers.region,
						      .bytes = p->bytes,
						      .tag = part,
						      .at = place_at(w, f, f->recv.posted * p->n_parts + part, true) };
		st = gpul_rdma_irecv(f->conn, b, p->n_parts, w->s->deadline_ms, &f->recv.request[i], &w->err);
		if (st || !f->recv.request[i])
			return st;
		f->recv.begun_ns[i] = gpul_clock_ns();
		f->recv.posted++;
	}
	return GPUL_OK;
}

/* Start a flush for each group that has been received, and complete the flushes that have ended.  One flush is enough for all
 * messages of a group, because it covers all earlier arrivals. */
static gpul_status flush_received(struct worker *w, struct rdma_flow *f)
{
	const struct rdma_phase *p = w->p;
	gpul_status st = GPUL_OK;

	while (!st && f->flush.posted < f->recv.done) {
		const unsigned i = (unsigned)(f->flush.posted % p->window);
		const gpul_rdma_buffer b = { .region = w->s->buffers.region,
					     .bytes = p->bytes,
					     .at = place_at(w, f, f->flush.posted * p->n_parts, true) };

		st = gpul_rdma_iflush(f->conn, &b, w->s->deadline_ms, &f->flush.request[i], &w->err);
		if (!f->flush.request[i])
			break;
		f->flush.posted++;
	}
	while (!st && f->flush.done < f->flush.posted) {
		bool done = false;

		st = gpul_rdma_test(f->conn, f->flush.request[f->flush.done % p->window], &done, NULL, &w->err);
		if (st || !done)
			return st;
		f->flush.done++;
		f->last_ns = gpul_clock_ns();
	}
	return st;
}

/* Complete up to `most` receives that have ended, the oldest first. */
static gpul_status take_receives(struct worker *w, struct rdma_flow *f, uint64_t most, bool measure)
{
	const struct rdma_phase *p = w->p;
	const uint64_t end = f->recv.posted - f->recv.done < most ? f->recv.posted : f->recv.done + most;

	while (f->recv.done < end) {
		const unsigned i = (unsigned)(f->recv.done % p->window);
		uint64_t bytes[GPUL_RDMA_MAX_PARTS] = { 0 };
		bool done = false;
		gpul_status st = gpul_rdma_test(f->conn, f->recv.request[i], &done, bytes, &w->err);

		if (st)
			return st;
		if (!done)
			break;
		for (unsigned part = 0; part < p->n_parts; part++)
			check_message(w, f, f->recv.done * p->n_parts + part, bytes[part]);
		f->recv.done++;
		w->n_events++;
		f->last_ns = gpul_clock_ns();
		if (measure)
			rdma_histogram_add(&w->latency, f->last_ns - f->recv.begun_ns[i]);
	}
	return p->flush ? flush_received(w, f) : GPUL_OK;
}

static gpul_status step_throughput(struct worker *w, struct rdma_flow *f)
{
	const bool sends = end_sends(w->s, w->p->mode), receives = end_receives(w->s, w->p->mode);
	gpul_status st = receives ? post_receives(w, f) : GPUL_OK;

	st = st || !sends ? st : post_sends(w, f);
	st = st || !receives ? st : take_receives(w, f, UINT64_MAX, !sends);
	st = st || !sends ? st : take_sends(w, f, true);
	if (!sends && f->recv.done)
		note_begin(f, w->p->count > 1 ? f->last_ns : w->begun_ns, w->p->count > 1 ? f->recv.done * w->p->n_parts : 0);
	f->finished = (!sends || f->send.done == n_messages(w->p)) && (!receives || n_received(w, f) == w->p->count);
	return st;
}

/* ---- ping-pong ---------------------------------------------------------------------------------------------- */

/* Post receives for later rounds, half a ring at a time.  The message of this round has been sent before, so posting does not delay it. */
static gpul_status post_receives_ahead(struct worker *w, struct rdma_flow *f)
{
	return f->recv.posted - n_received(w, f) <= w->p->window / 2 ? post_receives(w, f) : GPUL_OK;
}

/* A message of the other end has arrived, which ends a round trip, unless it is the first message of a server. */
static void end_round(struct worker *w, struct rdma_flow *f)
{
	const uint64_t now_ns = gpul_clock_ns();

	if (f->sent_ns)
		rdma_histogram_add(&w->latency, (now_ns - f->sent_ns) / 2);
	note_begin(f, now_ns, 0);
	f->waiting = false;
	f->last_ns = now_ns;
}

static gpul_status step_latency(struct worker *w, struct rdma_flow *f)
{
	const uint64_t round = f->send.posted;
	bool sent = false;
	gpul_status st = f->recv.posted ? GPUL_OK : post_receives(w, f);

	if (!st && !f->waiting && round < w->p->count) {
		const uint64_t now_ns = gpul_clock_ns();

		if (f->send.posted - f->send.done == w->p->window)
			st = take_sends(w, f, false);
		if (st || f->send.posted - f->send.done == w->p->window)
			return st;
		st = send_next(w, f, &sent);
		if (st || !sent)
			return st ? st : take_sends(w, f, false);
		f->sent_ns = now_ns;
		f->waiting = w->s->client || f->send.posted < w->p->count;
		st = gpul_rdma_progress(f->conn, NULL, &w->err);
		st = st ? st : post_receives_ahead(w, f);
	}
	if (!st && f->waiting) {
		const uint64_t before = n_received(w, f);

		st = take_receives(w, f, 1, false); /* only one, because testing the next one, too, would delay the reply */
		if (!st && n_received(w, f) > before)
			end_round(w, f);
	} else if (!st) {
		st = take_sends(w, f, false); /* complete the sends after the last round */
	}
	f->finished = f->send.done == w->p->count && n_received(w, f) == w->p->count;
	return st;
}

/* ---- puts --------------------------------------------------------------------------------------------------- */

/* Put one message, and set the peer's signal to its number.  In ping-pong, a put of up to 8 bytes consists of the signal only. */
static gpul_status put_next(struct worker *w, struct rdma_flow *f, bool *sent)
{
	const struct rdma_phase *p = w->p;
	const uint64_t message = f->send.posted, now_ns = gpul_clock_ns();
	const unsigned i = (unsigned)(message % p->window);
	const unsigned lane = p->mode == RDMA_PUT_LAT ? 0 : (unsigned)(message % f->n_lanes);
	const uint64_t bytes = p->mode == RDMA_PUT_LAT && p->bytes <= 8 ? 0 : p->bytes;
	const gpul_rdma_put_desc put = {
		.from = { .at = place_at(w, f, message, false), .bytes = bytes, .area = gpul_rdma_region_area(w->s->buffers.region) },
		.to = { f->peer_in.address + place_offset(p, (unsigned)(message % p->n_places), true), f->peer_in.key, bytes },
		.signal = { f->peer_signals.address + lane * sizeof(uint64_t), f->peer_signals.key, sizeof(uint64_t) },
		.signal_value = f->put_base + message + 1,
		.lane = lane,
	};
	gpul_status st = gpul_rdma_put(f->conn, &put, w->s->deadline_ms, &f->send.request[i], &w->err);

	*sent = !st && f->send.request[i];
	if (!*sent)
		return st;
	note_begin(f, now_ns, 0);
	rdma_trace_begin(w->s, p, f, put.from.at);
	f->send.begun_ns[i] = now_ns;
	f->send.posted++;
	w->n_events++;
	return GPUL_OK;
}

/* Return the number of puts of this phase whose signals have arrived. */
static uint64_t n_arrived(const struct worker *w, const struct rdma_flow *f)
{
	const unsigned n_lanes = w->p->mode == RDMA_PUT_LAT ? 1 : f->n_lanes;
	uint64_t n = 0;

	for (unsigned lane = 0; lane < n_lanes; lane++) {
		const uint64_t value = __atomic_load_n(&f->mail->signals[lane], __ATOMIC_ACQUIRE);

		if (value > f->arrived_base)
			n += (value - f->arrived_base - 1 - lane) / n_lanes + 1;
	}
	return n;
}

static gpul_status step_put(struct worker *w, struct rdma_flow *f)
{
	const struct rdma_phase *p = w->p;
	bool sent = true;
	uint64_t n;
	gpul_status st = GPUL_OK;

	if (w->s->client) {
		while (!st && sent && f->send.posted < p->count && f->send.posted - f->send.done < p->window)
			st = put_next(w, f, &sent);
		st = st ? st : take_sends(w, f, true);
		f->finished = f->send.done == p->count;
		return st;
	}
	st = gpul_rdma_progress(f->conn, NULL, &w->err);
	n = n_arrived(w, f);
	if (n > f->recv.done) {
		f->last_ns = gpul_clock_ns();
		note_begin(f, n < p->count ? f->last_ns : w->begun_ns, n < p->count ? n : 0);
		f->recv.done = n;
		w->n_events++;
	}
	f->finished = f->recv.done >= p->count;
	return st;
}

static gpul_status step_put_latency(struct worker *w, struct rdma_flow *f)
{
	const struct rdma_phase *p = w->p;
	bool sent;
	gpul_status st = GPUL_OK;

	if (!f->waiting && f->send.posted < p->count) {
		const uint64_t now_ns = gpul_clock_ns();

		if (f->send.posted - f->send.done == p->window)
			st = take_sends(w, f, false);
		if (st || f->send.posted - f->send.done == p->window)
			return st;
		st = put_next(w, f, &sent);
		if (st || !sent)
			return st ? st : take_sends(w, f, false);
		f->sent_ns = now_ns;
		f->waiting = w->s->client || f->send.posted < p->count;
	}
	st = gpul_rdma_progress(f->conn, NULL, &w->err);
	if (!st && f->waiting && n_arrived(w, f) > f->recv.done) {
		f->recv.done++;
		w->n_events++;
		end_round(w, f);
	} else if (!st && !f->waiting && f->send.posted == p->count) {
		st = take_sends(w, f, false); /* complete the puts after the last round */
	}
	f->finished = f->send.done == p->count && f->recv.done == p->count;
	return st;
}

/* ---- one thread ----------------------------------------------------------------------------------------------- */

static gpul_status step_flow(struct worker *w, struct rdma_flow *f)
{
	switch (w->p->mode) {
	case RDMA_LAT:
		return step_latency(w, f);
	case RDMA_PUT:
		return step_put(w, f);
	case RDMA_PUT_LAT:
		return step_put_latency(w, f);
	default:
		return step_throughput(w, f);
	}
}

static gpul_status look_up(struct worker *w)
{
	const struct rdma_flow *f = w->s->flow;

	rdma_take_stats(w->s, w->index, w->s->n_threads);
	if (atomic_load_explicit(&w->s->watch->stop, memory_order_relaxed))
		return gpul_fail(&w->err, GPUL_ESYS, ECANCELED, "stopped");
	if (w->index == 0 && w->p->kind == RDMA_PLAN_MEASURE)
		atomic_store_explicit(&w->s->watch->permille,
				      (unsigned)((f->send.done > f->recv.done * w->p->n_parts ? f->send.done
											      : f->recv.done * w->p->n_parts) *
						 1000 / n_messages(w->p)),
				      memory_order_relaxed);
	return GPUL_OK;
}

static gpul_status step_flows(struct worker *w)
{
	gpul_status st = GPUL_OK;
	unsigned left;

	for (unsigned turn = 0, idle = 0;; turn++) {
		const uint64_t before = w->n_events;

		left = 0;
		for (unsigned i = w->index; !st && i < w->s->shape.n_flows; i += w->s->n_threads) {
			if (!w->s->flow[i].finished)
				st = step_flow(w, &w->s->flow[i]);
			else if (turn % LOOK_EVERY == 0) /* the other end may need acknowledgements even though this flow has finished */
				st = gpul_rdma_progress(w->s->flow[i].conn, NULL, &w->err);
			left += !w->s->flow[i].finished;
		}
		if (st || !left)
			return st;
		if (turn % LOOK_EVERY == 0)
			st = look_up(w);
		/* Yield when idle: the other end may need this CPU if more threads than CPUs spin; otherwise a yield costs 1 us or less. */
		idle = w->n_events > before ? 0 : idle + 1;
		if (idle > IDLE_TURNS)
			sched_yield();
	}
}

static void *run_worker(void *context)
{
	struct worker *w = context;

	if (rdma_buffers_use(&w->s->buffers, &w->err) == GPUL_OK)
		(void)step_flows(w);
	return NULL;
}

/* ---- the phase -------------------------------------------------------------------------------------------------- */

gpul_status rdma_phase_prepare(struct rdma_session *s, const struct rdma_phase *p, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; i < s->shape.n_flows; i++) {
		struct rdma_flow *f = &s->flow[i];

		f->send.posted = f->send.done = f->recv.posted = f->recv.done = f->flush.posted = f->flush.done = 0;
		f->finished = false;
		f->waiting = !s->client;
		f->sent_ns = f->first_ns = f->last_ns = f->n_first = 0;
		for (unsigned place = 0; !st && p->kind == RDMA_PLAN_CHECK && place < n_messages(p); place++) {
			const struct rdma_pattern pattern = { p->number, !s->client, i, place };
			const uint64_t out = rdma_buffers_at(&s->buffers, i, false) + place_offset(p, place, false);
			const uint64_t in = rdma_buffers_at(&s->buffers, i, true) + place_offset(p, place, true);

			st = end_sends(s, p->mode) ? rdma_buffers_fill(&s->buffers, out, p->bytes, &pattern, err) : GPUL_OK;
			st = st || !end_receives(s, p->mode) ? st : rdma_buffers_fill(&s->buffers, in, p->bytes, NULL, err);
		}
	}
	return st;
}

gpul_status rdma_phase_check(const struct rdma_session *s, const struct rdma_phase *p, uint64_t *checked, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*checked = 0;
	if (!end_receives(s, p->mode) || (p->mode == RDMA_PUT_LAT && p->bytes <= 8))
		return GPUL_OK;
	for (unsigned i = 0; i < s->shape.n_flows; i++)
		for (unsigned place = 0; !st && place < n_messages(p); place++) {
			const struct rdma_pattern pattern = { p->number, s->client, i, place };

			st = rdma_buffers_check(&s->buffers, rdma_buffers_at(&s->buffers, i, true) + place_offset(p, place, true), p->bytes,
						&pattern, err);
			*checked += p->bytes;
		}
	return st;
}

static void sum_figures(const struct rdma_session *s, const struct rdma_phase *p, const struct rdma_histogram *latency,
			struct rdma_figures *out)
{
	const bool both = p->mode == RDMA_BI || p->mode == RDMA_BASIC;
	uint64_t begin_ns = UINT64_MAX, end_ns = 0;

	*out = (struct rdma_figures){ .p50_ns = rdma_histogram_at(latency, 0.5), .p99_ns = rdma_histogram_at(latency, 0.99) };
	for (unsigned i = 0; i < s->shape.n_flows; i++) {
		const struct rdma_flow *f = &s->flow[i];

		out->messages += n_messages(p) * (both ? 2 : 1) - f->n_first;
		begin_ns = f->first_ns < begin_ns ? f->first_ns : begin_ns;
		end_ns = f->last_ns > end_ns ? f->last_ns : end_ns;
	}
	out->bytes = out->messages * p->bytes;
	out->ns = end_ns > begin_ns ? end_ns - begin_ns : 1;
}

static gpul_status end_worker(struct worker *w, struct rdma_histogram *latency, gpul_error *err)
{
	const gpul_error *e;

	if (w->started)
		pthread_join(w->thread, NULL);
	e = w->err.status ? &w->err : &w->wrong;
	rdma_histogram_merge(latency, &w->latency);
	return e->status ? gpul_fail(err, e->status, e->native, "%s", e->text) : GPUL_OK;
}

gpul_status rdma_phase_run(struct rdma_session *s, const struct rdma_phase *p, struct rdma_figures *out, gpul_error *err)
{
	struct worker *w = calloc(s->n_threads, sizeof *w);
	struct rdma_histogram *latency = calloc(1, sizeof *latency);
	const uint64_t now_ns = gpul_clock_ns();
	gpul_status st = GPUL_OK, ended;

	if (!w || !latency)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u threads", s->n_threads);
	for (unsigned i = s->n_threads; !st && i-- > 0;) {
		w[i] = (struct worker){ .s = s, .p = p, .index = i, .begun_ns = now_ns };
		if (i && pthread_create(&w[i].thread, NULL, run_worker, &w[i]))
			st = gpul_fail(err, GPUL_ENOMEM, 0, "cannot start thread %u of %u", i + 1, s->n_threads);
		else if (i)
			w[i].started = true;
		else
			run_worker(&w[0]);
	}
	if (st)
		atomic_store(&s->watch->stop, true); /* make the threads end that have been started */
	for (unsigned i = 0; w && latency && i < s->n_threads; i++) {
		ended = end_worker(&w[i], latency, err);
		st = st ? st : ended;
	}
	for (unsigned i = 0; !st && i < s->shape.n_flows; i++) {
		s->flow[i].put_base += uses_puts(p->mode) && end_sends(s, p->mode) ? p->count : 0;
		s->flow[i].arrived_base += uses_puts(p->mode) && end_receives(s, p->mode) ? p->count : 0;
	}
	if (!st)
		sum_figures(s, p, latency, out);
	free(latency);
	free(w);
	return st;
}
