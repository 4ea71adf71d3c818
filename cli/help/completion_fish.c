/* completion_fish.c — write a fish completion script from the table of commands. */
#include "cli/help/help.h"

#include <stdbool.h>
#include <string.h>

static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++)
		printf("%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
	putchar('\'');
}

/* Print the options of fish's `complete` command for a value: its words, files, or none. */
static void print_values(const char *complete)
{
	if (!complete)
		return;
	if (!strcmp(complete, CLI_FILES))
		printf(" -F");
	else if (!strcmp(complete, CLI_COMMANDS))
		printf(" -a '(__gpuload_commands)'");
	else if (!strcmp(complete, CLI_SHARES))
		printf(" -a '(gpuload shares --names 2>/dev/null)'");
	else
		printf(" -a '%s'", complete);
}

/* Print the completions of one row of the table: its options and operands, and its name where `condition` is true. */
static void print_command(const struct cli_cmd *cmd, const char *name, const char *condition)
{
	char inside[96];

	printf("complete -c gpuload -n '%s' -a %s -d ", condition, name);
	print_quoted(cmd->help);
	printf("\n");
	snprintf(inside, sizeof inside, "__gpuload_is %s", cmd->name);
	for (const struct cli_cmd *const *verb = cmd->verbs; verb && *verb; verb++)
		print_command(*verb, (*verb)->name + strlen(cmd->name) + 1, inside);
	if (cmd->verbs)
		return;
	if (cmd->complete) {
		printf("complete -c gpuload -n '%s'", inside);
		print_values(cmd->complete);
		printf("\n");
	}
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		const bool file = o->complete && !strcmp(o->complete, CLI_FILES);

		printf("complete -c gpuload -n '%s' -%c %s%s", inside, o->name[1] ? 'l' : 's', o->name,
		       !o->value || cli_value_is_optional(o) ? ""
		       : file                                ? " -r"
							     : " -x");
		if (!cli_value_is_optional(o))
			print_values(o->complete);
		printf(" -d ");
		print_quoted(o->help);
		printf("\n");
	}
}

void cli_print_fish_completion(cli_table commands)
{
	printf("# fish completion for gpuload; printed by: gpuload completion fish\n"
	       "function __gpuload_is\n\tset -l words (commandline -opc)\n"
	       "\ttest (count $words) -gt (count $argv); or return 1\n"
	       "\tfor k in (seq (count $argv))\n\t\ttest $words[(math $k + 1)] = $argv[$k]; or return 1\n\tend\nend\n"
	       "function __gpuload_commands\n\tprintf '%%s\\n'");
	for (const struct cli_cmd *const *c = commands; *c; c++)
		printf(" %s", (*c)->name);
	printf("\nend\ncomplete -c gpuload -f\n");
	for (; *commands; commands++)
		print_command(*commands, (*commands)->name, "__fish_use_subcommand");
}
