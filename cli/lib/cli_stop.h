/* cli_stop.h — waits for a request to stop: Ctrl-C, kill, or a closed terminal.
 *
 * A command that shares memory must close its connections before it ends.  After stop_begin(), the first SIGINT, SIGTERM or SIGHUP only
 * requests the end; a second one kills the process.  Signals that were ignored stay ignored (nohup, background jobs of a shell
 * script).  If stdout is a pipe whose reader closes it, that is a request to stop, too, so that a command ends together with the
 * program that started it and reads its output. */
#ifndef GPULOAD_CLI_LIB_CLI_STOP_H
#define GPULOAD_CLI_LIB_CLI_STOP_H

#include "core/error.h"

/** Start to catch the signals.  Call this only when there is something to close: until then a signal may kill the process.  Further
 * calls do nothing.
 *
 * Errors  GPUL_ESYS too many open descriptors
 * Source  Linux eventfd(2), POSIX sigaction() */
gpul_status stop_begin(gpul_error *err);

/** Wait until fd is readable, a stop is requested, or the time-out expires.
 *
 * @fd          borrowed
 * @timeout_ms  below 0: no time-out
 * Errors  GPUL_ESYS
 * Threads any thread, after stop_begin()
 * Source  POSIX poll() */
gpul_status stop_wait(int fd, int timeout_ms, gpul_error *err);

/* Return the reason to stop, such as "SIGTERM"; NULL: no request to stop yet. */
const char *stop_requested(void);
/* Return the signal that requested the stop; 0: none yet. */
int stop_signal(void);

#endif
