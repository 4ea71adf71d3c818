/* calls_log.h — the memory that a program shares with the process that writes its log.
 *
 *     header ── which calls are wanted ── slots: one for each thread      rings: one for each slot
 *                                         │ pid, tid, head, tail │        │ record │ record │ ...     │
 *
 * A thread appends records to its ring and then moves head; the reader takes them and moves tail. A call has two records, so that the
 * log also shows a call that does not return:
 *
 *     ENTER   calls_record, arguments as 8-byte words, what they point to    (calls_capture: IN)
 *     EXIT    calls_record, result, what the call wrote                      (OUT; after an error: its text)
 *
 * The data to which pointers point is a list of pieces. A piece is a word with its number of bytes and the flags CALLS_CUT and
 * CALLS_ABSENT, then these bytes, padded to a multiple of 8. */
#ifndef GPULOAD_CALLS_CALLS_LOG_H
#define GPULOAD_CALLS_CALLS_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#define CALLS_VARIABLE "GPULOAD_CALLS_LOG" /* environment variable with the path of the shared memory */

enum {
	CALLS_MAGIC = 0x43414c31,
	CALLS_MAX_SLOTS = 8192,
	CALLS_RING_BYTES = 2 << 20,
	CALLS_MAX_RECORD = 8192,
	CALLS_MAX_ROWS = 4096,
	CALLS_MAX_TEXT = 128,   /* maximum number of recorded bytes of a string */
	CALLS_MAX_ELEMENTS = 8, /* maximum number of recorded elements of an array */
	CALLS_MAX_PIECE = 1024,
};
#define CALLS_CUT    (UINT64_C(1) << 32) /* flag of a piece: only the beginning of the string or array is recorded */
#define CALLS_ABSENT (UINT64_C(1) << 33) /* flag of a piece: the pointer is NULL, or its memory cannot be read */

enum calls_record_kind { CALLS_ENTER, CALLS_EXIT, CALLS_PAD };
/* CALLS_HIDDEN: the call is recorded because it names a kernel, but the log does not show the call. */
enum calls_wish { CALLS_IGNORED, CALLS_WANTED, CALLS_HIDDEN };
enum calls_slot_state { CALLS_SLOT_FREE, CALLS_SLOT_CLAIMED, CALLS_SLOT_ACTIVE, CALLS_SLOT_CLOSED };

struct calls_record {
	uint16_t n_bytes; /* size of the record, a multiple of 16 */
	uint8_t kind, unused;
	uint16_t row;      /* index in calls_rows */
	uint16_t sequence; /* number of the call in its thread; the EXIT has the number of its ENTER */
	uint64_t ticks;
};
_Static_assert(sizeof(struct calls_record) == 16, "records are multiples of 16");

/* Head and tail count bytes since a thread claimed the slot; only that thread writes head, and only the reader of the log writes tail. */
struct calls_slot {
	_Atomic uint32_t state;
	int32_t pid, tid;
	_Atomic uint64_t lost;
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t tail;
};

struct calls_header {
	uint32_t magic, table_version;
	int32_t reader_pid;
	uint32_t use_tsc;               /* 1: ticks are values of the CPU's time stamp counter; 0: nanoseconds */
	_Atomic uint32_t closed;        /* 1: the reader takes no more records */
	_Atomic uint32_t n_slots;       /* number of slots that were ever used */
	_Atomic uint64_t lost;          /* number of calls by threads without a slot */
	uint8_t wishes[CALLS_MAX_ROWS]; /* for each row of calls_rows: a value of enum calls_wish */
	struct calls_slot slots[CALLS_MAX_SLOTS];
};

#define CALLS_HEADER_BYTES ((sizeof(struct calls_header) + 4095) / 4096 * 4096)
#define CALLS_LOG_BYTES    (CALLS_HEADER_BYTES + (uint64_t)CALLS_MAX_SLOTS * CALLS_RING_BYTES)

static inline uint8_t *calls_ring(struct calls_header *log, uint32_t slot)
{
	return (uint8_t *)log + CALLS_HEADER_BYTES + (uint64_t)slot * CALLS_RING_BYTES;
}

#endif
