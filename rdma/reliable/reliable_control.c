/* reliable_control.c — how much a path may send: by a window (Swift), by a rate (Timely), or always path_window.
 *
 * Both look at the delay, not at single losses: a link that loses 1 % of the packets is not congested.  A path that loses more than a
 * tenth of a round's packets has a full queue, and slows down, too. */
#include "rdma/reliable/reliable_internal.h"

/* Swift, section 3.1.  A path doubles its window in each round until the delay first exceeds the target (slow start). */
static const double ADD = 1.0, BETA = 0.8, MOST_DECREASE = 0.5, FIRST_WINDOW = 16, LEAST_WINDOW = 1;
/* Timely, figure 6 and section 4.3: the step in bytes/s is DELTA of the rate of the link. */
static const double EWMA = 0.46, TIMELY_BETA = 0.26, DELTA = 0.001, LEAST_RATE = 0.001;
enum { HAI_AFTER = 5, T_HIGH = 10, LOSSY_TENTHS = 1, PACE_CHUNKS = 16 };

void rel_control_start(const gpul_rel *r, struct rel_path *p)
{
	p->window = FIRST_WINDOW < r->o.path_window ? FIRST_WINDOW : r->o.path_window;
	p->slow_start = true;
	p->rate = (double)r->o.rate;
	if (r->o.control != GPUL_REL_SWIFT)
		p->window = r->o.path_window;
}

static void limit_rate(const gpul_rel *r, struct rel_path *p)
{
	const double link = (double)r->o.rate;

	p->rate = p->rate > link ? link : p->rate < LEAST_RATE * link ? LEAST_RATE * link : p->rate;
}

static void limit_window(const gpul_rel *r, struct rel_path *p)
{
	p->window = p->window < LEAST_WINDOW ? LEAST_WINDOW : p->window > r->o.path_window ? r->o.path_window : p->window;
}

/* Multiply the window once per round-trip time. */
static void decrease(const gpul_rel *r, struct rel_path *p, double factor, uint64_t now_ns)
{
	p->slow_start = false;
	if (now_ns - p->decreased_ns < p->rtt_ns)
		return;
	p->decreased_ns = now_ns;
	p->window *= factor;
	limit_window(r, p);
}

static void swift(const gpul_rel *r, struct rel_path *p, uint64_t rtt_ns, uint32_t n, bool lossy, uint64_t now_ns)
{
	const double delay = (double)(rtt_ns - p->rtt_min_ns), target = (double)r->o.target_ns;
	double factor;

	if (lossy) {
		decrease(r, p, MOST_DECREASE, now_ns);
		return;
	}
	if (delay <= target) {
		p->window += p->slow_start ? n : ADD * n / p->window;
		limit_window(r, p);
		return;
	}
	factor = 1 - BETA * (delay - target) / (double)rtt_ns;
	decrease(r, p, factor < MOST_DECREASE ? MOST_DECREASE : factor, now_ns);
}

static void timely(const gpul_rel *r, struct rel_path *p, uint64_t rtt_ns, bool lossy)
{
	const double link = (double)r->o.rate, rtt = (double)rtt_ns, min = (double)p->rtt_min_ns;
	const double low = min + (double)r->o.target_ns, high = min + (double)r->o.target_ns * T_HIGH;
	const double change = p->rtt_before_ns ? rtt - (double)p->rtt_before_ns : 0;
	double gradient;

	p->rtt_before_ns = rtt_ns;
	p->gradient_ns = (1 - EWMA) * p->gradient_ns + EWMA * change;
	gradient = p->gradient_ns / min;
	if (lossy || rtt > high) {
		p->rate *= 1 - TIMELY_BETA * (rtt > high ? 1 - high / rtt : 1);
		p->n_increases = 0;
	} else if (rtt < low || gradient <= 0) {
		p->n_increases++;
		p->rate += DELTA * link * (p->n_increases >= HAI_AFTER ? HAI_AFTER : 1);
	} else {
		p->rate *= 1 - TIMELY_BETA * (gradient < 1 ? gradient : 1);
		p->n_increases = 0;
	}
	limit_rate(r, p);
}

/* Count the packets of a round (one round-trip time); returns true at its end if more than a tenth were lost. */
static bool end_round(struct rel_path *p, uint32_t n, uint32_t n_lost, uint64_t now_ns)
{
	bool lossy;

	p->round_acked += n;
	p->round_lost += n_lost;
	if (now_ns < p->round_ns)
		return false;
	lossy = p->round_lost * 10 > (p->round_acked + p->round_lost) * LOSSY_TENTHS && p->round_lost > 2;
	p->round_ns = now_ns + p->rtt_ns;
	p->round_acked = p->round_lost = 0;
	return lossy;
}

void rel_control_acked(const gpul_rel *r, struct rel_path *p, uint64_t rtt_ns, uint32_t n, uint32_t n_lost, uint64_t now_ns)
{
	const bool lossy = end_round(p, n, n_lost, now_ns);

	if (r->o.control == GPUL_REL_SWIFT)
		swift(r, p, rtt_ns, n, lossy, now_ns);
	else if (r->o.control == GPUL_REL_TIMELY)
		timely(r, p, rtt_ns, lossy);
}

void rel_control_timeout(const gpul_rel *r, struct rel_path *p)
{
	if (r->o.control == GPUL_REL_SWIFT) {
		if (p->n_timeouts == 1)
			p->window_before = p->window;
		p->window = LEAST_WINDOW;
		p->slow_start = true;
	} else if (r->o.control == GPUL_REL_TIMELY) {
		p->rate /= 2;
		limit_rate(r, p);
		p->n_increases = 0;
	}
}

void rel_control_late(const gpul_rel *r, struct rel_path *p)
{
	if (r->o.control == GPUL_REL_SWIFT && p->window_before > p->window)
		p->window = p->window_before;
}

bool rel_control_may_send(const gpul_rel *r, const struct rel_path *p, uint64_t now_ns)
{
	if (p->in_flight >= (p->n_timeouts ? 1 : r->o.path_window))
		return false;
	if (r->o.control == GPUL_REL_TIMELY)
		return p->next_send_ns <= now_ns;
	return p->in_flight < p->window;
}

void rel_control_sent(const gpul_rel *r, struct rel_path *p, uint64_t now_ns)
{
	uint64_t gap_ns, least_ns;

	if (r->o.control != GPUL_REL_TIMELY)
		return;
	gap_ns = (uint64_t)((double)r->o.chunk_bytes * 1e9 / p->rate);
	least_ns = now_ns > PACE_CHUNKS * gap_ns ? now_ns - PACE_CHUNKS * gap_ns : 0; /* a caller that is late may catch up by this much */
	p->next_send_ns = (p->next_send_ns > least_ns ? p->next_send_ns : least_ns) + gap_ns;
}
