/* report.h — errors of gpuload as results of NCCL, and messages through NCCL's log. */
#ifndef GPULOAD_NCCL_NET_REPORT_H
#define GPULOAD_NCCL_NET_REPORT_H

#include "core/error.h"
#include "nccl/net/nccl_abi.h"

/* From now on, write gpuload's messages to NCCL's log (NCCL_DEBUG=INFO shows them), unless GPULOAD_LOG is set.  Errors are always
 * written to NCCL's log. */
void gpul_net_report_to(gpul_nccl_logger *logger);

/* Write a line of NCCL_DEBUG=INFO. */
void gpul_net_inform(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Write an error as a warning of NCCL, "NET/gpuload : WHERE: ...".  Returns the matching result of NCCL; for GPUL_OK, success. */
gpul_nccl_result gpul_net_report(const char *where, const gpul_error *err);

/* Like gpul_net_report(), for an error of an established connection: the result is that the peer or the network has failed. */
gpul_nccl_result gpul_net_report_peer(const char *where, const gpul_error *err);

#endif
