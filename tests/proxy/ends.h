/* ends.h — a FIFO whose ends are in two processes, for tests: the memory (by ipc), kernels that push, a check of what comes.
 *
 *     piece_offer ┄┄ socket ┄┄> piece_attach          either side's process may be the owner
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
	gpul_mem *mem;           /* the owner's; */
	gpul_ipc_server *server;
	gpul_ipc_client *client; /* else attached by this */
	int slot;                /* owner: of the peer that attached last; -1 none */
	void *area;
	CUdeviceptr area_gpu;
	size_t bytes;
};

/* Make memory for such a FIFO, format it and offer it; or attach to it.  piece_drop() either. */
gpul_status piece_offer(const gpul_driver *drv, gpul_mem_kind kind, const char *name, const gpul_fifo_shape *shape,
			struct piece *out, gpul_error *err);
gpul_status piece_attach(const gpul_driver *drv, const char *name, struct piece *out, gpul_error *err);
gpul_status piece_drop(struct piece *p, gpul_error *err);

/* What has happened to the lease within that time: NONE, or the next event. */
gpul_status piece_event(struct piece *p, int timeout_ms, gpul_ipc_event *out, gpul_error *err);
/* Is it one that says that the other process has ended, or let go? */
bool piece_is_lost(gpul_ipc_event_kind kind);
/* What a proxy's thread watches: the process at the other end.  Returns their number; piece_unwatch() them. */
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
	CUdeviceptr words;   /* first[MOST_BLOCKS], then results[MOST_BLOCKS] */
	unsigned n_blocks;   /* of what runs */
};

/* Each block pushes numbers first, first + 1 ... */
struct pushes {
	unsigned n_blocks;
	uint64_t first, count;
	uint64_t timeout_ns;
	unsigned flags;      /* enum fifo_push_flags */
};

/* What came of it. */
struct pushed {
	uint64_t n;          /* of all blocks */
	unsigned result;     /* the worst: enum gpul_fifo_result */
	uint32_t code;       /* gpul_fifo_gpu_aborted() */
	gpul_ipc_event_kind lost;  /* the event by which it was learned that the other process has ended; NONE: it has not */
};

gpul_status kernels_open(struct piece *p, struct kernels *out, gpul_error *err);
gpul_status kernels_start(struct kernels *k, const struct pushes *p, gpul_error *err);
/* Wait for their end; when the other process ends meanwhile and aborts, abort them (GPUL_FIFO_CODE_PEER_GONE).
 * Errors: GPUL_ESYS native = ETIMEDOUT. */
gpul_status kernels_wait(struct kernels *k, bool aborts, int timeout_ms, struct pushed *out, gpul_error *err);
void kernels_close(struct kernels *k);

/* ---- what comes --------------------------------------------------------------------------- */

struct check {
	unsigned lanes;
	uint64_t n;                   /* right ones */
	uint64_t next[MOST_BLOCKS];   /* of each block; its first number is taken as it comes */
	bool begun[MOST_BLOCKS];
	uint64_t n_wrong;
	char wrong[160];              /* the first that was wrong */
};

/* A gpul_proxy_handler; context is a struct check. */
gpul_status check_items(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err);

#endif
