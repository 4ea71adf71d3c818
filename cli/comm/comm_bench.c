/* comm_bench.c — runs a collective of gpuload comm: as the launcher, or as a rank that measures and prints. */
#include "cli/comm/comm_bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/comm/comm_job.h"
#include "cli/comm/comm_run.h"
#include "cli/lib/bench/bench_output.h"

/* ---- the request ------------------------------------------------------------------------------------------- */

/* Set the defaults that depend on the driver: few calls and small sizes if it interprets kernels, because that is slow. */
static void choose_defaults(struct comm_request *q, bool interprets)
{
	if (q->iterations < 0)
		q->iterations = interprets || q->trace ? 3 : 20;
	if (q->warmups < 0)
		q->warmups = interprets ? 1 : 5;
	if (q->max_bytes)
		return;
	q->factor = 2;
	q->min_bytes = 8;
	q->max_bytes = interprets ? (size_t)1 << 20 : (size_t)256 << 20;
	if (q->trace)
		q->min_bytes = q->max_bytes = interprets ? (size_t)64 << 10 : (size_t)1 << 20;
}

/* ---- output ------------------------------------------------------------------------------------------------- */

static gpul_status print_head(const struct comm_result *result, gpul_error *err)
{
	struct out o = { 0 };
	gpul_status st;

	if (result->rank || result->q.json)
		return GPUL_OK;
	comm_text_head(result, &o);
	st = out_flush(&o, err);
	out_free(&o);
	return st ? st : fflush(stdout) ? gpul_fail(err, GPUL_ESYS, errno, "the output could not be written") : GPUL_OK;
}

static gpul_status print_end(const struct comm_result *result, gpul_error *err)
{
	const struct comm_request *q = &result->q;
	struct output o = { .plot = q->plot, .force = q->force, .json = q->json };

	if (q->json)
		comm_json(result, &o.text);
	else if (q->explain)
		comm_text_explain(result, &o.text.out);
	else
		comm_text_end(result, &o.text.out);
	if (q->plot)
		comm_svg(result, &o.svg);
	return output_write(&o, err);
}

/* ---- a rank -------------------------------------------------------------------------------------------------- */

static gpul_status measure(struct comm_rank *r, struct comm_result *result, gpul_error *err)
{
	char what[32];
	gpul_status st = comm_rank_introduce(r, result->about, err);

	st = st ? st : print_head(result, err);
	(void)snprintf(what, sizeof what, "comm %s", gpul_comm_call_name(result->q.call));
	st = st ? st : comm_rank_run(r, what, comm_measure, result, err);
	return st || result->rank ? st : print_end(result, err);
}

static void describe(const struct comm_rank *r, const struct comm_request *q, struct comm_result *result)
{
	*result = (struct comm_result){ .q = *q, .rank = r->job.rank, .n_ranks = r->job.size, .interprets = r->drv->interprets };
	choose_defaults(&result->q, result->interprets);
	(void)snprintf(result->driver, sizeof result->driver, "%s", r->drv->name);
	(void)snprintf(result->launcher, sizeof result->launcher, "%s", r->job.source);
}

static int run_rank(const void *request, const gpul_comm_job *job, gpul_error *err)
{
	const struct comm_request *q = request;
	const gpul_comm_options options = {
		.algo = q->algo, .proto = q->proto, .n_blocks = q->n_blocks, .net_window = q->window, .table = q->table
	};
	struct comm_result *result = calloc(1, sizeof *result);
	struct comm_rank r = { 0 };
	gpul_status st;
	bool wrong = false;

	if (!result) {
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results");
		return CLI_FAILED;
	}
	st = comm_rank_open(&q->place, &options, job, &r, err);
	if (!st) {
		describe(&r, q, result);
		st = measure(&r, result, err);
		wrong = comm_result_wrong(result);
	}
	comm_rank_close(&r);
	free(result);
	if (st == GPUL_ESYS && err->native == ECANCELED)
		comm_job_quiet(job, err);
	comm_job_sign(job, err);
	return st == GPUL_EINVAL ? CLI_USAGE : st || wrong ? CLI_FAILED : CLI_DONE;
}

