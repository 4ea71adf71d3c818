/* help.c — print the table of commands as help texts. */
#include "cli/help/help.h"

#include <string.h>

#include "cli/lib/out.h"

static const char *dash(void)
{
	return locale_has_utf8() ? "—" : "-";
}

static void print_rows(const struct cli_cmd *const *rows)
{
	for (; *rows; rows++) {
		printf("  %-13s ", (*rows)->name);
		cli_fill((*rows)->help, strlen((*rows)->help), 16, 16);
	}
}

void cli_print_usage(cli_table commands)
{
	printf("gpuload %s load and run GPU kernels, on NVIDIA's driver or on a software driver\n\n"
	       "usage: gpuload COMMAND [OPTION...] [OPERAND...]\n\n",
	       dash());
	print_rows(commands);
	printf("\ngpuload help COMMAND describes a command.  To start: gpuload run kernel.ptx\n");
}

/* Format an option as "--grid X[,Y[,Z]]" or "-I DIR". */
static void format_option(const struct cli_opt *o, char *buf, size_t buf_bytes)
{
	snprintf(buf, buf_bytes, "%s%s%s%s", o->name[1] ? "--" : "-", o->name, o->value && !cli_value_is_optional(o) ? " " : "",
		 o->value ? o->value : "");
}

void cli_print_help(const struct cli_cmd *cmd)
{
	char spelled[64], title[256];

	snprintf(title, sizeof title, "gpuload %s %s %s", cmd->name, dash(), cmd->help);
	cli_fill(title, strlen(title), 0, 4);
	printf("\nusage: gpuload %s%s%s%s\n", cmd->name, cmd->opts[0].name ? " [OPTION...]" : "", *cmd->operands ? " " : "", cmd->operands);
	if (cmd->details) {
		printf("\n");
		cli_print_wrapped(cmd->details);
	}
	if (cmd->opts[0].name)
		printf("\nOptions (--name VALUE or --name=VALUE):\n");
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		format_option(o, spelled, sizeof spelled);
		printf("  %-21s ", spelled);
		cli_fill(o->help, strlen(o->help), strlen(spelled) > 21 ? strlen(spelled) + 3 : 24, 24);
	}
	if (cmd->verbs) {
		printf("\n");
		print_rows(cmd->verbs);
		printf("\ngpuload help %s VERB describes a verb.\n", cmd->name);
	}
}
