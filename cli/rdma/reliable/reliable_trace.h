/* reliable_trace.h — the way of each chunk of one message: every datagram, lost or not, and the datagrams that were sent again.
 *
 *     begin ── the message is posted, and its steps are recorded ── end     reliable_trace.c
 *     text: a line for each datagram                                        reliable_trace_text.c
 *     events for ui.perfetto.dev, a drawing as SVG                          reliable_trace_draw.c */
#ifndef GPULOAD_CLI_RDMA_RELIABLE_RELIABLE_TRACE_H
#define GPULOAD_CLI_RDMA_RELIABLE_RELIABLE_TRACE_H

#include "cli/lib/out.h"
#include "rdma/rdma.h"

struct reliable_datagram {
	uint32_t chunk, packet; /* chunk: counted from the first one of the message */
	unsigned path;
	bool again;
	uint64_t sent_ns, ended_ns; /* since the message was posted, like acked_ns */
	gpul_rel_step_kind end;     /* SENT: nothing more is known of it, because another copy was acknowledged */
	uint32_t later;             /* LOST: the packet that had arrived */
	uint64_t acked_ns;          /* it was given up, and then acknowledged; 0: no */
};

struct reliable_trace {
	uint64_t message; /* number of the message, from 0 */
	uint64_t bytes, begun_ns, ended_ns;
	bool begun, ended;
	gpul_rel_trace record;
	unsigned n_chunks, n_rows; /* n_rows: largest chunk, plus 1; more than n_chunks if other messages were sent between its segments */
	unsigned n_datagrams;
	struct reliable_datagram *datagrams; /* in the order in which they were sent */
};

/** Create a trace that waits for its message.
 *
 * @message  number of the message on its connection, from 0
 * @out      owned by the caller: reliable_trace_free(); untouched on failure
 * Errors  GPUL_ENOMEM */
gpul_status reliable_trace_create(uint64_t message, struct reliable_trace **out, gpul_error *err);
void reliable_trace_free(struct reliable_trace *t); /* accepts NULL; after the connection has been closed */

/* A message will be posted: begin to record if it is the wanted one, and the first with its number. */
void reliable_trace_begin(struct reliable_trace *t, gpul_rdma_conn *conn, uint64_t message, uint64_t at, uint64_t bytes);
/* All chunks of a message are acknowledged: if it is the wanted one, the trace has ended. */
void reliable_trace_end(struct reliable_trace *t, gpul_rdma_conn *conn, uint64_t message);

/** Write the trace: FILE.json has events for ui.perfetto.dev, FILE.svg a drawing, any other FILE text.
 *
 * @t      a trace
 * @path   the file; "-": text on stdout
 * @force  replace an existing file
 * Errors  GPUL_EINVAL the message was not sent; GPUL_ENOMEM; as output_file() */
gpul_status reliable_trace_write(struct reliable_trace *t, const char *path, bool force, gpul_error *err);

/* Append the trace, which has ended. */
void reliable_trace_text(const struct reliable_trace *t, struct out *o);
void reliable_trace_svg(const struct reliable_trace *t, struct out *o);
struct json;
void reliable_trace_json(const struct reliable_trace *t, struct json *j);

#endif
