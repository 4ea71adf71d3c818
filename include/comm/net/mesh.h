/* mesh.h — connections of the send path (rdma/rdma.h) between the ranks of a job.
 *
 *     every rank: open the NIC or provider ─ one listener for each higher rank ─ exchange addresses (boot.h)
 *                 ─ connect to the lower ranks, in their order ─ accept the higher ranks, in their order
 *
 *     rank 0   accepts 1 ─ accepts 2 ─ accepts 3
 *     rank 1   connects 0 ────────── accepts 2 ─ accepts 3          the first unconnected pair can always continue,
 *     rank 2   ........ connects 0 ─ connects 1 ──── accepts 3      so no cycle of waits is possible
 *     rank 3   .................... connects 0 ─ 1 ─ 2
 *
 * A rank can use several NICs.  A pair of ranks then has as many connections as the rank with more NICs has NICs; on each side, connection
 * i uses NIC i modulo that rank's number of NICs:
 *
 *     rank 0: NIC a ─── connection 0 ─── NIC x :rank 1         rank 0: NIC a ─── connection 0 ─── NIC x :rank 2
 *             NIC b ─── connection 1 ─── NIC y                         NIC b ─── connection 1 ─────┘
 *
 * A rank that fails, or whose process ends, fails the job (roster.h): the other ranks stop waiting, and report the same cause. */
#ifndef GPULOAD_COMM_NET_MESH_H
#define GPULOAD_COMM_NET_MESH_H

#include "comm/bootstrap/boot.h"
#include "rdma/rdma.h"

#ifdef __cplusplus
extern "C" {
#endif

/* maximum number of NICs of a rank */
enum { GPUL_COMM_MAX_NICS = 8 };

typedef struct gpul_comm_mesh gpul_comm_mesh; /* opaque; the struct is defined in mesh.c */

typedef struct gpul_comm_mesh_desc {
	gpul_rdma_desc rdma; /* how to open the send path; device.device may name several NICs, "mlx5_0,mlx5_1".  For a pair of ranks,
			      * n_qps and the next four fields are those of the higher rank; lease_ms 0: GPULOAD_COMM_LOST_MS + 7000 */
	const bool *wanted;  /* for each rank of the job, whether to connect to it; two ranks are connected if either one wants it.
			     * NULL: connect to all other ranks */
	const char *address; /* address at which the other ranks reach this host, "10.9.0.2"; with several NICs one address for all, or
				   * one for each, "10.9.0.2,10.9.1.2".  NULL: $GPULOAD_COMM_NET_ADDRESS, else that of the NIC, if it is
				   * given by name and has an IP address, else the local one on the route to the job's address, else
				   * 127.0.0.1 */
} gpul_comm_mesh_desc;

/** Open the send path, and connect the pairs of ranks.  All ranks of the job call it.
 *
 * @boot        borrowed; must outlive *out
 * @desc        copied; its strings and wanted are used only during the call
 * @timeout_ms  for the whole call; -1: without limit
 * @out         owned by the caller: gpul_comm_mesh_destroy(); untouched on failure
 * Errors  GPUL_EUNSUPPORTED no such backend or device; GPUL_EINVAL; GPUL_ESYS native = ETIMEDOUT: a rank has not connected in time
 *         (the text names both ranks); GPUL_ENOMEM; the failure of the job
 * Threads as gpul_boot_allgather() */
gpul_status gpul_comm_mesh_create(gpul_boot *boot, const gpul_comm_mesh_desc *desc, int timeout_ms, gpul_comm_mesh **out, gpul_error *err);
/* Close the connections; afterwards no other rank writes to this rank's memory.  The peers' requests end with "closed by the peer",
 * so synchronise all ranks first (gpul_boot_barrier()).  NULL is fine; cannot fail. */
void gpul_comm_mesh_disconnect(gpul_comm_mesh *m);
/* Close the remaining connections, and the send path.  The caller must unregister all of its regions first.  NULL is fine; cannot fail. */
void gpul_comm_mesh_destroy(gpul_comm_mesh *m);

/* Return the NICs of this rank, at least one.  Memory is registered with each NIC whose connections access it.  Valid as long as m.
 * Any thread may call. */
unsigned gpul_comm_mesh_n_nics(const gpul_comm_mesh *m);
gpul_rdma *gpul_comm_mesh_nic(const gpul_comm_mesh *m, unsigned nic);
/* Return the name of a NIC of a rank. */
const char *gpul_comm_mesh_nic_name(const gpul_comm_mesh *m, int rank, unsigned nic);
/* Return the number of connections with a rank; 0: none. */
unsigned gpul_comm_mesh_n_conns(const gpul_comm_mesh *m, int rank);
/* Return the NIC that a rank uses for its connection i. */
unsigned gpul_comm_mesh_nic_of(const gpul_comm_mesh *m, int rank, unsigned i);
/* Return connection i with a rank; NULL: there is none.  It belongs to one thread at a time. */
gpul_rdma_conn *gpul_comm_mesh_conn_at(const gpul_comm_mesh *m, int rank, unsigned i);

/* Return NIC 0 of this rank, and connection 0 with a rank; NULL: there is no connection. */
gpul_rdma *gpul_comm_mesh_rdma(const gpul_comm_mesh *m);
gpul_rdma_conn *gpul_comm_mesh_conn(const gpul_comm_mesh *m, int rank);

#ifdef __cplusplus
}
#endif

#endif
