/* place.h — finds the path of a shared buffer's socket, in a folder that only its user can access. */
#ifndef GPULOAD_IPC_PLACE_H
#define GPULOAD_IPC_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* size of sockaddr_un.sun_path on Linux */
enum { GPUL_IPC_PATH_BYTES = 108 };

/** Get the path of a NAME's socket.
 *
 * A name with a '/' is used as the path.  The path of other names is NAME.sock in $GPULOAD_RUNTIME_DIR, else
 * $XDG_RUNTIME_DIR/gpuload, else /tmp/gpuload-UID.  If make is set, the folder is created (mode 0700).  A folder
 * that is a symbolic link, belongs to another user, or is accessible to others is refused.
 *
 * @name  letters, digits, '.', '_' and '-', not starting with '.'; or a path
 * @make  create the folder if it does not exist
 * @out   filled
 * Errors  GPUL_EINVAL an invalid name, or a path of more than 107 bytes; GPUL_EUNSUPPORTED the folder is not safe
 *         (the message gives the reason); GPUL_ESYS
 * Source  XDG Base Directory Specification; Linux unix(7) */
gpul_status gpul_ipc_place(const char *name, bool make, char out[GPUL_IPC_PATH_BYTES], gpul_error *err);

/** List the names that have a socket file, sorted.  Their owners may have ended.
 *
 * @names  set to n_names strings; owned by the caller: free() each and the array
 * @n_names  their number
 * Errors  as gpul_ipc_place(); a missing folder gives 0 names */
gpul_status gpul_ipc_places(char ***names, size_t *n_names, gpul_error *err);

/** Remove the socket file and the lock file of an owner that has ended.
 *
 * @name     see gpul_ipc_place()
 * @cleared  set: true if the files were removed; false if there are none, or the owner still runs
 * Errors  as gpul_ipc_place()
 * Source  Linux flock(2) */
gpul_status gpul_ipc_place_clear(const char *name, bool *cleared, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
