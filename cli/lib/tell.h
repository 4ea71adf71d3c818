/* tell.h — messages on stderr. */
#ifndef GPULOAD_CLI_LIB_TELL_H
#define GPULOAD_CLI_LIB_TELL_H

/** Flush stdout, then write "gpuload COMMAND: ..." and a newline to stderr; the arguments are as for printf.
 *
 * Control characters except newline and tab become '?', because a message may contain text from a file, and such text
 * must not control the terminal.  command NULL: "gpuload: ...".  One thread at a time. */
void cli_tell(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
