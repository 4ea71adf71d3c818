/* cli_plan.c — the command gpuload comm plan: predicts the times of collectives. */
#include "cli/comm/plan/cli_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/comm/comm_job.h"
#include "cli/lib/bench/bench_output.h"

/* clang-format off */
enum {
	OPT_RANKS = COMM_N_PLACE_OPTS, OPT_GPUS, OPT_LINK, OPT_INSIDE, OPT_BYTES, OPT_CALL, OPT_PARAMS, OPT_MEASURE, OPT_CHECK, OPT_ITERS, OPT_OUT,
	OPT_JSON, OPT_PLOT, OPT_FORCE,
};
/* clang-format on */
/* clang-format off */
static const struct cli_opt plan_opts[] = {
	COMM_PLACE_OPTS,
	[OPT_RANKS] = { "ranks", "N", "ranks to predict for, 2 to 65536 (default with -n: the same number)", NULL },
	[OPT_GPUS] = { "gpus-per-host", "N", "ranks on each host (default: one host)", NULL },
	[OPT_LINK] = { "link", "LINK", "link between hosts: a name such as ndr, or LATENCY:BANDWIDTH in us and GB/s",
		"xdr ndr hdr eth100 eth25" },
	[OPT_INSIDE] = { "inside", "LINK", "link inside a host, in the same form (default: from the parameters)",
			 "nvlink4 nvlink3 pcie5 pcie4" },
	[OPT_BYTES] = { "bytes", "MIN:MAX:FACTOR", "sizes (default: 1K:1G:4; with --check 1K:256K:16)", NULL },
	[OPT_CALL] = { "call", "NAME", "collective (default: allreduce)",
		GPUL_COMM_LIST_WORDS },
	[OPT_PARAMS] = { "params", "FILE", "parameters that --measure has written (default: built-in, of H200s)", CLI_FILES },
	[OPT_MEASURE] = { "measure", NULL, "measure the parameters on this machine with N ranks (-n), and predict with them", NULL },
	[OPT_CHECK] = { "check", NULL, "also measure each algorithm on the N ranks, and print the error of its prediction", NULL },
	[OPT_ITERS] = { "iters", "N", "calls per measurement (default: 20; 3 on the software driver)", NULL },
	[OPT_OUT] = { "o", "FILE", "write the measured parameters to FILE, keeping its rows for other transports", CLI_FILES },
	[OPT_JSON] = CLI_JSON_OPT,
	[OPT_PLOT] = { "plot", "FILE", "also plot the times against the size, as SVG", CLI_FILES },
	[OPT_FORCE] = { "force", NULL, "replace the file of --plot if it exists", NULL },
	{ 0 },
};
/* clang-format on */

/* ---- the request ------------------------------------------------------------------------------------------------- */

static gpul_status parse_call(const char *text, gpul_comm_call *out, gpul_error *err)
{
	*out = GPUL_COMM_ALLREDUCE;
	if (!text || gpul_comm_call_parse(text, out))
		return GPUL_OK;
	return gpul_fail(err, GPUL_EINVAL, 0, "--call must be " GPUL_COMM_LIST_PLANNED ", not '%s'", text);
}

static gpul_status parse_request(const struct cli_args *args, struct plan_request *q, gpul_error *err)
{
	const char *bytes = cli_value(args, OPT_BYTES);
	int n_ranks = 0, per_host = 0;
	gpul_status st;

	*q = (struct plan_request){
		.link = cli_value(args, OPT_LINK),
		.inside = cli_value(args, OPT_INSIDE),
		.params = cli_value(args, OPT_PARAMS),
		.path = cli_value(args, OPT_OUT),
		.plot = cli_value(args, OPT_PLOT),
		.iterations = -1,
		.check = cli_value(args, OPT_CHECK),
		.json = cli_value(args, OPT_JSON),
		.force = cli_value(args, OPT_FORCE),
		.min_bytes = 1 << 10,
		.max_bytes = 1 << 30,
		.factor = 4,
	};
	q->measure = q->check || cli_value(args, OPT_MEASURE);
	if (q->check) {
		q->max_bytes = 256 << 10;
		q->factor = 16;
	}
	st = comm_place_parse(args, &q->place, err);
	st = st ? st : comm_parse_int("--ranks", cli_value(args, OPT_RANKS), 2, GPUL_COMM_PREDICT_MAX_RANKS, &n_ranks, err);
	st = st ? st : comm_parse_int("--gpus-per-host", cli_value(args, OPT_GPUS), 1, GPUL_COMM_PREDICT_MAX_RANKS, &per_host, err);
	st = st ? st : comm_parse_int("--iters", cli_value(args, OPT_ITERS), 1, COMM_MOST_ITERATIONS, &q->iterations, err);
	st = st ? st : parse_call(cli_value(args, OPT_CALL), &q->call, err);
	q->n_ranks = (uint32_t)n_ranks;
	q->ranks_per_host = (uint32_t)per_host;
	return st || !bytes ? st : comm_parse_bytes(bytes, &q->min_bytes, &q->max_bytes, &q->factor, err);
}

