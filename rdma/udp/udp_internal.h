/* udp_internal.h — the backend reliable-udp: RDMA writes over UDP sockets, made reliable by rdma/reliable.
 *
 *     device   registered memory, by random keys           udp_device.c
 *     path     a connection: a gpul_rel, one socket that receives, and one socket to send from for each path, so that switches with ECMP
 *              distribute the paths by their source ports   udp_path.c, udp_io.c */
#ifndef GPULOAD_RDMA_UDP_UDP_INTERNAL_H
#define GPULOAD_RDMA_UDP_UDP_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <sys/uio.h>

#include "rdma/backend/backend.h"
#include "rdma/reliable/reliable.h"

enum {
	UDP_PATHS = 8,           /* default */
	UDP_SEGMENTS = 64,       /* datagrams of one sendmsg(): the limit of Linux for UDP_SEGMENT */
	UDP_BATCH_BYTES = 65000, /* and their bytes: the limit of a UDP datagram */
	UDP_BUFFERS = 8,         /* of one recvmmsg(), each for UDP_BUFFER_BYTES */
	UDP_BUFFER_BYTES = 1 << 16,
	UDP_FLUSHES = 64,
};

/* Memory that the peer may write. */
struct udp_region {
	uint64_t key, at, bytes;
	struct udp_region *next; /* of the same hash */
};

enum { UDP_HASH = 256 };

struct udp_device {
	gpul_rdma_device_desc desc;
	unsigned n_paths;
	pthread_rwlock_t lock; /* of `regions`; held for reading while chunks are written, so that dereg() waits for them */
	struct udp_region *regions[UDP_HASH];
};

/* Datagrams of one path that are sent with one call. */
struct udp_batch {
	unsigned path, n;
	uint32_t segment_bytes, bytes; /* bytes of each datagram but the last, and of all */
	bool ended;                    /* the last one is shorter */
	struct iovec pieces[2 * UDP_SEGMENTS];
	unsigned n_pieces;
	gpul_rel_datagram datagrams[UDP_SEGMENTS];
};

/* An operation that was posted, at index (number % size of the ring). */
struct udp_op {
	uint64_t id;
	gpul_rdma_op op;    /* what has not been passed to gpul_rel_send() yet */
	unsigned n_waiting; /* messages that are not acknowledged yet, plus 1 while bytes are left */
};

struct udp_path {
	struct udp_device *device;
	gpul_rel *rel;
	unsigned n_paths;
	int receiver;                    /* the socket that receives */
	int senders[GPUL_REL_MAX_PATHS]; /* -1: none */
	struct sockaddr_in6 own;
	uint32_t mtu;
	uint64_t token;
	bool no_segments; /* the kernel or the interface has no UDP_SEGMENT */
	struct udp_batch batch;
	unsigned char *buffers; /* UDP_BUFFERS of UDP_BUFFER_BYTES */

	struct udp_op *ops;
	uint32_t ops_head, ops_sent, ops_tail, op_slots; /* ops_sent: the first one that is not passed on as a whole */
	uint64_t flushed[UDP_FLUSHES];
	unsigned flushed_head, flushed_tail;
	gpul_rdma_failure failed;
};

/* udp_device.c */
gpul_status gpul_udp_device_open(const gpul_rdma_device_desc *desc, void **device, gpul_error *err);
void gpul_udp_device_close(void *device);
void gpul_udp_device_about(void *device, gpul_rdma_device_info *out);
gpul_status gpul_udp_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err);
void gpul_udp_dereg(void *device, void *token);
/* Return the address of bytes that `key` grants, or NULL.  The caller holds device->lock. */
unsigned char *gpul_udp_granted(struct udp_device *d, uint64_t key, uint64_t at, uint32_t bytes);

/* udp_path.c */
gpul_status gpul_udp_path_create(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				 gpul_error *err);
size_t gpul_udp_path_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION]);
gpul_status gpul_udp_path_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err);
void gpul_udp_path_break(void *path);
void gpul_udp_path_destroy(void *path);

/* udp_io.c */
gpul_status gpul_udp_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why);
gpul_status gpul_udp_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why);

#endif
