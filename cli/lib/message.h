/* message.h — prints messages on stderr. */
#ifndef GPULOAD_CLI_LIB_MESSAGE_H
#define GPULOAD_CLI_LIB_MESSAGE_H

#include "core/error.h"

/** Flush stdout, then write "gpuload COMMAND: ..." and a newline to stderr; the arguments are as for printf.
 *
 * Control characters except newline and tab become '?', because a message may contain text from a file, and such text
 * must not control the terminal.  command NULL: "gpuload: ...".  One thread at a time. */
void cli_message(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Make all messages show this command's name instead of the name of the command that prints them: gpuload step runs a file as
 * gpuload run does. */
void cli_message_as(const char *command);
/** Return the command name that messages of `command` show: that of cli_message_as(), or `command`. */
const char *cli_message_name(const char *command);

/** Print a compiler's messages on stderr, as the compiler wrote them.
 *
 * @log   the messages; NULL or "": none
 * @file  the file that was compiled
 * @err   NULL: the file was compiled.  Otherwise the failure; its text, the first of the
 *        errors, is replaced by a reference to the messages */
void cli_message_log(const char *log, const char *file, gpul_error *err);

#endif
