/* channel.h — a channel: sends and receives frames over a TCP or Unix socket.
 *
 * A channel never blocks forever: a send fills the socket's buffer, then a small buffer of the channel, and fails if both are full;
 * a receive returns immediately, or waits until a deadline.  Each gpul_rdma_failure contains the address of the peer. */
#ifndef GPULOAD_RDMA_OOB_CHANNEL_H
#define GPULOAD_RDMA_OOB_CHANNEL_H

#include "rdma/oob/address.h"
#include "rdma/oob/oob_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_rdma_channel gpul_rdma_channel; /* opaque; the struct is defined in channel.c */

/** Connect to a listener.  If the connection is refused (the server has not started yet), try again until the deadline.
 *
 * @to           the listener; every address of the host is tried
 * @deadline_ns  absolute, in the time of gpul_clock_ns()
 * @out          owned by the caller: gpul_rdma_channel_close(); untouched on failure
 * @err          explains a failure
 * Errors  GPUL_ESYS the name is unknown, the last error of connect(), or ETIMEDOUT; GPUL_ENOMEM
 * Source  Linux connect(2) */
gpul_status gpul_rdma_channel_connect(const gpul_rdma_address *to, uint64_t deadline_ns, gpul_rdma_channel **out, gpul_error *err);

/** Make a channel of a connected stream socket.
 *
 * @socket  owned by the channel on success, by the caller on failure
 * @out     owned by the caller: gpul_rdma_channel_close(); untouched on failure
 * @err     explains a failure
 * Errors  GPUL_ENOMEM
 * Source  Linux tcp(7): TCP_NODELAY, TCP_USER_TIMEOUT */
gpul_status gpul_rdma_channel_create(int socket, gpul_rdma_channel **out, gpul_error *err);

/* Close the socket.  A peer that continues to read receives everything that was sent before.  NULL is fine. */
void gpul_rdma_channel_close(gpul_rdma_channel *c);

/* Stop sending and receiving: the peer sees the end of the connection, and threads that wait for
 * this channel return.  Any thread may call. */
void gpul_rdma_channel_shutdown(gpul_rdma_channel *c);

/* Set the time after which the system reports a TCP peer that does not acknowledge sent data; initially 20 s.  Any thread may call. */
void gpul_rdma_channel_set_limit(gpul_rdma_channel *c, uint64_t limit_ns);

/* Return the socket, for epoll. */
int gpul_rdma_channel_fd(const gpul_rdma_channel *c);
/* Return the local address of the socket; valid as long as c. */
const struct sockaddr *gpul_rdma_channel_local(const gpul_rdma_channel *c);
/* Return the address of the peer, "10.9.0.2:40312"; valid as long as c. */
const char *gpul_rdma_channel_peer(const gpul_rdma_channel *c);

/** Send a frame.
 *
 * @c      channel
 * @frame  copied
 * @why    receives the failure: the peer does not read (EAGAIN), or the connection is broken */
gpul_status gpul_rdma_channel_send(gpul_rdma_channel *c, const gpul_rdma_frame *frame, gpul_rdma_failure *why);

/** Receive a frame that has arrived.
 *
 * @c    channel
 * @out  filled if *got: HELLO, WELCOME, READY, BEAT, or one with credentials; with a failure: REFUSED, FAILED or BYE
 * @got  false: no whole frame has arrived; untouched if a frame is invalid
 * @why  receives the failure: REFUSED or FAILED (by_peer = 1), BYE (ESHUTDOWN), the end of the peer's process (EPIPE), a
 *       broken connection (errno), an invalid frame (GPUL_EFORMAT)
 * Threads one thread at a time */
gpul_status gpul_rdma_channel_receive(gpul_rdma_channel *c, gpul_rdma_frame *out, bool *got, gpul_rdma_failure *why);

/** Wait for a frame of one type; BEATs before it are ignored.
 *
 * @c            channel
 * @type         HELLO, WELCOME, READY or CHALLENGE
 * @deadline_ns  absolute, in the time of gpul_clock_ns()
 * @out          the frame
 * @why          receives the failure: as gpul_rdma_channel_receive(); another frame (GPUL_EFORMAT); ETIMEDOUT
 * Threads one thread at a time */
gpul_status gpul_rdma_channel_await(gpul_rdma_channel *c, gpul_rdma_frame_type type, uint64_t deadline_ns, gpul_rdma_frame *out,
				    gpul_rdma_failure *why);

#ifdef __cplusplus
}
#endif

#endif
