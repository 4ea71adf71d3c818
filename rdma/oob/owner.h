/* owner.h — finds the user who owns the other end of a socket, for messages about unknown clients. */
#ifndef GPULOAD_RDMA_OOB_OWNER_H
#define GPULOAD_RDMA_OOB_OWNER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Write " (uid 1000)": the user of the process at the other end of a connected socket; "" if that process
 * is on another machine, or the user is unknown.  Reads the system's table of TCP sockets.  Any thread may call.
 * Source: unix(7) SO_PEERCRED; proc(5) /proc/net/tcp. */
void gpul_rdma_owner_text(int fd, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif

#endif
