/* arrivals.h — makes data that arrives in device memory visible to kernels: a step is announced, flushed, and only then added to
 * the tail that the kernel polls.
 *
 *     rank S                               rank R
 *     proxy ═ put of entry + data ═══════> slot, in device memory
 *           ═ its step ══════════════════> announced[block], in host memory ── polled by the proxy of R
 *                                          flush ─ has ended ─> inbox: tail, in host memory ── polled by the kernel
 *
 * A NIC's writes to device memory and to host memory take different paths.  The CPU, or a kernel that polls host memory, may see
 * the step while the data is still on its way to the device.  When a flush has ended, the data that arrived before it is visible
 * to running kernels (rdma.h); only then is the tail raised.
 *
 * One flush is in flight at a time, for all blocks: it covers the steps that were announced when it began, and later steps wait
 * for the next one.  So a few flushes suffice for many steps. */
#ifndef GPULOAD_COMM_NET_ARRIVALS_H
#define GPULOAD_COMM_NET_ARRIVALS_H

#include "comm/device/channel_layout.h"
#include "rdma/rdma.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_arrivals gpul_comm_arrivals; /* defined in arrivals.c */

typedef struct gpul_comm_arrivals_desc {
	gpul_rdma_conn *conn; /* the connection over which the steps arrive */
	/* n_blocks words that the other rank raises; initially each is 0, or has the value that the previous user left */
	const uint64_t *announced;
	gpul_comm_inbox *inboxes; /* n_blocks inboxes; only this object writes their tails */
	unsigned n_blocks;
	unsigned first_block, block_step; /* the connection carries blocks first_block, first_block + block_step, ...; 0: all blocks */
	gpul_rdma_buffer slots;           /* memory of the slots of these inboxes */
} gpul_comm_arrivals_desc;

/** Create the object that handles the arrivals of one connection.
 *
 * @desc  copied; its memory is borrowed
 * @out   owned by the caller: gpul_comm_arrivals_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM
 * Threads the object belongs to the connection's thread */
gpul_status gpul_comm_arrivals_create(const gpul_comm_arrivals_desc *desc, gpul_comm_arrivals **out, gpul_error *err);
void gpul_comm_arrivals_destroy(gpul_comm_arrivals *a); /* accepts NULL */

/** Poll for new steps, and raise the tails for the steps whose flush has ended.
 *
 * @a     arrivals
 * @busy  true: a flush is in flight, or tails have been raised
 * Errors  the connection's failure; from then on no tail is raised
 * Threads the connection's thread
 * Source  PCI Express Base Specification, Transaction Ordering: a read does not pass posted writes */
gpul_status gpul_comm_arrivals_poll(gpul_comm_arrivals *a, bool *busy, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
