/* calls.c — the properties of the calls. */
#include "comm/calls.h"

enum { REDUCES = 1, HAS_ROOT = 2, TRANSFERS = 4, SENDS_PARTS = 8, RECEIVES_PARTS = 16 };

static const struct gpul_comm_call_info calls[] = {
#define GPUL_COMM_CALL(id, name, properties, n_rounds, summary)                                                         \
	[GPUL_COMM_##id] = { .reduces = (properties) & REDUCES,                                                         \
			     .has_root = (properties) & HAS_ROOT,                                                       \
			     .transfers = (properties) & TRANSFERS,                                                     \
			     .sends_parts = (properties) & SENDS_PARTS,                                                 \
			     .receives_parts = (properties) & RECEIVES_PARTS,                                           \
			     .has_parts = (properties) & (SENDS_PARTS | RECEIVES_PARTS),                                \
			     .rounds = n_rounds },
#include "comm/calls.def"
	[GPUL_COMM_N_CALLS] = { 0 },  /* of unknown numbers */
};

const struct gpul_comm_call_info *gpul_comm_call_info(gpul_comm_call call)
{
	return &calls[(unsigned)call < GPUL_COMM_N_CALLS ? call : GPUL_COMM_N_CALLS];
}
