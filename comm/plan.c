/* plan.c — which algorithm, protocol and number of blocks a call uses. */
#include "comm/plan.h"

#include "comm/comm_internal.h"

gpul_comm_plan gpul_comm_plan_for(const gpul_comm *c, gpul_comm_call call, size_t bytes)
{
	gpul_comm_plan plan = { .algo = GPUL_COMM_RING, .proto = GPUL_COMM_SIMPLE, .n_blocks = c->sizes.n_blocks,
				.n_threads = c->interprets ? 96 : 512, .reason = "built-in" };

	(void)call;
	if (c->options.proto != GPUL_COMM_PROTO_AUTO) {
		plan.proto = c->options.proto;
		plan.reason = "option proto";
	}
	if (plan.proto == GPUL_COMM_LL128 && !c->direct) {
		plan.proto = GPUL_COMM_SIMPLE;
		plan.reason = "LL128 needs device memory";
	}
	while (plan.n_blocks > 1 && bytes / plan.n_blocks < 16 * 1024)
		plan.n_blocks /= 2;
	return plan;
}

uint64_t gpul_comm_table_hash(const gpul_comm *c)
{
	(void)c;
	return 0;
}
