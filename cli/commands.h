/* commands.h — the table of all commands: look-up by name, help text, man page, bash completion. */
#ifndef GPULOAD_CLI_COMMANDS_H
#define GPULOAD_CLI_COMMANDS_H

#include "cli/lib/command.h"

typedef const struct cli_cmd *const cli_table[];  /* NULL-terminated */

extern cli_table cli_commands;
extern const struct cli_cmd cli_version;

/** The command with this name; NULL: not found, and *err suggests a similar name. */
const struct cli_cmd *cli_find(const char *name, gpul_error *err);
/** The verb (subcommand) of cmd, such as "bench" of "fifo"; NULL: not found, and *err suggests a similar name. */
const struct cli_cmd *cli_find_verb(const struct cli_cmd *cmd, const char *verb, gpul_error *err);

/* Print on stdout: the list of commands, the help of one command, the manual page (roff), the script for bash. */
void cli_print_usage(cli_table commands);
void cli_print_help(const struct cli_cmd *cmd);
void cli_print_man(cli_table commands);
void cli_print_bash_completion(cli_table commands);

#endif
