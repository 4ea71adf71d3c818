/* name.h — acquires and releases the ownership of a name: its lock file and its socket file.
 *
 * The folder of the sockets may contain files of owners that were killed.  The kernel releases the lock of such an owner, so
 * a process that gets the lock may replace the files. */
#ifndef GPULOAD_IPC_NAME_H
#define GPULOAD_IPC_NAME_H

#include "ipc/place.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_IPC_LOCK_BYTES = GPUL_IPC_PATH_BYTES + 8 };

/* A name under which this process offers memory.  The process owns it while lock_fd is open; the kernel releases the lock when the
 * process ends. */
struct gpul_ipc_name {
	char socket[GPUL_IPC_PATH_BYTES];
	char lock[GPUL_IPC_LOCK_BYTES];
	int lock_fd;     /* -1: this process does not own the name */
	bool has_socket; /* true: this process created the socket file, and removes it */
};

/** Take ownership of the name whose socket is at path.
 *
 * @path  from gpul_ipc_place()
 * @out   to be released by gpul_ipc_name_release(); lock_fd is -1 on failure
 * Errors  GPUL_EUNSUPPORTED another process owns it (the message gives its pid); GPUL_ESYS
 * Source  Linux flock(2) */
gpul_status gpul_ipc_name_take(const char path[GPUL_IPC_PATH_BYTES], struct gpul_ipc_name *out, gpul_error *err);
/* Remove the socket file (has_socket) and the lock file, then release the lock.  Does nothing if lock_fd is -1. */
void gpul_ipc_name_release(struct gpul_ipc_name *name);

/** Remove a socket file if no process listens on it.
 *
 * The lock on the name proves that no gpuload owner runs; but a path given by the user may belong to another program.
 *
 * @path  path of the socket file, which need not exist
 * Errors  GPUL_EUNSUPPORTED the file is not a socket, or another program listens on it; GPUL_ESYS
 * Source  Linux unix(7) */
gpul_status gpul_ipc_socket_remove_dead(const char path[GPUL_IPC_PATH_BYTES], gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
