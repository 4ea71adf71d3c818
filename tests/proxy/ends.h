/* ends.h — test support for a FIFO between two processes: memory shared by ipc/, kernels that push, and a check of the triggers.
 *
 *     piece_offer ┄┄ socket ┄┄> piece_attach          either process may own the memory
 *     kernels_open, start, wait                       the process with the GPU's half: cli/kernels/fifo_push.cu
 *     gpul_fifo_open, gpul_proxy_start, check_items   the process with the CPU's half */
#ifndef GPULOAD_TESTS_PROXY_ENDS_H
#define GPULOAD_TESTS_PROXY_ENDS_H

#include "cli/fifo/fifo_push.h"
#include "ipc/client.h"
#include "proxy/proxy.h"

/* ---- the memory ------------------------------------------------------------------------- */

struct piece {
	const gpul_driver *drv;
	gpul_mem *mem;           /* in the owner only */
	gpul_ipc_server *server; /* in the owner only */
	gpul_ipc_client *client; /* in the attached process only */
	int slot;                /* owner only: slot of the peer that attached last; -1: none */
	void *area;
	CUdeviceptr area_gpu;
	size_t bytes;
};

/* piece_offer() creates, formats and offers memory for a FIFO; piece_attach() attaches to it.  piece_drop() releases both. */
gpul_status piece_offer(const gpul_driver *drv, gpul_mem_kind kind, const char *name, const gpul_fifo_shape *shape, struct piece *out,
			gpul_error *err);
gpul_status piece_attach(const gpul_driver *drv, const char *name, struct piece *out, gpul_error *err);
gpul_status piece_drop(struct piece *p, gpul_error *err);

/* Wait for the next event of the lease; NONE: no event within the time. */
gpul_status piece_event(struct piece *p, int timeout_ms, gpul_ipc_event *out, gpul_error *err);
/* True: the event reports that the other process has detached or ended. */
bool piece_is_lost(gpul_ipc_event_kind kind);
/* Store the descriptors by which a proxy's thread watches the other process, and return their number.  piece_unwatch() releases them. */
unsigned piece_watch(const struct piece *p, int fds[2]);
void piece_unwatch(const struct piece *p, const int fds[2], unsigned n);

/* ---- kernels ------------------------------------------------------------------------------ */

enum { MOST_BLOCKS = 16 };

struct kernels {
	struct piece *piece;
	gpul_fifo_gpu *end;
	CUlibrary library;
	CUfunction push;
	CUstream stream;
	CUdeviceptr words; /* first[MOST_BLOCKS], then results[MOST_BLOCKS] */
	unsigned n_blocks; /* number of blocks of the running kernel */
};

/* Each block pushes `count` triggers with the numbers first, first + 1 ... */
struct pushes {
	unsigned n_blocks;
	uint64_t first, count;
	uint64_t timeout_ns;
	unsigned flags; /* bits of enum fifo_push_flags */
};

/* What kernels_wait() reports about a kernel. */
struct pushed {
	uint64_t n;               /* number of triggers pushed by all blocks */
	unsigned result;          /* the largest result of the blocks, an enum gpul_fifo_result */
	uint32_t code;            /* the FIFO's abort code, from gpul_fifo_gpu_aborted() */
	gpul_ipc_event_kind lost; /* the event that reported the end of the other process; NONE: it has not ended */
};

gpul_status kernels_open(struct piece *p, struct kernels *out, gpul_error *err);
gpul_status kernels_start(struct kernels *k, const struct pushes *p, gpul_error *err);
/* Wait until the kernel has ended.  If the other process ends first and `aborts` is set, abort the FIFO
 * (GPUL_FIFO_CODE_PEER_GONE).  Errors: GPUL_ESYS native = ETIMEDOUT. */
gpul_status kernels_wait(struct kernels *k, bool aborts, int timeout_ms, struct pushed *out, gpul_error *err);
void kernels_close(struct kernels *k);

/* ---- checking triggers -------------------------------------------------------------------- */

struct check {
	unsigned lanes;
	uint64_t n;                 /* number of correct triggers */
	uint64_t next[MOST_BLOCKS]; /* next number of each block; the first number of a block is not checked */
	bool begun[MOST_BLOCKS];
	uint64_t n_wrong;
	char wrong[160]; /* describes the first wrong trigger */
};

/* A gpul_proxy_handler that checks triggers; context is a struct check. */
gpul_status check_items(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err);

#endif
