/* comm_sparse.c — gpuload comm sparse-allreduce: the command line, the launcher, a rank. */
#include "cli/comm/sparse/comm_sparse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/comm/comm_job.h"
#include "cli/lib/bench/bench_output.h"

/* clang-format off */
enum {
	OPT_BYTES = COMM_N_PLACE_OPTS, OPT_DENSITY, OPT_BLOCK, OPT_DENSE_ABOVE, OPT_DTYPE, OPT_OP, OPT_ITERS, OPT_WARMUP, OPT_CHECK, OPT_JSON,
};
/* clang-format on */

/* clang-format off */
static const struct cli_opt sparse_opts[] = {
	COMM_PLACE_OPTS,
	[OPT_BYTES] = { "bytes", "MIN:MAX:FACTOR",
		"sizes, such as 1M:64M:4 or 16M; K, M and G are powers of 1024 (default: depends on the driver)", NULL },
	[OPT_DENSITY] = { "density", "PERCENT,...", "percentages of the blocks of a rank that are not zero (default: 0.1,1,10,100)", NULL },
	[OPT_BLOCK] = { "block", "N", "elements of a block, a multiple of 16 (default: 256)", NULL },
	[OPT_DENSE_ABOVE] = { "dense-above", "PERCENT",
		"use the dense all-reduce if more than this percentage of its bytes would be sent (default: 50)", NULL },
	[OPT_DTYPE] = { "dtype", "TYPE", "type of an element (default: f32)", "f16 bf16 f32 f64 i32 u8" },
	[OPT_OP] = { "op", "OP", "operation: sum (default) or avg", "sum avg" },
	[OPT_ITERS] = { "iters", "N", "timed calls (default: 20; 3 on the software driver)", NULL },
	[OPT_WARMUP] = { "warmup", "N", "warm-up calls before them (default: 5; 1 on the software driver)", NULL },
	[OPT_CHECK] = { "check", "on|off", "compare the data with those that the CPU computes (default: on)", "on off" },
	[OPT_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

/* ---- the command line --------------------------------------------------------------------------------------------------- */

static gpul_status parse_densities(const char *list, struct sparse_request *out, gpul_error *err)
{
	for (const char *at = list; at; at = *at == ',' ? at + 1 : NULL) {
		char *end = NULL;
		const double percent = (*at >= '0' && *at <= '9') || *at == '.' ? strtod(at, &end) : -1;

		if (!end || end == at || (*end && *end != ',') || !(percent >= 0 && percent <= 100))
			return gpul_fail(err, GPUL_EINVAL, 0, "--density must be numbers from 0 to 100, such as 0.1,1,10, not '%s'", list);
		if (out->n_percent == SPARSE_MOST_DENSITIES)
			return gpul_fail(err, GPUL_EINVAL, 0, "--density lists more than %d numbers", SPARSE_MOST_DENSITIES);
		out->percent[out->n_percent++] = percent;
		at = end;
	}
	return GPUL_OK;
}

static gpul_status parse_names(const struct cli_args *args, struct sparse_request *out, gpul_error *err)
{
	const char *dtype = cli_value(args, OPT_DTYPE), *op = cli_value(args, OPT_OP), *check = cli_value(args, OPT_CHECK);

	if (dtype && !gpul_comm_dtype_parse(dtype, &out->dtype))
		return gpul_fail(err, GPUL_EINVAL, 0, "--dtype must be f16, bf16, f32, f64, i32 or u8, not '%s'", dtype);
	if (op && (!gpul_comm_op_parse(op, &out->op) || (out->op != GPUL_COMM_SUM && out->op != GPUL_COMM_AVG)))
		return gpul_fail(err, GPUL_EINVAL, 0, "--op must be sum or avg, for which blocks of zeros can be left out, not '%s'", op);
	if (check && strcmp(check, "on") != 0 && strcmp(check, "off") != 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--check must be on or off, not '%s'", check);
	out->check = !check || !strcmp(check, "on");
	return GPUL_OK;
}

static gpul_status parse_numbers(const struct cli_args *args, struct sparse_request *out, gpul_error *err)
{
	const char *bytes = cli_value(args, OPT_BYTES), *density = cli_value(args, OPT_DENSITY);
	int block = GPUL_COMM_SPARSE_BLOCK, above = GPUL_COMM_SPARSE_PERCENT;
	gpul_status st = bytes ? comm_parse_bytes(bytes, &out->min_bytes, &out->max_bytes, &out->factor, err) : GPUL_OK;

	st = st ? st : parse_densities(density ? density : "0.1,1,10,100", out, err);
	st = st ? st : comm_parse_int("--block", cli_value(args, OPT_BLOCK), 16, GPUL_COMM_SPARSE_MAX_BLOCK, &block, err);
	if (!st && block % 16)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--block must be a multiple of 16, not %d", block);
	st = st ? st : comm_parse_int("--dense-above", cli_value(args, OPT_DENSE_ABOVE), 1, 1000, &above, err);
	st = st ? st : comm_parse_int("--iters", cli_value(args, OPT_ITERS), 1, COMM_MOST_ITERATIONS, &out->iterations, err);
	st = st ? st : comm_parse_int("--warmup", cli_value(args, OPT_WARMUP), 0, COMM_MOST_ITERATIONS, &out->warmups, err);
	out->options = (gpul_comm_sparse_options){ .block = (uint32_t)block, .percent = (uint32_t)above };
	return st;
}

static gpul_status parse(const struct cli_args *args, struct sparse_request *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct sparse_request){
		.dtype = GPUL_COMM_F32, .op = GPUL_COMM_SUM, .iterations = -1, .warmups = -1, .json = cli_value(args, OPT_JSON)
	};
	if (args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "unexpected argument '%s'; see gpuload help comm sparse-allreduce",
				 args->operands[0]);
	st = comm_place_parse(args, &out->place, err);
	if (!cli_value(args, COMM_OPT_TRANSPORT))
		out->place.transport = GPUL_COMM_NET; /* the sparse call uses the network, so the dense call does the same */
	st = st ? st : parse_names(args, out, err);
	return st ? st : parse_numbers(args, out, err);
}

/* ---- a rank ---------------------------------------------------------------------------------------------------------------- */

/* Fill in the properties of the job and the driver, and the defaults that depend on the driver. */
static void describe(const struct comm_rank *r, const struct sparse_request *request, struct sparse_result *out)
{
	struct sparse_request *q = &out->q;

	*out = (struct sparse_result){ .q = *request, .rank = r->job.rank, .n_ranks = r->job.size, .interprets = r->drv->interprets };
	(void)snprintf(out->driver, sizeof out->driver, "%s", r->drv->name);
	(void)snprintf(out->launcher, sizeof out->launcher, "%s", r->job.source);
	if (q->iterations < 0)
		q->iterations = out->interprets ? 3 : 20;
	if (q->warmups < 0)
		q->warmups = out->interprets ? 1 : 5;
	if (q->max_bytes == 0) {
		q->min_bytes = q->max_bytes = out->interprets ? (size_t)4 << 20 : (size_t)64 << 20;
		q->factor = 2;
	}
}

static gpul_status print_end(const struct sparse_result *result, gpul_error *err)
{
	struct output o = { .json = result->q.json };

	if (result->q.json)
		sparse_json(result, &o.text);
	else
		sparse_text_end(result, &o.text.out);
	return output_write(&o, err);
}

static int run_rank(const struct sparse_request *q, const gpul_comm_job *job, gpul_error *err)
{
	struct sparse_result *result = calloc(1, sizeof *result);
	struct comm_rank r = { 0 };
	gpul_status st;
	bool wrong = false;

	if (!result) {
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results");
		return CLI_FAILED;
	}
	st = comm_rank_open(&q->place, &(gpul_comm_options){ 0 }, job, &r, err);
	if (!st) {
		describe(&r, q, result);
		st = comm_rank_introduce(&r, result->about, err);
		st = st ? st : comm_rank_run(&r, "comm sparse-allreduce", sparse_measure, result, err);
		st = st || job->rank ? st : print_end(result, err);
		wrong = sparse_result_wrong(result);
	}
	comm_rank_close(&r);
	free(result);
	if (st == GPUL_ESYS && err->native == ECANCELED)
		comm_job_quiet(job, err);
	comm_job_sign(job, err);
	return st == GPUL_EINVAL ? CLI_USAGE : st || wrong ? CLI_FAILED : CLI_DONE;
}

static int cmd_sparse(const struct cli_args *args, gpul_error *err)
{
	struct sparse_request q;
	gpul_comm_job job = { 0 };
	bool launches = false;
	gpul_status st = parse(args, &q, err);

	st = st ? st : comm_job_find(q.place.n_ranks, q.place.hosts.n > 0, &job, &launches, err);
	if (st) {
		comm_job_quiet(&job, err);
		return cli_exit_code(st);
	}
	return launches ? comm_job_launch(q.place.n_ranks, &q.place.hosts, q.place.agent, err) : run_rank(&q, &job, err);
}

/* clang-format off */
const struct cli_cmd cli_comm_sparse = {
	"comm sparse-allreduce", "", "all ranks get the sum; blocks of zeros are not sent",
	"A kernel finds the blocks that are not zero; only these are sent, over RDMA or libfabric, to\n"
	"the ranks that sum them, and from these to all ranks (docs/sparse-allreduce.md). Each row also\n"
	"measures the dense all-reduce of the same data, over --transport (default: net):\n"
	"\n"
	"    density   blocks of each rank that are not zero, chosen at random\n"
	"    found     the same, as the all-reduce has counted it\n"
	"    sent      bytes that a rank has sent, mean; dense: the data was dense, and\n"
	"              gpuload comm allreduce was used\n"
	"    speed-up  time of the dense all-reduce / time of the sparse one\n"
	"\n"
	"The other columns are those of gpuload comm allreduce. All elements are compared. The exit\n"
	"status is 1 if one is wrong, if ranks have different bits, or if a rank failed.\n"
	"\n"
	"Default size: 64M, on the software driver 4M.\n",
	sparse_opts, cmd_sparse, NULL, NULL,
};
/* clang-format on */
