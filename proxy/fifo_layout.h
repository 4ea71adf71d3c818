/* fifo_layout.h — the proxy FIFO as bytes; for C, C++, nvcc and NVRTC, so it includes nothing.
 *
 * In host memory, which GPU and CPU see, and another process may:
 *
 *     ┌────────────────────┬──────────────────────────────┬───────────────────────────────────────────────┐
 *     │ header             │ line[lanes], 64 bytes each   │ slot[lanes << lane_shift], 16 bytes each      │
 *     └────────────────────┴──────────────────────────────┴───────────────────────────────────────────────┘
 *     who writes:  the maker;   the CPU                       the GPU
 *                  raised: the GPU; life: the system
 *
 * In device memory, for kernels alone: lane[lanes], 128 bytes each.  Every word has one side that writes it and one
 * that reads it, so nothing is ever an atomic over the bus. */
#ifndef GPULOAD_PROXY_FIFO_LAYOUT_H
#define GPULOAD_PROXY_FIFO_LAYOUT_H

/*          63    62                           0
 *        ┌─────┬──────────────────────────────┐  Two words, one 16-byte store.  Each carries the lap bit: PTX ISA
 * word 0 │ lap │ 63 bits of the user's        │  leaves the order of a vector's parts unspecified, so the reader
 * word 1 │ lap │ 63 bits of the user's        │  takes a slot when BOTH bits are of the lap that it awaits.
 *        └─────┴──────────────────────────────┘
 * Position p of a lane lies in its slot p mod 2^shift; its lap bit is 1 in even laps (p >> shift), 0 in odd ones. */
struct gpul_trigger {
	unsigned long long word[2];
};

/* What the CPU tells the kernels about a lane: a cache line of its own, so that looks at different lanes do not queue
 * behind each other.  A kernel reads both words at once. */
struct gpul_fifo_line {
	unsigned long long tail;   /* positions below it have been handled: their slots are free */
	unsigned long long abort;  /* 0; else a code that ends every wait */
	unsigned long long zero[6];
};

enum {
	GPUL_FIFO_MAGIC = 0x4f464947,  /* "GIFO" */
	GPUL_FIFO_VERSION = 1,
	GPUL_FIFO_MAX_LANES = 4096,
	GPUL_FIFO_MAX_SLOTS = 1 << 24,  /* in all */
	GPUL_FIFO_KIND_SHIFT = 59,      /* of word 1: 4 bits by which a proxy (proxy.h) chooses the handler; a program */
	GPUL_FIFO_N_KINDS = 16,         /* with a loop of its own has them for itself */
};

struct gpul_fifo_header {
	unsigned int magic, version;
	unsigned int lanes;       /* rings; a power of two */
	unsigned int lane_shift;  /* each has 1 << lane_shift slots */
	unsigned long long bytes;
	unsigned int life[2];     /* of the kernels' process and of the proxy's: core/lifeline.h; 0: not held */
	unsigned long long zero0[4];
	unsigned long long raised;  /* a kernel gives up: its code; 0 else */
	unsigned long long zero1[7];
};

/* A lane as kernels keep it, in device memory. */
struct gpul_fifo_lane {
	unsigned long long head;      /* the next position: a ticket counter, or where the last owner left off */
	unsigned long long owner;     /* 1 while a thread owns the lane */
	unsigned long long zero0[2];
	unsigned long long shared_tail;     /* the line's tail as the elected poller saw it last << POLLER_BITS | enum
				       * gpul_fifo_poller.  One word: of two, an old tail could arrive after the state
				       * by which its poller leaves, over a newer one that nobody would tell again */
	unsigned long long zero1[11];
};

enum gpul_fifo_poller {
	GPUL_FIFO_NO_POLLER = 0,
	GPUL_FIFO_POLLED = 1,
	GPUL_FIFO_BROKEN = 2,         /* aborted */
	GPUL_FIFO_POLLER_BITS = 2,
};

/* A kernel's parameter: what it needs to push.  Made by gpul_fifo_gpu_create() (fifo.h). */
struct gpul_fifo_device {
	struct gpul_trigger *slots;
	const struct gpul_fifo_line *lines;
	struct gpul_fifo_lane *lanes;
	unsigned long long *raised;
	unsigned int n_lanes, lane_shift;
};

/* What a kernel's call came to. */
enum gpul_fifo_result {
	GPUL_FIFO_OK = 0,
	GPUL_FIFO_TIMED_OUT = 1,  /* the proxy did not get that far in time */
	GPUL_FIFO_ABORTED = 2,    /* the proxy or another kernel thread gave up */
	GPUL_FIFO_BUSY = 3,       /* own: somebody owns the lane */
};

/* Codes of the abort word that gpuload itself raises; a handler's status is its own (error.h's gpul_status). */
enum gpul_fifo_code {
	GPUL_FIFO_CODE_TIMED_OUT = 0x100,  /* a kernel thread with a ticket gave up: its slot stays empty for ever */
	GPUL_FIFO_CODE_STOPPED = 0x101,    /* the proxy was stopped without draining */
	GPUL_FIFO_CODE_PEER_GONE = 0x102,  /* the other process has ended */
};

#endif
