/* fit.c — fits the costs of a protocol to measured calls: a simplex search (Nelder-Mead) minimises the error.
 *
 * The unknowns, the five costs in put_costs(), are positive and differ by orders of magnitude, so the search uses their logarithms. */
#include <math.h>
#include <string.h>

#include "lab/predict/predict.h"

enum { N = 5, ROUNDS = 2000 };

/* The penalty for a parameter that differs from the initial guess by a factor of e.  It is small, but it keeps a parameter that the
 * measured calls do not determine near the guess. */
static const double pull = 1e-4;

struct fit {
	gpul_comm_machine *m;
	gpul_comm_proto proto;
	const gpul_comm_point *points;
	unsigned n_points;
	double guess[N];
};

struct corner {
	double x[N], error;
};

static void put_costs(const struct fit *f, const double x[N])
{
	gpul_comm_costs *c = &f->m->inside[f->proto];

	c->overhead_us = exp(x[0]);
	c->latency_us = exp(x[1]);
	c->gap_us = exp(x[2]);
	c->us_per_byte = exp(x[3]);
	c->reduce_us_per_byte = exp(x[4]);
}

/* Compute the error of a corner of the simplex: the sum of the squares of log(predicted / measured), plus a penalty (`pull`). */
static void judge(const struct fit *f, struct corner *c)
{
	put_costs(f, c->x);
	c->error = 0;
	for (unsigned i = 0; i < f->n_points; i++) {
		const gpul_comm_point *p = &f->points[i];
		const double d = log(gpul_comm_predict(f->m, p->call, p->algo, f->proto, p->bytes) / p->us);

		c->error += d * d;
	}
	for (int k = 0; k < N; k++)
		c->error += pull * (c->x[k] - f->guess[k]) * (c->x[k] - f->guess[k]);
}

/* Return the point worst + times * (middle - worst), where middle is the mean of the other corners; if times > 1, it lies beyond middle. */
static struct corner reflect(const struct fit *f, const struct corner *worst, const double middle[N], double times)
{
	struct corner c;

	for (int k = 0; k < N; k++)
		c.x[k] = worst->x[k] + times * (middle[k] - worst->x[k]);
	judge(f, &c);
	return c;
}

/* Sort the corners by their error, the smallest first. */
static void sort_corners(struct corner *c)
{
	for (int i = 1; i <= N; i++)
		for (int k = i; k > 0 && c[k].error < c[k - 1].error; k--) {
			const struct corner other = c[k];

			c[k] = c[k - 1];
			c[k - 1] = other;
		}
}

static void shrink(const struct fit *f, struct corner *c)
{
	for (int i = 1; i <= N; i++) {
		for (int k = 0; k < N; k++)
			c[i].x[k] = (c[0].x[k] + c[i].x[k]) / 2;
		judge(f, &c[i]);
	}
}

static void move_simplex(const struct fit *f, struct corner *c)
{
	struct corner *worst = &c[N], next, further;
	double middle[N] = { 0 };

	sort_corners(c);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			middle[k] += c[i].x[k] / N;
	next = reflect(f, worst, middle, 2);
	if (next.error < c[0].error) {
		further = reflect(f, worst, middle, 3);
		*worst = further.error < next.error ? further : next;
		return;
	}
	if (next.error < c[N - 1].error) {
		*worst = next;
		return;
	}
	next = reflect(f, worst, middle, next.error < worst->error ? 1.5 : 0.5);
	if (next.error < worst->error)
		*worst = next;
	else
		shrink(f, c);
}

gpul_status gpul_comm_fit(gpul_comm_machine *m, gpul_comm_proto proto, const gpul_comm_point *points, unsigned n, gpul_error *err)
{
	const gpul_comm_costs *guess = &m->inside[proto];
	const struct fit f = { m,
			       proto,
			       points,
			       n,
			       { log(guess->overhead_us), log(guess->latency_us), log(guess->gap_us), log(guess->us_per_byte),
				 log(guess->reduce_us_per_byte) } };
	double start[N];
	struct corner c[N + 1];

	if (n < N)
		return gpul_fail(err, GPUL_EINVAL, 0, "there are only %u measured calls, but at least %d are needed to fit %d parameters",
				 n, N, N);
	for (unsigned i = 0; i < n; i++)
		if (!(points[i].us > 0) || gpul_comm_predict(m, points[i].call, points[i].algo, proto, points[i].bytes) <= 0)
			return gpul_fail(err, GPUL_EINVAL, 0, "measured call %u (%s by %s) has no measured or no predicted time", i,
					 gpul_comm_call_name(points[i].call), gpul_comm_algo_name(points[i].algo));
	memcpy(start, f.guess, sizeof start);
	for (int again = 0; again < 2; again++) { /* search again with a new simplex, because the first one may have become flat */
		for (int i = 0; i <= N; i++) {
			for (int k = 0; k < N; k++)
				c[i].x[k] = start[k] + (i == k + 1 ? 1.5 : 0);
			judge(&f, &c[i]);
		}
		for (int round = 0; round < ROUNDS; round++)
			move_simplex(&f, c);
		sort_corners(c);
		memcpy(start, c[0].x, sizeof start);
	}
	put_costs(&f, c[0].x);
	return GPUL_OK;
}
