/* fifo_layout.h — memory layout of the proxy FIFO, for C, C++, nvcc and NVRTC; it includes no other header.
 *
 * The area, in host memory that the GPU, the CPU and possibly a second process access:
 *
 *     ┌────────────────────┬──────────────────────────────┬───────────────────────────────────────────────┐
 *     │ header             │ line[lanes], 64 bytes each   │ slot[lanes << lane_shift], 16 bytes each      │
 *     └────────────────────┴──────────────────────────────┴───────────────────────────────────────────────┘
 *     written by:  gpul_fifo_area_format();  the CPU          the GPU
 *                  raised: the GPU; life: the operating system
 *
 * In device memory, used by kernels only: lane[lanes], 128 bytes each.  Each word of the area is written by one side and
 * read by the other side, so no atomic operation crosses the bus. */
#ifndef GPULOAD_PROXY_FIFO_LAYOUT_H
#define GPULOAD_PROXY_FIFO_LAYOUT_H

/*          63    62                           0
 *        ┌─────┬──────────────────────────────┐  Two words, one 16-byte store.  Each word has a lap bit, because the
 * word 0 │ lap │ 63 bits of user data         │  PTX ISA does not specify the order in which the parts of a vector
 * word 1 │ lap │ 63 bits of user data         │  arrive: a slot is full when BOTH lap bits are those of the expected lap.
 *        └─────┴──────────────────────────────┘
 * Position p of a lane is stored in slot p mod 2^shift; its lap bit is 1 in even laps (p >> shift) and 0 in odd laps. */
struct gpul_trigger {
	unsigned long long word[2];
};

/* The words that the CPU writes for the kernels about one lane.  Each lane has a separate cache line, because reads of one line are
 * serialised.  A kernel reads both words with one load. */
struct gpul_fifo_line {
	unsigned long long tail;  /* positions below tail have been handled: their slots are free */
	unsigned long long abort; /* 0, or a code that ends every wait of the kernels */
	unsigned long long zero[6];
};

enum {
	GPUL_FIFO_MAGIC = 0x4f464947, /* the bytes "GIFO" as a little-endian number */
	GPUL_FIFO_VERSION = 1,
	GPUL_FIFO_MAX_LANES = 4096,
	GPUL_FIFO_MAX_SLOTS = 1 << 24, /* slots of all lanes together */
	GPUL_FIFO_KIND_SHIFT = 59,     /* bits 59-62 of word 1 are the kind, by which a proxy (proxy.h) selects the handler */
	GPUL_FIFO_N_KINDS = 16,        /* number of kinds; a program that polls without a proxy may use the kind's bits for its data */
};

struct gpul_fifo_header {
	unsigned int magic, version;
	unsigned int lanes;      /* number of rings; a power of two */
	unsigned int lane_shift; /* each lane has 1 << lane_shift slots */
	unsigned long long bytes;
	unsigned int life[2]; /* lifelines of the kernels' and of the proxy's process: core/thread/lifeline.h; 0: not held */
	unsigned long long zero0[4];
	unsigned long long raised; /* 0, or the code with which a kernel has aborted the FIFO */
	unsigned long long zero1[7];
};

/* The kernels' state for one lane, in device memory. */
struct gpul_fifo_lane {
	unsigned long long head;  /* the next position: the ticket counter, or where the last owner stopped */
	unsigned long long owner; /* 1 while a thread owns the lane */
	unsigned long long zero0[2];
	unsigned long long shared_tail; /* the tail that the elected poller read last << POLLER_BITS | enum gpul_fifo_poller.
					  * One word, because with two words an old tail could arrive after the state
					  * NO_POLLER and overwrite a newer tail, which no thread would write again */
	unsigned long long zero1[11];
};

/* Threads that share a lane elect one poller, which reads the line over the bus for all of them. */
enum gpul_fifo_poller {
	GPUL_FIFO_NO_POLLER = 0,
	GPUL_FIFO_POLLED = 1, /* a thread is polling */
	GPUL_FIFO_BROKEN = 2, /* the FIFO has been aborted */
	GPUL_FIFO_POLLER_BITS = 2,
};

/* The kernel parameter, passed by value; gpul_fifo_gpu_create() (fifo.h) fills it in. */
struct gpul_fifo_device {
	struct gpul_trigger *slots;
	const struct gpul_fifo_line *lines;
	struct gpul_fifo_lane *lanes;
	unsigned long long *raised;
	unsigned int n_lanes, lane_shift;
};

/* Results of the device functions. */
enum gpul_fifo_result {
	GPUL_FIFO_OK = 0,
	GPUL_FIFO_TIMED_OUT = 1, /* the tail did not reach the wanted position within the time-out */
	GPUL_FIFO_ABORTED = 2,   /* the proxy or another kernel thread aborted the FIFO */
	GPUL_FIFO_BUSY = 3,      /* gpul_fifo_own: another thread owns the lane */
	GPUL_FIFO_REFUSED = 4,   /* a value does not fit into the trigger, so nothing was pushed; only functions whose
				  * comments mention REFUSED return this */
};

/* Abort codes that gpuload sets.  If a handler fails, the code is its gpul_status (core/error.h), which is smaller. */
enum gpul_fifo_code {
	GPUL_FIFO_CODE_TIMED_OUT = 0x100, /* a kernel thread with a ticket timed out: its slot would stay empty forever */
	GPUL_FIFO_CODE_STOPPED = 0x101,   /* the proxy was stopped without draining */
	GPUL_FIFO_CODE_PEER_GONE = 0x102, /* the other process has ended */
};

#endif
