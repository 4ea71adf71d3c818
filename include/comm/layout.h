/* layout.h — the memory that ranks share, and the arguments of the kernels: for C and for CUDA C++.
 *
 * Each rank has an **arena**, which all other ranks map.  For each other rank and each block of a kernel it contains one end of
 * two channels, which device/channel_layout.h draws: the inbox from that rank with its slots, and the outbox for it.
 *
 * The algorithms that need no channel use the **desk**, the rest of the arena:
 *
 *    ┌────────────────────────────────────────────────────────────────┐
 *    │ greetings [call % 2][rank]  the call that rank makes (LL words)│
 *    │ goodbyes  [block][rank]     number of the call it has ended    │
 *    │ scratch   [call % 2][rank]  data of one-shot calls (LL words)  │
 *    └────────────────────────────────────────────────────────────────┘
 *
 * Two halves of the greetings and of the scratch memory are enough: a kernel ends only after it has read the
 * greetings of all ranks, so a rank starts call n + 2 only after all ranks have started call n + 1, and have therefore read the
 * data of call n. The numbers of calls and steps are in device memory, not in arguments, because a kernel of a CUDA graph is
 * launched many times with the same arguments. */
#ifndef GPULOAD_COMM_LAYOUT_H
#define GPULOAD_COMM_LAYOUT_H

#include <stdint.h>

#include "comm/device/channel_layout.h"

enum {
	GPUL_COMM_MAX_PEERS = 32, /* equal to GPUL_COMM_MAX_RANKS */
	GPUL_COMM_MAX_BLOCKS = 64,
	/* minimum number of threads of a block of the channel kernels: one warp moves data, one waits, one posts */
	GPUL_COMM_MIN_THREADS = 96,
	/* maximum number of threads of a block, because kernels use up to 128 registers */
	GPUL_COMM_MAX_THREADS = 512,
	GPUL_COMM_GREETING_WORDS = 8,
	GPUL_COMM_MAX_WINDOWS = 64, /* limit of the allocations by gpul_comm_alloc() */
	GPUL_COMM_MAX_P2P = 64,     /* limit of the sends and receives of one kernel */
	GPUL_COMM_FEW_P2P = 4,      /* maximum number of sends and receives of the kernel for small groups */
	GPUL_COMM_LEAST_POLLS = 32, /* the number of polls between two checks is a multiple of this */
};

/* An LL word, written and read as one 8-byte word. */
typedef struct gpul_comm_ll {
	uint32_t data, flag;
} gpul_comm_ll;

/* Three pairs of words, each with 8 bytes of data.  The first pair is the signature of the call (for a send, dtype and op are 0, and
 * count is in bytes):
 *
 *     63                24 23    16 15     8 7     4 3     0       63                    8 7       0
 *    ┌────────────────────┬────────┬────────┬───────┬───────┐     ┌───────────────────────┬─────────┐
 *    │ count              │ root   │ op     │ dtype │ call  │     │ offset in the window  │ window  │  send, then recv
 *    └────────────────────┴────────┴────────┴───────┴───────┘     └───────────────────────┴─────────┘ */
enum {
	GPUL_COMM_SIGNATURE_DTYPE = 4,
	GPUL_COMM_SIGNATURE_OP = 8,
	GPUL_COMM_SIGNATURE_ROOT = 16,
	GPUL_COMM_SIGNATURE_COUNT = 24,
	GPUL_COMM_PLACE_OFFSET = 8,
};
typedef struct gpul_comm_greeting {
	gpul_comm_ll words[GPUL_COMM_GREETING_WORDS];
	uint64_t unused[GPUL_COMM_LINE_BYTES / 8 - GPUL_COMM_GREETING_WORDS];
} gpul_comm_greeting;

typedef struct gpul_comm_goodbye {
	uint64_t call;
	uint64_t step; /* number of the step within the call */
	uint64_t unused[14];
} gpul_comm_goodbye;

/* The sizes and offsets of an arena; the same on all ranks. */
typedef struct gpul_comm_sizes {
	uint32_t n_ranks, n_blocks;
	uint32_t slot_bytes;  /* bytes of data in one slot of the protocol Simple; a multiple of 128 */
	uint32_t ll_bytes;    /* bytes of one LL slot, half of which are data; a multiple of 128 */
	uint32_t ll128_bytes; /* bytes of one LL128 slot, 15/16 of which are data; a multiple of 128 */
	uint32_t
		scratch_bytes; /* bytes of one rank's part of one half of the scratch memory: LL words, so half are data; a multiple of 128 */
	uint64_t data_at, ll_at,
		ll128_at; /* offsets in the memory of an inbox's slots: of the first slot's data for Simple, of the LL and the LL128 slots */
	uint64_t slots_bytes;             /* bytes of the slots of one inbox; those from rank r for block b are at (r * n_blocks + b) *
				       * slots_bytes */
	uint64_t inboxes_at, outboxes_at; /* offsets in the arena of all inboxes and outboxes, which are in the same order as the slots */
	uint64_t greetings_at;            /* offset of the greetings, indexed by [call % 2][rank] */
	uint64_t goodbyes_at;             /* offset of the goodbyes, indexed by [block][rank] */
	uint64_t scratch_at;              /* offset of the scratch memory, indexed by [half][rank] */
	uint64_t arena_bytes;
} gpul_comm_sizes;

