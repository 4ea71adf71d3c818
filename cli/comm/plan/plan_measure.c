/* plan_measure.c — measures the parameters of the model, and each algorithm to check the predictions.
 *
 * The parameters of a protocol come from rings only: reduce-scatter, all-gather and broadcast of four sizes.  Every other algorithm
 * is predicted from them.  A time is the minimum of several runs, because longer times are due to other work on the machine. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/comm/plan/cli_plan.h"

enum { RUNS = 5 };

/* Return the plan of all measured kernels, with the same blocks and threads in each, so that a step always moves the same number of
 * bytes. */
static gpul_comm_plan plan_with(const struct comm_rank *r, gpul_comm_algo algo, gpul_comm_proto proto)
{
	const bool interprets = r->drv->interprets;

	return (gpul_comm_plan){ .algo = algo, .proto = proto, .n_blocks = interprets ? 2 : 16, .n_threads = interprets ? 96 : 512 };
}

/* Time a call with a plan.  *us becomes 0 if the plan is not possible. */
static gpul_status time_call(struct comm_rank *r, const struct plan_result *result, gpul_comm_call call, gpul_comm_algo algo,
			     gpul_comm_proto proto, size_t bytes, double *us, gpul_error *err)
{
	const struct comm_shape s = comm_shape_of(call, GPUL_COMM_F32, r->job.rank, r->job.size, bytes);
	const struct comm_request q = { .call = call, .dtype = GPUL_COMM_F32, .iterations = result->q.iterations, .warmups = 1 };
	const gpul_comm_plan wanted = plan_with(r, algo, proto);
	gpul_status st = GPUL_OK;

	*us = 0;
	if (gpul_comm_plan_obstacle(r->comm, call, algo, proto, s.bytes))
		return GPUL_OK;
	gpul_comm_plan_force(r->comm, &wanted);
	for (int run = 0; !st && run < RUNS; run++) {
		struct comm_figures f = { 0 };

		st = comm_time_calls(r, &s, &q, false, &f, err);
		*us = *us > 0 && *us < f.us ? *us : f.us;
	}
	gpul_comm_plan_force(r->comm, NULL);
	return st;
}

/* Return the number of bytes that a step of all blocks together moves. */
static double step_bytes(const struct comm_rank *r, gpul_comm_proto proto)
{
	return (double)gpul_comm_slot_data(r->comm, proto) * plan_with(r, GPUL_COMM_RING, proto).n_blocks;
}

/* Copy a text into a field of a row, with the separators of the file replaced. */
static void copy_field(char *out, size_t out_bytes, const char *text)
{
	(void)snprintf(out, out_bytes, "%.*s", (int)out_bytes - 1, *text ? text : "?");
	for (char *at = out; *at; at++)
		if (*at == ',' || *at == '\n')
			*at = ' ';
}

static void describe_row(const struct comm_rank *r, const struct plan_result *result, gpul_comm_params_row *row)
{
	const time_t now = time(NULL);
	char host[64] = "", date[16] = "";
	struct tm utc;

	if (gethostname(host, sizeof host - 1))
		host[0] = 0;
	if (!gmtime_r(&now, &utc) || !strftime(date, sizeof date, "%Y-%m-%d", &utc))
		date[0] = 0;
	copy_field(row->device, sizeof row->device, result->about[0].name);
	copy_field(row->host, sizeof row->host, host);
	copy_field(row->date, sizeof row->date, date);
	row->transport = result->transport;
	row->cores = r->drv->interprets ? (unsigned)sysconf(_SC_NPROCESSORS_ONLN) : 0;
}

/* True if a ring passes each byte around once in this call, so that its time shows the cost of one kind of step.  An all-reduce
 * goes around twice, and mixes steps that add with steps that copy. */
static bool goes_around_once(gpul_comm_call call)
{
	return gpul_comm_call_info(call)->rounds < 2 && gpul_comm_plan_exists(call, GPUL_COMM_RING, GPUL_COMM_SIMPLE);
}

