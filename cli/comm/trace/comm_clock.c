/* comm_clock.c — relates the clocks of the hosts of a job. */
#include "cli/comm/trace/comm_clock.h"

#include <stdlib.h>
#include <string.h>

#include "cli/comm/comm_run.h"

/* ---- the relation ------------------------------------------------------------------------------------------------ */

static uint64_t round_trip(const gpul_boot_stamp *s)
{
	return s->after_ns - s->before_ns;
}

static const gpul_boot_stamp *shortest(const gpul_boot_stamp *stamps, size_t n)
{
	const gpul_boot_stamp *best = stamps;

	for (size_t i = 1; i < n; i++)
		if (round_trip(&stamps[i]) < round_trip(best))
			best = &stamps[i];
	return best;
}

/* Return the distance in ns between the converted time of a stamp and the interval in which it must be; 0: it is inside. */
static double distance_outside(const struct fifo_clock_relation *r, const gpul_boot_stamp *s)
{
	const uint64_t at = fifo_clock_cpu_ns(r, s->there_ns);

	return at < s->before_ns ? (double)(s->before_ns - at) : at > s->after_ns ? (double)(at - s->after_ns) : 0;
}

gpul_status comm_clock_relate(const gpul_boot_stamp *stamps, size_t n, size_t n_burst, struct comm_host_clock *out, gpul_error *err)
{
	struct comm_host_clock c = { 0 };
	const gpul_boot_stamp *a, *b;
	struct fifo_clock_sample best[2];
	gpul_status st;

	if (n_burst == 0 || n < 2 * n_burst)
		return gpul_fail(
			err, GPUL_EINVAL, 0,
			"cannot synchronise the clocks of two hosts with %zu round trips in bursts of %zu: at least two bursts are needed",
			n, n_burst);
	a = shortest(stamps, n_burst);
	b = shortest(stamps + n - n_burst, n_burst);
	best[0] = (struct fifo_clock_sample){ .before_ns = a->before_ns, .after_ns = a->after_ns, .gpu_ns = a->there_ns };
	best[1] = (struct fifo_clock_sample){ .before_ns = b->before_ns, .after_ns = b->after_ns, .gpu_ns = b->there_ns };
	st = fifo_clock_relate(best, 2, 1, &c.relation, err);
	if (st)
		return st;
	c.drift_bound = (double)(round_trip(a) + round_trip(b)) / 2 / (double)(b->before_ns - a->before_ns);
	c.offset_ns = (int64_t)(c.relation.cpu_ns - c.relation.gpu_ns);
	/* If the relative rate is above its mean by w in one half of an interval t, and below it by
	 * w in the other half, the clocks deviate from the line by w t / 2. */
	c.relation.bound_ns += COMM_CLOCK_WANDER * (double)(b->after_ns - a->before_ns) / 2;
	for (const gpul_boot_stamp *s = a; s <= b; s++) { /* check the bound with the stamps between the two bursts, where it applies */
		const double off = distance_outside(&c.relation, s);

		if (off > c.relation.bound_ns)
			c.relation.bound_ns = off + (double)round_trip(s);
	}
	*out = c;
	return GPUL_OK;
}

/* ---- the stamps -------------------------------------------------------------------------------------------------- */

struct comm_clocks {
	gpul_boot *boot;
	size_t n_hosts, n;       /* n: number of time stamps of each host */
	gpul_boot_stamp *stamps; /* n stamps of each host, on rank 0; NULL on the other ranks */
};

/* Take time stamps of all hosts: rank 0 stores them, and the other ranks only reply. */
static gpul_status take(struct comm_clocks *c, unsigned n_rounds, gpul_error *err)
{
	gpul_boot_stamp *burst = calloc(c->n_hosts * n_rounds, sizeof *burst);
	gpul_boot_stamp *more = calloc(c->n_hosts * (c->n + n_rounds), sizeof *more);
	gpul_status st;

	if (!burst || !more)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the clocks of %zu hosts", c->n_hosts);
	else
		st = gpul_boot_clocks(c->boot, n_rounds, burst, COMM_MEET_MS, err);
	if (st) {
		free(burst);
		free(more);
		return st;
	}
	for (size_t h = 0; h < c->n_hosts; h++) {
		gpul_boot_stamp *to = more + h * (c->n + n_rounds);

		if (c->n)
			memcpy(to, c->stamps + h * c->n, c->n * sizeof *to);
		memcpy(to + c->n, burst + h * n_rounds, n_rounds * sizeof *to);
	}
	free(burst);
	free(c->stamps);
	c->stamps = more;
	c->n += n_rounds;
	return GPUL_OK;
}

gpul_status comm_clocks_create(gpul_boot *boot, struct comm_clocks **out, gpul_error *err)
{
	struct comm_clocks *c = calloc(1, sizeof *c);
	gpul_status st;

	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the clocks of the hosts");
	*c = (struct comm_clocks){ .boot = boot, .n_hosts = (size_t)gpul_boot_n_hosts(boot) };
	st = take(c, COMM_CLOCK_BURST, err);
	if (st) {
		comm_clocks_destroy(c);
		return st;
	}
	*out = c;
	return GPUL_OK;
}

void comm_clocks_destroy(struct comm_clocks *c)
{
	if (!c)
		return;
	free(c->stamps);
	free(c);
}

gpul_status comm_clocks_check(struct comm_clocks *c, gpul_error *err)
{
	return take(c, COMM_CLOCK_CHECK, err);
}

gpul_status comm_clocks_finish(struct comm_clocks *c, struct comm_host_clock *out, gpul_error *err)
{
	gpul_status st = take(c, COMM_CLOCK_BURST, err);

	for (size_t h = 1; !st && gpul_boot_rank(c->boot) == 0 && h < c->n_hosts; h++)
		st = comm_clock_relate(c->stamps + h * c->n, c->n, COMM_CLOCK_BURST, &out[h], err);
	return st;
}
