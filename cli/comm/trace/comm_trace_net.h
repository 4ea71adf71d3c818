/* comm_trace_net.h — the network in the trace of gpuload comm: the events of each rank's proxy, and arrows between ranks.
 *
 *     rank S   block b            │ send step n │
 *                                         ╲ "posted"
 *              network 0               │ put to rank R, step n       │
 *                                                   ╲ "arrived"
 *     rank R   block b                     wait for data │ recv step n │ */
#ifndef GPULOAD_CLI_COMM_TRACE_COMM_TRACE_NET_H
#define GPULOAD_CLI_COMM_TRACE_COMM_TRACE_NET_H

#include "cli/comm/trace/comm_trace.h"
#include "cli/lib/json/cli_json.h"

/** Collect the events of all proxies on rank 0's clock; all ranks call it.
 *
 * @r       its trace has been stopped
 * @hosts   rank 0: the clocks, by the number of the host; not used by the other ranks
 * @result  waiting[].n_net, n_net_lost are set
 * @ranks   their net and n_net are set; @all owns the memory
 * @all     freed by the caller, also on failure
 * Errors  as gpul_boot_allgather(); GPUL_ENOMEM
 * Threads one at a time */
gpul_status comm_trace_net_collect(struct comm_rank *r, const struct comm_host_clock *hosts, struct comm_result *result,
				   struct comm_rank_trace *ranks, gpul_comm_net_event **all, gpul_error *err);

/* Append the tracks of the proxies, and the arrows.  block_track: the track of block 0.  Returns the number of arrows that are left out, because an
 * error of the clocks would make them point backwards. */
uint64_t comm_trace_net_json(const struct comm_result *result, const struct comm_rank_trace *ranks, unsigned block_track,
			     uint64_t origin_ns, struct json *j);

#endif
