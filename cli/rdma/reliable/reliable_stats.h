/* reliable_stats.h — the counters and the paths of reliable connections: as a table and as JSON at the end, and a line every few seconds.
 *
 *     main thread                         threads of the connections              reliable_live.c
 *     look: wants snapshots ────────────> take: copies the counters of its connections
 *     look, 0.1 s later: prints the line */
#ifndef GPULOAD_CLI_RDMA_RELIABLE_RELIABLE_STATS_H
#define GPULOAD_CLI_RDMA_RELIABLE_RELIABLE_STATS_H

#include "cli/lib/out.h"
#include "rdma/rdma.h"

struct reliable_conn {
	gpul_rel_counters n;
	unsigned n_paths;
	gpul_rel_path_info paths[GPUL_REL_MAX_PATHS];
};

/* ---- at the end ----------------------------------------------------------------------------------------------------- */

/* Append two tables: the counters of each connection, and their paths (the first ones, if there are many). */
void reliable_stats_text(const struct reliable_conn *conns, unsigned n, struct out *o);
/* Append an array with an object for each connection, under the key "reliable"; conns NULL: null. */
struct json;
void reliable_stats_json(const struct reliable_conn *conns, unsigned n, struct json *j);

/* ---- while the connections are used ------------------------------------------------------------------------------- */

struct reliable_live;

/** Create the snapshots of a number of connections.
 *
 * @n_conns   1 to 64
 * @every_ms  time between two lines
 * @out       owned by the caller: reliable_live_free(); untouched on failure
 * Errors  GPUL_ENOMEM */
gpul_status reliable_live_create(unsigned n_conns, unsigned every_ms, struct reliable_live **out, gpul_error *err);
void reliable_live_free(struct reliable_live *l); /* accepts NULL */

/* Take a snapshot of a connection if one is wanted.  Called often, by the connection's thread. */
void reliable_live_take(struct reliable_live *l, unsigned number, gpul_rdma_conn *conn);

/* Append a line if it is time.  Called every 0.1 s, by the main thread. */
void reliable_live_look(struct reliable_live *l, struct out *o);

#endif
