/* incast_receive.c — rank 0: records arrivals, sends grants, and samples the depth of the queue. */
#include <stdlib.h>
#include <string.h>

#include "cli/comm/incast/incast_queue.h"
#include "cli/comm/incast/incast_rank.h"
#include "cli/lib/bench/samples.h"
#include "comm/net/admission.h"
#include "core/clock.h"

enum { SAMPLE_NS = 1000000, MOST_SAMPLES = 60000, MOST_PROBES = 60000, MOST_GRANTS = 1024, WAIT_MS = INCAST_WAIT_MS, LATE_NS = 100000000 };

/* The state that the receiver keeps for one sender. */
struct source {
	gpul_rdma_conn *conn;
	uint64_t requested; /* number of messages for which the sender has requested admission */
	uint64_t ended;     /* number of messages that have arrived */
	uint64_t bytes;
	struct grant { /* receives in flight: a ring buffer, in the order of the grants */
		gpul_rdma_request request;
		gpul_admission_grant grant;
		uint64_t ns;
	} grants[MOST_GRANTS];
	unsigned first, n_grants;
};

struct receiver {
	struct incast_rank *r;
	const struct incast_run *run;
	struct incast_figures *f;
	gpul_admission *admission; /* decides which sender may send; NULL: sender-driven */
	struct source *sources;    /* the senders, by rank; entry 0 is unused */
	int n_done;                /* number of senders that are done: all their messages have arrived */
	uint64_t begun_ns, end_ns;
	uint64_t bytes;               /* number of bytes that have arrived */
	gpul_admission_grant waiting; /* a grant whose receive could not be posted yet; none if its bytes are 0 */

	uint64_t *latencies, n_latencies; /* latencies of messages, or of grants if run->recorded is false */
	uint64_t *probes, n_probes, last_probe;
	uint64_t sampled_ns, drops; /* time of the last sample; number of drops before the start */
	double area;                /* integral of the queue's depth over time, in bytes times ns */
};

/* ---- figures --------------------------------------------------------------------------------------------------- */

static struct incast_times summarize(uint64_t *ns, uint64_t n)
{
	if (!n)
		return (struct incast_times){ 0 };
	samples_sort_ns((int64_t *)ns, n);
	return (struct incast_times){ .n = n, .p50_ns = ns[(n - 1) / 2], .p99_ns = ns[(n - 1) * 99 / 100], .most_ns = ns[n - 1] };
}

/* Jain's fairness index, (sum x)^2 / (n * sum x^2): R. Jain, D. Chiu, W. Hawe, DEC-TR-301. */
static double fairness(const uint64_t *share, int n_ranks)
{
	double sum = 0, squares = 0;

	for (int k = 1; k < n_ranks; k++) {
		sum += (double)share[k];
		squares += (double)share[k] * (double)share[k];
	}
	return squares > 0 ? sum * sum / ((n_ranks - 1) * squares) : 0;
}

/* ---- the depth of the queue ------------------------------------------------------------------------------------ */

/* Return the bytes in flight, which stand for the depth of the queue if there is no private network whose queue can be read.  They
 * include granted bytes that the sender has not sent yet. */
static uint64_t bytes_between(const struct receiver *v)
{
	uint64_t posted = 0;

	if (v->admission)
		return gpul_admission_held(v->admission);
	for (int k = 1; k < v->r->job.size; k++)
		posted += atomic_load(&v->r->counters[k].posted);
	return posted > v->bytes ? posted - v->bytes : 0;
}

static gpul_status sample_queue(struct receiver *v, uint64_t now, gpul_error *err)
{
	struct incast_figures *f = v->f;
	struct incast_queue q = { 0 };
	gpul_status st = GPUL_OK;

	if (v->r->queue_fd >= 0)
		st = incast_queue_read(v->r->queue_fd, v->r->queue_device, &q, err);
	else
		q.backlog = bytes_between(v);
	if (st)
		return st;
	v->area += (double)q.backlog * (double)(now - v->sampled_ns);
	v->sampled_ns = now;
	f->queue_most = q.backlog > f->queue_most ? q.backlog : f->queue_most;
	f->drops = q.drops - v->drops;
	if (f->n_samples < MOST_SAMPLES)
		f->samples[f->n_samples++] = (struct incast_sample){ now - v->begun_ns, q.backlog };
	return GPUL_OK;
}

static void note_probe(struct receiver *v)
{
	const uint64_t sent = atomic_load_explicit(&v->r->mail[1].probe, memory_order_acquire);

	if (sent == v->last_probe)
		return;
	v->last_probe = sent;
	if (v->n_probes < MOST_PROBES)
		v->probes[v->n_probes++] = gpul_clock_ns() - sent;
}

/* ---- arrivals --------------------------------------------------------------------------------------------------- */

