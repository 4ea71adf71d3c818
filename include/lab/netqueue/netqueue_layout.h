/* netqueue_layout.h — the memory of a netqueue, and the argument of its kernel: for C and for CUDA C++.
 *
 *     bounce memory: n_slots slots of slot_bytes, GPU-mapped memory into which the packets of a stream are received
 *    ┌──────────────┬──────────────┬──────────────┬──────────────┐
 *    │ h│piece│h│pie│ce │h│piece   │              │              │      h: the header of a record (producer.h)
 *    └──────────────┴──────────────┴──────────────┴──────────────┘
 *        ↑ source, length
 *     ring: n_entries entries in host memory, written by the CPU: where each piece is, and where it has to go
 *
 *              63     56 55          36 35                                0
 *             ┌─────────┬──────────────┬───────────────────────────────────┐  Two words, each stored and loaded as a whole.
 *      word 0 │ lap     │ length       │ source: offset in bounce memory   │  Each contains the lap, because the kernel loads
 *             ├─────────┼──────────────┴───────────────────────────────────┤  both with one instruction, and PTX ISA 8.2.2 leaves
 *      word 1 │ lap     │ destination: offset in the receiver's memory     │  the order of a vector's parts unspecified: an
 *             └─────────┴──────────────────────────────────────────────────┘  entry is complete when BOTH laps are right.
 *
 * Entry n (from 0) is at place n % n_entries, and its lap is (n / n_entries + 1) % 256; in fresh memory all laps are 0.  The kernel
 * takes an entry when it is below `written`, and both laps are right.  An entry below `written` with another lap is refused.
 *
 * Each chunk of chunk_entries consecutive entries belongs to one block of the kernel: chunk c to block c % n_blocks.  When a block
 * has finished reading a piece, it increments its word of done[].  From these words the CPU computes the oldest entry in use, and
 * thus the slots into which it can receive again (credits).
 *
 *     control, host memory   ┌─────────┬───────┐ <── the CPU writes: entries written so far, and whether they are all;
 *                            │ written │ abort │     abort: leave now.  Both words are read by one 16-byte load
 *                            ├─────────┴───────┤
 *                            │ reports         │ <── the kernel writes: the first entries that it refused, what it waited for
 *                            ├─────────────────┤
 *                            │ done[block]     │ <── the kernel writes, each block its word
 *                            └─────────────────┘ */
#ifndef GPULOAD_LAB_NETQUEUE_NETQUEUE_LAYOUT_H
#define GPULOAD_LAB_NETQUEUE_NETQUEUE_LAYOUT_H

#include <stdint.h>

enum {
	GPUL_NETQUEUE_LAP_SHIFT = 56, /* position of the lap in both words */
	GPUL_NETQUEUE_LAPS = 256,
	GPUL_NETQUEUE_LENGTH_SHIFT = 36, /* position of the length in word 0 */
	GPUL_NETQUEUE_LENGTH_BITS = 20,
	GPUL_NETQUEUE_MIN_SLOT_BYTES = 256,
	GPUL_NETQUEUE_MAX_SLOT_BYTES = 1 << 19,
	GPUL_NETQUEUE_MAX_ENTRIES = 1 << 22,
	GPUL_NETQUEUE_MAX_BLOCKS = 1024,
	GPUL_NETQUEUE_MAX_CHUNK = 32,    /* most entries that a warp reads at the same time */
	GPUL_NETQUEUE_MIN_THREADS = 64,  /* one warp reads entries, and at least one copies */
	GPUL_NETQUEUE_MAX_THREADS = 768, /* with more threads, a thread could not have 80 registers */
	GPUL_NETQUEUE_MAX_REPORTS = 64,  /* refusals after this number are only counted */
};
#define GPUL_NETQUEUE_SOURCE_MASK      ((1ull << GPUL_NETQUEUE_LENGTH_SHIFT) - 1)
#define GPUL_NETQUEUE_DESTINATION_MASK ((1ull << GPUL_NETQUEUE_LAP_SHIFT) - 1)

typedef struct gpul_netqueue_entry {
	uint64_t word[2];
} gpul_netqueue_entry;

/* The field that makes an entry invalid, in the order of the checks; and the meaning of a report's .value and .limit. */
enum gpul_netqueue_field {
	GPUL_NETQUEUE_ACCEPTED = 0,
	GPUL_NETQUEUE_LAP,             /* value: the lap that was found; limit: the lap that the entry must have */
	GPUL_NETQUEUE_LENGTH,          /* value: length, which is 0 or exceeds limit, the bytes of a slot */
	GPUL_NETQUEUE_SOURCE,          /* value: offset of the first byte; limit: bytes of bounce memory */
	GPUL_NETQUEUE_SOURCE_END,      /* value: end of the piece; limit: bytes of bounce memory */
	GPUL_NETQUEUE_SLOT_END,        /* value: end of the piece; limit: end of its slot */
	GPUL_NETQUEUE_DESTINATION,     /* value: offset of the first byte; limit: bytes of the destination */
	GPUL_NETQUEUE_DESTINATION_END, /* value: end of the piece; limit: bytes of the destination */
	GPUL_NETQUEUE_N_FIELDS,
	GPUL_NETQUEUE_WAITED = GPUL_NETQUEUE_N_FIELDS, /* only in reports: no entry arrived within value ns */
};

