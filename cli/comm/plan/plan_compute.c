/* plan_compute.c — describes the machine to predict for, and computes the times of each size and the sizes at which the
 * best algorithm changes. */
#include <math.h>
#include <string.h>

#include "cli/comm/plan/cli_plan.h"

/* Apply the parameters of device memory or, if there are none, of host memory: the ranks of one host communicate through memory. */
static bool apply_memory(struct plan_result *r)
{
	return gpul_comm_params_apply(&r->params, GPUL_COMM_DEVICE, &r->machine) ||
	       gpul_comm_params_apply(&r->params, GPUL_COMM_HOST, &r->machine);
}

/* Find the costs of the links between hosts: those of --link, else of the measured network, else of the links inside a host. */
static gpul_status find_across(struct plan_result *r, gpul_error *err)
{
	gpul_comm_machine *m = &r->machine;
	gpul_comm_machine network = { .n_ranks = 2, .ranks_per_host = 2 };

	if (r->q.link) {
		gpul_comm_link_costs(&r->link, m->inside, m->across);
		return GPUL_OK;
	}
	if (gpul_comm_params_apply(&r->params, GPUL_COMM_NET, &network)) {
		memcpy(m->across, network.inside, sizeof m->across);
		return GPUL_OK;
	}
	if (r->n_here && m->n_ranks == (uint32_t)r->n_here) { /* the measured ranks share a host: let groups of them stand for hosts */
		memcpy(m->across, m->inside, sizeof m->across);
		m->cores /= ceil((double)m->n_ranks / m->ranks_per_host);
		return GPUL_OK;
	}
	if (m->n_ranks > m->ranks_per_host)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%u ranks with %u per host need a network between hosts: give --link NAME or --link LATENCY:BANDWIDTH",
				 m->n_ranks, m->ranks_per_host);
	return GPUL_OK;
}

static gpul_status find_inside(struct plan_result *r, gpul_error *err)
{
	gpul_comm_machine *m = &r->machine;

	if (!apply_memory(r) && !gpul_comm_params_apply(&r->params, GPUL_COMM_NET, m))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s contains no parameters for links", r->source);
	if (r->q.inside)
		gpul_comm_link_costs(&r->inside, m->inside, m->inside);
	return GPUL_OK;
}

gpul_status plan_find_machine(struct plan_result *r, gpul_error *err)
{
	const struct plan_request *q = &r->q;
	gpul_comm_machine *m = &r->machine;
	gpul_status st = GPUL_OK;

	m->n_ranks = q->n_ranks ? q->n_ranks : (uint32_t)r->n_here;
	m->ranks_per_host = q->ranks_per_host         ? q->ranks_per_host
			    : q->place.ranks_per_host ? (uint32_t)q->place.ranks_per_host
						      : m->n_ranks;
	if (m->ranks_per_host > m->n_ranks)
		m->ranks_per_host = m->n_ranks;
	if (r->n_here) {
		r->source = "measured here";
	} else if (q->params) {
		r->source = q->params;
		st = gpul_comm_params_read(q->params, &r->params, err);
	} else {
		r->source = "built-in";
		r->params = *gpul_comm_params_built_in();
	}
	st = !st && q->link ? gpul_comm_link_parse(q->link, false, &r->link, err) : st;
	st = !st && q->inside ? gpul_comm_link_parse(q->inside, true, &r->inside, err) : st;
	st = st ? st : find_inside(r, err);
	st = st ? st : find_across(r, err);
	return st ? st : gpul_comm_machine_prepare(m, err);
}

unsigned plan_sizes(const struct plan_request *q, uint64_t sizes[PLAN_MOST_ROWS])
{
	unsigned n = 0;

	for (size_t bytes = q->min_bytes; bytes <= q->max_bytes && n < PLAN_MOST_ROWS; bytes *= q->factor) {
		sizes[n++] = bytes;
		if (bytes > SIZE_MAX / q->factor)
			break;
	}
	return n;
}

