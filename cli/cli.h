/* cli.h — one table row is a subcommand: parsing, help, completion, man page come from it.
 *
 *     argv ── cli_parse (parse.c) ──> cli_args ── cmd->run (run.c, ls.c, ...) ──> exit code
 *                 ↑ cli_cmds (commands.c) ↑       help.c, completion.c print the same table
 *
 * A row may have verbs, which are rows themselves: gpuload fifo bench. */
#ifndef GPULOAD_CLI_CLI_H
#define GPULOAD_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* What the shell sees.  USAGE: the command line asks for something that cannot be (an unknown
 * option, an argument that does not fit the kernel, a block of 2048 threads).  FAILED: the
 * rest. */
enum cli_exit { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* What a value completes to, beside a list of words such as "auto nvidia soft". */
#define CLI_FILES "@files"
#define CLI_COMMANDS "@commands"
#define CLI_SHARES "@shares"  /* names that gpuload shares --names lists */

struct cli_opt {
	const char *name;      /* without dashes; one letter: -I, also joined: -Idir */
	const char *value;     /* what follows, as help shows it; NULL: a switch */
	const char *help;
	const char *complete;  /* CLI_FILES, CLI_COMMANDS, CLI_SHARES, words, or NULL */
	bool in_file;          /* may stand in a file's own `// gpuload run:` line */
};

struct cli_args {  /* a parsed command line; its words are borrowed */
	struct cli_given {
		int opt;               /* row of the option table */
		const char *value;     /* NULL for a switch */
	} *given;
	size_t n_given;
	const char **operands;
	size_t n_operands;
	bool help;                     /* --help or -h stood somewhere */
};

struct cli_cmd {
	const char *name, *operands, *help;
	const char *details;           /* paragraphs for --help and the man page; NULL: none */
	const struct cli_opt *opts;    /* ends with {0} */
	int (*run)(const struct cli_args *args, gpul_error *err);  /* an enum cli_exit */
	const char *complete;          /* what operands complete to, as in cli_opt */
	const struct cli_cmd *verbs;   /* NULL, or rows that end with {0}, named "fifo bench": then opts has no row and
					* run is for the bare command */
};

extern const struct cli_cmd cli_cmds[];  /* ends with {0} */

/** The row called name; NULL: none, and *err offers a near name. */
const struct cli_cmd *cli_find(const char *name, gpul_error *err);
/** The same of a row's verbs: cmd is "fifo", verb "bench". */
const struct cli_cmd *cli_find_verb(const struct cli_cmd *cmd, const char *verb, gpul_error *err);

/** Parse the words after the subcommand.
 *
 * Options stand before, between or after operands, as `--opt value` or `--opt=value`, and may
 * be repeated; `--` ends them.
 *
 * @opts     an option table, ends with {0}
 * @words    n_words strings; borrowed, must outlive *out
 * @n_words  their number
 * @out      owned by the caller: cli_args_free(); empty on failure
 * Errors  GPUL_EINVAL an unknown option (a near name is offered), a value missing or unwanted;
 *         GPUL_ENOMEM
 * Threads any thread may call
 * Source  POSIX.1-2017, XBD 12.2, and the GNU long options */
gpul_status cli_parse(const struct cli_opt *opts, char *const *words, size_t n_words,
		      struct cli_args *out, gpul_error *err);
void cli_args_free(struct cli_args *args);

/** The value of an option's last use; NULL: not given.  A switch has the value "". */
const char *cli_value(const struct cli_args *args, int opt);

/** The values of every use of any of the options whose bit is set in mask, in order: fills
 * values[] (room for args->n_given) with pairs of row and value; returns their number. */
size_t cli_values(const struct cli_args *args, uint32_t mask, struct cli_given *values);

/** OK: DONE; EINVAL: USAGE; everything else: FAILED. */
int cli_exit_code(gpul_status status);

/** The help of one command, the list of commands, the manual's roff: on stdout. */
void cli_print_usage(void);
void cli_print_help(const struct cli_cmd *cmd);
void cli_print_man(void);

int cmd_run(const struct cli_args *args, gpul_error *err);
int cmd_ls(const struct cli_args *args, gpul_error *err);
int cmd_explain(const struct cli_args *args, gpul_error *err);
int cmd_extract(const struct cli_args *args, gpul_error *err);
int cmd_devices(const struct cli_args *args, gpul_error *err);
int cmd_compile(const struct cli_args *args, gpul_error *err);
int cmd_share(const struct cli_args *args, gpul_error *err);
int cmd_attach(const struct cli_args *args, gpul_error *err);
int cmd_shares(const struct cli_args *args, gpul_error *err);
int cmd_map(const struct cli_args *args, gpul_error *err);
int cmd_cache(const struct cli_args *args, gpul_error *err);
int cmd_mmap_sum(const struct cli_args *args, gpul_error *err);
int cmd_fifo(const struct cli_args *args, gpul_error *err);
int cmd_fifo_bench(const struct cli_args *args, gpul_error *err);
int cmd_completion(const struct cli_args *args, gpul_error *err);
int cmd_help(const struct cli_args *args, gpul_error *err);
int cmd_version(const struct cli_args *args, gpul_error *err);

#endif
