/* incast.c — the command gpuload comm incast. */
#include "cli/comm/incast/incast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/comm/comm_job.h"
#include "cli/comm/incast/incast_net.h"
#include "cli/comm/incast/incast_rank.h"
#include "cli/lib/bench/bench_output.h"
#include "comm/bootstrap/roster.h"
#include "core/log.h"

/* ---- output --------------------------------------------------------------------------------------------------- */

static gpul_status print_result(const struct incast_result *result, gpul_error *err)
{
	const struct incast_request *q = &result->q;
	struct output o = { .plot = q->plot, .force = q->force, .json = q->json };

	if (q->json)
		incast_json(result, &o.text);
	else
		incast_text(result, &o.text.out);
	if (q->plot)
		incast_svg(result, &o.svg);
	return output_write(&o, err);
}

/* ---- a rank ---------------------------------------------------------------------------------------------------- */

static void describe(const struct incast_rank *r, struct incast_result *result)
{
	gpul_rdma_device_info info;
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "re");

	gpul_rdma_about(gpul_comm_mesh_rdma(r->mesh), &info);
	result->q = *r->q;
	result->n_ranks = r->job.size;
	result->private_network = r->queue_fd >= 0;
	(void)snprintf(result->launcher, sizeof result->launcher, "%s", r->job.source);
	(void)snprintf(result->device, sizeof result->device, "%s %.48s", info.backend, info.name);
	if (f && fgets(result->congestion, sizeof result->congestion, f))
		result->congestion[strcspn(result->congestion, "\n")] = '\0';
	if (f)
		(void)fclose(f);
}

static int run_rank(const struct incast_request *q, const gpul_comm_job *job, gpul_error *err)
{
	struct incast_result *result = calloc(1, sizeof *result);
	struct incast_rank r;
	gpul_status st;
	bool wrong;

	if (!result) {
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results");
		return CLI_FAILED;
	}
	if (job->rank && !gpul_log_shows(GPUL_LOG_INFO))
		gpul_log_set_level(GPUL_LOG_OFF); /* only rank 0 prints notices, which are the same on all ranks */
	st = incast_rank_open(q, job, &r, err);
	if (!st) {
		describe(&r, result);
		st = incast_measure(&r, result, err);
		if (st)
			gpul_boot_fail(r.boot, err, -1);
	}
	if (r.boot && job->rank)
		comm_job_quiet(job, err); /* only rank 0 reports the failure of the job */
	comm_job_sign(job, err);
	incast_rank_close(&r);
	if (!st && job->rank == 0)
		st = print_result(result, err);
	wrong = incast_result_wrong(result);
	incast_result_free(result);
	free(result);
	return st || wrong ? CLI_FAILED : CLI_DONE;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static gpul_status check_request(const struct incast_request *q, const gpul_comm_job *job, bool launches, gpul_error *err)
{
	if (!launches && job->size < 2)
		return gpul_fail(err, GPUL_EINVAL, 0, "incast needs at least 2 ranks: rank 0 receives, the others send");
	if (!launches && q->rate_bits && !incast_net_exists())
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--rate needs -n: the private network is made by the command that starts the ranks, not by %s",
				 job->source);
	return job->rank ? GPUL_OK : output_check(q->plot, q->force, err);
}

static int cmd_incast(const struct cli_args *args, gpul_error *err)
{
	struct incast_request q;
	gpul_comm_job job = { 0 };
	bool launches = false;
	gpul_status st = incast_request_parse(args, &q, err);

	st = st ? st : comm_job_find(q.n_ranks, false, &job, &launches, err);
	st = st ? st : check_request(&q, &job, launches, err);
	if (!st && launches && q.rate_bits)
		st = incast_net_create(q.rate_bits, q.queue_bytes, q.congestion, err);
	if (st) {
		comm_job_quiet(&job, err);
		return cli_exit_code(st);
	}
	return launches ? comm_job_launch(q.n_ranks, NULL, NULL, err) : run_rank(&q, &job, err);
}

/* clang-format off */
const struct cli_cmd cli_comm_incast = {
	"comm incast", "", "many senders, one receiver: compare flow control by the senders with flow control by the receiver",
	"All ranks but rank 0 have messages for rank 0 at the same time, over the send path. Two ways:\n"
	"\n"
	"    sender      each sender writes into the receiver's memory (puts) as its own window permits;\n"
	"                the sum of the windows fills the queue in front of the receiver\n"
	"    receiver    each sender sends a request; the receiver grants clear-to-send slots, as many bytes at\n"
	"                a time as keep the link busy (one window for all senders), to each in turn\n"
	"\n"
	"With --rate, the ranks run in private network namespaces, and a token bucket in front of the\n"
	"receiver is the slow link: as root, or where user namespaces are permitted. The namespaces end\n"
	"with the command. The table:\n"
	"\n"
	"    rate      GB/s at the receiver, from the first message to the last\n"
	"    fairness  Jain's index of the senders' bytes when the first of them is done: 1 is equal\n"
	"    message   ms from the moment at which the sender has the message to its last byte's arrival\n"
	"    probe     ms that 8 bytes take during the transfer: the latency that another program would see\n"
	"    queue     bytes waiting in front of the link, read from the kernel every ms; without --rate,\n"
	"              bytes that have left the senders and not arrived (granted ones count as sent)\n"
	"    drops     packets that the queue had no room for; resent: TCP segments sent again\n"
	"    wrong     bytes of the last messages that differ from what was sent\n"
	"\n"
	"docs/incast.md explains the picture of --plot.\n",
	incast_opts, cmd_incast, NULL, NULL,
};
/* clang-format on */
