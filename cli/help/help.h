/* help.h — functions that print help texts, manual pages and completion scripts from the table of commands. */
#ifndef GPULOAD_CLI_HELP_HELP_H
#define GPULOAD_CLI_HELP_HELP_H

#include <stdio.h>

#include "cli/lib/command.h"

typedef const struct cli_cmd *const cli_table[]; /* NULL-terminated */

/* Print on stdout the list of commands, or the help of one command, in lines of at most 79 columns. */
void cli_print_usage(cli_table commands);
void cli_print_help(const struct cli_cmd *cmd);
/* Print on stdout the environment variables that gpuload reads. */
void cli_print_environment(void);

/* Print on stdout a manual page (roff): gpuload(1), or gpuload-COMMAND(1), which includes the command's verbs. */
void cli_print_man(cli_table commands);
void cli_print_man_of(const struct cli_cmd *cmd);

/* Print on stdout a completion script. */
void cli_print_bash_completion(cli_table commands);
void cli_print_zsh_completion(cli_table commands);
void cli_print_fish_completion(cli_table commands);

/* An environment variable that gpuload reads. */
struct cli_variable {
	const char *name, *what;
};
extern const struct cli_variable cli_environment[]; /* ends with {0} */

/** Print a text of several lines on stdout, in lines of at most 79 columns.
 *
 * Only paragraphs with a longer line are changed: text that begins in column 0 is broken into new lines, and so is the last column of
 * an item ("    name   its text", with its continuation lines below the text).
 *
 * @text     UTF-8, with a newline at its end
 * Threads any thread may call, one at a time for stdout
 * Source  gpuload's own */
void cli_print_wrapped(const char *text);
/** Print one paragraph, whose first line continues the current line in column `column`; its other lines begin in column `indent`. */
void cli_fill(const char *text, size_t text_bytes, size_t column, size_t indent);
/** Return the number of columns of UTF-8 text. */
size_t cli_columns(const char *text, size_t text_bytes);

#endif