/* The report that a kernel writes before it ends early; in host memory. */
typedef struct gpul_comm_report {
	uint32_t state; /* a value of gpul_comm_report_state; the CPU reads the other members only if it is READY */
	uint32_t what;  /* a value of gpul_comm_report_what */
	int32_t peer;   /* the rank that the kernel waited for */
	uint32_t block;
	uint64_t step;            /* number of the step, or of the call */
	uint64_t expected, found; /* OTHER_SIZE: numbers of bytes; OTHER_CALL: signatures of calls; else unused */
} gpul_comm_report;

/* clang-format off */
enum gpul_comm_report_state { GPUL_COMM_REPORT_NONE, GPUL_COMM_REPORT_BUSY, GPUL_COMM_REPORT_READY };
enum gpul_comm_report_what {
	GPUL_COMM_WAITED_FOR_DATA = 1, GPUL_COMM_WAITED_FOR_CREDIT, GPUL_COMM_WAITED_FOR_OFFER, GPUL_COMM_WAITED_FOR_GREETING,
	GPUL_COMM_WAITED_FOR_GOODBYE, GPUL_COMM_OTHER_SIZE, GPUL_COMM_OTHER_CALL,
};
/* clang-format on */

/* Words in host memory between the CPU and the kernels of one rank. */
typedef struct gpul_comm_control {
	uint32_t abort; /* set by the CPU to make kernels end */
	uint32_t unused[31];
	gpul_comm_report report;
	uint64_t waits[GPUL_COMM_MAX_BLOCKS]; /* [block]: time << 8 | rank; written repeatedly while a block waits long for that
					       * rank, so a word that no longer changes means that the wait has ended */
} gpul_comm_control;

/* The memory that this rank shares with another one: the addresses at which this rank maps it.  A pair of ranks uses the
 * arenas in device memory, or those in host memory; each rank has one or both. */
typedef struct gpul_comm_peer {
	unsigned char *inboxes;        /* this rank's inbox for block 0: the other rank writes its steps here */
	unsigned char *their_inboxes;  /* the other rank's inboxes: this rank writes its steps there */
	unsigned char *slots;          /* slots of this rank's inboxes: the other rank writes its data here */
	unsigned char *their_slots;    /* the other rank's slots: this rank writes its data there */
	unsigned char *outboxes;       /* this rank's outboxes: the other rank writes its credits here */
	unsigned char *their_outboxes; /* the other rank's outboxes: this rank writes its credits there */
	unsigned char *desk;           /* start of this rank's arena: the other rank writes its greetings here */
	unsigned char *their_desk;     /* start of the other rank's arena: this rank writes its greetings there */
} gpul_comm_peer;

/* The state of a channel that a rank's kernels keep between two calls. */
typedef struct gpul_comm_steps {
	uint64_t sent, credits; /* steps sent so far; the receiver's `head` as last read: the number of steps that the receiver has freed */
	uint64_t received;      /* steps received so far */
	uint64_t unused;
} gpul_comm_steps;

/* An event of the trace: a wait, a step or a copy of one block. */
typedef struct gpul_comm_event {
	uint64_t begin_ns, end_ns; /* times of the GPU's %globaltimer */
	uint32_t kind;             /* a value of gpul_comm_event_kind */
	int32_t peer;              /* the other rank; -1: none */
	uint64_t step;
	uint32_t block, bytes;
} gpul_comm_event;

/* clang-format off */
enum gpul_comm_event_kind {
	GPUL_COMM_EVENT_KERNEL, GPUL_COMM_EVENT_WAIT_DATA, GPUL_COMM_EVENT_WAIT_CREDIT, GPUL_COMM_EVENT_WAIT_GREETING,
	GPUL_COMM_EVENT_WAIT_GOODBYE, GPUL_COMM_EVENT_COPY, GPUL_COMM_EVENT_REDUCE, GPUL_COMM_EVENT_SEND, GPUL_COMM_EVENT_RECV,
	GPUL_COMM_EVENT_POST,         /* Simple: peer and step to which the REDUCE or COPY before this event sends its result */
};
/* clang-format on */

/* The head of a trace, followed by max_events times gpul_comm_event. */
typedef struct gpul_comm_trace {
	uint64_t n_events; /* number of events so far; those beyond max_events are lost */
	uint64_t max_events;
} gpul_comm_trace;

