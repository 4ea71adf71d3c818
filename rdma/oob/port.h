/* port.h — opens and closes a listening socket, TCP or Unix. */
#ifndef GPULOAD_RDMA_OOB_PORT_H
#define GPULOAD_RDMA_OOB_PORT_H

#include "rdma/oob/address.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_rdma_port {
	int fd;                             /* non-blocking */
	int lock_fd;                        /* holds flock() on PATH.lock while this process uses the Unix socket; -1: TCP */
	char path[108];                     /* path of the Unix socket; "": TCP */
	unsigned number;                    /* TCP port */
	char name[GPUL_RDMA_ADDRESS_BYTES]; /* address of the listener: "0.0.0.0:18515", "unix:/run/x.sock" */
} gpul_rdma_port;

/** Listen.
 *
 * A Unix socket that a killed process has left is replaced, because the kernel has released the lock of that process.
 *
 * @address  "": all IPv4 and IPv6 addresses; port 0: the system chooses one
 * @out      owned by the caller: gpul_rdma_port_close(); untouched on failure
 * @err      explains a failure
 * Errors  GPUL_ESYS unknown name, port or path in use (EADDRINUSE), or another system call failed
 * Source  Linux ipv6(7): IPV6_V6ONLY, unix(7), flock(2) */
gpul_status gpul_rdma_port_open(const gpul_rdma_address *address, gpul_rdma_port *out, gpul_error *err);
void gpul_rdma_port_close(gpul_rdma_port *p); /* also removes the files of a Unix socket */

#ifdef __cplusplus
}
#endif

#endif
