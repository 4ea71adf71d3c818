/* cli_fifo.c — the command gpuload fifo and the list of its verbs. */
#include "cli/fifo/cli_fifo.h"

#include "cli/fifo/bench/fifo_bench.h"
#include "cli/fifo/fifo_trace.h"

static const struct cli_cmd *const verbs[] = { &cli_fifo_bench, &cli_fifo_trace, &cli_fifo_serve, &cli_fifo_push, NULL };

static int cmd_fifo(const struct cli_args *args, gpul_error *err)
{
	(void)args;
	gpul_fail(err, GPUL_EINVAL, 0, "a subcommand is missing: bench, trace, serve or push; see gpuload help fifo");
	return CLI_USAGE;
}

/* clang-format off */
const struct cli_cmd cli_fifo = {
	"fifo", "VERB", "the queue from GPU threads to a CPU thread: bench, trace, serve, push",
	"GPU threads push 16-byte triggers into a ring in host memory; a CPU thread takes them out,\n"
	"handles them and releases their slots (proxy/README.md).\n",
	cli_no_opts, cmd_fifo, NULL, verbs,
};
/* clang-format on */