/* Measure rings with a protocol, and fit the protocol's costs to the times. */
static gpul_status fit_protocol(struct comm_rank *r, struct plan_result *result, gpul_comm_proto proto, gpul_error *err)
{
	static const double sizes[] = { 1.0 / 32, 1.0 / 4, 1, 8 }; /* message sizes, in multiples of the bytes that one step moves */
	gpul_comm_machine m = { .n_ranks = (uint32_t)r->job.size, .ranks_per_host = (uint32_t)r->job.size };
	gpul_comm_params_row *row = &result->params.rows[result->params.n_rows];
	gpul_comm_point points[PLAN_MOST_POINTS];
	unsigned n = 0;
	gpul_status st = gpul_comm_machine_prepare(&m, err);

	_Static_assert(GPUL_COMM_N_CALLS * (sizeof sizes / sizeof *sizes) <= PLAN_MOST_POINTS, "all points have a place");
	for (gpul_comm_call call = 0; !st && call < GPUL_COMM_N_CALLS; call++)
		for (unsigned k = 0; !st && goes_around_once(call) && k < sizeof sizes / sizeof *sizes && !atomic_load(&r->stop); k++) {
			const double steps = gpul_comm_call_info(call)->has_parts ? sizes[k] * r->job.size : 2 * sizes[k];
			const size_t bytes = (size_t)(steps * step_bytes(r, proto));

			points[n] = (gpul_comm_point){ .call = call, .algo = GPUL_COMM_RING, .bytes = (double)bytes };
			st = time_call(r, result, call, GPUL_COMM_RING, proto, bytes, &points[n].us, err);
			n += points[n].us > 0;
		}
	if (st || n == 0)
		return st;
	describe_row(r, result, row);
	row->proto = proto;
	m.cores = row->cores;
	m.inside[proto] = (gpul_comm_costs){ r->drv->interprets ? 30 : 4,      r->drv->interprets ? 20 : 1,
					     r->drv->interprets ? 20 : 0.5,    r->drv->interprets ? 1e-3 : 5e-6,
					     r->drv->interprets ? 2e-3 : 5e-7, step_bytes(r, proto) };
	st = gpul_comm_fit(&m, proto, points, n, err);
	row->costs = m.inside[proto];
	result->params.n_rows += !st;
	return st;
}

/* Time each algorithm that can be predicted. */
static gpul_status check_size(struct comm_rank *r, struct plan_result *result, uint64_t bytes, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (gpul_comm_algo a = GPUL_COMM_RING; !st && a < GPUL_COMM_N_ALGOS; a++)
		for (gpul_comm_proto p = GPUL_COMM_LL; !st && p < GPUL_COMM_N_PROTOS && !atomic_load(&r->stop); p++) {
			struct plan_check *c = &result->checks[result->n_checks];

			*c = (struct plan_check){ .algo = a, .proto = p, .bytes = bytes };
			c->predicted_us = gpul_comm_predict(&result->machine, result->q.call, a, p, (double)bytes);
			if (c->predicted_us < 0 || result->n_checks == PLAN_MOST_CHECKS - 1)
				continue;
			st = time_call(r, result, result->q.call, a, p, bytes, &c->measured_us, err);
			result->n_checks += c->measured_us > 0;
		}
	return st;
}

gpul_status plan_measure(struct comm_rank *r, void *argument, gpul_error *err)
{
	struct plan_result *result = argument;
	uint64_t sizes[PLAN_MOST_ROWS];
	unsigned n = 0;
	/* the largest size that fit_protocol() uses */
	const size_t largest = (size_t)(8 * step_bytes(r, GPUL_COMM_SIMPLE)) * (size_t)r->job.size;
	gpul_status st;

	if (result->q.check)
		n = plan_sizes(&result->q, sizes);
	st = comm_rank_allocate(r, n && sizes[n - 1] > largest ? sizes[n - 1] : largest, true, err);
	for (gpul_comm_proto p = GPUL_COMM_LL; !st && p < GPUL_COMM_N_PROTOS && !atomic_load(&r->stop); p++) {
		st = fit_protocol(r, result, p, err);
		atomic_store(&r->permille, 150u * p);
	}
	if (!st && result->params.n_rows == 0 && !atomic_load(&r->stop))
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "these ranks cannot be connected in a ring, which the measurement needs");
	if (st || !result->q.check || atomic_load(&r->stop))
		return st;
	/* All ranks have exchanged their times, so they have the same parameters and make the same calls. */
	st = plan_find_machine(result, err);
	for (unsigned i = 0; !st && i < n && !atomic_load(&r->stop); i++) {
		st = check_size(r, result, sizes[i], err);
		atomic_store(&r->permille, 450 + 550 * (i + 1) / n);
	}
	return st;
}

void plan_write_params(const gpul_comm_params *old, const gpul_comm_params *measured, struct out *o)
{
	const gpul_comm_params *both[] = { old, measured };

	out_text(o, GPUL_COMM_PARAMS_HEADER "\n");
	for (int i = 0; i < 2; i++)
		for (unsigned k = 0; k < both[i]->n_rows; k++) {
			const gpul_comm_params_row *row = &both[i]->rows[k];

			if (i == 0 && measured->n_rows && row->transport == measured->rows[0].transport)
				continue;
			out_add(o, "%s,%s,%s,%u,%.4g,%.4g,%.4g,%.4g,%.4g,%.0f,%s,%s\n", row->device,
				gpul_comm_transport_name(row->transport), gpul_comm_proto_name(row->proto), row->cores,
				row->costs.overhead_us, row->costs.latency_us, row->costs.gap_us, 1e-3 / row->costs.us_per_byte,
				1e-3 / row->costs.reduce_us_per_byte, row->costs.step_bytes, row->host, row->date);
		}
}
