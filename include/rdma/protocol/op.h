/* op.h — the data types of the protocol's state machine: memory regions, operations for a backend, and the two kinds of messages
 * between the ends over the fabric, the clear-to-send slot and the immediate.
 *
 *     receiver                                                sender
 *     irecv ── slot: "write here" ───── RDMA_WRITE ─────────> ring of 256 slots
 *     buffer <─────────────────────── WRITE_WITH_IMM ──────── isend takes the next slot
 *              immediate: which slot, how many bytes, last?
 *
 * A message longer than the connection's segment size is sent in segments, one slot each. */
#ifndef GPULOAD_RDMA_PROTOCOL_OP_H
#define GPULOAD_RDMA_PROTOCOL_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	GPUL_RDMA_MAX_QPS = 16,
	GPUL_RDMA_SLOTS = 256,           /* slots of one direction of a connection: the limit of receives in flight */
	GPUL_RDMA_RECVS = 320,           /* empty receives of each queue pair: one per slot, and some that have been consumed but
					  * not reposted yet */
	GPUL_RDMA_REQUESTS = 1024,       /* limit of the requests in flight of one end of a connection */
	GPUL_RDMA_MAX_PARTS = 8,         /* limit of the buffers of one multi-receive */
	GPUL_RDMA_MAX_SEGMENT = 4 << 20, /* limit of the bytes that one slot grants */
	GPUL_RDMA_STRIPE_ALIGN = 128,    /* stripes begin at multiples of this, for whole cache lines and PCIe bursts */
	GPUL_RDMA_MAX_PIECES = 8,        /* limit of the pieces of one region */
	GPUL_RDMA_MAX_PUT = 1 << 30,     /* limit of the bytes of one put */
};

/* A clear-to-send slot, written by the receiver into the sender's memory.
 *
 *      0               8               16      20      24      28      32              40                    64
 *     ┌───────────────┬───────────────┬───────┬───────┬───────┬───────┬───────────────┬─────────────────────┐
 *     │ address       │ key           │ bytes │ tag   │ order │ seq   │ check         │ unused              │   a cache line
 *     └───────────────┴───────────────┴───────┴───────┴───────┴───────┴───────────────┴─────────────────────┘
 *     order: bits 0-15 message (number of the receive), 16-19 parts, 20-23 part, 24 end of the buffer
 *     seq:   the slot's number, from 1; slot n is in element (n - 1) % 256 of the ring
 *     check: gpul_rdma_slot_check().  The bytes of a write may land in any order: a NIC writes a line as a whole, but Linux's
 *            rdma_rxe copies with memcpy(), which may copy the last bytes first. */
typedef struct gpul_rdma_slot {
	uint64_t address; /* where the sender writes; an offset if the fabric counts from the start of the region */
	uint64_t key;     /* remote key of the receiver's memory */
	uint32_t bytes;   /* number of bytes that may be written at address */
	uint32_t tag;
	uint32_t order;
	uint32_t sequence;
	uint64_t check;
	uint64_t unused[3];
} gpul_rdma_slot;
static_assert(sizeof(gpul_rdma_slot) == 64, "as drawn");

/* Return the check value of a slot whose other members are set.  A slot that has landed only in part has a wrong one. */
static inline uint64_t gpul_rdma_slot_check(const gpul_rdma_slot *s)
{
	const uint64_t words[4] = { s->address, s->key, (uint64_t)s->bytes << 32 | s->tag, (uint64_t)s->order << 32 | s->sequence };
	uint64_t check = UINT64_C(0x9e3779b97f4a7c15);

	for (unsigned i = 0; i < 4; i++)
		check = ((check ^ words[i]) * UINT64_C(0xff51afd7ed558ccd)) ^ check >> 29;
	return check;
}

/* The immediate of a WRITE_WITH_IMM: the slot that it fills, and the length of the segment.  Each stripe of a segment has
 * the same immediate; the receiver computes the number of stripes from the length.
 *
 *      31      24 23   22                    0
 *     ┌──────────┬────┬───────────────────────┐
 *     │ slot     │last│ bytes of the segment  │   slot: its sequence number, modulo 256
 *     └──────────┴────┴───────────────────────┘   last: the message ends with this segment */
#define GPUL_RDMA_IMM(sequence, last, bytes) ((uint32_t)(sequence) << 24 | (uint32_t)((last) != 0) << 23 | (uint32_t)(bytes))
#define GPUL_RDMA_IMM_SLOT(imm)              ((imm) >> 24)
#define GPUL_RDMA_IMM_LAST(imm)              ((imm) >> 23 & 1)
#define GPUL_RDMA_IMM_BYTES(imm)             ((imm) & 0x7fffff)
static_assert(GPUL_RDMA_MAX_SEGMENT < 1 << 23, "a segment's length fits into the immediate");

