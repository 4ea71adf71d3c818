/* calls.h — the properties of the calls, from the rows of calls.def.  Code tests a property
 * instead of listing the calls that have it. */
#ifndef GPULOAD_COMM_CALLS_H
#define GPULOAD_COMM_CALLS_H

#include "comm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpul_comm_call_info {
	bool reduces;                 /* it combines the data of all ranks, and has an operation */
	bool has_root;                /* only one rank, an argument of the call, sends data */
	bool transfers;               /* it consists of sends and receives; the algorithm direct uses channels; never in place */
	bool sends_parts;             /* the send buffer has a part for each rank; else it has count elements */
	bool receives_parts;          /* the recv buffer, likewise */
	bool has_parts;               /* the larger buffer has a part for each rank */
	unsigned rounds;              /* how many times each of n ranks must send (n - 1)/n of the size; 0: it sends the whole size once */
};

/* The properties of a call; all false and 0 for an unknown number.  Any thread. */
const struct gpul_comm_call_info *gpul_comm_call_info(gpul_comm_call call);

#ifdef __cplusplus
}
#endif

#endif
