/* command.h — struct cli_cmd, which describes a command, and the parser of its command line.
 *
 *     argv ── cli_parse (cli_parse.c) ──> cli_args ── cmd->run (run.c, ls.c, ...) ──> exit code
 *
 * Each command defines its own row (struct cli_cmd) and its option table, next to the code that reads the options;
 * cli/commands.c lists the rows.  A row may have verbs, which are rows too: gpuload fifo bench. */
#ifndef GPULOAD_CLI_LIB_COMMAND_H
#define GPULOAD_CLI_LIB_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* The exit status of the program.  USAGE: the command line is wrong (an unknown option, an argument that does not fit
 * the kernel, a block of 2048 threads).  FAILED: every other failure.  INTERRUPTED: the command closed what it had to
 * close after Ctrl-C; a shell reports the same status for a program that SIGINT killed. */
enum cli_exit { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* How bash completes a value: one of these constants, or a list of words such as "auto nvidia soft". */
#define CLI_FILES    "@files"
#define CLI_COMMANDS "@commands"
#define CLI_SHARES   "@shares" /* the value is completed with the names that gpuload shares --names prints */

struct cli_opt {
	const char *name; /* without dashes; the value of a one-letter option may follow directly: -Idir */
	/* name of the value, as help shows it; NULL: a switch; "[=NAME]": the value is optional, and only given as --opt=value */
	const char *value;
	const char *help;
	const char *complete; /* CLI_FILES, CLI_COMMANDS, CLI_SHARES, a list of words, or NULL */
};

/* Option rows that several commands use. */
#define CLI_DRIVER_OPT { "driver", "NAME", "driver: auto, nvidia or soft (default: $GPULOAD_DRIVER, otherwise auto)", "auto nvidia soft" }
#define CLI_JSON_OPT   { "json", NULL, "print one JSON object instead of text", NULL }
extern const struct cli_opt cli_no_opts[]; /* the table of a command without options */

struct cli_args { /* a parsed command line; its strings are borrowed */
	struct cli_given {
		int opt;           /* index of the row in the option table */
		const char *value; /* value of the option; NULL for a switch */
	} *given;
	size_t n_given;
	const char **operands;
	size_t n_operands;
	size_t n_before_dashes; /* operands before `--`; n_operands if it is not given */
	bool help;              /* --help or -h was given */
};

struct cli_cmd {
	const char *name, *operands, *help;
	const char *details;                                      /* paragraphs for --help and the man page; NULL: none */
	const struct cli_opt *opts;                               /* ends with {0} */
	int (*run)(const struct cli_args *args, gpul_error *err); /* returns an enum cli_exit */
	const char *complete;                                     /* how bash completes operands, as in cli_opt */
	/* verbs, each named "COMMAND VERB", NULL-terminated; NULL: none.  With verbs, opts is empty, and run is called without a verb */
	const struct cli_cmd *const *verbs;
};

/** Parse the part of a command line that follows the name of the command.
 *
 * Options may be given before, between or after operands, as `--opt value` or `--opt=value`, and may be repeated; `--` ends them.
 *
 * @opts     an option table, ends with {0}
 * @words    n_words strings; borrowed, must outlive *out
 * @n_words  their number
 * @out      owned by the caller: cli_args_free(); empty on failure
 * Errors  GPUL_EINVAL an unknown option (the message suggests a similar name), a missing value, or a value for a switch; GPUL_ENOMEM
 * Source  POSIX.1-2017, XBD 12.2, and the GNU long options */
gpul_status cli_parse(const struct cli_opt *opts, char *const *words, size_t n_words, struct cli_args *out, gpul_error *err);
void cli_args_free(struct cli_args *args);

/* Returns true if the value of an option may be left out. */
static inline bool cli_value_is_optional(const struct cli_opt *o)
{
	return o->value && *o->value == '[';
}

/** The value of an option's last use on the command line; NULL: not given.  A switch, and an option without its optional value, have the
 * value "". */
const char *cli_value(const struct cli_args *args, int opt);

/** Return the exit status for a gpul_status: CLI_DONE for GPUL_OK, CLI_USAGE for GPUL_EINVAL, CLI_FAILED for all others. */
int cli_exit_code(gpul_status status);

#endif
