/* place.h — where a shared buffer's socket lies: a folder that only its owner can enter. */
#ifndef GPULOAD_IPC_PLACE_H
#define GPULOAD_IPC_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_IPC_PATH_BYTES = 108 };  /* sun_path of Linux */

/** From a NAME to the path of its socket.
 *
 * A name with a '/' in it is a path already, taken as it is.  Others lie in $GPULOAD_RUNTIME_DIR, else
 * $XDG_RUNTIME_DIR/gpuload, else /tmp/gpuload-UID, as NAME.sock.  The folder is made (mode 0700) when
 * make is set, and refused when it is a symbolic link, another user's, or open to others.
 *
 * @name  letters, digits, '.', '_' and '-', not starting with '.'; or a path
 * @make  make the folder if it is not there
 * @out   filled
 * Errors  GPUL_EINVAL a name that is none, or a path of more than 107 bytes; GPUL_EUNSUPPORTED a folder that is
 *         not safe: says what is wrong with it; GPUL_ESYS
 * Threads any thread may call
 * Source  XDG Base Directory Specification; Linux unix(7) */
gpul_status gpul_ipc_place(const char *name, bool make, char out[GPUL_IPC_PATH_BYTES], gpul_error *err);

/** The names that have a socket, dead or alive, sorted.
 *
 * @names  set to n_names strings; owned by the caller: free() each and the array
 * @n_names  their number
 * Errors  as gpul_ipc_place(); a folder that is not there is 0 names
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_places(char ***names, size_t *n_names, gpul_error *err);

/** Remove what a dead owner left of a name: its socket file and its lock file.
 *
 * @name     see gpul_ipc_place()
 * @cleared  set: true, they are gone; false, there were none, or a living owner has them
 * Errors  as gpul_ipc_place()
 * Threads any thread may call
 * Source  Linux flock(2) */
gpul_status gpul_ipc_place_clear(const char *name, bool *cleared, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
