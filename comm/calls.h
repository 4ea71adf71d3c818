/* calls.h — the properties of the collectives and of send and receive, from calls.def.  Code tests a property instead of listing
 * the calls that have it. */
#ifndef GPULOAD_COMM_CALLS_H
#define GPULOAD_COMM_CALLS_H

#include "comm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpul_comm_call_info {
	bool reduces;        /* the call combines the data of all ranks by an operation such as a sum */
	bool has_root;       /* only the root, an argument of the call, sends data */
	bool transfers;      /* the call consists of sends and receives, and cannot be in place; its algorithm `direct` uses channels */
	bool sends_parts;    /* the send buffer has a part for each rank; false: it has count elements */
	bool receives_parts; /* the recv buffer has a part for each rank; false: it has count elements */
	bool has_parts;      /* the larger buffer has a part for each rank */
	unsigned rounds;     /* how often each of n ranks must send (n - 1)/n of the size; 0: a rank sends the whole size once */
};

/* Get the properties of a call; all are false or 0 if the call is unknown.  Any thread may call. */
const struct gpul_comm_call_info *gpul_comm_call_info(gpul_comm_call call);

#ifdef __cplusplus
}
#endif

#endif
