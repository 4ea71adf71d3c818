/* main.c — the gpuload program: find the command, parse its options, run it, report an error. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/lib/cli_stop.h"
#include "cli/lib/message.h"

static int run_command(const struct cli_cmd *cmd, char **words, size_t n_words, gpul_error *err)
{
	struct cli_args args;
	int code;

	if (cli_parse(cmd->opts, words, n_words, &args, err))
		return CLI_USAGE;
	if (args.help) {
		cli_print_help(cmd);
		code = CLI_DONE;
	} else {
		code = cmd->run(&args, err);
	}
	cli_args_free(&args);
	return code;
}

/* True if the reader of a pipe has closed it, as head does; that is not reported as an error. */
static bool reader_closed_pipe(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* Report the error of the command.  If stdout could not be written completely, the exit status is not 0. */
static int finish_output(const char *name, const gpul_error *err, int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout)) {
		if (err->status)
			cli_message(name, "%s", err->text);
		return code;
	}
	if (!reader_closed_pipe())
		cli_message(name, "the output could not be written");
	return code ? code : CLI_FAILED;
}

/* Find the command, or the verb of a command, whose name is in argv; *n_words is set to the number of words before the first
 * option.  NULL: the command is unknown. */
static const struct cli_cmd *find_command(int argc, char **argv, int *n_words, gpul_error *err)
{
	const char *name = argc > 1 ? argv[1] : "help";
	const struct cli_cmd *cmd;

	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	cmd = cli_find(name, err);
	*n_words = argc > 1 ? 2 : 1;
	if (!cmd || !cmd->verbs || argc < 3 || argv[2][0] == '-')
		return cmd;
	*n_words = 3;
	return cli_find_verb(cmd, argv[2], err);
}

int main(int argc, char **argv)
{
	gpul_error err = { 0 };
	int n_words, code;
	const struct cli_cmd *cmd = find_command(argc, argv, &n_words, &err);

	if (!cmd) {
		cli_message(NULL, "%s", err.text);
		return CLI_USAGE;
	}
	code = run_command(cmd, argv + n_words, (size_t)(argc - n_words), &err);
	code = finish_output(cmd->name, &err, argc > 1 ? code : CLI_USAGE);
	return stop_signal() == SIGINT ? CLI_INTERRUPTED : code;
}
