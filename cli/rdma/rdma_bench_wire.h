/* rdma_bench_wire.h — the messages between a client and a server of gpuload rdma bench, over the connection itself.
 *
 *     client                                server
 *     hello, on each connection ─────────>            checked first; the flows of one client have the same id
 *            <──────────────────────────── welcome    on each connection: accepted, or why not; memory for puts
 *     plan, on flow 0 ───────────────────>            one phase: size, count
 *            <──────────────────────────── answer     ready
 *     messages or puts, on all flows <───>
 *            <──────────────────────────── answer     what the server has measured
 *     ...
 *     plan: end ─────────────────────────>
 *
 * The structs are sent as they are in memory; a wrong magic number reveals a host with another byte order.  Neither end
 * trusts the other: each message is copied and checked. */
#ifndef GPULOAD_CLI_RDMA_RDMA_BENCH_WIRE_H
#define GPULOAD_CLI_RDMA_RDMA_BENCH_WIRE_H

#include "cli/rdma/rdma_bench.h"

#define RDMA_WIRE_MAGIC 0x31686362616d6472u /* the ASCII text "rdmabch1" */

enum { RDMA_MAX_LANES = GPUL_RDMA_MAX_QPS, RDMA_TAG_CONTROL = 0x636f6e74 };

struct rdma_hello {
	uint64_t magic, id; /* id: a random number, the same for all flows of a client */
	uint64_t buffer_bytes;
	uint32_t flow, n_flows, mode, n_parts, n_requests, flush;
	gpul_rdma_remote in, signals; /* memory into which the server may put (only in modes put and put-lat) */
	struct rdma_end client;
};

struct rdma_welcome {
	uint64_t magic;
	gpul_error err;               /* status GPUL_OK: the request is accepted; otherwise why not */
	gpul_rdma_remote in, signals; /* memory into which the client may put */
	struct rdma_end server;
};

enum rdma_plan_kind { RDMA_PLAN_WARM, RDMA_PLAN_MEASURE, RDMA_PLAN_CHECK, RDMA_PLAN_END };

struct rdma_plan {
	uint64_t magic, number; /* number of the plan, from 1 */
	uint64_t bytes, count;  /* size of a message; groups of messages per flow */
	uint32_t kind, window, n_parts, n_places;
};

struct rdma_answer {
	uint64_t magic, number; /* number of the plan that this message answers */
	gpul_error err;
	struct rdma_figures figures;
	uint64_t checked;
	uint32_t ran, reserved; /* 0: the server is ready to run the phase; 1: the phase has ended */
};

/* Memory for the control messages of one flow, registered for the fabric; the peer's puts write the words of `signals`. */
struct rdma_mail {
	struct rdma_hello hello;
	struct rdma_welcome welcome;
	struct rdma_plan plan;
	struct rdma_answer answer;
	uint64_t signals[RDMA_MAX_LANES] __attribute__((aligned(64)));
};

/** Check a client's hello.
 *
 * @h      a copy, which the other end cannot change; a NUL is stored at the end of its strings
 * @bytes  length that arrived
 * Errors  GPUL_EFORMAT a field is wrong; GPUL_ENOMEM larger buffers than this machine permits */
gpul_status rdma_wire_check_hello(struct rdma_hello *h, uint64_t bytes, gpul_error *err);

/** Check a server's welcome.
 *
 * @w      a copy, which the other end cannot change; a NUL is stored at the end of its strings
 * @bytes  length that arrived
 * Errors  GPUL_EFORMAT a field is wrong; the error that the server reports */
gpul_status rdma_wire_check_welcome(struct rdma_welcome *w, uint64_t bytes, gpul_error *err);

/** Check a client's plan.
 *
 * @p      a copy, which the other end cannot change; a NUL is stored at the end of its strings
 * @bytes  length that arrived
 * @number expected number
 * @shape  the values of the client's hello
 * Errors  GPUL_EFORMAT a field is wrong */
gpul_status rdma_wire_check_plan(const struct rdma_plan *p, uint64_t bytes, uint64_t number, const struct rdma_shape *shape,
				 gpul_error *err);

/** Check a server's answer.
 *
 * @a      a copy, which the other end cannot change; a NUL is stored at the end of its strings
 * @bytes  length that arrived
 * @number expected number
 * @ran    expected: the phase has ended
 * Errors  GPUL_EFORMAT a field is wrong; the error that the server reports */
gpul_status rdma_wire_check_answer(struct rdma_answer *a, uint64_t bytes, uint64_t number, bool ran, gpul_error *err);

#endif
