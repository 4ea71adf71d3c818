/* producer.h — parses the bytes of a stream into entries, and keeps track of the free slots and entries.
 *
 *     stream    header │ pad │ payload │ header │ payload │ ... │ header with length 0: the end
 *
 *                63              40 39    32 31                              0
 *               ┌──────────────────┬────────┬─────────────────────────────────┐  A record: the payload goes to `destination`
 *        word 0 │ magic            │ pad    │ length of the payload           │  and onwards.    pad: bytes to skip before the
 *               ├──────────────────┴────────┴─────────────────────────────────┤  payload, by which a sender can align it.
 *        word 1 │ destination: offset in the receiver's memory                │  Words are little-endian, like x86 and GPUs.
 *               └─────────────────────────────────────────────────────────────┘
 *
 *     room ──> receive into these spans ──> received ──> produce, produce ... ──> entries into the ring
 *       ↑                                                                              │
 *       └──────────── credit <──────────────── done[] of the kernel's blocks <─────────┘
 *
 * The bounce memory is a ring of bytes.  A record that has only partly arrived, or that continues in the next slot, becomes
 * several pieces.  A header may also be split.  A slot is free when all entries with bytes in it are done.
 *
 * A state machine: no I/O, no clock, no allocation.  It reads only headers; it checks them and done[], but not the
 * destinations, which the kernel checks. */
#ifndef GPULOAD_LAB_NETQUEUE_PRODUCER_H
#define GPULOAD_LAB_NETQUEUE_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>

#include "lab/netqueue/netqueue_layout.h"
#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_NETQUEUE_HEADER_BYTES = 16, GPUL_NETQUEUE_PAD_SHIFT = 32, GPUL_NETQUEUE_MAX_PAD = 255, GPUL_NETQUEUE_MAGIC_SHIFT = 40 };
#define GPUL_NETQUEUE_MAGIC 0x71756eull

/* Sizes of a netqueue.  All but n_blocks are powers of two. */
typedef struct gpul_netqueue_shape {
	uint32_t n_slots, slot_bytes;
	uint32_t n_entries; /* number of entries of the ring */
	uint32_t n_blocks, chunk_entries;
} gpul_netqueue_shape;

/** Check a shape against the limits of netqueue_layout.h.
 *
 * @shape  any
 * Errors  GPUL_EINVAL a number is out of range; the message gives it and its limits */
gpul_status gpul_netqueue_shape_check(const gpul_netqueue_shape *shape, gpul_error *err);

typedef struct gpul_netqueue_piece {
	uint64_t n;           /* number of the piece's entry */
	uint64_t source;      /* offset in bounce memory */
	uint64_t destination; /* offset in the receiver's memory, at most GPUL_NETQUEUE_DESTINATION_MASK */
	uint32_t length;
} gpul_netqueue_piece;

/* The state of a stream; all members are private. */
typedef struct gpul_netqueue_producer {
	gpul_netqueue_shape shape;
	/* for each of the n_entries entries that is not done: the position in the stream at which its piece ends */
	uint64_t *ends;
	uint64_t received, parsed, freed; /* positions in the stream: freed <= parsed <= received */
	uint64_t n_produced, n_done;      /* numbers of entries; all entries before number n_done have been processed by the kernel */
	uint64_t n_records;
	unsigned char header[GPUL_NETQUEUE_HEADER_BYTES];
	uint32_t header_bytes; /* number of bytes of the header that have arrived */
	uint32_t pad_left;
	uint64_t record_left, destination;
	bool ended;
} gpul_netqueue_producer;

/** Start a stream.
 *
 * @p      need not be initialised
 * @shape  valid; copied
 * @ends   room for n_entries numbers; borrowed
 * Threads one thread at a time, like all functions here */
void gpul_netqueue_producer_begin(gpul_netqueue_producer *p, const gpul_netqueue_shape *shape, uint64_t *ends);

typedef struct gpul_netqueue_span {
	uint64_t at, bytes; /* offset of the span in bounce memory, and its size */
} gpul_netqueue_span;

/* Get the memory into which to receive the next bytes of the stream: up to two spans, in order.  Returns their number; 0: no slot
 * is free. */
unsigned gpul_netqueue_room(const gpul_netqueue_producer *p, gpul_netqueue_span out[2]);

/* Report that n_bytes more have been received into the spans of gpul_netqueue_room(), at most the size of these spans. */
void gpul_netqueue_received(gpul_netqueue_producer *p, uint64_t n_bytes);

/** Make the next entry from the received bytes.
 *
 * @p       producer
 * @bounce  CPU address of the bounce memory
 * @out     the piece; set if *got
 * @got     false: all received bytes are in entries, or the ring is full, or the stream has ended
 * Errors  GPUL_EFORMAT no record header at that position, or bytes after the end; native = the position
 * Threads one thread at a time */
gpul_status gpul_netqueue_produce(gpul_netqueue_producer *p, const unsigned char *bounce, gpul_netqueue_piece *out, bool *got,
				  gpul_error *err);

/** Free the entries that the kernel's blocks have finished, and their slots.
 *
 * @p     producer
 * @done  [n_blocks], as in gpul_netqueue_control
 * Errors  GPUL_EFORMAT a block reports entries that were never produced, so the memory was overwritten
 * Threads one thread at a time */
gpul_status gpul_netqueue_credit(gpul_netqueue_producer *p, const uint64_t *done, gpul_error *err);

/* True if the end of the stream has been parsed; then n_produced is the total number of entries. */
bool gpul_netqueue_ended(const gpul_netqueue_producer *p);

/* Write the header of a record. */
void gpul_netqueue_write_header(unsigned char out[GPUL_NETQUEUE_HEADER_BYTES], uint32_t length, uint32_t pad, uint64_t destination);

#ifdef __cplusplus
}
#endif

#endif
