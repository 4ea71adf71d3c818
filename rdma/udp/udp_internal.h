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
#include "rdma/reliable/reliable_memory.h"
#include "rdma/reliable/reliable_ops.h"

enum {
	UDP_PATHS = 8,           /* default */
	UDP_SEGMENTS = 64,       /* datagrams of one sendmsg(): the limit of Linux for UDP_SEGMENT */
	UDP_BATCH_BYTES = 65000, /* and their bytes: the limit of a UDP datagram */
	UDP_BUFFERS = 8,         /* of one recvmmsg(), each for UDP_BUFFER_BYTES */
	UDP_BUFFER_BYTES = 1 << 16,
};

struct udp_device {
	gpul_rdma_device_desc desc;
	unsigned n_paths;
	gpul_rel_memory memory;
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

	gpul_rel_ops ops;
	gpul_rdma_failure failed;
};

/* udp_device.c */
gpul_status gpul_udp_device_open(const gpul_rdma_device_desc *desc, void **device, gpul_error *err);
void gpul_udp_device_close(void *device);
void gpul_udp_device_about(void *device, gpul_rdma_device_info *out);
gpul_status gpul_udp_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err);
void gpul_udp_dereg(void *device, void *token);

/* udp_path.c */
gpul_status gpul_udp_path_create(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				 gpul_error *err);
size_t gpul_udp_path_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION]);
gpul_status gpul_udp_path_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err);
void gpul_udp_path_break(void *path);
void gpul_udp_path_destroy(void *path);
unsigned gpul_udp_path_stats(void *path, gpul_rel_counters *out, gpul_rel_path_info *paths, unsigned max);
void gpul_udp_path_record(void *path, gpul_rel_trace *trace);

/* udp_io.c */
gpul_status gpul_udp_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why);
gpul_status gpul_udp_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why);

#endif
