/* tell.h — a line on stderr. */
#ifndef GPULOAD_CLI_LIB_TELL_H
#define GPULOAD_CLI_LIB_TELL_H

/** Say "gpuload COMMAND: ..." on stderr, printf-like, behind all that stdout holds so far.
 *
 * What comes from a file may hold anything: control characters other than line ends and tabs become
 * '?', so that no file can send a terminal commands.  command NULL: "gpuload: ...".  One thread. */
void cli_tell(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