static void end_message(struct receiver *v, int rank, uint64_t now)
{
	struct source *s = &v->sources[rank];
	const uint64_t handed = atomic_load_explicit(incast_handed(v->r, rank, s->ended), memory_order_acquire);

	if (v->run->recorded)
		v->latencies[v->n_latencies++] = now - handed;
	v->end_ns = now;
	if (++s->ended < v->run->n_messages)
		return;
	if (v->n_done++ == 0)
		for (int k = 1; k < v->r->job.size; k++)
			v->f->share[k] = v->sources[k].bytes;
}

static void note_bytes(struct receiver *v, int rank, uint64_t bytes)
{
	v->sources[rank].bytes += bytes;
	v->bytes += bytes;
}

/* Sender-driven: record the messages that have arrived, which the sender announces by increasing `arrived`. */
static void note_arrivals(struct receiver *v, int rank, bool *busy)
{
	const uint64_t arrived = atomic_load_explicit(&v->r->mail[rank].arrived, memory_order_acquire);
	const uint64_t now = gpul_clock_ns();

	for (; v->sources[rank].ended < arrived; *busy = true) {
		note_bytes(v, rank, v->run->bytes);
		end_message(v, rank, now);
	}
}

/* Receiver-driven: receives have ended, so give their bytes back to the window. */
static gpul_status end_grants(struct receiver *v, int rank, bool *busy, gpul_error *err)
{
	struct source *s = &v->sources[rank];

	while (s->n_grants) {
		const struct grant *g = &s->grants[s->first];
		uint64_t bytes = 0, now;
		bool done = false;
		const gpul_status st = gpul_rdma_test(s->conn, g->request, &done, &bytes, err);

		if (st || !done)
			return st;
		now = gpul_clock_ns();
		gpul_admission_arrived(v->admission, (unsigned)rank, g->grant.bytes);
		note_bytes(v, rank, bytes);
		if (!v->run->recorded && v->n_latencies < MOST_PROBES)
			v->latencies[v->n_latencies++] = now - g->ns;
		if (g->grant.last)
			end_message(v, rank, now);
		s->first = (s->first + 1) % MOST_GRANTS;
		s->n_grants--;
		*busy = true;
	}
	return GPUL_OK;
}

/* ---- grants ------------------------------------------------------------------------------------------------------ */

static void note_requests(struct receiver *v, int rank)
{
	struct source *s = &v->sources[rank];
	const uint64_t requested = atomic_load_explicit(&v->r->mail[rank].requested, memory_order_acquire);

	while (s->requested < requested && gpul_admission_request(v->admission, (unsigned)rank, v->run->bytes))
		s->requested++;
}

/* Post the receive of a grant; posting writes a clear-to-send slot to the sender. */
static gpul_status post_grant(struct receiver *v, const gpul_admission_grant *g, bool *posted, gpul_error *err)
{
	struct source *s = &v->sources[g->sender];
	const gpul_rdma_buffer b = { .region = v->r->data_region,
				     .bytes = g->bytes,
				     .tag = INCAST_TAG,
				     .at = (uint64_t)(uintptr_t)incast_slot(v->r, (int)g->sender, g->message) + g->offset };
	gpul_rdma_request request = 0;
	gpul_status st = GPUL_OK;

	if (s->n_grants < MOST_GRANTS)
		st = gpul_rdma_irecv(s->conn, &b, 1, WAIT_MS, &request, err);
	*posted = !st && request;
	if (*posted)
		s->grants[(s->first + s->n_grants++) % MOST_GRANTS] = (struct grant){ request, *g, gpul_clock_ns() };
	return st;
}

