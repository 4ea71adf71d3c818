/* run_tools.c — passes the options of gpuload run that watch the kernel to the tools of the software driver. */
#include "cli/run/run_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool run_tools_have(int opt)
{
	for (const struct run_tool *t = run_tools; t->name; t++) {
		if (t->opt == opt)
			return true;
		for (const struct run_tool_option *o = t->options; o && o->key; o++)
			if (o->opt == opt)
				return true;
	}
	return false;
}

static const char *value_of(const struct cli_args *args, const struct cli_args *line, int opt)
{
	const char *v = cli_value(args, opt);

	return v || !line ? v : cli_value(line, opt);
}

/* Find the option that would start the tool to which this option belongs; -1: that option is given already, or there is no such tool. */
static int missing_tool(const struct cli_args *args, const struct cli_args *line, int opt)
{
	int missing = -1;

	for (const struct run_tool *t = run_tools; t->name; t++) {
		for (const struct run_tool_option *o = t->options; o && o->key; o++) {
			if (o->opt != opt)
				continue;
			if (value_of(args, line, t->opt) || t->starter == opt)
				return -1;
			missing = t->opt;
		}
	}
	return missing;
}

/* Refuse options that would have no effect, or that would mix two outputs on stdout. */
static gpul_status check_options(const struct cli_args *args, const struct cli_args *line, gpul_error *err)
{
	static const int files[] = { RUN_TRACE, RUN_PROFILE };

	for (size_t i = 0; i < args->n_given; i++) {
		const int needed = missing_tool(args, line, args->given[i].opt);

		if (needed >= 0)
			return gpul_fail(err, GPUL_EINVAL, 0, "--%s has no effect without --%s", run_opts[args->given[i].opt].name,
					 run_opts[needed].name);
	}
	for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
		const char *file = cli_value(args, files[k]), *name = run_opts[files[k]].name;

		if (file && !strcmp(file, "-") && cli_value(args, RUN_JSON))
			return gpul_fail(err, GPUL_EINVAL, 0, "--%s - and --json both print on stdout: give --%s a FILE", name, name);
	}
	return GPUL_OK;
}

/* Write a value with a backslash before each character that has a meaning in GPULOAD_SOFT_TOOLS. */
static void write_quoted(FILE *to, const char *value)
{
	for (; *value; value++) {
		if (strchr("\\:,=", *value))
			fputc('\\', to);
		fputc(*value, to);
	}
}

/* Append NAME[:KEY=VALUE]... for a tool if its option is given; false: the option is not given. */
static bool write_tool(FILE *to, const struct run_tool *tool, const struct cli_args *args, const struct cli_args *line, bool first)
{
	const char *main_value = value_of(args, line, tool->opt);

	if (!main_value && !(tool->starter && value_of(args, line, tool->starter)))
		return false;
	fprintf(to, "%s%s", first ? "" : ",", tool->name);
	if (tool->key && main_value) {
		fprintf(to, ":%s=", tool->key);
		write_quoted(to, main_value);
	}
	for (const struct run_tool_option *o = tool->options; o && o->key; o++) {
		const char *v = value_of(args, line, o->opt);

		if (!v)
			continue;
		fprintf(to, ":%s=", o->key);
		write_quoted(to, v);
	}
	return true;
}

gpul_status run_tools_select(const struct cli_args *args, const struct cli_args *line, gpul_driver_choice *driver, gpul_error *err)
{
	const char *given = secure_getenv("GPULOAD_SOFT_TOOLS");
	char *text = NULL;
	size_t n_bytes = 0;
	bool any = false;
	gpul_status st = check_options(args, line, err);
	FILE *to;

	if (st)
		return st;
	to = open_memstream(&text, &n_bytes);
	if (!to)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of the tools");
	given = given ? given : "";
	if (*driver == GPUL_DRIVER_NVIDIA) /* ignore the file's `// gpuload run:` line, which must not choose the driver */
		line = NULL;
	fputs(given, to);
	for (const struct run_tool *t = run_tools; t->name; t++)
		any |= write_tool(to, t, args, line, !*given && !any);
	if (fclose(to))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of the tools");
	else if (any && *driver == GPUL_DRIVER_NVIDIA)
		st = gpul_fail(err, GPUL_EINVAL, 0, "a kernel can be watched on the software driver only: leave out --driver nvidia");
	/* if this process executes a program, the program reads these variables when it opens the driver */
	else if (any && (setenv("GPULOAD_SOFT_TOOLS", text, 1) || setenv("GPULOAD_SOFT_TOOLS_EXIT", "1", 0)))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of the tools");
	if (any && !st)
		*driver = GPUL_DRIVER_SOFT;
	free(text);
	return st;
}
