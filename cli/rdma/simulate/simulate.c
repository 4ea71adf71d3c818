/* simulate.c — the command gpuload rdma simulate. */
#include "cli/rdma/simulate/simulate.h"

#include <stdlib.h>

static int cmd_simulate(const struct cli_args *args, gpul_error *err)
{
	struct sim_request q;
	struct sim_result *r = NULL;
	gpul_status st = sim_request_parse(args, &q, err);

	if (!st) {
		r = calloc(1, sizeof *r);
		st = r ? sim_measure(&q, r, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results");
	}
	if (!st) {
		struct output o = { .plot = q.svg, .force = q.force, .json = q.json };

		if (q.json)
			sim_json(r, &o.text);
		else
			sim_text(r, &o.text.out);
		if (q.svg)
			sim_svg(r, &o.svg);
		st = output_write(&o, err);
	}
	free(r);
	return cli_exit_code(st);
}

/* clang-format off */
const struct cli_cmd cli_rdma_simulate = {
	"rdma simulate", "SCENARIO", "the reliable transport in a simulated network of leaves and spines",
	"Connections of --provider reliable-udp's state machine exchange messages in a simulated network:\n"
	"leaf and spine switches whose output queues drop what does not fit, and ECMP by a hash of source,\n"
	"destination and path. Time is virtual, and a seed determines everything. Each scenario runs once for\n"
	"each value of one option, unless that is given:\n"
	"\n"
	"    incast       many senders, one receiver, and a victim: a flow on the same leaf (varies --credit)\n"
	"    permutation  each host sends to another one (varies --spread)\n"
	"    path-death   the same, while a link between leaf and spine dies and returns (varies --dead-after)\n"
	"    timely       flows that share a link of 10 Gbit/s, for --time-us (varies --flows)\n"
	"    loss         one flow over links that lose datagrams (varies --lost)\n"
	"\n"
	"The output begins with the size of the network; --json prints all options with their defaults.\n"
	"ideal is the time in an empty network, of incast: of all messages through the receiver's link.\n"
	"queue is the longest queue, of incast, timely and loss: that of the receiver's link; limit is the\n"
	"capacity, or the length that credit permits. again counts chunks that were sent again.\n"
	"docs/reliable-transport.md explains the figures.\n",
	sim_opts, cmd_simulate, "incast permutation path-death timely loss", NULL,
};
/* clang-format on */
