/* rdma_bench_session.h — a session: the flows and buffers of one client, at either end. */
#ifndef GPULOAD_CLI_RDMA_RDMA_BENCH_SESSION_H
#define GPULOAD_CLI_RDMA_RDMA_BENCH_SESSION_H

#include "cli/rdma/rdma_bench_run.h"

/** Fill *s, without connections and buffers.
 *
 * @s       filled; rdma_session_close() frees it, even after a failure
 * @setup   borrowed
 * @shape   copied
 * @watch   borrowed
 * @client  true: this end is the client
 * Errors  GPUL_ENOMEM */
gpul_status rdma_session_open(struct rdma_session *s, const struct rdma_setup *setup, const struct rdma_shape *shape,
			      struct rdma_watch *watch, bool client, gpul_error *err);
/* Close the connections and the buffers, not the device. */
void rdma_session_close(struct rdma_session *s);

void rdma_session_describe(const struct rdma_session *s, struct rdma_end *out);

/** Describe the memory of a flow for the peer's puts.
 *
 * @s        session with buffers
 * @f        one of its flows
 * @in       memory for the peer's messages; like signals, untouched in modes without puts
 * @signals  the words in which the peer's puts set signals
 * Errors  as gpul_rdma_offer()
 * Threads the session's thread */
gpul_status rdma_session_offer(const struct rdma_session *s, const struct rdma_flow *f, gpul_rdma_remote *in, gpul_rdma_remote *signals,
			       gpul_error *err);

/** Serve the client of a session until it ends.
 *
 * @s       session; s->r is opened, the flows are connected, and their peer_in and peer_signals are set
 * @client  the description that the client has sent
 * @out     the figures of this end
 * @err     explains a failure
 * Errors  as rdma_bench_measure()
 * Threads any thread; it is used for the whole session */
gpul_status rdma_session_serve(struct rdma_session *s, const struct rdma_end *client, struct rdma_bench_result *out, gpul_error *err);

#endif