/* Refuse options that contradict each other.  launched: this process is a rank that a launcher has started. */
static gpul_status check_request(const struct cli_args *args, const struct plan_request *q, bool launched, gpul_error *err)
{
	if (args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "unexpected argument '%s'; see gpuload help comm plan", args->operands[0]);
	if (q->place.n_ranks && !q->measure)
		return gpul_fail(err, GPUL_EINVAL, 0, "-n starts ranks for --measure or --check; --ranks is the number to predict for");
	if (q->measure && !q->place.n_ranks && !launched)
		return gpul_fail(err, GPUL_EINVAL, 0, "--measure and --check need the option -n N with at least 2 ranks");
	if (q->place.n_ranks == 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "-n is 1, but at least 2 ranks are needed to measure links");
	if (!q->measure && !q->n_ranks)
		return gpul_fail(err, GPUL_EINVAL, 0, "--ranks is missing: the number of ranks to predict for");
	if (q->measure && q->params)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--params cannot be combined with --measure or --check, which measure the parameters");
	if (q->check && (q->n_ranks || q->ranks_per_host || q->link || q->inside))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--check predicts for the ranks that it starts; it cannot be combined with --ranks, --gpus-per-host, "
				 "--link or --inside");
	if (q->path && !q->measure)
		return gpul_fail(err, GPUL_EINVAL, 0, "-o writes measured parameters, so it needs the option --measure");
	return output_check(q->plot, q->force, err);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static gpul_status write_params(const struct plan_result *r, gpul_error *err)
{
	gpul_comm_params old = { .n_rows = 0 };
	struct out o = { 0 };
	gpul_status st = access(r->q.path, F_OK) == 0 ? gpul_comm_params_read(r->q.path, &old, err) : GPUL_OK;

	if (st)
		return st;
	plan_write_params(&old, &r->params, &o);
	return output_file(r->q.path, true, &o, "parameters", err);
}

static gpul_status print_result(const struct plan_result *r, gpul_error *err)
{
	struct output o = { .plot = r->q.plot, .force = r->q.force, .json = r->q.json };

	if (r->q.json)
		plan_json(r, &o.text);
	else
		plan_text(r, &o.text.out);
	if (r->q.plot)
		plan_svg(r, &o.svg);
	return output_write(&o, err);
}

/* Predict the times and print them, once the parameters are known. */
static gpul_status finish(struct plan_result *r, gpul_error *err)
{
	gpul_status st = r->q.path ? write_params(r, err) : GPUL_OK;

	st = st ? st : plan_find_machine(r, err);
	if (st)
		return st;
	plan_compute(r);
	return print_result(r, err);
}

/* ---- a rank of --measure ------------------------------------------------------------------------------------------- */

static int run_rank(struct plan_result *result, const gpul_comm_job *job, gpul_error *err)
{
	const gpul_comm_options options = { .table = "" };
	struct comm_rank r = { 0 };
	gpul_status st = comm_rank_open(&result->q.place, &options, job, &r, err);

	if (!st) {
		result->n_here = job->size;
		result->transport = gpul_comm_transport_of(r.comm);
		if (result->q.iterations < 0)
			result->q.iterations = r.drv->interprets ? 3 : 20;
		st = comm_rank_introduce(&r, result->about, err);
		st = st ? st : comm_rank_run(&r, "comm plan", plan_measure, result, err);
		st = st || job->rank ? st : finish(result, err);
	}
	comm_rank_close(&r);
	if (st == GPUL_ESYS && err->native == ECANCELED)
		comm_job_quiet(job, err);
	comm_job_sign(job, err);
	return cli_exit_code(st);
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static int run_plan(const struct cli_args *args, struct plan_result *result, gpul_error *err)
{
	gpul_comm_job job = { 0 };
	bool launches = false, launched;
	gpul_status st = parse_request(args, &result->q, err);

	st = st ? st : gpul_comm_job_find(&job, err);
	launched = !st && strcmp(job.source, "single") != 0;
	st = st ? st : check_request(args, &result->q, launched, err);
	if (!st && result->q.measure)
		st = comm_job_find(result->q.place.n_ranks, result->q.place.hosts.n > 0, &job, &launches, err);
	if (st) {
		comm_job_quiet(&job, err);
		return cli_exit_code(st);
	}
	if (result->q.measure)
		return launches ? comm_job_launch(result->q.place.n_ranks, &result->q.place.hosts, result->q.place.agent, err)
				: run_rank(result, &job, err);
	return cli_exit_code(finish(result, err));
}

static int cmd_plan(const struct cli_args *args, gpul_error *err)
{
	struct plan_result *result = calloc(1, sizeof *result);
	int code = CLI_FAILED;

	if (result)
		code = run_plan(args, result, err);
	else
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the result");
	free(result);
	return code;
}

/* clang-format off */
const struct cli_cmd cli_comm_plan = {
	"comm plan", "", "predict the time of each algorithm for any number of ranks",
	"Computes the time of a collective by each algorithm and protocol, for up to 65536 ranks, and\n"
	"where another one becomes the best. The model has four parameters for each kind of link and\n"
	"protocol: overhead of a call, latency, gap of a step, bandwidth (docs/comm-plan.md). They are\n"
	"built in for H200s with NVLink, set by --inside and --link, measured here (--measure -n N), or\n"
	"read from a file (--params).\n"
	"\n"
	"    gpuload comm plan --ranks 1024 --gpus-per-host 8 --link ndr\n"
	"    gpuload comm plan --check -n 4            predicted and measured times on this machine\n",
	plan_opts, cmd_plan, NULL, NULL,
};
/* clang-format on */
