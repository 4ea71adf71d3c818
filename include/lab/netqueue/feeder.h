/* feeder.h — receives a stream into the slots of a netqueue, on a thread that also writes the entries.
 *
 *     feeder thread      ┌> credits ─ room? ─ receive into free slots ─ entries ─┐        then gpul_netqueue_publish
 *                        └───────────────────────────────────────────────────────┘
 *     calling thread     launch ─ wait for the kernel ─ join ─ result */
#ifndef GPULOAD_LAB_NETQUEUE_FEEDER_H
#define GPULOAD_LAB_NETQUEUE_FEEDER_H

#include <sys/uio.h>

#include "lab/netqueue/netqueue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The source of a stream's bytes.  receive() is called on the feeder's thread: it fills the spans in order with bytes that have
 * arrived, or waits up to wait_ms for bytes.  *got: the number of bytes, 0 if none arrived.  *closed: no more bytes will arrive. */
typedef struct gpul_netqueue_source {
	gpul_status (*receive)(void *context, const struct iovec *into, int n_into, int wait_ms, size_t *got, bool *closed,
			       gpul_error *err);
	void *context;
} gpul_netqueue_source;

/* Make a source that receives from a connected stream socket; the caller owns *fd, which must exist as long as the source. */
gpul_netqueue_source gpul_netqueue_from_socket(int *fd);

/* A stream in memory, for tests and measurements: it arrives in packets of random size. */
typedef struct gpul_netqueue_memory {
	const unsigned char *bytes;
	uint64_t n_bytes, at;  /* n_bytes: size of the stream; at: bytes received so far */
	uint64_t packet_bytes; /* limit of the bytes of a packet; 0: as many as there is room for */
	uint64_t seed;
} gpul_netqueue_memory;

/* Make a source that reads from m, which is borrowed. */
gpul_netqueue_source gpul_netqueue_from_memory(gpul_netqueue_memory *m);

typedef struct gpul_netqueue_receiver {
	gpul_netqueue_source source;
	/* For tests and demonstrations: NULL, or a function that may change entries before they are written. */
	void (*alter)(void *context, uint64_t n, gpul_netqueue_entry *entry);
	void *alter_context;
} gpul_netqueue_receiver;

typedef struct gpul_netqueue_received_stream {
	gpul_netqueue_result result; /* result of the kernel */
	uint64_t n_entries, n_records, stream_bytes;
	uint64_t first_ns, end_ns; /* times of gpul_clock_ns(): when the first bytes arrived, and when the kernel ended */
	/* number of calls of receive() that returned bytes; number of turns of the loop in which no slot or entry was free */
	uint64_t n_receives, n_full;
} gpul_netqueue_received_stream;

/** Receive a whole stream.
 *
 * Returns when the kernel has ended: the whole destination is then visible to later work on the GPU, and to the CPU.
 *
 * @q            its bounce memory must be writable by the CPU; none of its kernels may be running
 * @destination  GPU address
 * @bytes        its size
 * @receiver     copied
 * @out          filled, even after a failure
 * Errors  GPUL_EFORMAT entries were refused, or the stream is malformed; GPUL_ESYS native = ETIMEDOUT nothing arrived, or the
 *         kernel made no progress, EPIPE the sender has closed the connection early, ECANCELED gpul_netqueue_abort();
 *         GPUL_EUNSUPPORTED bounce memory in device memory; GPUL_ECUDA; GPUL_ENOMEM
 * Threads as gpul_netqueue_create() */
gpul_status gpul_netqueue_receive(gpul_netqueue *q, CUdeviceptr destination, uint64_t bytes, const gpul_netqueue_receiver *receiver,
				  gpul_netqueue_received_stream *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
