/* stop.h — an end that was asked for (Ctrl-C, kill, a closed terminal) as something to poll.
 *
 * A command that offers memory to others shall say goodbye before it goes.  From stop_begin() on, the first SIGINT,
 * SIGTERM or SIGHUP makes a descriptor readable and no more; a second one ends the process at once.  A signal that
 * was ignored stays so (nohup; a shell script's background jobs), and writing to a pipe that nobody reads is an error
 * of the write. */
#ifndef GPULOAD_CLI_STOP_H
#define GPULOAD_CLI_STOP_H

#include "core/error.h"

/** Begin to catch; once a process.
 *
 * Not before there is something to end in order: until then a signal may just kill.
 *
 * @fd  readable from the first signal on; lives until the process ends
 * Errors  GPUL_ESYS no descriptor is left
 * Threads the main thread
 * Source  Linux eventfd(2), POSIX sigaction() */
gpul_status stop_begin(int *fd, gpul_error *err);

/* "SIGTERM": what asked for the end; NULL: nothing has. */
const char *stop_asked(void);

#endif
