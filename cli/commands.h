/* commands.h — the table of all commands, and look-up by name. */
#ifndef GPULOAD_CLI_COMMANDS_H
#define GPULOAD_CLI_COMMANDS_H

#include "cli/help/help.h"

extern cli_table cli_commands;
extern const struct cli_cmd cli_version;

/** Find the command with this name; NULL: not found, and *err suggests a similar name. */
const struct cli_cmd *cli_find(const char *name, gpul_error *err);
/** Find a verb (subcommand) of cmd, such as "bench" of "fifo"; NULL: not found, and *err suggests a similar name. */
const struct cli_cmd *cli_find_verb(const struct cli_cmd *cmd, const char *verb, gpul_error *err);

#endif
