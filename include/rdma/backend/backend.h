/* backend.h — the interface between the send path and a fabric: a table of functions that verbs/ and ofi/ implement.
 *
 *     device   an opened NIC or provider: registers memory                     open ─ reg, dereg ─ close
 *     path     the queue pairs and completion queues of one connection         create_path ─ describe ┄ oob ┄ connect_path
 *                                                                               ─ post, poll ─ break_path ─ destroy_path
 *
 * A backend has no protocol of its own: it posts the operations of protocol/, and reports completions to it. */
#ifndef GPULOAD_RDMA_BACKEND_BACKEND_H
#define GPULOAD_RDMA_BACKEND_BACKEND_H

#include <sys/socket.h>

#include "driver/driver.h"
#include "rdma/protocol/protocol_failure.h"
#include "rdma/protocol/op.h"
#include "rdma/reliable/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
typedef enum gpul_rdma_qp_type { GPUL_RDMA_RC, GPUL_RDMA_UC, GPUL_RDMA_UD } gpul_rdma_qp_type;
typedef enum gpul_rdma_flush { GPUL_RDMA_FLUSH_AUTO, GPUL_RDMA_FLUSH_NONE, GPUL_RDMA_FLUSH_READ, GPUL_RDMA_FLUSH_ATOMIC,
			       GPUL_RDMA_FLUSH_CUDA } gpul_rdma_flush;
/* clang-format on */

/* Options of the user.  Defaults: -1 for gpu and gid_index, 0 or NULL in every other field. */
typedef struct gpul_rdma_device_desc {
	const gpul_driver *drv;    /* needed for GPU memory; NULL: host memory only */
	int gpu;                   /* the NIC is chosen by its PCIe distance from this GPU; -1: any NIC */
	const char *provider;      /* libfabric: "tcp", "shm", "verbs", "efa" ...; NULL: tcp */
	const char *device;        /* verbs: "mlx5_0"; libfabric: a domain name; NULL: the backend chooses */
	int port;                  /* for verbs: number of the port; 0: the first active port */
	int gid_index;             /* for verbs: index of the GID; -1: the backend chooses */
	int mtu;                   /* verbs: 256 ... 4096 bytes; 0: the port's active MTU */
	int timeout, retry;        /* verbs: 4.096 us * 2^timeout before a retry, and the number of retries (at most 6); 0: 18 and 6 */
	int traffic_class;         /* RoCE traffic class: DSCP << 2; 0: none */
	unsigned n_paths;          /* paths of a connection, the smaller number of both ends; reliable-udp: at most 256; reliable-verbs: at
				 * most GPUL_RDMA_MAX_QPS; 0: 8 */
	gpul_rdma_qp_type qp_type; /* verbs: RC or UC; reliable-verbs: UC, which is also the meaning of RC there, or UD */
	bool lossless;             /* the user asserts that the fabric loses no packets; required for UC over Ethernet */
	bool control_datagrams;    /* send slots as UD datagrams instead of RDMA writes */
	gpul_rdma_flush flush;
} gpul_rdma_device_desc;

typedef struct gpul_rdma_device_info {
	char backend[16];        /* such as "verbs" or "libfabric", "reliable-udp" */
	char name[64];           /* "mlx5_0 port 1", "tcp;ofi_rxm on 127.0.0.1" */
	char why[200];           /* why this device and this GID were chosen */
	uint32_t inline_bytes;   /* limit of the bytes of an INLINE operation */
	uint32_t max_depth;      /* most operations in flight per queue pair */
	bool ordered;            /* the operations of a queue pair take effect in the order in which they are posted */
	bool completes_in_order; /* operations also complete in this order, so a completion implies that all earlier operations have
				  * completed */
	bool unnamed_arrivals;   /* all arrivals have qp 0, because the fabric does not report the queue pair */
	bool dmabuf;             /* reg() accepts dmabuf descriptors */
	unsigned max_qps;
	uint64_t notice_ns; /* longest time until a dead path causes an error completion; 0: it never does */
	char flush[32];     /* how FLUSH is done: "read on a loop-back QP", ... */
} gpul_rdma_device_info;

