/* completion_zsh.c — write a zsh completion script from the table of commands. */
#include "cli/help/help.h"

#include <string.h>

/* Print text inside '...', with the characters in `special` escaped by a backslash. */
static void print_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

/* Print the words for zsh's _describe, 'name:what it does'; the first n_prefix bytes of each name ("fifo ") are left out. */
static void print_rows(const struct cli_cmd *const *rows, size_t n_prefix)
{
	for (; *rows; rows++) {
		printf(" '%s:", (*rows)->name + n_prefix);
		print_quoted((*rows)->help, ":\\");
		putchar('\'');
	}
}

/* Print the action with which zsh's _arguments completes a value. */
static void print_action(const char *complete)
{
	if (!complete)
		printf(" ");
	else if (!strcmp(complete, CLI_FILES))
		printf("_files");
	else if (!strcmp(complete, CLI_COMMANDS))
		printf("_gpuload_commands");
	else if (!strcmp(complete, CLI_SHARES))
		printf("_gpuload_shares");
	else
		printf("(%s)", complete);
}

static void print_command(const struct cli_cmd *cmd, size_t n_prefix)
{
	printf("\t%s)\n", cmd->name + n_prefix);
	if (cmd->verbs) {
		printf("\t\tif (( CURRENT == 2 )); then\n\t\t\tlocal -a verbs=(");
		print_rows(cmd->verbs, strlen(cmd->name) + 1);
		printf(")\n\t\t\t_describe verb verbs; return\n\t\tfi\n\t\tshift words; (( CURRENT-- ))\n\t\tcase $words[1] in\n");
		for (const struct cli_cmd *const *verb = cmd->verbs; *verb; verb++)
			print_command(*verb, strlen(cmd->name) + 1);
		printf("\t\tesac ;;\n");
		return;
	}
	printf("\t\t_arguments '--help[describe the command]'");
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		printf(" \\\n\t\t\t'*%s%s%s[", o->name[1] ? "--" : "-", o->name,
		       !o->value                  ? ""
		       : cli_value_is_optional(o) ? "=-"
		       : o->name[1]               ? "="
						  : "+");
		print_quoted(o->help, "[]:\\");
		putchar(']');
		if (o->value) {
			printf(cli_value_is_optional(o) ? "::" : ":");
			print_quoted(o->value, ":\\");
			putchar(':');
			print_action(o->complete);
		}
		putchar('\'');
	}
	printf(" \\\n\t\t\t'*:operand:");
	print_action(cmd->complete);
	printf("' ;;\n");
}

void cli_print_zsh_completion(cli_table commands)
{
	printf("#compdef gpuload\n# zsh completion for gpuload; printed by: gpuload completion zsh\n"
	       "_gpuload_commands() {\n\tlocal -a commands=(");
	print_rows(commands, 0);
	printf(")\n\t_describe command commands\n}\n"
	       "_gpuload_shares() {\n\tlocal -a names=(${(f)\"$(gpuload shares --names 2>/dev/null)\"})\n"
	       "\tcompadd -a names\n}\n"
	       "_gpuload() {\n\tif (( CURRENT == 2 )); then _gpuload_commands; return; fi\n"
	       "\tshift words; (( CURRENT-- ))\n\tcase $words[1] in\n");
	for (; *commands; commands++)
		print_command(*commands, 0);
	printf("\tesac\n}\n"
	       "if [[ $funcstack[1] == _gpuload ]]; then _gpuload \"$@\"; else compdef _gpuload gpuload; fi\n");
}
