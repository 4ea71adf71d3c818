/* completion_bash.c — write a bash completion script from the table of commands. */
#include "cli/help/help.h"

#include <string.h>

/* Print the bash statement that completes the name of a row; the first n_prefix bytes of each name ("fifo ") are left out. */
static void print_names(const struct cli_cmd *const *rows, size_t n_prefix)
{
	printf("COMPREPLY=($(compgen -W '");
	for (const char *space = ""; *rows; rows++, space = " ")
		printf("%s%s", space, (*rows)->name + n_prefix);
	printf("' -- \"$cur\")); return");
}

/* Print the bash statement that completes a value by files, commands, names of shared memory, or a list of words. */
static void print_reply(const char *complete, cli_table commands)
{
	if (!complete) {
		printf("return");
	} else if (!strcmp(complete, CLI_FILES)) {
		printf("compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); return");
	} else if (!strcmp(complete, CLI_COMMANDS)) {
		print_names(commands, 0);
	} else if (!strcmp(complete, CLI_SHARES)) {
		printf("COMPREPLY=($(compgen -W \"$(gpuload shares --names 2>/dev/null)\" -- "
		       "\"$cur\")); return");
	} else {
		printf("COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return", complete);
	}
}

static void print_command(const struct cli_cmd *cmd, cli_table commands)
{
	if (cmd->verbs) {
		printf("\t%s)\n\t\t", cmd->name);
		print_names(cmd->verbs, strlen(cmd->name) + 1);
		printf(" ;;\n");
		for (const struct cli_cmd *const *verb = cmd->verbs; *verb; verb++)
			print_command(*verb, commands);
		return;
	}
	printf("\t'%s')\n\t\tcase $prev in\n", cmd->name);
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		if (!o->value)
			continue;
		printf("\t\t%s%s) ", o->name[1] ? "--" : "-", o->name);
		print_reply(o->complete, commands);
		printf(" ;;\n");
	}
	printf("\t\tesac\n\t\tif [[ $cur == -* ]]; then\n\t\t\tCOMPREPLY=($(compgen -W "
	       "'--help");
	for (const struct cli_opt *o = cmd->opts; o->name; o++)
		printf(" %s%s", o->name[1] ? "--" : "-", o->name);
	printf("' -- \"$cur\")); return\n\t\tfi\n\t\t");
	print_reply(cmd->complete, commands);
	printf(" ;;\n");
}

void cli_print_bash_completion(cli_table commands)
{
	printf("# bash completion for gpuload; printed by: gpuload completion bash\n"
	       "_gpuload() {\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\t# bash cuts --opt=value into three words: --opt, =, value\n"
	       "\tif [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then "
	       "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	       "\tCOMPREPLY=()\n"
	       "\tif [[ $COMP_CWORD == 1 ]]; then ");
	print_reply(CLI_COMMANDS, commands);
	printf("; fi\n\tlocal command=${COMP_WORDS[1]}\n");
	for (const struct cli_cmd *const *c = commands; *c; c++)
		if ((*c)->verbs)
			printf("\tif [[ $command == %s && $COMP_CWORD -gt 2 ]]; then command+=\" "
			       "${COMP_WORDS[2]}\"; fi\n",
			       (*c)->name);
	printf("\tcase $command in\n");
	for (const struct cli_cmd *const *c = commands; *c; c++)
		print_command(*c, commands);
	printf("\tesac\n}\ncomplete -F _gpuload gpuload\n");
}