/* Registered memory, in one piece or several.  A piece is one registration; pieces have consecutive local addresses, but not
 * necessarily consecutive addresses in the fabric. */
typedef struct gpul_rdma_piece {
	uint64_t at, bytes;          /* local addresses; CPU or GPU */
	uint64_t local_key;          /* lkey (verbs) or descriptor (libfabric) */
	uint64_t remote, remote_key; /* address of `at`, and key, as the peer uses them */
} gpul_rdma_piece;

typedef struct gpul_rdma_area {
	gpul_rdma_piece pieces[GPUL_RDMA_MAX_PIECES]; /* sorted; each begins where the previous one ends */
	unsigned n_pieces;
	bool staged; /* the fabric cannot access this (GPU) memory: copy through staging buffers; pieces[0] has no keys */
	bool strict; /* registered without relaxed ordering */
	bool flush;  /* GPU memory: after an arrival, a flush makes the data visible to kernels */
	bool on_device;
	bool source; /* registered without access for the peer: nothing can be received into it */
} gpul_rdma_area;

/* Memory of the peer, as the target of puts.  Plain bytes, which can be sent to the peer in any way. */
typedef struct gpul_rdma_remote {
	uint64_t address, key, bytes;
} gpul_rdma_remote;

/* How many messages an end has received and sent when it closes.  Both ends number the messages of each direction in the order of the
 * receives, from the link's first_counter.  The other end needs these numbers, because its fabric may not have reported them yet. */
typedef struct gpul_rdma_totals {
	uint32_t received; /* 1 + the number of the last message up to which all have arrived */
	uint32_t sent;     /* 1 + the number of the last message up to which all sends have ended */
} gpul_rdma_totals;
static_assert(sizeof(gpul_rdma_totals) == 8, "the payload of BYE");

/* ---- operations: the output of the state machine ------------------------------------------------------------- */

typedef enum gpul_rdma_op_kind {
	GPUL_RDMA_OP_WRITE,     /* RDMA write */
	GPUL_RDMA_OP_WRITE_IMM, /* RDMA write with immediate; may have 0 bytes */
	GPUL_RDMA_OP_RECV,      /* post empty receives to queue pair qp, as many as `bytes` says; has no completion */
	GPUL_RDMA_OP_FLUSH,     /* make earlier arrivals at [local, local + bytes) visible to the GPU */
	GPUL_RDMA_OP_COPY_OUT,  /* copy from GPU memory at remote to the staging buffer at local */
	GPUL_RDMA_OP_COPY_IN,   /* copy from the staging buffer at local to GPU memory at remote */
	GPUL_RDMA_OP_CONTROL,   /* send the `bytes` bytes at local (slots) as a datagram; has no completion */
} gpul_rdma_op_kind;

enum gpul_rdma_op_flags {
	GPUL_RDMA_SIGNALED = 1,  /* the operation needs a completion; it also completes the earlier ones of its queue pair */
	GPUL_RDMA_INLINE = 2,    /* bytes is at most the backend's inline_bytes; local may be reused after the post */
	GPUL_RDMA_DELIVERED = 4, /* with SIGNALED: the operation completes only when the data is in the peer's memory, even if
				  * the fabric would report it earlier; so an access error at the peer is always reported */
};

typedef struct gpul_rdma_op {
	uint8_t kind, flags; /* values of enum gpul_rdma_op_kind and enum gpul_rdma_op_flags */
	uint16_t qp;         /* queue pair of the connection, from 0 */
	uint32_t bytes;
	uint32_t imm; /* the immediate of a WRITE_IMM */
	uint32_t reserved;
	uint64_t id; /* returned in the completion (wr_id) */
	uint64_t local, local_key;
	uint64_t remote, remote_key;
} gpul_rdma_op;
static_assert(sizeof(gpul_rdma_op) == 56, "less than a cache line");

/* ---- events: the input, as a backend reports it ----------------------------------------------------------------- */

typedef enum gpul_rdma_event_kind {
	GPUL_RDMA_EVENT_DONE,    /* operation id has completed */
	GPUL_RDMA_EVENT_ARRIVED, /* a WRITE_WITH_IMM of the peer arrived on qp */
	GPUL_RDMA_EVENT_CONTROL, /* a datagram with slots arrived: bytes at data, valid until the next poll */
} gpul_rdma_event_kind;

typedef struct gpul_rdma_event {
	uint32_t kind;
	uint32_t qp;
	uint32_t imm;
	uint32_t bytes;
	uint64_t id;
	const void *data;
} gpul_rdma_event;

#ifdef __cplusplus
}
#endif

#endif
