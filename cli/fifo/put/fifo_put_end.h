/* fifo_put_end.h — the objects of each process of gpuload fifo trace --put: a device with a kernel and a clock, memory that the
 * fabric can access, a connection; and the socket between the processes.
 *
 *     child:   open ─ listen ─ "address" ──> parent: open ─ connect
 *              accept ─ "offers" ──────────>
 *              clock ─ 'c' ────────────────>  clock
 *              launch <──────────── 'g' ─────
 *              ─ 'l' ──────────────────────>  launch ... the messages ...
 *              ─ 'r' all are received ─────>  clock
 *              clock <───────────── 'c' ─────
 *              ─ 'd' the times are in the shared memory */
#ifndef GPULOAD_CLI_FIFO_PUT_FIFO_PUT_END_H
#define GPULOAD_CLI_FIFO_PUT_FIFO_PUT_END_H

#include "cli/fifo/put/fifo_put.h"
#include "loader/loader.h"
#include "rdma/rdma.h"

enum { FIFO_PUT_ADDRESS_BYTES = 128, FIFO_PUT_GRACE_MS = 5000 };

/* Results that the child reports to the parent in shared memory, not through the socket. */
struct fifo_put_shared {
	gpul_error err; /* why the child failed; status OK: it did not fail, or only because the parent ended */
	struct fifo_clock_relation relation;
	char device[96];
	/* times of gpul_clock_ns() */
	struct {
		uint64_t seen, flushed, kernel_seen;
	} times[];
};

struct fifo_put_end {
	const struct fifo_put_request *ask;
	struct devices_arg devices;
	const gpul_driver *drv;
	int socket;
	gpul_module *module;
	const gpul_kernel *kernel;
	CUstream stream;
	struct fifo_clock *clock;
	gpul_mem *data,
		*words; /* in the child: for each block the number of arrived messages; then a word that makes the kernel stop waiting */
	CUdeviceptr stamps, results; /* written by the kernel: stamps_bytes for each put; 4 bytes for each block */
	gpul_rdma *rdma;
	gpul_rdma_region *region;
	gpul_rdma_conn *conn;
	size_t stamps_bytes;
};

/* Return the distance in bytes from one message to the next. */
static inline unsigned fifo_put_stride(const struct fifo_put_request *q)
{
	return (q->bytes + 15) / 16 * 16;
}

/** Open the device, load a kernel, allocate and register memory.
 *
 * @ask           borrowed
 * @socket        connected to the other process; borrowed
 * @ordinal       ordinal of the GPU
 * @kernel        name of the kernel
 * @stamps_bytes  number of bytes that the kernel writes for each put
 * @out           released by fifo_put_end_close(), even after a failure
 * Errors  as fifo_put_run()
 * Threads the main thread */
gpul_status fifo_put_end_open(const struct fifo_put_request *ask, int socket, int ordinal, const char *kernel, size_t stamps_bytes,
			      struct fifo_put_end *out, gpul_error *err);
void fifo_put_end_close(struct fifo_put_end *e);

/** Send bytes to the other process.
 *
 * @e        this end of the connection
 * @bytes    the bytes to send
 * @n_bytes  number of bytes to send
 * Errors  GPUL_ESYS native = EPIPE: the other process has ended
 * Threads the main thread */
gpul_status fifo_put_send(const struct fifo_put_end *e, const void *bytes, size_t n_bytes, gpul_error *err);

/** Receive exactly n_bytes bytes within the time-out of the request.
 *
 * @e        this end of the connection
 * @out      filled in
 * @n_bytes  number of bytes to receive
 * Errors  GPUL_ESYS native = EPIPE: the other process has ended; EINTR: a signal; ETIMEDOUT
 * Threads the main thread */
gpul_status fifo_put_receive(const struct fifo_put_end *e, void *out, size_t n_bytes, gpul_error *err);

/** Send a message of one byte: one of the letters in the drawing at the beginning of this file.
 *
 * @e       this end of the connection
 * @letter  the byte, such as 'c'
 * Errors  as fifo_put_send()
 * Threads the main thread */
gpul_status fifo_put_say(const struct fifo_put_end *e, char letter, gpul_error *err);

/** Wait for a message of one byte: one of the letters in the drawing at the beginning of this file.
 *
 * @e       this end of the connection
 * @letter  the expected byte, such as 'c'
 * Errors  as fifo_put_receive(); GPUL_EFORMAT another letter
 * Threads the main thread */
gpul_status fifo_put_expect(const struct fifo_put_end *e, char letter, gpul_error *err);

/* Run the child: receive until all messages have arrived, or one of the processes fails; returns the exit status. */
int fifo_put_serve(const struct fifo_put_request *ask, int socket, struct fifo_put_shared *shared);

#endif
