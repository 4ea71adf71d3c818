/* view.h — one process' view of a shared buffer, and what happens to its peers.
 *
 *      first page          from data_offset on
 *     ┌───────────────────┬──────────────────────────────┐
 *     │ control page:     │ the user's bytes             │   one piece of memory (gpul_mem), the same
 *     │ abort word, steps │                              │   in every process, at addresses of its own
 *     └───────────────────┴──────────────────────────────┘ */
#ifndef GPULOAD_IPC_VIEW_H
#define GPULOAD_IPC_VIEW_H

#include <stdint.h>
#include <sys/types.h>

#include "memalloc/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_IPC_CONTROL_BYTES = 4096, GPUL_IPC_MAX_DIMS = 4, GPUL_IPC_MAX_PEERS = 64 };

/* What the bytes are, for people and for typed tools.  A hint: 0 dimensions say nothing. */
typedef struct gpul_ipc_shape {
	char dtype[8];           /* numpy's: "<f4", "<u8"; "": bytes */
	unsigned n_dims;
	uint64_t dim[GPUL_IPC_MAX_DIMS];
} gpul_ipc_shape;

typedef struct gpul_ipc_view {
	const gpul_driver *drv;
	void *cpu;               /* the user's first byte; NULL: the CPU cannot see it (device memory) */
	CUdeviceptr gpu;
	size_t bytes;            /* the user's */
	struct gpul_ipc_control *control;  /* control page as the CPU sees it; NULL: not, or there is none */
	CUdeviceptr control_gpu; /* 0: there is none */
	bool read_only;
	gpul_ipc_shape shape;
} gpul_ipc_view;

typedef enum gpul_ipc_event_kind {
	GPUL_IPC_NONE,        /* nothing happened in the time given */
	GPUL_IPC_ATTACHED,    /* owner: a peer has mapped it.  Peer: this one has */
	GPUL_IPC_DETACHED,    /* owner: a peer has let go in order.  Peer: the owner ended the lease in order */
	GPUL_IPC_PEER_DIED,   /* owner: a peer's connection or process ended without a word */
	GPUL_IPC_OWNER_DIED,  /* peer: the owner's did; the memory stays usable until detached */
	GPUL_IPC_REFUSED,     /* owner: turned a connection away, see why.  Peer: was turned away */
} gpul_ipc_event_kind;

typedef struct gpul_ipc_event {
	gpul_ipc_event_kind kind;
	int peer;             /* owner: slot 0 ... GPUL_IPC_MAX_PEERS - 1, -1 none.  Peer: its own slot */
	pid_t pid;            /* of the other process, as seen from here; 0: of another pid namespace */
	uid_t uid;
	gpul_error why;       /* REFUSED, PEER_DIED, OWNER_DIED: one line */
} gpul_ipc_event;

/* "ATTACHED", ...; "?" for what is no event. */
const char *gpul_ipc_event_name(gpul_ipc_event_kind kind);

#ifdef __cplusplus
}
#endif

#endif
