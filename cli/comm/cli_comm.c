/* cli_comm.c — the command gpuload comm and the list of its verbs. */
#include "cli/comm/cli_comm.h"

#include "cli/comm/comm_bench.h"
#include "cli/comm/comm_job.h"
#include "cli/comm/sparse/comm_sparse.h"
#include "cli/comm/comm_tune.h"
#include "cli/comm/incast/incast.h"
#include "cli/comm/netqueue/cli_netqueue.h"
#include "cli/comm/plan/cli_plan.h"

static const struct cli_cmd *const verbs[] = {
#define GPUL_COMM_CALL(id, name, ...) &cli_comm_##name,
#include "comm/calls.def"
	&cli_comm_sparse, &cli_comm_netqueue, &cli_comm_incast, &cli_comm_tune, &cli_comm_plan, &cli_comm_launch, NULL,
};

static int cmd_comm(const struct cli_args *args, gpul_error *err)
{
	(void)args;
	gpul_fail(err, GPUL_EINVAL, 0,
		  "a subcommand is missing: "
#define GPUL_COMM_CALL(id, name, ...) #name ", "
#include "comm/calls.def"
		  "sparse-allreduce, netqueue, incast, tune, plan or launch; see gpuload help comm");
	return CLI_USAGE;
}

/* clang-format off */
const struct cli_cmd cli_comm = {
	"comm", "VERB", "communication between GPUs: allreduce and other collectives, checked and timed",
	"Several processes, the ranks, each with a GPU, exchange data by kernels that access each other's\n"
	"memory (comm/README.md). A GPU may serve several ranks.\n",
	cli_no_opts, cmd_comm, NULL, verbs,
};
/* clang-format on */
