/* transfers.h — registrations, sends, receives and their requests, on one end of a connection.
 *
 * Memory is registered with the send path: a sender's memory as a source, which no peer can write, and a receiver's memory for
 * writing by the peer.  A call that starts a request may return no request; NCCL then repeats the call. */
#ifndef GPULOAD_NCCL_NET_TRANSFERS_H
#define GPULOAD_NCCL_NET_TRANSFERS_H

#include "nccl/net/ends.h"

/** Register host memory.
 *
 * @e        end for which it will be used
 * @at       start
 * @n_bytes  at least 1
 * @out      owned by the caller: gpul_rdma_unregister(); untouched on failure
 * @err      explains a failure
 * Errors  as gpul_rdma_register() */
gpul_status gpul_net_register(gpul_net_end *e, void *at, size_t n_bytes, gpul_rdma_region **out, gpul_error *err);

/** Register GPU memory by a dma-buf.
 *
 * @e          end for which it will be used
 * @at         GPU address
 * @n_bytes    at least 1
 * @offset     offset of the memory in the dma-buf
 * @dmabuf_fd  borrowed during the call
 * @out        owned by the caller: gpul_rdma_unregister(); untouched on failure
 * @err        explains a failure
 * Errors  GPUL_EUNSUPPORTED the fabric cannot register dma-bufs; as gpul_rdma_register_pieces() */
gpul_status gpul_net_register_dmabuf(gpul_net_end *e, void *at, size_t n_bytes, uint64_t offset, int dmabuf_fd, gpul_rdma_region **out,
				     gpul_error *err);

/** Send a message.
 *
 * @e      a sender
 * @from   message, region and tag
 * @out    request; NULL: the peer has posted no receive with this tag yet, or too many requests are in flight
 * @err    explains a failure
 * Errors  GPUL_EINVAL a receiver, or the message is not inside the region; the failure of the connection
 * Threads the end's thread */
gpul_status gpul_net_isend(gpul_net_end *e, const gpul_rdma_buffer *from, gpul_net_request **out, gpul_error *err);

/** Receive n messages, each into the buffer with its tag.
 *
 * @e    a receiver
 * @to   n buffers
 * @n    1 to GPUL_NCCL_MAX_RECVS
 * @out  request; NULL: too many are in flight
 * @err  explains a failure
 * Errors  GPUL_EINVAL a sender, n, or a buffer is not inside its region; the failure of the connection
 * Threads the end's thread */
gpul_status gpul_net_irecv(gpul_net_end *e, const gpul_rdma_buffer *to, unsigned n, gpul_net_request **out, gpul_error *err);

/** Make received data in GPU memory visible to running kernels.
 *
 * @e    a receiver
 * @at   n buffers with data
 * @n    1 to GPUL_NCCL_MAX_RECVS
 * @out  request; NULL: nothing has to be done, because the data is in host memory or empty
 * @err  explains a failure
 * Errors  GPUL_ENOMEM too many requests are in flight; the failure of the connection
 * Threads the end's thread */
gpul_status gpul_net_iflush(gpul_net_end *e, const gpul_rdma_buffer *at, unsigned n, gpul_net_request **out, gpul_error *err);

/** Make progress, and test whether a request has ended; then it is free, and r->bytes are valid until the next call.
 *
 * @r     request
 * @done  true: it has ended
 * @err   explains a failure
 * Errors  the failure of the connection
 * Threads the end's thread */
gpul_status gpul_net_test(gpul_net_request *r, bool *done, gpul_error *err);

#endif
