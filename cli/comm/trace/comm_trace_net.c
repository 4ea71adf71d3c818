/* comm_trace_net.c — draws the events of the proxies: tracks of puts, and arrows from and to the kernels' steps that belong to them. */
#include "cli/comm/trace/comm_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/json/trace_events.h"

/* Numbers of a rank's network tracks, larger than those of its blocks.  Overlapping puts are drawn in different tracks. */
enum { WAITS = 100000, PUTS = WAITS + 1 };

/* ---- collection -------------------------------------------------------------------------------------------------- */

gpul_status comm_trace_net_collect(struct comm_rank *r, const struct comm_host_clock *hosts, struct comm_result *result,
				   struct comm_rank_trace *ranks, gpul_comm_net_event **all, gpul_error *err)
{
	gpul_comm_net_event *mine = calloc(COMM_TRACE_MOST, sizeof *mine);
	struct {
		uint64_t n, n_lost;
	} count = { 0 }, counts[GPUL_COMM_MAX_RANKS] = { { 0 } };
	size_t n = 0, n_lost = 0, most = 0;
	gpul_status st;

	*all = NULL;
	if (!mine)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the events of the network");
	gpul_comm_trace_read_net(r->comm, mine, COMM_TRACE_MOST, &n, &n_lost);
	count.n = n;
	count.n_lost = n_lost;
	st = gpul_boot_allgather(r->boot, &count, sizeof count, counts, COMM_MEET_MS, err);
	for (int k = 0; k < r->job.size; k++) {
		most = counts[k].n > most ? counts[k].n : most;
		result->waiting[k].n_net = counts[k].n;
		result->waiting[k].n_net_lost = counts[k].n_lost;
	}
	*all = calloc((size_t)r->job.size * most + 1, sizeof **all);
	if (!st && !*all)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the events of the network of all ranks");
	st = st ? st : gpul_boot_allgather(r->boot, mine, most * sizeof *mine, *all, COMM_MEET_MS, err);
	free(mine);
	for (int k = 0; !st && k < r->job.size; k++) {
		gpul_comm_net_event *events = *all + (size_t)k * most;
		const int host = gpul_boot_host(r->boot, k);

		for (size_t i = 0; r->job.rank == 0 && host && i < counts[k].n; i++) {
			events[i].begin_ns = fifo_clock_cpu_ns(&hosts[host].relation, events[i].begin_ns);
			events[i].end_ns = fifo_clock_cpu_ns(&hosts[host].relation, events[i].end_ns);
		}
		ranks[k].net = events;
		ranks[k].n_net = counts[k].n;
	}
	return st;
}

/* ---- steps of kernels: which event has posted, or read, a step of a channel ------------------------------------ */

struct step {
	int32_t peer;
	uint32_t channel;
	uint64_t number;
	const gpul_comm_event *event;
};

struct steps {
	struct step *posts, *reads; /* sorted by compare_steps() */
	size_t n_posts, n_reads;
};

