/* commands.c — the table of commands, its look-up by name, and the commands help and completion, which print it. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/calls/cli_calls.h"
#include "cli/comm/cli_comm.h"
#include "cli/compile/cli_compile.h"
#include "cli/debug/debug.h"
#include "cli/devices/devices.h"
#include "cli/fifo/cli_fifo.h"
#include "cli/ls/ls.h"
#include "cli/rdma/cli_rdma.h"
#include "cli/run/cli_run.h"
#include "cli/share/attach.h"
#include "cli/share/map.h"
#include "cli/share/share.h"
#include "cli/soft/soft.h"
#include "cli/sum/mmap_sum.h"
#include "core/text.h"

static const struct cli_cmd cli_help, cli_completion;

cli_table cli_commands = {
	&cli_run,     &cli_soft,  &cli_calls,  &cli_step,       &cli_dap,  &cli_ls,      &cli_extract, &cli_devices,
	&cli_compile, &cli_share, &cli_attach, &cli_shares,     &cli_map,  &cli_explain, &cli_cache,   &cli_mmap_sum,
	&cli_fifo,    &cli_rdma,  &cli_comm,   &cli_completion, &cli_help, &cli_version, NULL,
};

/* Find the row with this name.  The first n_prefix bytes of the names in rows, such as "fifo ", are not compared.  of: the command
 * whose verbs the rows are, for the error message. */
static const struct cli_cmd *find_row(const struct cli_cmd *const *rows, size_t n_prefix, const char *name, const char *of, gpul_error *err)
{
	const char *names[sizeof cli_commands / sizeof *cli_commands];
	size_t n = 0;
	const char *near;

	for (; *rows; rows++) {
		if (!strcmp((*rows)->name + n_prefix, name))
			return *rows;
		if (n < sizeof names / sizeof *names)
			names[n++] = (*rows)->name + n_prefix;
	}
	near = gpul_text_nearest(name, names, n);
	if (near)
		gpul_fail(err, GPUL_EINVAL, 0, "unknown command '%s%s'; did you mean %s?", of, name, near);
	else
		gpul_fail(err, GPUL_EINVAL, 0, "unknown command '%s%s'; gpuload help %slists the commands", of, name, of);
	return NULL;
}

const struct cli_cmd *cli_find(const char *name, gpul_error *err)
{
	return find_row(cli_commands, 0, name, "", err);
}

const struct cli_cmd *cli_find_verb(const struct cli_cmd *cmd, const char *verb, gpul_error *err)
{
	char of[32];

	snprintf(of, sizeof of, "%s ", cmd->name);
	return find_row(cmd->verbs, strlen(of), verb, of, err);
}

enum { HELP_MAN, HELP_NAMES };
static const struct cli_opt help_opts[] = {
	[HELP_MAN] = { "man", NULL, "print the manual page, of gpuload or of COMMAND (roff)", NULL },
	[HELP_NAMES] = { "names", NULL, "print the names of the commands, one per line", NULL },
	{ 0 },
};

static int cmd_help(const struct cli_args *args, gpul_error *err)
{
	const bool man = cli_value(args, HELP_MAN);
	const struct cli_cmd *cmd;

	for (size_t k = 0; cli_value(args, HELP_NAMES) && cli_commands[k]; k++)
		puts(cli_commands[k]->name);
	if (cli_value(args, HELP_NAMES))
		return CLI_DONE;
	if (args->n_operands == 0) {
		if (man)
			cli_print_man(cli_commands);
		else
			cli_print_usage(cli_commands);
		return CLI_DONE;
	}
	if (!man && !strcmp(args->operands[0], "environment")) {
		cli_print_environment();
		return CLI_DONE;
	}
	cmd = cli_find(args->operands[0], err);
	if (cmd && cmd->verbs && args->n_operands > 1)
		cmd = cli_find_verb(cmd, args->operands[1], err);
	if (!cmd)
		return CLI_USAGE;
	if (man)
		cli_print_man_of(cmd);
	else
		cli_print_help(cmd);
	return CLI_DONE;
}

/* clang-format off */
static const struct cli_cmd cli_help = {
	"help", "[COMMAND]", "list the commands, or describe a command",
	"gpuload help environment describes the environment variables.\n", help_opts, cmd_help, CLI_COMMANDS, NULL,
};
/* clang-format on */

static int cmd_completion(const struct cli_args *args, gpul_error *err)
{
	static const struct {
		const char *shell;
		void (*print)(cli_table commands);
	} shells[] = { { "bash", cli_print_bash_completion }, { "zsh", cli_print_zsh_completion }, { "fish", cli_print_fish_completion } };

	for (size_t k = 0; args->n_operands == 1 && k < sizeof shells / sizeof *shells; k++) {
		if (!strcmp(args->operands[0], shells[k].shell)) {
			shells[k].print(cli_commands);
			return CLI_DONE;
		}
	}
	gpul_fail(err, GPUL_EINVAL, 0, "the shell must be bash, zsh or fish: gpuload completion bash");
	return CLI_USAGE;
}

/* clang-format off */
static const struct cli_cmd cli_completion = {
	"completion", "bash|zsh|fish", "print a script that completes command lines",
	"To use it in the current shell:\n\n"
	"    bash    source <(gpuload completion bash)\n"
	"    zsh     source <(gpuload completion zsh)\n"
	"    fish    gpuload completion fish | source\n",
	cli_no_opts, cmd_completion, "bash zsh fish", NULL,
};
/* clang-format on */
