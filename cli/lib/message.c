/* message.c — write a message to stderr with control characters replaced. */
#include "cli/lib/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *shown_command; /* command name for messages, set by cli_message_as(); NULL: messages show the command that prints them */

void cli_message_as(const char *command)
{
	shown_command = command;
}

const char *cli_message_name(const char *command)
{
	return shown_command ? shown_command : command;
}

void cli_message(const char *command, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	for (char *p = text; n >= 0 && *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\n' && *p != '\t') || *p == 127)
			*p = '?';
	command = command ? cli_message_name(command) : NULL;
	fflush(stdout);
	fprintf(stderr, "gpuload%s%s: %s\n", command ? " " : "", command ? command : "", n < 0 ? "no memory for a message" : text);
	if (n >= 0)
		free(text);
}

void cli_message_log(const char *log, const char *file, gpul_error *err)
{
	if (!log || !*log)
		return;
	fflush(stdout);
	fprintf(stderr, "%s%s", log, log[strlen(log) - 1] == '\n' ? "" : "\n");
	if (err) {
		gpul_error above = { 0 };

		(void)gpul_fail(&above, err->status, err->native, "%s was not compiled: the compiler's messages are above", file);
		*err = above;
	}
}