/* ---- the commands --------------------------------------------------------------------------------------------- */

static gpul_status check_request(const struct comm_request *q, const gpul_comm_job *job, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	if (q->root >= job->size)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--root: rank %d does not exist; the ranks are 0 to %d", q->root, job->size - 1);
	if (!st && job->rank == 0)
		st = output_check(q->plot, q->force, err);
	return st || job->rank ? st : output_check(q->trace, q->force, err);
}

static int run_collective(const struct cli_args *args, gpul_comm_call call, gpul_error *err)
{
	struct comm_request q;
	gpul_comm_job job = { 0 };
	bool launches = false;
	gpul_status st = comm_request_parse(args, call, &q, err);

	st = st ? st : comm_job_find(q.place.n_ranks, q.place.hosts.n > 0, &job, &launches, err);
	if (!st && q.threads && (!launches || q.place.hosts.n > 0))
		st = gpul_fail(err, GPUL_EINVAL, 0,
			       "--threads needs -n with at least 2 ranks, and cannot be combined with --hosts or a launcher");
	if (!st && launches)
		job = (gpul_comm_job){ .size = q.place.n_ranks };
	st = st ? st : check_request(&q, &job, err);
	if (st) {
		comm_job_quiet(&job, err);
		return cli_exit_code(st);
	}
	if (launches && q.threads)
		return comm_job_threads(q.place.n_ranks, run_rank, &q, err);
	return launches ? comm_job_launch(q.place.n_ranks, &q.place.hosts, q.place.agent, err) : run_rank(&q, &job, err);
}

static const char details[] = "With -n N the command starts N ranks on this machine: processes with the same command line.\n"
			      "Processes that share a GPU take turns on it, a few milliseconds each, and every message waits\n"
			      "for a turn; --threads makes the ranks threads of one process, whose kernels run in parallel.\n"
			      "Without -n it is one rank of a job that mpirun, srun, torchrun or gpuload comm launch has\n"
			      "started. Rank 0 prints the table of nccl-tests:\n"
			      "\n"
			      "    size     bytes of the larger buffer of a rank\n"
			      "    time     after warm-up calls: the wall time of the timed calls, back to back and with one wait,\n"
			      "             divided by the number of calls, of the slowest rank\n"
			      "    algbw    size / time\n"
			      "    busbw    algbw times the least share of the size that a rank must send or receive:\n"
			      "             2(n-1)/n for " GPUL_COMM_LIST_TWO_ROUNDS ", (n-1)/n for " GPUL_COMM_LIST_ONE_ROUND ",\n"
			      "             1 for " GPUL_COMM_LIST_NO_ROUND "; comparable with the rate of the hardware\n"
			      "    #wrong   elements that differ from what the CPU computes, of all ranks: integers and\n"
			      "             copies exactly, floats within the rounding error of any order of operations\n"
			      "    plan     algorithm/protocol, blocks x threads of a kernel; --explain says why\n"
			      "\n"
			      "All elements are compared. The exit status is 1 if one is wrong,\n"
			      "if ranks have different bits in the result of an allreduce, or if a rank failed.\n"
			      "\n"
			      "Default sizes: 8:256M:2, on the software driver 8:1M:2; with --trace, one size.\n";

#define GPUL_COMM_CALL(id, name, properties, rounds, summary) \
	static int cmd_##name(const struct cli_args *args, gpul_error *err) \
	{ \
		return run_collective(args, GPUL_COMM_##id, err); \
	} \
	const struct cli_cmd cli_comm_##name = { \
		"comm " #name, "", summary, details, comm_bench_opts, cmd_##name, NULL, NULL, \
	};
#include "comm/calls.def"
