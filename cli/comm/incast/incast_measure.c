/* incast_measure.c — makes the measurements of gpuload comm incast: first round trip and rate, then each mode. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/comm/incast/incast_rank.h"

enum { TRIALS = 20, RATE_BYTES = 64 << 20, MORE_GRANTS = 2 };

static gpul_status run_all(struct incast_rank *r, const struct incast_run *run, struct incast_figures *f, gpul_error *err)
{
	r->run++;
	return r->job.rank ? incast_send(r, run, err) : incast_receive(r, run, f, err);
}

static unsigned at_most(size_t n, int most)
{
	return n<1 ? 1 : n>(size_t) most ? (unsigned)most : (unsigned)n;
}

/* Measure the time from a grant to the arrival of its data, with one grant at a time, so that the network is empty. */
static gpul_status measure_round_trip(struct incast_rank *r, struct incast_result *result, gpul_error *err)
{
	const struct incast_run run = {
		.mode = INCAST_RECEIVER, .bytes = r->q->grant_bytes, .n_messages = at_most(TRIALS, r->q->n_messages), .window_bytes = 1
	};
	struct incast_figures f = { 0 };
	const gpul_status st = run_all(r, &run, &f, err);

	result->round_trip_ns = f.message.p50_ns;
	return st;
}

/* Measure the rate of the network with large windows. */
static gpul_status measure_rate(struct incast_rank *r, struct incast_result *result, gpul_error *err)
{
	const size_t n_messages = RATE_BYTES / r->q->bytes / (unsigned)(r->job.size - 1);
	const struct incast_run run = { .mode = INCAST_SENDER, .bytes = r->q->bytes, .n_messages = at_most(n_messages, r->q->n_messages) };
	struct incast_figures f = { 0 };
	const gpul_status st = run_all(r, &run, &f, err);

	result->rate_gb_s = f.ns ? (double)f.bytes / (double)f.ns : 0;
	return st;
}

/* Compute the window: the bandwidth-delay product (rate times round trip of a grant) plus two grants.  While the data of one
 * grant is on the link, those of another one are queued, so the link stays busy if a sender is late by less than a grant's time. */
static gpul_status choose_window(struct incast_rank *r, struct incast_result *result, gpul_error *err)
{
	gpul_status st;
	double product;

	result->rate_gb_s = (double)r->q->rate_bits / 8e9;
	result->window_bytes = r->q->window_bytes;
	if (r->q->window_bytes || !r->q->modes[INCAST_RECEIVER])
		return GPUL_OK;
	st = measure_round_trip(r, result, err);
	if (!st && !r->q->rate_bits)
		st = measure_rate(r, result, err);
	product = result->rate_gb_s * (double)result->round_trip_ns;
	result->window_bytes = (uint64_t)product + MORE_GRANTS * r->q->grant_bytes;
	return st;
}

gpul_status incast_measure(struct incast_rank *r, struct incast_result *result, gpul_error *err)
{
	gpul_status st = choose_window(r, result, err);

	for (int m = 0; !st && m < INCAST_N_MODES; m++) {
		const struct incast_run run = { .mode = (enum incast_mode)m,
						.bytes = r->q->bytes,
						.n_messages = (unsigned)r->q->n_messages,
						.window_bytes = result->window_bytes,
						.recorded = true };

		if (!r->q->modes[m])
			continue;
		st = run_all(r, &run, &result->figures[m], err);
		result->figures[m].measured = !st;
	}
	return st;
}

void incast_result_free(struct incast_result *r)
{
	for (int m = 0; m < INCAST_N_MODES; m++)
		free(r->figures[m].samples);
}

bool incast_result_wrong(const struct incast_result *r)
{
	return r->figures[INCAST_SENDER].wrong || r->figures[INCAST_RECEIVER].wrong;
}
