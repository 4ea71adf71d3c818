/* predict.c — a formula for each algorithm; docs/comm-plan.md derives them, and explains their symbols.
 *
 * busy() is its b(x) = g + x G, the time for which a step of x bytes keeps a rank busy; busy_adding() is its a(x) = b(x) + x C, the
 * same for a step that also reduces.  stretch is its r: the factor by which shared cores lengthen these times. */
#include "lab/predict/predict.h"

#include <math.h>
#include <string.h>

#include "comm/calls.h"
#include "comm/tree.h"

enum { RING_SLOTS = 2, TREE_CHUNKS = 8, TREE_LEAST_CHUNK = 4 << 10, TREE_LEAST_SIMPLE = 16 << 10, MOST_SHOT_BYTES = 512 << 10 };

/* The prediction of one call on a machine, with one protocol. */
struct problem {
	const gpul_comm_machine *m;
	const gpul_comm_costs *inside, *across;
	double n, hosts, local; /* number of ranks, of hosts, and of ranks on each host (the last host may have fewer) */
	double stretch;         /* factor by which ranks that share cores lengthen busy times */
	double step_bytes;      /* maximum size of a step in bytes */
	gpul_comm_proto proto;
};

/* ---- the paths of the trees ------------------------------------------------------------------------------------------ */

/* The edges of a path in a tree.  They are counted by kind: inside a host or between hosts, and whether the upper rank has one
 * child, or two children that it serves one after the other. */
struct path {
	unsigned edges[2][2]; /* number of edges, indexed by [between hosts][upper rank has two children] */
};

static unsigned path_index(const struct path *p)
{
	enum { L = GPUL_COMM_PREDICT_LEVELS };

	return ((p->edges[0][0] * L + p->edges[0][1]) * L + p->edges[1][0]) * L + p->edges[1][1];
}

static struct path path_of(unsigned index)
{
	enum { L = GPUL_COMM_PREDICT_LEVELS };

	return (struct path){ { { index / (L * L * L), index / (L * L) % L }, { index / L % L, index % L } } };
}

static bool has_two_children(uint32_t place, uint32_t n)
{
	return place != 0 && place % 2 == 0 && place + 1 < n;
}

static void note_path(gpul_comm_machine *m, uint32_t tree, uint32_t place)
{
	const uint32_t n = m->n_ranks;
	struct path p = { { { 0 } } };
	unsigned index;

	while (place != 0) {
		const uint32_t up = (uint32_t)gpul_tree_parent(place, n);
		const uint32_t host = (uint32_t)gpul_tree_place_in_order(tree, (int32_t)place, n) / m->ranks_per_host;
		const uint32_t up_host = (uint32_t)gpul_tree_place_in_order(tree, (int32_t)up, n) / m->ranks_per_host;

		p.edges[host != up_host][has_two_children(up, n)]++;
		place = up;
	}
	index = path_index(&p);
	m->paths[index / 64] |= UINT64_C(1) << index % 64;
}

gpul_status gpul_comm_machine_prepare(gpul_comm_machine *m, gpul_error *err)
{
	if (m->n_ranks < 2 || m->n_ranks > GPUL_COMM_PREDICT_MAX_RANKS)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of ranks is %u: expected 2 to %d", m->n_ranks,
				 GPUL_COMM_PREDICT_MAX_RANKS);
	if (m->ranks_per_host < 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of ranks per host is 0: expected at least 1");
	memset(m->paths, 0, sizeof m->paths);
	for (uint32_t tree = 0; tree < 2; tree++)
		for (uint32_t place = 1; place < m->n_ranks; place++)
			note_path(m, tree, place);
	return GPUL_OK;
}

/* ---- steps ---------------------------------------------------------------------------------------------------------- */

static double busy(const gpul_comm_costs *c, double bytes)
{
	return c->gap_us + bytes * c->us_per_byte;
}

static double busy_adding(const gpul_comm_costs *c, double bytes)
{
	return busy(c, bytes) + bytes * c->reduce_us_per_byte;
}

/* Return the time of a message of several slots in a ring: one slot is read while another is written. adds: the step also reduces. */
static double step_on(const struct problem *p, const gpul_comm_costs *c, double bytes, bool adds)
{
	const double k = fmax(1, ceil(bytes / p->step_bytes)), b = p->stretch * (adds ? busy_adding : busy)(c, bytes / k);

	return fmax(k * b, c->latency_us + b);
}

/* Return the time of a step over the slowest link of a ring over all ranks. */
static double step_around(const struct problem *p, double bytes, bool adds)
{
	const double inside = p->local > 1 ? step_on(p, p->inside, bytes, adds) : 0;

	return p->hosts > 1 ? fmax(inside, step_on(p, p->across, bytes, adds)) : inside;
}

