/* debug.h — the commands gpuload step and gpuload dap, and a function that extracts the words for gpuload run from a command line. */
#ifndef GPULOAD_CLI_DEBUG_DEBUG_H
#define GPULOAD_CLI_DEBUG_DEBUG_H

#include "cli/debug/session.h"
#include "cli/lib/command.h"

extern const struct cli_cmd cli_step, cli_dap;

/** Step through a kernel in windows of the terminal, until the program ends or the user quits.
 *
 * @s       a session whose program is stopped, or has ended
 * @output  the program's stdout and stderr: read from here
 * Errors  GPUL_EUNSUPPORTED built without ncurses; GPUL_ESYS the terminal cannot be used
 * Threads the main thread
 * Source  ncurses(3) */
gpul_status step_screen(struct session *s, int output, gpul_error *err);

#endif
