/* cli_rdma.c — the command gpuload rdma and the list of its verbs. */
#include "cli/rdma/cli_rdma.h"

#include "cli/rdma/rdma_bench.h"
#include "cli/rdma/devices/rdma_devices.h"
#include "cli/rdma/simulate/simulate.h"

static const struct cli_cmd *const verbs[] = { &cli_rdma_devices, &cli_rdma_serve, &cli_rdma_bench, &cli_rdma_simulate, NULL };

static int cmd_rdma(const struct cli_args *args, gpul_error *err)
{
	(void)args;
	gpul_fail(err, GPUL_EINVAL, 0, "a subcommand is missing: devices, serve, bench or simulate; see gpuload help rdma");
	return CLI_USAGE;
}

/* clang-format off */
const struct cli_cmd cli_rdma = {
	"rdma", "VERB", "messages to another machine over RDMA NICs or any network: devices, serve, bench, simulate",
	"A message goes directly from memory to memory: over an RDMA NIC (InfiniBand, RoCE), or, without\n"
	"one, over libfabric (rdma/README.md).\n",
	cli_no_opts, cmd_rdma, NULL, verbs,
};
/* clang-format on */