/* ---- rings ------------------------------------------------------------------------------------------------------------ */

/* Return the time of a ring, whose rounds have n chunks.  The pass that reduces takes n - 1 steps, and so does the pass that
 * copies, which is omitted if each rank keeps only its part of the result. */
static double ring(const struct problem *p, const struct gpul_comm_call_info *call, double bytes)
{
	const double rounds = fmax(1, ceil(bytes / (p->n * RING_SLOTS * p->step_bytes))), chunk = bytes / (p->n * rounds);
	const double adding = call->reduces ? step_around(p, chunk, true) : 0;
	const double copying = call->sends_parts ? 0 : step_around(p, chunk, false);

	return rounds * (p->n - 1) * (adding + copying);
}

/* Return the time of a pipelined broadcast along a chain of all ranks, in slices; hosts - 1 edges of the chain are between hosts. */
static double chain(const struct problem *p, double bytes)
{
	const double s = fmin(bytes, p->step_bytes),
		     slices = s > 0 ? bytes / s : 1; /* not rounded up, because the last slice may be smaller */
	const double inside = p->inside->latency_us + busy(p->inside, s);
	const double across = p->hosts > 1 ? p->across->latency_us + busy(p->across, s) : 0;
	const double slowest = fmax(p->local > 1 ? busy(p->inside, s) : 0, p->hosts > 1 ? busy(p->across, s) : 0);

	return (p->n - p->hosts) * inside + (p->hosts - 1) * across + (slices - 1) * p->stretch * slowest;
}

static double two_levels(const struct problem *p, double bytes)
{
	const double most = RING_SLOTS * p->step_bytes, rounds = fmax(1, ceil(bytes / (p->n * most)));
	const double chunk = bytes / (p->n * rounds), part = p->hosts * chunk, pieces = fmax(1, ceil(part / most));

	if (p->hosts < 2 || p->local < 2 || fmod(p->n, p->local) > 0)
		return -1;
	return rounds *
	       (pieces * (p->local - 1) * (step_on(p, p->inside, part / pieces, true) + step_on(p, p->inside, part / pieces, false)) +
		(p->hosts - 1) * (step_on(p, p->across, chunk, true) + step_on(p, p->across, chunk, false)));
}

/* ---- trees ------------------------------------------------------------------------------------------------------------- */

/* Return the time of the slowest path between a leaf and the root, up and back down. */
static double slowest_path(const struct problem *p, double chunk)
{
	double slowest = 0;

	for (unsigned w = 0; w < GPUL_COMM_PREDICT_PATH_WORDS; w++)
		for (uint64_t left = p->m->paths[w]; left; left &= left - 1) {
			const struct path path = path_of(64 * w + (unsigned)__builtin_ctzll(left));
			double us = 0;

			for (unsigned across = 0; across < 2; across++)
				for (unsigned two = 0; two < 2; two++) {
					const gpul_comm_costs *c = across ? p->across : p->inside;

					us += path.edges[across][two] *
					      (2 * c->latency_us + (1 + two) * (busy_adding(c, chunk) + busy(c, chunk)));
				}
			slowest = fmax(slowest, us);
		}
	return slowest;
}

/* Return the busy time of the busiest rank for one chunk in each of the two trees: the gaps of its steps, and its bytes in both trees. */
static double tree_busy(const struct problem *p, const gpul_comm_costs *c, double chunk)
{
	const double steps = p->n > 3 ? 4 : 2, bytes = (p->n > 3 ? 4 : p->n) * chunk;

	return steps * c->gap_us + bytes * c->us_per_byte + steps / 2 * chunk * c->reduce_us_per_byte;
}

static double trees(const struct problem *p, double bytes)
{
	const double least = p->proto == GPUL_COMM_SIMPLE ? TREE_LEAST_SIMPLE : TREE_LEAST_CHUNK, half = bytes / 2;
	const double most = fmin(p->step_bytes / 2, fmax(half / TREE_CHUNKS, least)), chunk = fmin(half, most);
	const double chunks = chunk > 0 ? half / chunk : 1; /* not rounded up, because the last chunk may be smaller */
	const double inside = p->local > 1 ? tree_busy(p, p->inside, chunk) : 0, across = p->hosts > 1 ? tree_busy(p, p->across, chunk) : 0;
	const double us = slowest_path(p, chunk) + (chunks - 1) * fmax(inside, across);

	/* If ranks share cores, the steps of both trees take at least the time that a host's cores need for all of them: in each tree
	 * 3 steps for each rank and chunk, one of which reduces.  A tree has half of the blocks, so a step has half of gap_us. */
	return p->stretch > 1 ? fmax(us, p->stretch * chunks *
						 (4 * busy(p->inside, chunk) + 2 * busy_adding(p->inside, chunk) - 3 * p->inside->gap_us))
			      : us;
}