static void fill_row(const struct plan_result *r, uint64_t bytes, struct plan_row *row)
{
	row->bytes = bytes;
	for (gpul_comm_algo a = 0; a < GPUL_COMM_N_ALGOS; a++)
		for (gpul_comm_proto p = 0; p < GPUL_COMM_N_PROTOS; p++)
			row->us[a][p] = a && p ? gpul_comm_predict(&r->machine, r->q.call, a, p, (double)bytes) : -1;
	(void)gpul_comm_predict_best(&r->machine, r->q.call, (double)bytes, &row->algo, &row->proto);
}

/* Find the best algorithm for a size; true if it differs from the best one of the range. */
static bool best_differs(const struct plan_result *r, double bytes, const struct plan_range *range, struct plan_range *out)
{
	(void)gpul_comm_predict_best(&r->machine, r->q.call, bytes, &out->algo, &out->proto);
	return out->algo != range->algo || out->proto != range->proto;
}

/* Try sizes in ascending order, each 9 % larger than the previous one.  Where the best algorithm changes, bisect between the two sizes. */
static void find_ranges(struct plan_result *r)
{
	const double end = (double)r->rows[r->n_rows - 1].bytes;
	struct plan_range *range = r->ranges, next;
	double at = (double)r->rows[0].bytes;

	*range = (struct plan_range){ .from = r->rows[0].bytes, .to = r->rows[r->n_rows - 1].bytes };
	(void)best_differs(r, at, range, range);
	r->n_ranges = 1;
	while (at < end && r->n_ranges < PLAN_MOST_RANGES) {
		double low = at, high = fmin(end, at * 1.09);

		at = high;
		if (!best_differs(r, high, range, &next))
			continue;
		while (high - low > 1 && high / low > 1.0001) {
			const double middle = (low + high) / 2;

			*(best_differs(r, middle, range, &next) ? &high : &low) = middle;
		}
		(void)best_differs(r, high, range, &next);
		next.from = range->to = (uint64_t)ceil(high);
		next.to = (uint64_t)end;
		*++range = next;
		r->n_ranges++;
		at = high;
	}
}

/* Return the time of an algorithm with its best protocol; negative: the algorithm is not possible. */
static double time_of(const struct plan_result *r, gpul_comm_algo algo, double bytes)
{
	double best = -1;

	for (gpul_comm_proto p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++) {
		const double us = gpul_comm_predict(&r->machine, r->q.call, algo, p, bytes);

		best = us >= 0 && (best < 0 || us < best) ? us : best;
	}
	return best;
}

static bool beats_ring(const struct plan_result *r, gpul_comm_algo algo, double bytes)
{
	return time_of(r, algo, bytes) < time_of(r, GPUL_COMM_RING, bytes);
}

/* Search from large to small sizes for the largest size at which the algorithm is faster than a ring. */
static void find_turn(struct plan_result *r, gpul_comm_algo algo)
{
	const double least = (double)r->rows[0].bytes, most = (double)r->rows[r->n_rows - 1].bytes;
	double low = most, high = most;

	if (time_of(r, algo, least) < 0 || time_of(r, GPUL_COMM_RING, least) < 0)
		return;
	while (low > least && !beats_ring(r, algo, low)) {
		high = low;
		low = fmax(least, low / 1.09);
	}
	if (!beats_ring(r, algo, low))
		low = high = 0;
	while (high - low > 1 && high / low > 1.0001) {
		const double middle = (low + high) / 2;

		*(beats_ring(r, algo, middle) ? &low : &high) = middle;
	}
	r->turns[r->n_turns++] = (struct plan_turn){ algo, (uint64_t)ceil(high) };
}

void plan_compute(struct plan_result *r)
{
	uint64_t sizes[PLAN_MOST_ROWS];

	r->n_rows = plan_sizes(&r->q, sizes);
	for (unsigned i = 0; i < r->n_rows; i++)
		fill_row(r, sizes[i], &r->rows[i]);
	if (r->n_rows == 0)
		return;
	find_ranges(r);
	find_turn(r, GPUL_COMM_TREE);
	find_turn(r, GPUL_COMM_TWO_LEVEL);
}