/* Return "RC", "UC" or "UD". */
static inline const char *gpul_rdma_qp_name(unsigned type)
{
	return type == GPUL_RDMA_UD ? "UD" : type == GPUL_RDMA_UC ? "UC" : "RC";
}

/* limit of the bytes that describe() writes */
enum { GPUL_RDMA_MAX_DESCRIPTION = 1024 };

typedef struct gpul_rdma_memory { /* the memory that reg() registers */
	uint64_t at, bytes;       /* local address, of the CPU or the GPU */
	int dmabuf_fd;            /* -1: CPU memory; otherwise `at` is a GPU address, and dmabuf_offset is its offset in the dmabuf */
	uint64_t dmabuf_offset;
	bool relaxed; /* relaxed ordering is allowed: for data, never for slots and steps */
	bool source;  /* only this end's NIC reads the memory, and the peer has no access; false: the peer may write the memory, but
		       * not read it */
	bool flushed; /* GPU memory: a flush by this end may read it */
} gpul_rdma_memory;

typedef struct gpul_rdma_backend gpul_rdma_backend;

/* The functions.  A device's functions may be called by any thread; a path belongs to one thread at a time.  Functions
 * that return a gpul_status explain a failure in the last argument; on failure, outputs are untouched. */
struct gpul_rdma_backend {
	const char *name; /* the name for --backend: "verbs", "libfabric", "reliable-udp", "reliable-verbs" */

	gpul_status (*open)(const gpul_rdma_device_desc *desc, void **device, gpul_error *err);
	void (*close)(void *device);
	void (*about)(void *device, gpul_rdma_device_info *out);

	/* Register memory, and fill in *piece.  *token is passed to dereg(). */
	gpul_status (*reg)(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err);
	void (*dereg)(void *device, void *token);

	/* Create n_qps queue pairs, each with room for depth operations in flight, and with n_recvs empty receives posted.
	 * from: local address of the socket to the peer, from which a network provider also connects; NULL: unknown. */
	gpul_status (*create_path)(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				   gpul_error *err);
	/* Write the data that the peer needs to connect to this path.  Returns the number of bytes. */
	size_t (*describe)(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION]);
	/* Connect to the peer's path; its description is not trusted.  When it returns, posts may begin. */
	gpul_status (*connect_path)(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err);

	/* Post operations in order, with one doorbell for each queue pair.  *n_posted: how many were accepted; without an
	 * error, fewer than n if the fabric has no room now.  COPY operations are never passed to it. */
	gpul_status (*post)(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why);
	/* Read up to max completions; *n_events may be 0.  After an error completion, poll first returns the events before it, and
	 * then fails. */
	gpul_status (*poll)(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why);

	/* Stop all transfers: after it returns, the peer can no longer write to local memory.  Cannot fail. */
	void (*break_path)(void *path);
	void (*destroy_path)(void *path);

	/* Asynchronous events (a port goes down, a QP fails): async_fd returns a descriptor that is readable when there is an event; the
	 * next function reads an event, and reports whether the device cannot work any more.  Both are NULL if the
	 * fabric reports them as failed operations. */
	int (*async_fd)(void *device);
	bool (*async_read)(void *device, gpul_rdma_failure *why);

	/* gpul_rdma_conn_stats() and gpul_rdma_conn_record() of a path.  Both are NULL if the fabric does not report what it does. */
	unsigned (*stats)(void *path, gpul_rel_counters *out, gpul_rel_path_info *paths, unsigned max);
	void (*record)(void *path, gpul_rel_trace *trace);
};

extern const gpul_rdma_backend gpul_rdma_verbs, gpul_rdma_libfabric, gpul_rdma_udp, gpul_rdma_verbs_reliable;

#ifdef __cplusplus
}
#endif

#endif