/* ---- one-shot and direct: each rank accesses the memory of the others --------------------------------------------------- */

static double one_shot(const struct problem *p, gpul_comm_call call, double bytes)
{
	const struct gpul_comm_call_info *info = gpul_comm_call_info(call);
	const double each = info->has_parts ? bytes / p->n : bytes;

	if (p->hosts > 1 || p->proto != GPUL_COMM_LL || each > MOST_SHOT_BYTES || call == GPUL_COMM_SENDRECV)
		return -1;
	return p->inside->latency_us + p->stretch * (p->n - 1) * (info->reduces ? busy_adding : busy)(p->inside, each);
}

/* Return the time of several sends and receives, each of which has its own channel. */
static double transfers(const struct problem *p, double bytes)
{
	const double each = bytes / p->n, k = fmax(1, ceil(each / p->step_bytes));
	const double inside = (p->local - 1) * k * busy(p->inside, each / k);
	const double across = p->hosts > 1 ? (p->n - p->local) * k * busy(p->across, each / k) : 0;

	return fmax(p->inside->latency_us, p->hosts > 1 ? p->across->latency_us : 0) + p->stretch * (inside + across);
}

static double direct(const struct problem *p, gpul_comm_call call, double bytes)
{
	const struct gpul_comm_call_info *info = gpul_comm_call_info(call);
	const double share = (p->n - 1) / p->n * bytes, greet_and_part = 2 * p->inside->latency_us;

	if (call == GPUL_COMM_SENDRECV)
		return step_around(p, bytes, false);
	if (call == GPUL_COMM_ALLTOALL)
		return transfers(p, bytes);
	if (p->hosts > 1 || p->proto != GPUL_COMM_SIMPLE)
		return -1;
	if (call == GPUL_COMM_BROADCAST)
		return greet_and_part + p->inside->latency_us + p->stretch * (p->inside->gap_us + busy(p->inside, bytes));
	return greet_and_part +
	       p->stretch * ((info->reduces ? busy_adding(p->inside, share) : 0) + (info->sends_parts ? 0 : busy(p->inside, share)));
}

/* ---- any algorithm -------------------------------------------------------------------------------------------------------- */

static double time_of(const struct problem *p, gpul_comm_call call, gpul_comm_algo algo, double bytes)
{
	const struct gpul_comm_call_info *info = gpul_comm_call_info(call);

	switch (algo) {
	case GPUL_COMM_RING:
		if (call == GPUL_COMM_BROADCAST)
			return chain(p, bytes);
		return info->transfers ? -1 : ring(p, info, bytes);
	case GPUL_COMM_ONE_SHOT:
		return one_shot(p, call, bytes);
	case GPUL_COMM_DIRECT:
		return direct(p, call, bytes);
	case GPUL_COMM_TREE:
		return call == GPUL_COMM_ALLREDUCE ? trees(p, bytes) : -1;
	case GPUL_COMM_TWO_LEVEL:
		return call == GPUL_COMM_ALLREDUCE ? two_levels(p, bytes) : -1;
	default:
		return -1;
	}
}

double gpul_comm_predict(const gpul_comm_machine *m, gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto, double bytes)
{
	const bool one_host = m->n_ranks <= m->ranks_per_host;
	const double local = one_host ? m->n_ranks : m->ranks_per_host;
	struct problem p = { .m = m,
			     .inside = &m->inside[proto],
			     .across = &m->across[proto],
			     .n = m->n_ranks,
			     .local = local,
			     .hosts = ceil(m->n_ranks / local),
			     .stretch = 1,
			     .proto = proto };
	double us;

	if (p.local < 2)
		p.inside = p.across;
	p.step_bytes = one_host ? p.inside->step_bytes : fmin(p.inside->step_bytes, p.across->step_bytes);
	if (p.step_bytes <= 0)
		return -1;
	if (m->cores > 0)
		p.stretch = fmax(1, local / m->cores);
	us = time_of(&p, call, algo, bytes);
	return us < 0 ? us : us + p.stretch * fmax(p.inside->overhead_us, one_host ? 0 : p.across->overhead_us);
}

double gpul_comm_predict_best(const gpul_comm_machine *m, gpul_comm_call call, double bytes, gpul_comm_algo *algo, gpul_comm_proto *proto)
{
	double best = -1;

	for (gpul_comm_algo a = GPUL_COMM_RING; a < GPUL_COMM_N_ALGOS; a++)
		for (gpul_comm_proto q = GPUL_COMM_LL; q < GPUL_COMM_N_PROTOS; q++) {
			const double us = gpul_comm_predict(m, call, a, q, bytes);

			if (us < 0 || (best >= 0 && us >= best))
				continue;
			best = us;
			*algo = a;
			*proto = q;
		}
	return best;
}