static int compare_steps(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	if (a->peer != b->peer)
		return a->peer < b->peer ? -1 : 1;
	if (a->channel != b->channel)
		return a->channel < b->channel ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static bool is_post(uint32_t kind)
{
	return kind == GPUL_COMM_EVENT_SEND || kind == GPUL_COMM_EVENT_POST;
}

static bool is_read(uint32_t kind)
{
	return kind == GPUL_COMM_EVENT_RECV || kind == GPUL_COMM_EVENT_REDUCE || kind == GPUL_COMM_EVENT_COPY;
}

/* Return the first block that exchanges data with a peer.  In a group, the channels are numbered from 0 for each rank and
 * direction, beginning at this block.  In other calls, a channel has the number of its block. */
static uint32_t first_block(const struct comm_rank_trace *t, size_t begin, size_t end, int32_t peer, bool posts)
{
	uint32_t first = UINT32_MAX;

	for (size_t i = begin; i < end; i++) {
		const gpul_comm_event *e = &t->events[i];

		if (e->peer == peer && (posts ? is_post(e->kind) : is_read(e->kind)) && e->block < first)
			first = e->block;
	}
	return first;
}

/* Find the event of the step to which a POST event belongs: the previous event of the same block. */
static const gpul_comm_event *step_before(const struct comm_rank_trace *t, size_t post)
{
	for (size_t i = post; i--;)
		if (t->events[i].block == t->events[post].block)
			return &t->events[i];
	return &t->events[post];
}

static void list_section(const struct comm_rank_trace *t, size_t begin, size_t end, bool has_groups, struct steps *out)
{
	uint32_t first[2][GPUL_COMM_MAX_RANKS] = { { 0 } };

	for (int32_t peer = 0; has_groups && peer < GPUL_COMM_MAX_RANKS; peer++)
		for (int posts = 0; posts < 2; posts++)
			first[posts][peer] = first_block(t, begin, end, peer, posts);
	for (size_t i = begin; i < end; i++) {
		const gpul_comm_event *e = &t->events[i];
		const bool posts = is_post(e->kind);

		if ((!posts && !is_read(e->kind)) || e->peer < 0 || e->peer >= GPUL_COMM_MAX_RANKS)
			continue;
		*(posts ? &out->posts[out->n_posts++]
			: &out->reads[out->n_reads++]) = (struct step){ e->peer, e->block - first[posts][e->peer], e->step,
									e->kind == GPUL_COMM_EVENT_POST ? step_before(t, i) : e };
	}
}

static bool list_steps(const struct comm_rank_trace *t, bool has_groups, struct steps *out)
{
	*out = (struct steps){ .posts = calloc(t->n + 1, sizeof *out->posts), .reads = calloc(t->n + 1, sizeof *out->reads) };
	if (!out->posts || !out->reads)
		return false;
	for (size_t s = 0; s < t->n_sections; s++) {
		const uint64_t begin = t->sections[s].first_event, end = s + 1 < t->n_sections ? t->sections[s + 1].first_event : t->n;

		list_section(t, begin < t->n ? begin : t->n, end < t->n ? end : t->n, has_groups, out);
	}
	qsort(out->posts, out->n_posts, sizeof *out->posts, compare_steps);
	qsort(out->reads, out->n_reads, sizeof *out->reads, compare_steps);
	return true;
}

static const gpul_comm_event *find_step(const struct step *steps, size_t n, int32_t peer, uint32_t channel, uint64_t number)
{
	const struct step key = { peer, channel, number, NULL }, *found = bsearch(&key, steps, n, sizeof *steps, compare_steps);

	return found ? found->event : NULL;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------- */

struct drawing {
	const struct comm_rank_trace *ranks;
	struct steps steps[GPUL_COMM_MAX_RANKS];
	unsigned block_track;
	uint64_t origin_ns, n_arrows, n_left_out;
	struct json *j;
};

static int64_t since(const struct drawing *d, uint64_t ns)
{
	return (int64_t)(ns - d->origin_ns);
}

static uint64_t clamp(uint64_t ns, uint64_t least, uint64_t most)
{
	return ns < least ? least : ns > most ? most : ns;
}

/* The slice in which an arrow begins or ends. */
struct end {
	int rank;
	unsigned track;
	uint64_t begin_ns, end_ns;
};

/* Draw an arrow that leaves its first slice at `at`, or at the nearest time inside that slice.  Viewers draw arrows only forwards,
 * so an arrow that points backwards because of clock errors is left out. */
static void add_arrow(struct drawing *d, const char *name, const struct end *from, const struct end *to, uint64_t at)
{
	const uint64_t leaves = clamp(at, from->begin_ns, from->end_ns), lands = clamp(leaves, to->begin_ns, to->end_ns);

	if (lands < leaves) {
		d->n_left_out++;
		return;
	}
	d->n_arrows++;
	trace_add_endpoint(d->j, "s", (unsigned)from->rank + 1, from->track, name, d->n_arrows, since(d, leaves));
	trace_add_endpoint(d->j, "f", (unsigned)to->rank + 1, to->track, name, d->n_arrows, since(d, lands));
}

/* Draw the arrows of a put: from the step that posted its slot, and to the step that read the slot. */
static void add_arrows(struct drawing *d, int rank, const gpul_comm_net_event *e, unsigned track)
{
	const struct steps *mine = &d->steps[rank], *theirs = &d->steps[e->peer];
	const gpul_comm_event *post = find_step(mine->posts, mine->n_posts, e->peer, e->channel, e->step);
	const gpul_comm_event *read = find_step(theirs->reads, theirs->n_reads, rank, e->channel, e->step);
	const struct end put = { rank, track, e->begin_ns, e->end_ns };

	if (post)
		add_arrow(d, "posted", &(struct end){ rank, post->block + d->block_track, post->begin_ns, post->end_ns }, &put,
			  e->begin_ns);
	if (read)
		add_arrow(d, "arrived", &put, &(struct end){ e->peer, read->block + d->block_track, read->begin_ns, read->end_ns },
			  read->end_ns);
}

static void add_event(struct drawing *d, int rank, const gpul_comm_net_event *e, unsigned track)
{
	static const char *const names[GPUL_COMM_NET_N_KINDS] = { "put", "credit", "grant", "proxy waits" };
	char name[80];

	if (e->kind >= GPUL_COMM_NET_N_KINDS)
		return;
	if (e->peer < 0)
		(void)snprintf(name, sizeof name, "%s", names[e->kind]);
	else
		(void)snprintf(name, sizeof name, "%s to rank %d, %s %llu", names[e->kind], (int)e->peer,
			       e->kind == GPUL_COMM_NET_SLOT ? "step" : "up to", (unsigned long long)e->step);
	trace_begin_slice(d->j, (unsigned)rank + 1, track, name, since(d, e->begin_ns), since(d, e->end_ns));
	json_begin(d->j, "args", '{');
	if (e->peer >= 0) {
		json_u64(d->j, "step", e->step);
		json_i64(d->j, "peer", e->peer);
		json_u64(d->j, "channel", e->channel);
	}
	if (e->bytes)
		json_u64(d->j, "bytes", e->bytes);
	json_end(d->j, '}');
	json_end(d->j, '}');
	if (e->kind == GPUL_COMM_NET_SLOT && e->peer >= 0 && e->peer < GPUL_COMM_MAX_RANKS)
		add_arrows(d, rank, e, track);
}

static int compare_begins(const void *x, const void *y)
{
	const gpul_comm_net_event *a = *(const gpul_comm_net_event *const *)x, *b = *(const gpul_comm_net_event *const *)y;

	return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

/* Draw the puts in the order of their start times, each in the first free track.  Returns false if there is no memory. */
static bool add_rank(struct drawing *d, int rank)
{
	const struct comm_rank_trace *t = &d->ranks[rank];
	const gpul_comm_net_event **order = calloc(t->n_net + 1, sizeof *order);
	uint64_t *free_at = calloc(t->n_net + 1, sizeof *free_at);
	unsigned n_tracks = 0;
	bool waits = false;
	char name[40];

	for (size_t i = 0; order && i < t->n_net; i++)
		order[i] = &t->net[i];
	if (order)
		qsort(order, t->n_net, sizeof *order, compare_begins);
	for (size_t i = 0; order && free_at && i < t->n_net; i++) {
		const gpul_comm_net_event *e = order[i];
		unsigned track = 0;

		if (e->kind == GPUL_COMM_NET_WAIT) {
			waits = true;
			add_event(d, rank, e, WAITS);
			continue;
		}
		while (track < n_tracks && free_at[track] > e->begin_ns)
			track++;
		n_tracks += track == n_tracks;
		free_at[track] = e->end_ns;
		add_event(d, rank, e, PUTS + track);
	}
	if (waits)
		trace_name_track(d->j, (unsigned)rank + 1, WAITS, "proxy");
	for (unsigned i = 0; i < n_tracks; i++) {
		(void)snprintf(name, sizeof name, "network %u", i);
		trace_name_track(d->j, (unsigned)rank + 1, PUTS + i, name);
	}
	free(order);
	free(free_at);
	return order && free_at;
}

uint64_t comm_trace_net_json(const struct comm_result *result, const struct comm_rank_trace *ranks, unsigned block_track,
			     uint64_t origin_ns, struct json *j)
{
	struct drawing *d = calloc(1, sizeof *d);
	const bool has_groups = gpul_comm_call_info(result->q.call)->transfers;
	uint64_t n_left_out = 0;
	bool enough = d;

	if (d)
		*d = (struct drawing){ .ranks = ranks, .block_track = block_track, .origin_ns = origin_ns, .j = j };
	for (int r = 0; enough && r < result->n_ranks; r++)
		enough = list_steps(&ranks[r], has_groups, &d->steps[r]);
	for (int r = 0; enough && r < result->n_ranks; r++)
		enough = add_rank(d, r);
	for (int r = 0; d && r < result->n_ranks; r++) {
		free(d->steps[r].posts);
		free(d->steps[r].reads);
	}
	if (d)
		n_left_out = d->n_left_out;
	free(d);
	if (!enough)
		j->out.failed = true;
	return n_left_out;
}
