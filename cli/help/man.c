/* man.c — print manual pages from the table of commands: gpuload(1), and gpuload-COMMAND(1) for each command. */
#include "cli/help/help.h"

#include <string.h>

/* Print text with the special characters of roff escaped; '-' is escaped so that it stays an ASCII '-'. */
static void print_roff(const char *text)
{
	bool at_line_start = true;

	for (; *text; text++) {
		if (at_line_start && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
		at_line_start = *text == '\n';
	}
}

static void print_title(const char *suffix)
{
	printf(".TH GPULOAD");
	for (; *suffix; suffix++)
		printf("%s%c", *suffix == '-' ? "\\" : "", *suffix >= 'a' && *suffix <= 'z' ? *suffix - 'a' + 'A' : *suffix);
	printf(" 1 \"" GPUL_DATE "\" \"gpuload " GPUL_VERSION "\" \"User Commands\"\n");
}

static void print_options(const struct cli_cmd *cmd, const char *heading)
{
	if (cmd->opts[0].name)
		fputs(heading, stdout);
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		printf(".TP\n.B %s", o->name[1] ? "\\-\\-" : "\\-");
		print_roff(o->name);
		if (o->value) {
			if (!cli_value_is_optional(o))
				putchar(' ');
			print_roff(o->value);
		}
		putchar('\n');
		print_roff(o->help);
		putchar('\n');
	}
}

static void print_synopsis(const struct cli_cmd *cmd)
{
	printf(".B gpuload ");
	print_roff(cmd->name);
	printf("\n%s", cmd->opts[0].name ? "[\\fIOPTION\\fR...]\n" : "");
	if (*cmd->operands) {
		print_roff(cmd->operands);
		putchar('\n');
	}
}

static void print_details(const struct cli_cmd *cmd)
{
	print_roff(cmd->help);
	printf(".\n");
	if (cmd->details) {
		printf(".PP\n.nf\n");
		print_roff(cmd->details);
		printf(".fi\n");
	}
}

void cli_print_man_of(const struct cli_cmd *cmd)
{
	char suffix[48];

	snprintf(suffix, sizeof suffix, "-%s", cmd->name);
	print_title(suffix);
	printf(".SH NAME\ngpuload\\-");
	print_roff(cmd->name);
	printf(" \\- ");
	print_roff(cmd->help);
	printf("\n.SH SYNOPSIS\n");
	for (const struct cli_cmd *const *verb = cmd->verbs; verb && *verb; verb++) {
		print_synopsis(*verb);
		printf("%s", verb[1] ? ".br\n" : "");
	}
	if (!cmd->verbs)
		print_synopsis(cmd);
	printf(".SH DESCRIPTION\n");
	print_details(cmd);
	print_options(cmd, ".SH OPTIONS\n");
	for (const struct cli_cmd *const *verb = cmd->verbs; verb && *verb; verb++) {
		printf(".SH \"GPULOAD ");
		print_roff((*verb)->name);
		printf("\"\n");
		print_details(*verb);
		print_options(*verb, "");
	}
	printf(".SH EXIT STATUS\n0 done, 1 failed, 2 the command line is wrong, 130 interrupted (^C).\n"
	       ".SH SEE ALSO\n.BR gpuload (1)\n");
}

void cli_print_man(cli_table commands)
{
	print_title("");
	printf(".SH NAME\ngpuload \\- load and run GPU kernels from the shell\n"
	       ".SH SYNOPSIS\n.B gpuload\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIOPERAND\\fR...]\n"
	       ".SH DESCRIPTION\nLoads GPU kernels and runs them through the CUDA Driver API, on NVIDIA\\(aqs driver or on\n"
	       "a software driver that needs no GPU. Options may be before or after operands, as\n"
	       ".B \\-\\-name VALUE\nor\n.BR \\-\\-name=VALUE ;\n.B \\-\\-\nends them.\n"
	       ".SH COMMANDS\nEach command has a page of its own.\n");
	for (; *commands; commands++) {
		printf(".TP\n.BR gpuload\\-");
		print_roff((*commands)->name);
		printf(" (1)\n");
		print_roff((*commands)->help);
		putchar('\n');
	}
	printf(".SH ENVIRONMENT\n");
	for (const struct cli_variable *v = cli_environment; v->name; v++) {
		printf(".TP\n.B %s\n", v->name);
		print_roff(v->what);
		putchar('\n');
	}
	printf(".SH EXIT STATUS\n0 done, 1 failed, 2 the command line is wrong, 130 interrupted (^C).\n");
}