/* A refused entry, or a wait that has timed out. */
typedef struct gpul_netqueue_report {
	uint64_t ready; /* 1: the other members are valid; written last */
	uint64_t entry; /* number of the entry */
	uint32_t field; /* a value of gpul_netqueue_field */
	uint32_t block;
	uint64_t value, limit; /* explained for each value of gpul_netqueue_field */
} gpul_netqueue_report;

/* The words that the CPU and the kernel share, in host memory.  Words with different writers are in different cache lines. */
typedef struct gpul_netqueue_control {
	uint64_t
		written; /* number of entries so far, times 2; plus 1 if there will be no more: each block then ends after its last entry */
	uint64_t abort;  /* not 0: all blocks end */
	uint64_t unused[14];
	gpul_netqueue_report waited;                             /* written by the first block that has waited too long */
	gpul_netqueue_report reports[GPUL_NETQUEUE_MAX_REPORTS]; /* the first entries that were refused */
	uint64_t unused2[3];
	uint64_t done[GPUL_NETQUEUE_MAX_BLOCKS]; /* number of entries that each block has finished */
} gpul_netqueue_control;

/* The words that the blocks share, in device memory, 0 at the start. */
typedef struct gpul_netqueue_counts {
	uint64_t n_pieces, n_bytes; /* numbers of pieces and bytes that were copied */
	uint64_t n_refused;
	uint64_t n_timed_out;                     /* number of blocks that have timed out */
	uint64_t refused[GPUL_NETQUEUE_N_FIELDS]; /* number of refused entries, by gpul_netqueue_field */
	uint64_t written, abort; /* copies of the words of gpul_netqueue_control, which one block reads over the bus for all blocks */
	uint64_t reads;          /* 1: a block is reading written and abort over the bus now */
} gpul_netqueue_counts;

/* The argument of the kernel. */
typedef struct gpul_netqueue_view {
	const unsigned char *bounce;
	uint64_t bounce_bytes; /* n_slots * slot_bytes */
	unsigned char *destination;
	uint64_t destination_bytes;
	const gpul_netqueue_entry *ring;
	gpul_netqueue_control *control;
	gpul_netqueue_counts *counts;
	uint64_t timeout_ns;      /* time-out of a wait for an entry; 0: no time-out */
	uint32_t slot_bytes;      /* a power of two */
	uint32_t n_entries;       /* a power of two */
	uint32_t chunk_entries;   /* a power of two, at most GPUL_NETQUEUE_MAX_CHUNK */
	uint32_t polls_per_check; /* number of polls between two checks of the time */
} gpul_netqueue_view;

#ifdef __CUDACC__
#define GPUL_NETQUEUE_BOTH static __host__ __device__ __forceinline__
static_assert(sizeof(gpul_netqueue_entry) == 16 && sizeof(gpul_netqueue_report) == 40, "as drawn");
static_assert((4 + GPUL_NETQUEUE_N_FIELDS) % 2 == 0, "written and abort are loaded together");
#else
#define GPUL_NETQUEUE_BOTH static inline
#ifndef __cplusplus
_Static_assert(sizeof(gpul_netqueue_entry) == 16 && sizeof(gpul_netqueue_report) == 40, "as drawn");
#endif
#endif

/* Return the lap of entry n. */
GPUL_NETQUEUE_BOTH uint32_t gpul_netqueue_lap(uint64_t n, uint32_t n_entries)
{
	return (uint32_t)((n / n_entries + 1) % GPUL_NETQUEUE_LAPS);
}

/* Return the number of the k-th entry that a block takes; k counts from 0. */
GPUL_NETQUEUE_BOTH uint64_t gpul_netqueue_entry_of(uint64_t k, uint32_t block, uint32_t n_blocks, uint32_t chunk_entries)
{
	return (k / chunk_entries * n_blocks + block) * chunk_entries + k % chunk_entries;
}

/* Make the words of an entry. source, length and destination must fit into their fields. */
GPUL_NETQUEUE_BOTH gpul_netqueue_entry gpul_netqueue_pack(uint32_t lap, uint64_t source, uint32_t length, uint64_t destination)
{
	gpul_netqueue_entry e;

	e.word[0] = (uint64_t)lap << GPUL_NETQUEUE_LAP_SHIFT | (uint64_t)length << GPUL_NETQUEUE_LENGTH_SHIFT | source;
	e.word[1] = (uint64_t)lap << GPUL_NETQUEUE_LAP_SHIFT | destination;
	return e;
}

/* Return the length of an entry's piece, in bytes. */
GPUL_NETQUEUE_BOTH uint32_t gpul_netqueue_length_of(const gpul_netqueue_entry *e)
{
	return (uint32_t)(e->word[0] >> GPUL_NETQUEUE_LENGTH_SHIFT) & ((1u << GPUL_NETQUEUE_LENGTH_BITS) - 1);
}

/* Return the source of an entry: an offset in bounce memory. */
GPUL_NETQUEUE_BOTH uint64_t gpul_netqueue_source_of(const gpul_netqueue_entry *e)
{
	return e->word[0] & GPUL_NETQUEUE_SOURCE_MASK;
}

/* Return the destination of an entry: an offset in the receiver's memory. */
GPUL_NETQUEUE_BOTH uint64_t gpul_netqueue_destination_of(const gpul_netqueue_entry *e)
{
	return e->word[1] & GPUL_NETQUEUE_DESTINATION_MASK;
}

#endif
