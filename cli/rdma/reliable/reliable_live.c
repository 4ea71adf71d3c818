/* reliable_live.c — snapshots of counters, which the threads of the connections take, and the main thread prints. */
#include "cli/rdma/reliable/reliable_stats.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"

/* A connection, or all of them. */
struct snapshot {
	unsigned number; /* of the snapshot, from 1; 0: none yet */
	gpul_rel_counters n;
	unsigned n_paths, n_alive;
	uint64_t rtt_least_ns, rtt_most_ns;
	double window;
};

struct reliable_live {
	unsigned n_conns;
	uint64_t every_ns, begun_ns, next_ns;
	atomic_uint wanted;   /* number of the last snapshot that the main thread wants */
	pthread_mutex_t lock; /* of `conns` */
	struct snapshot *conns, before;
	uint64_t before_ns;
};

gpul_status reliable_live_create(unsigned n_conns, unsigned every_ms, struct reliable_live **out, gpul_error *err)
{
	struct reliable_live *l = calloc(1, sizeof *l);
	struct snapshot *conns = calloc(n_conns, sizeof *conns);

	if (!l || !conns) {
		free(conns);
		free(l);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the counters of %u connections", n_conns);
	}
	*l = (struct reliable_live){ .n_conns = n_conns, .every_ns = every_ms * UINT64_C(1000000), .conns = conns };
	l->begun_ns = l->before_ns = gpul_clock_ns();
	l->next_ns = l->begun_ns + l->every_ns;
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return GPUL_OK;
}

void reliable_live_free(struct reliable_live *l)
{
	if (!l)
		return;
	pthread_mutex_destroy(&l->lock);
	free(l->conns);
	free(l);
}

static void add_path(struct snapshot *s, const gpul_rel_path_info *p)
{
	s->n_paths++;
	s->n_alive += p->alive;
	s->window += p->window;
	if (p->rtt_ns && (!s->rtt_least_ns || p->rtt_ns < s->rtt_least_ns))
		s->rtt_least_ns = p->rtt_ns;
	if (p->rtt_ns > s->rtt_most_ns)
		s->rtt_most_ns = p->rtt_ns;
}

void reliable_live_take(struct reliable_live *l, unsigned number, gpul_rdma_conn *conn)
{
	struct snapshot s = { .number = atomic_load_explicit(&l->wanted, memory_order_relaxed) };
	gpul_rel_path_info paths[GPUL_REL_MAX_PATHS];
	unsigned n_paths;

	if (s.number == l->conns[number].number) /* only this thread writes it */
		return;
	n_paths = gpul_rdma_conn_stats(conn, &s.n, paths, GPUL_REL_MAX_PATHS);
	for (unsigned i = 0; i < n_paths; i++)
		add_path(&s, &paths[i]);
	pthread_mutex_lock(&l->lock);
	l->conns[number] = s;
	pthread_mutex_unlock(&l->lock);
}

/* Add the snapshots of all connections; false: one is missing. */
static bool add_conns(struct reliable_live *l, struct snapshot *sum)
{
	bool complete = true;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n_conns; i++) {
		const struct snapshot *s = &l->conns[i];

		complete &= s->number == sum->number;
		sum->n.chunks_sent += s->n.chunks_sent;
		sum->n.chunks_again += s->n.chunks_again;
		sum->n.losses += s->n.losses;
		sum->n.timeouts += s->n.timeouts;
		sum->n.duplicates += s->n.duplicates;
		sum->n_paths += s->n_paths;
		sum->n_alive += s->n_alive;
		sum->window += s->window;
		if (s->rtt_least_ns && (!sum->rtt_least_ns || s->rtt_least_ns < sum->rtt_least_ns))
			sum->rtt_least_ns = s->rtt_least_ns;
		if (s->rtt_most_ns > sum->rtt_most_ns)
			sum->rtt_most_ns = s->rtt_most_ns;
	}
	pthread_mutex_unlock(&l->lock);
	return complete;
}

static void add_line(const struct reliable_live *l, const struct snapshot *now, uint64_t now_ns, struct out *o)
{
	const gpul_rel_counters *n = &now->n, *b = &l->before.n;

	out_add(o, "%.1f s: %llu chunks sent in %.1f s, %llu of them again (%llu found lost, %llu time-outs), %llu received twice; ",
		(double)(now_ns - l->begun_ns) * 1e-9, (unsigned long long)(n->chunks_sent - b->chunks_sent),
		(double)(now_ns - l->before_ns) * 1e-9, (unsigned long long)(n->chunks_again - b->chunks_again),
		(unsigned long long)(n->losses - b->losses), (unsigned long long)(n->timeouts - b->timeouts),
		(unsigned long long)(n->duplicates - b->duplicates));
	out_add(o, "%u of %u paths alive, RTT %.0f to %.0f us, window %.0f chunks\n", now->n_alive, now->n_paths,
		(double)now->rtt_least_ns * 1e-3, (double)now->rtt_most_ns * 1e-3, now->window);
}

void reliable_live_look(struct reliable_live *l, struct out *o)
{
	const uint64_t now_ns = gpul_clock_ns();
	struct snapshot now = { .number = atomic_load(&l->wanted) };

	/* A thread that has finished its part takes no snapshots: then the line has its last ones. */
	if (now.number != l->before.number && (add_conns(l, &now) || now_ns >= l->next_ns)) {
		add_line(l, &now, now_ns, o);
		l->before = now;
		l->before_ns = now_ns;
	}
	if (now_ns >= l->next_ns) {
		l->next_ns += l->every_ns;
		atomic_fetch_add(&l->wanted, 1);
	}
}
