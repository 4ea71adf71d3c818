/* protocol_failure.h — the record of why a connection of the send path has failed: the first cause, which every later call reports. */
#ifndef GPULOAD_RDMA_PROTOCOL_PROTOCOL_FAILURE_H
#define GPULOAD_RDMA_PROTOCOL_PROTOCOL_FAILURE_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The record of a failure.  Plain bytes: it can be copied, and its fields are sent to the peer (oob/). */
typedef struct gpul_rdma_failure {
	gpul_status status; /* GPUL_OK: no failure */
	int native;         /* errno, ibv_wc_status or libfabric's error number */
	uint32_t vendor;    /* vendor error code of a completion; 0: none */
	uint32_t by_peer;   /* 1: the peer has reported this failure; the fields describe its side */
	uint64_t after_ns;  /* time from the start of the failed operation (or of the connection) until the failure */
	char call[40];      /* what failed: "ibv_post_send", "completion", "deadline", "lease" */
	char what[120];     /* the cause: "IBV_WC_RETRY_EXC_ERR: transport retry counter exceeded" */
	char peer[64];      /* address of the peer, "10.9.0.2:18515"; "": not known yet */
	char advice[160];   /* what to check; "": no advice */
} gpul_rdma_failure;

/** Record a failure unless *f already holds one, and return its status.
 *
 * @f       changed only if f->status is GPUL_OK
 * @status  not GPUL_OK
 * @native  as in gpul_rdma_failure
 * @call    the name of what failed; copied
 * @advice  copied; NULL: none
 * @fmt     printf-like text for .what
 * Errors  returns f->status
 * Threads one thread per record */
gpul_status gpul_rdma_fail(gpul_rdma_failure *f, gpul_status status, int native, const char *call, const char *advice, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

/** Write a failure as one line into *err (unless that holds an error already), and return its status.
 *
 * "10.9.0.2:18515: completion: IBV_WC_RETRY_EXC_ERR: transport retry counter exceeded (12, vendor 0x81) after 7.52 s:
 * check that the peer runs and that the route and the MTU are right"
 *
 * @f    a failure; GPUL_OK: *err is not changed
 * @err  receives the line, truncated to its size; NULL: not wanted
 * Errors  returns f->status, with native = f->native
 * Threads any thread; *f must not change meanwhile */
gpul_status gpul_rdma_failure_error(const gpul_rdma_failure *f, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
