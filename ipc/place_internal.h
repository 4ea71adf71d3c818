/* place_internal.h — the folder of the sockets, checked, and the lock on a name. */
#ifndef GPULOAD_IPC_PLACE_INTERNAL_H
#define GPULOAD_IPC_PLACE_INTERNAL_H

#include "ipc/place.h"

enum { LOCK_PATH_BYTES = GPUL_IPC_PATH_BYTES + 8 };

/* A name that is ours while lock is open: the kernel gives it back when we die. */
struct gpul_ipc_lease_name {
	char socket[GPUL_IPC_PATH_BYTES];
	char lock[LOCK_PATH_BYTES];
	int lock_fd;     /* -1: none is held */
	bool has_socket; /* what lies at socket is ours to remove */
};

/** Take the name whose socket lies at path.
 *
 * @path  from gpul_ipc_place()
 * @out   to be given back with gpul_ipc_name_release(); lock_fd -1 on failure
 * Errors  GPUL_EUNSUPPORTED another process has it: says which; GPUL_ESYS
 * Threads any thread may call
 * Source  Linux flock(2) */
gpul_status gpul_ipc_name_take(const char path[GPUL_IPC_PATH_BYTES],
			       struct gpul_ipc_lease_name *out, gpul_error *err);
/* Remove the socket file (has_socket) and the lock file, then give the name back.  Nothing taken:
 * nothing done. */
void gpul_ipc_name_release(struct gpul_ipc_lease_name *name);

/** Remove a socket file that nobody listens behind.
 *
 * The lock on the name says that no owner of ours lives; but a path that somebody gave may well be
 * another program's.
 *
 * @path  of what may be there
 * Errors  GPUL_EUNSUPPORTED it is no socket, or another program's that is alive; GPUL_ESYS
 * Threads any thread may call
 * Source  Linux unix(7) */
gpul_status gpul_ipc_socket_remove_dead(const char path[GPUL_IPC_PATH_BYTES], gpul_error *err);

#endif
