/* stop.h — an end that is asked for (Ctrl-C, kill, a closed terminal): something to wait for.
 *
 * A command that offers memory to others shall say goodbye before it goes.  From stop_begin()
 * on, the first SIGINT, SIGTERM or SIGHUP asks for the end and no more; a second one ends the
 * process at once.  A signal that was ignored stays so (nohup; a shell script's background
 * jobs).  Nobody reading stdout any more asks for the end, too: so a command ends with the
 * program that started it and listens. */
#ifndef GPULOAD_CLI_LIB_STOP_H
#define GPULOAD_CLI_LIB_STOP_H

#include "core/error.h"

/** Begin to catch; once a process.
 *
 * Not before there is something to end in order: until then a signal may just kill.
 *
 * Errors  GPUL_ESYS no descriptor is left
 * Threads the main thread
 * Source  Linux eventfd(2), POSIX sigaction() */
gpul_status stop_begin(gpul_error *err);

/** Wait until fd is readable, an end is asked for, or the time is over.
 *
 * @fd          borrowed
 * @timeout_ms  < 0: for ever
 * Errors  GPUL_ESYS
 * Threads the main thread, after stop_begin()
 * Source  POSIX poll() */
gpul_status stop_wait(int fd, int timeout_ms, gpul_error *err);

/* What asked for the end, in a few words: "SIGTERM"; NULL: nothing has. */
const char *stop_asked(void);

#endif
