/* help.c — print the table of commands as help text and as the manual page gpuload(1). */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>


enum { LINE_COLUMNS = 92 };

static void print_rows(const struct cli_cmd *const *rows)
{
	for (; *rows; rows++)
		printf("  %-11s %s\n", (*rows)->name, (*rows)->help);
}

void cli_print_usage(cli_table commands)
{
	printf("gpuload — load and run GPU kernels, on NVIDIA's driver or on a software driver\n\n"
	       "usage: gpuload COMMAND [OPTION...] [OPERAND...]\n\n");
	print_rows(commands);
	printf("\ngpuload help COMMAND describes a command.  To start: gpuload run kernel.ptx\n");
}

/* Format an option as "--grid X[,Y[,Z]]" or "-I DIR". */
static void format_option(const struct cli_opt *o, char *buf, size_t buf_bytes)
{
	snprintf(buf, buf_bytes, "%s%s%s%s", o->name[1] ? "--" : "-", o->name,
		 o->value ? " " : "", o->value ? o->value : "");
}

/* Print a text that starts at a column of the current line; the lines that follow start at column 24. */
static void print_wrapped(const char *text, size_t column)
{
	while (strlen(text) > LINE_COLUMNS - column) {
		size_t n = LINE_COLUMNS - column;

		while (n > 0 && text[n] != ' ')
			n--;
		printf("%.*s\n%24s", (int)n, text, "");
		text += n + (text[n] == ' ');
		column = 24;
	}
	puts(text);
}

void cli_print_help(const struct cli_cmd *cmd)
{
	char spelled[64];

	printf("gpuload %s — %s\n\nusage: gpuload %s%s%s%s\n", cmd->name, cmd->help, cmd->name,
	       cmd->opts[0].name ? " [OPTION...]" : "", *cmd->operands ? " " : "",
	       cmd->operands);
	if (cmd->details)
		printf("\n%s", cmd->details);
	if (cmd->opts[0].name)
		printf("\nOptions (--name VALUE or --name=VALUE):\n");
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		format_option(o, spelled, sizeof spelled);
		printf("  %-21s ", spelled);
		print_wrapped(o->help, strlen(spelled) > 21 ? strlen(spelled) + 3 : 24);
	}
	if (cmd->verbs) {
		printf("\n");
		print_rows(cmd->verbs);
		printf("\ngpuload help %s VERB describes a verb.\n", cmd->name);
	}
}

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

static void print_man_command(const struct cli_cmd *cmd)
{
	char spelled[64];

	printf(".SS \"gpuload %s%s%s%s\"\n", cmd->name, cmd->opts[0].name ? " [OPTION...]" : "",
	       *cmd->operands ? " " : "", cmd->operands);
	print_roff(cmd->help);
	printf(".\n");
	if (cmd->details) {
		printf(".PP\n.nf\n");
		print_roff(cmd->details);
		printf(".fi\n");
	}
	for (const struct cli_opt *o = cmd->opts; o->name; o++) {
		format_option(o, spelled, sizeof spelled);
		printf(".TP\n.B ");
		print_roff(spelled);
		putchar('\n');
		print_roff(o->help);
		putchar('\n');
	}
	for (const struct cli_cmd *const *verb = cmd->verbs; verb && *verb; verb++)
		print_man_command(*verb);
}

void cli_print_man(cli_table commands)
{
	printf(".TH GPULOAD 1 \"" GPUL_DATE "\" \"gpuload " GPUL_VERSION
	       "\" \"User Commands\"\n"
	       ".SH NAME\ngpuload \\- load and run GPU kernels from the shell\n"
	       ".SH SYNOPSIS\n.B gpuload\n.I COMMAND\n[\\fIOPTION\\fR...] "
	       "[\\fIOPERAND\\fR...]\n"
	       ".SH DESCRIPTION\nLoads GPU kernels and runs them through the CUDA Driver API, "
	       "on NVIDIA\\(aqs driver or on\n"
	       "a software driver that needs no GPU. Options may be before or after operands, "
	       "as\n"
	       ".B \\-\\-name VALUE\nor\n.BR \\-\\-name=VALUE ;\n.B \\-\\-\nends them.\n"
	       ".SH COMMANDS\n");
	for (; *commands; commands++)
		print_man_command(*commands);
	printf(".SH ENVIRONMENT\n"
	       ".TP\n.B GPULOAD_DRIVER\nauto, nvidia or soft: the driver if \\-\\-driver is "
	       "not given.\n"
	       ".TP\n.B GPULOAD_SOFT_DRIVER\nPath of the software driver, libcuda\\-soft.so.\n"
	       ".TP\n.B GPULOAD_CACHE\nFolder of the cache of compiled and linked code, or off: see gpuload "
	       "cache.\n"
	       ".TP\n.B GPULOAD_CACHE_MAX_BYTES\nLargest size of the cache in bytes; K, M or G may follow.\n"
	       ".TP\n.B GPULOAD_LOG\noff, notice, info or debug: which messages are printed on stderr.\n"
	       ".SH EXIT STATUS\n0 done, 1 failed, 2 the command line is wrong.\n");
}