/* A rank's communicator, as its kernels see it; in device memory, written once. */
typedef struct gpul_comm_view {
	int32_t rank;
	uint32_t direct; /* 1: all ranks can access each other's device memory */
	gpul_comm_sizes sizes;
	uint64_t timeout_ns; /* time-out of each wait; 0: none */
	gpul_comm_control *control;
	uint64_t *calls;          /* for each block: the number of calls that have used greetings, goodbyes or scratch memory; equal in all
				       * blocks between kernels.  The array follows the view in memory, so a kernel need not load this pointer */
	gpul_comm_steps *steps;   /* state of each channel, indexed by block * GPUL_COMM_MAX_PEERS + rank.  The array follows `calls`, which
				       * has GPUL_COMM_MAX_BLOCKS entries, so a kernel need not load this pointer either */
	gpul_comm_trace *trace;   /* NULL: no trace is recorded */
	uint32_t polls_per_check; /* number of polls between two checks of the abort word and the time (device/wait.cuh) */
	uint32_t unused;
	gpul_comm_peer peers[GPUL_COMM_MAX_PEERS];
	uint64_t windows[GPUL_COMM_MAX_WINDOWS][GPUL_COMM_MAX_PEERS]; /* address at which this rank maps each rank's memory from each
								       * gpul_comm_alloc(); 0: not mapped.  Entry [0] is unused */
	int32_t order[GPUL_COMM_MAX_PEERS];                           /* the ranks, grouped by host; ascending within a host */
	uint32_t place;                                               /* index of this rank in `order` */
	uint32_t ranks_per_host;                                      /* 0: the hosts have different numbers of ranks */
} gpul_comm_view;

/* One call: an argument of a kernel, or an item of a persistent kernel's queue. */
typedef struct gpul_comm_work {
	uint64_t send, recv;               /* addresses in this process */
	uint64_t send_offset, recv_offset; /* offsets of the buffers in their windows */
	uint32_t send_window, recv_window; /* 0: the buffer is in no window */
	uint64_t count;                    /* number of elements (all-gather, all-to-all, reduce-scatter: of one rank's part) */
	uint32_t call;                     /* a value of gpul_comm_call */
	uint32_t dtype, op;
	int32_t root;
	uint32_t n_blocks; /* number of blocks that share the work: the grid size, at most sizes.n_blocks */
	uint32_t element_bytes;
} gpul_comm_work;

/* An item of a persistent kernel's queue: a call, and the function that runs it. */
typedef struct gpul_comm_item {
	gpul_comm_work work;
	uint32_t body; /* a value of gpul_comm_body */
	uint32_t unused;
} gpul_comm_item;

enum gpul_comm_body {
	GPUL_COMM_BODY_STOP,
#define RESIDENT(name, ...) GPUL_COMM_BODY_##name,
#include "comm/kernels/kernels.def"
};

enum { GPUL_COMM_ITEMS = 16, GPUL_COMM_ITEM_WORDS = 32 };

/* The queue of a persistent kernel, in host memory.  Item n (from 1) is in slot n % GPUL_COMM_ITEMS, as LL words with flag n. */
typedef struct gpul_comm_queue {
	uint64_t done; /* number of items that the kernel has finished */
	uint64_t unused[15];
	gpul_comm_ll slots[GPUL_COMM_ITEMS][GPUL_COMM_ITEM_WORDS];
} gpul_comm_queue;

/* The words by which block 0 passes items to the other blocks of a persistent kernel, in device memory. */
typedef struct gpul_comm_relay {
	gpul_comm_ll item[GPUL_COMM_ITEM_WORDS];
	uint64_t finished; /* number of relayed items that blocks have finished, summed over the blocks */
} gpul_comm_relay;

/* One send or receive of a group.  The n_blocks blocks from first_block on perform it together: block first_block + i uses the
 * channel of block i.  Transfers with the same rank and direction have the same first_block, and run one after another. */
typedef struct gpul_comm_transfer {
	uint64_t at, bytes;
	uint64_t offset; /* offset of `at` in its window; COPY: the address to copy to */
	uint32_t window; /* window that contains `at`; 0: `at` is in no window */
	int32_t peer;
	uint8_t kind;  /* a value of gpul_comm_transfer_kind */
	uint8_t proto; /* a value of gpul_comm_proto; it and n_blocks depend only on `bytes`, so both sides choose the same */
	uint16_t n_blocks;
	uint32_t first_block;
} gpul_comm_transfer;

enum gpul_comm_transfer_kind {
	GPUL_COMM_TRANSFER_RECV,
	GPUL_COMM_TRANSFER_SEND,
	GPUL_COMM_TRANSFER_COPY /* this rank sends to itself */
};

typedef struct gpul_comm_transfers {
	uint32_t n;
	uint32_t unused;
	gpul_comm_transfer items[GPUL_COMM_MAX_P2P];
} gpul_comm_transfers;

/* A prefix of gpul_comm_transfers, used as the argument of small groups: most groups are small, and the full argument of 2.6 KB
 * would make the launch slower. */
typedef struct gpul_comm_few_transfers {
	uint32_t n;
	uint32_t unused;
	gpul_comm_transfer items[GPUL_COMM_FEW_P2P];
} gpul_comm_few_transfers;

#endif
