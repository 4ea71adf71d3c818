/* completion.c — a bash completion script, written from the table. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* The bash statement that completes to rows' names, from byte n_prefix on. */
static void print_names(const struct cli_cmd *rows, size_t n_prefix)
{
	printf("COMPREPLY=($(compgen -W '");
	for (const struct cli_cmd *c = rows; c->name; c++)
		printf("%s%s", c == rows ? "" : " ", c->name + n_prefix);
	printf("' -- \"$cur\")); return");
}

/* The bash statement that completes to files, commands or words. */
static void print_reply(const char *complete)
{
	if (!complete) {
		printf("return");
	} else if (!strcmp(complete, CLI_FILES)) {
		printf("compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); return");
	} else if (!strcmp(complete, CLI_COMMANDS)) {
		print_names(cli_cmds, 0);
	} else if (!strcmp(complete, CLI_SHARES)) {
		printf("COMPREPLY=($(compgen -W \"$(gpuload shares --names 2>/dev/null)\" -- "
		       "\"$cur\")); return");
	} else {
		printf("COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return", complete);
	}
}

static void print_command(const struct cli_cmd *cmd)
{
	if (cmd->verbs) {
		printf("\t%s)\n\t\t", cmd->name);
		print_names(cmd->verbs, strlen(cmd->name) + 1);
		printf(" ;;\n");
		for (const struct cli_cmd *verb = cmd->verbs; verb->name; verb++)
			print_command(verb);
		return;
	}
	printf("\t'%s')\n\t\tcase $prev in\n", cmd->name);
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		if (!o->value)
			continue;
		printf("\t\t%s%s) ", o->name[1] ? "--" : "-", o->name);
		print_reply(o->complete);
		printf(" ;;\n");
	}
	printf("\t\tesac\n\t\tif [[ $cur == -* ]]; then\n\t\t\tCOMPREPLY=($(compgen -W "
	       "'--help");
	for (const struct cli_opt *o = cmd->opts; o->name; o++)
		printf(" %s%s", o->name[1] ? "--" : "-", o->name);
	printf("' -- \"$cur\")); return\n\t\tfi\n\t\t");
	print_reply(cmd->complete);
	printf(" ;;\n");
}

int cmd_completion(const struct cli_args *args, gpul_error *err)
{
	if (args->n_operands != 1 || strcmp(args->operands[0], "bash")) {
		gpul_fail(err, GPUL_EINVAL, 0,
			  "which shell?  There is: gpuload completion bash");
		return CLI_USAGE;
	}
	printf("# bash completion for gpuload; printed by: gpuload completion bash\n"
	       "_gpuload() {\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\t# bash cuts --opt=value into three words: --opt, =, value\n"
	       "\tif [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then "
	       "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	       "\tCOMPREPLY=()\n"
	       "\tif [[ $COMP_CWORD == 1 ]]; then ");
	print_reply(CLI_COMMANDS);
	printf("; fi\n\tlocal command=${COMP_WORDS[1]}\n");
	for (const struct cli_cmd *c = cli_cmds; c->name; c++)
		if (c->verbs)
			printf("\tif [[ $command == %s && $COMP_CWORD -gt 2 ]]; then command+=\" "
			       "${COMP_WORDS[2]}\"; fi\n",
			       c->name);
	printf("\tcase $command in\n");
	for (const struct cli_cmd *c = cli_cmds; c->name; c++)
		print_command(c);
	printf("\tesac\n}\ncomplete -F _gpuload gpuload\n");
	return CLI_DONE;
}