static gpul_status give_grants(struct receiver *v, bool *busy, gpul_error *err)
{
	gpul_admission_grant g = v->waiting;

	gpul_admission_tick(v->admission, gpul_clock_ns());
	for (bool posted; g.bytes || gpul_admission_next(v->admission, &g); g.bytes = 0) {
		const gpul_status st = post_grant(v, &g, &posted, err);

		if (st)
			return st;
		if (!posted) {
			v->waiting = g;
			return GPUL_OK;
		}
		*busy = true;
	}
	v->waiting.bytes = 0;
	return GPUL_OK;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static gpul_status take_turn(struct receiver *v, bool *busy, gpul_error *err)
{
	gpul_rdma_conn *probe = v->run->recorded ? gpul_comm_mesh_conn(v->r->probe_mesh, 1) : NULL;
	gpul_status st = probe ? gpul_rdma_progress(probe, NULL, err) : GPUL_OK;

	for (int k = 1; !st && k < v->r->job.size; k++) {
		st = gpul_rdma_progress(v->sources[k].conn, NULL, err);
		if (st)
			break;
		if (!v->admission) {
			note_arrivals(v, k, busy);
			continue;
		}
		note_requests(v, k);
		st = end_grants(v, k, busy, err);
	}
	if (!st && v->admission)
		st = give_grants(v, busy, err);
	if (!st && v->run->recorded) {
		note_probe(v);
		if (gpul_clock_ns() >= v->sampled_ns + SAMPLE_NS)
			st = sample_queue(v, gpul_clock_ns(), err);
	}
	return st;
}

static bool senders_have_ended(const struct incast_rank *r)
{
	for (int k = 1; k < r->job.size; k++)
		if (atomic_load(&r->counters[k].ended) < r->run)
			return false;
	return true;
}

static gpul_status begin_run(struct receiver *v, gpul_error *err)
{
	const unsigned n_ranks = (unsigned)v->r->job.size;
	const gpul_admission_desc desc = { .n_senders = n_ranks,
					   .max_messages = v->r->n_slots,
					   .window_bytes = v->run->window_bytes,
					   .grant_bytes = v->r->q->grant_bytes,
					   .late_ns = LATE_NS };
	const size_t n_messages = (size_t)n_ranks * v->run->n_messages;
	struct incast_queue q = { 0 };
	gpul_status st = GPUL_OK;

	v->sources = calloc(n_ranks, sizeof *v->sources);
	v->latencies = calloc(n_messages > MOST_PROBES ? n_messages : MOST_PROBES, sizeof *v->latencies);
	v->probes = calloc(MOST_PROBES, sizeof *v->probes);
	v->f->samples = v->run->recorded ? calloc(MOST_SAMPLES, sizeof *v->f->samples) : NULL;
	if (!v->sources || !v->latencies || !v->probes || (v->run->recorded && !v->f->samples))
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the measured times of %zu messages", n_messages);
	for (int k = 1; k < v->r->job.size; k++)
		v->sources[k].conn = gpul_comm_mesh_conn(v->r->mesh, k);
	if (v->run->mode == INCAST_RECEIVER)
		st = gpul_admission_create(&desc, &v->admission, err);
	if (!st && v->r->queue_fd >= 0)
		st = incast_queue_read(v->r->queue_fd, v->r->queue_device, &q, err);
	for (int k = 1; k < v->r->job.size; k++) { /* cleared before the barrier, because the senders write only after it */
		atomic_store(&v->r->mail[k].requested, 0);
		atomic_store(&v->r->mail[k].arrived, 0);
		atomic_store(&v->r->counters[k].posted, 0);
	}
	v->last_probe = atomic_load(&v->r->mail[1].probe);
	v->drops = q.drops;
	st = st ? st : gpul_boot_barrier(v->r->boot, INCAST_MEET_MS, err);
	v->begun_ns = v->sampled_ns = gpul_clock_ns();
	return st;
}

static void end_run(struct receiver *v)
{
	struct incast_figures *f = v->f;
	uint64_t first_ns = v->begun_ns;

	for (int k = 1; k < v->r->job.size; k++) {
		const uint64_t handed = atomic_load(incast_handed(v->r, k, 0));

		first_ns = handed < first_ns ? handed : first_ns;
	}
	f->ns = v->end_ns - first_ns;
	f->bytes = v->bytes;
	f->fairness = fairness(f->share, v->r->job.size);
	f->message = summarize(v->latencies, v->n_latencies);
	f->probe = summarize(v->probes, v->n_probes);
	f->queue_mean = f->ns ? (uint64_t)(v->area / (double)f->ns) : 0;
	f->retransmissions = atomic_load(&v->r->counters[1].retransmissions);
	/* Check the messages that have not been overwritten in the slots. */
	for (int k = 1; k < v->r->job.size; k++)
		for (uint64_t m = v->run->n_messages > v->r->n_slots ? v->run->n_messages - v->r->n_slots : 0; m < v->run->n_messages; m++)
			f->wrong += incast_count_wrong(incast_slot(v->r, k, m), v->run->bytes, k, m);
}

gpul_status incast_receive(struct incast_rank *r, const struct incast_run *run, struct incast_figures *f, gpul_error *err)
{
	struct receiver v = { .r = r, .run = run, .f = f };
	gpul_status st = begin_run(&v, err);
	struct incast_pace pace = { .r = r, .busy_ns = v.begun_ns, .checked_ns = v.begun_ns };

	if (!st && run->recorded)
		st = sample_queue(&v, v.begun_ns, err);
	/* Keep polling after the last arrival: the senders get their acknowledgements only while this rank makes progress. */
	while (!st && (v.n_done < r->job.size - 1 || !senders_have_ended(r))) {
		bool busy = false;

		st = take_turn(&v, &busy, err);
		st = st ? st : incast_pace_turn(&pace, busy, err);
	}
	if (!st)
		end_run(&v);
	gpul_admission_destroy(v.admission);
	free(v.sources);
	free(v.latencies);
	free(v.probes);
	return st;
}
