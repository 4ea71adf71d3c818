/* view.h — a process' view (addresses and sizes) of a shared buffer, and the events of a lease.
 *
 *      first page          from data_offset on
 *     ┌───────────────────┬──────────────────────────────┐
 *     │ control page:     │ the user's bytes             │   one allocation (gpul_mem), mapped in every
 *     │ abort word, steps │                              │   process, at different addresses
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

/* Element type and shape of the data, for display and for tools that need types.  Only a hint; 0 dimensions: no shape. */
typedef struct gpul_ipc_shape {
	char dtype[8]; /* element type in numpy's notation: "<f4", "<u8"; "": bytes */
	unsigned n_dims;
	uint64_t dim[GPUL_IPC_MAX_DIMS];
} gpul_ipc_shape;

typedef struct gpul_ipc_view {
	const gpul_driver *drv;
	void *cpu; /* address of the user's first byte; NULL: no CPU access (device memory) */
	CUdeviceptr gpu;
	size_t bytes;                     /* size of the user's bytes */
	struct gpul_ipc_control *control; /* the control page's CPU address; NULL: no CPU access, or no control page */
	CUdeviceptr control_gpu;          /* the control page's GPU address; 0: no control page */
	bool read_only;
	gpul_ipc_shape shape;
} gpul_ipc_view;

typedef enum gpul_ipc_event_kind {
	GPUL_IPC_NONE,       /* no event within the time-out */
	GPUL_IPC_ATTACHED,   /* owner: a peer has mapped the memory.  Peer: this process has mapped it */
	GPUL_IPC_DETACHED,   /* owner: a peer detached.  Peer: the owner ended the lease (with BYE) */
	GPUL_IPC_PEER_DIED,  /* owner: a peer's connection or process ended without BYE */
	GPUL_IPC_OWNER_DIED, /* peer: the owner ended without BYE; the memory stays mapped until the peer detaches */
	GPUL_IPC_REFUSED,    /* owner: it has refused a connection, see `why`.  Peer: the owner has refused this process */
} gpul_ipc_event_kind;

typedef struct gpul_ipc_event {
	gpul_ipc_event_kind kind;
	int peer;  /* owner: the peer's slot, 0 ... GPUL_IPC_MAX_PEERS - 1; -1: none.  Peer: its own slot */
	pid_t pid; /* pid of the other process; 0: the process is in another pid namespace */
	uid_t uid;
	gpul_error why; /* REFUSED, PEER_DIED, OWNER_DIED: the reason, in one line */
} gpul_ipc_event;

/* Return the name of a kind of event, such as "ATTACHED"; "?" for an unknown number. */
const char *gpul_ipc_event_name(gpul_ipc_event_kind kind);

#ifdef __cplusplus
}
#endif

#endif
