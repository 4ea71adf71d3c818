/* tools.c — the list of tools, and those that this process uses: GPULOAD_SOFT_TOOLS. */
#include "softcuda/tools/start/start_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"
#include "softcuda/tools/schedule/schedule_internal.h"
#include "softcuda/tools/synccheck/synccheck_internal.h"
#include "softcuda/tools/profile/profile_tool_internal.h"
#include "softcuda/tools/racecheck/racecheck_internal.h"
#include "softcuda/tools/debug/debug_tool_internal.h"
#include "softcuda/tools/trace/trace_internal.h"

/* Ends with NULL. */
static const struct tool *const tools[] = {
	&gpul_racecheck_tool,
	&gpul_memcheck_tool,
	&gpul_trace_tool,
	&gpul_synccheck_tool,
	&gpul_schedule_tool,
	&gpul_profile_tool,
	&gpul_debug_tool,
	NULL,
};

static struct { const struct tool *tool; struct observer *observer; } started[MAX_OBSERVERS];
static unsigned n_started;
static pthread_once_t finished = PTHREAD_ONCE_INIT;

/* ---- the words of GPULOAD_SOFT_TOOLS ---------------------------------------------------------------------------------- */

/* Cut the next word off *text, in place, up to one of `ends`, which becomes *end; backslashes are removed. */
static char *cut_word(char **text, const char *ends, char *end)
{
	char *word = *text, *to = word, *from = word;

	for (; *from && !strchr(ends, *from); from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*end = *from;
	*text = *from ? from + 1 : from;
	*to = '\0';
	return word;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void print_help(void)
{
	fprintf(stderr, "GPULOAD_SOFT_TOOLS=NAME[:KEY=VALUE ...][,NAME ...]\n");
	for (const struct tool *const *t = tools; *t; t++)
		fprintf(stderr, "    %-12s %s\n", (*t)->name, (*t)->summary);
}

static const struct tool *find_tool(const char *name)
{
	for (const struct tool *const *t = tools; *t; t++)
		if (!strcmp((*t)->name, name))
			return *t;
	return NULL;
}

static gpul_status refuse_name(const char *name, gpul_error *err)
{
	const char *names[sizeof tools / sizeof *tools], *near;
	size_t n = 0;

	for (; tools[n]; n++)
		names[n] = tools[n]->name;
	near = gpul_text_nearest(name, names, n);
	if (near)
		return gpul_fail(err, GPUL_EINVAL, 0, "there is no tool '%s': did you mean %s? GPULOAD_SOFT_TOOLS=help lists the tools", name, near);
	return gpul_fail(err, GPUL_EINVAL, 0, "there is no tool '%s': GPULOAD_SOFT_TOOLS=help lists them", name);
}

static gpul_status start_tool(const char *name, struct tool_options *options, gpul_exec_memory *memory, gpul_error *err)
{
	const struct tool *tool = find_tool(name);
	struct observer *observer;
	gpul_status st;

	if (!tool)
		return refuse_name(name, err);
	for (unsigned k = 0; k < n_started; k++)
		if (started[k].tool == tool)
			return gpul_fail(err, GPUL_EINVAL, 0, "the tool %s is given twice", name);
	if (n_started == MAX_OBSERVERS)
		return gpul_fail(err, GPUL_EINVAL, 0, "at most %d tools can be used at once", MAX_OBSERVERS);
	st = tool->create(options, memory, &observer, err);
	for (unsigned k = 0; !st && k < options->n; k++)
		if (!options->used[k])
			st = gpul_fail(err, GPUL_EINVAL, 0, "%s has no option '%.40s': GPULOAD_SOFT_TOOLS=help lists them", name,
				       options->option[k].key);
	st = st ? st : gpul_exec_memory_observe(memory, observer, err);
	if (st)
		return st;
	started[n_started].tool = tool;
	started[n_started++].observer = observer;
	return GPUL_OK;
}

gpul_status gpul_tools_start(gpul_exec_memory *memory, gpul_error *err)
{
	const char *given = secure_getenv("GPULOAD_SOFT_TOOLS"), *log = secure_getenv("GPULOAD_SOFT_TOOLS_LOG");
	static char *volatile text;  /* never freed: the tools keep pointers to it; volatile: leak checkers find it here */
	char *rest;
	gpul_status st = GPUL_OK;

	if (!given || !*given)
		return GPUL_OK;
	if (!strcmp(given, "help"))
		return print_help(), GPUL_OK;
	text = rest = strdup(given);
	if (!text)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the tools");
	st = log && *log ? gpul_tool_reports_to(log, err) : GPUL_OK;
	while (!st && *rest) {
		struct tool_options options = { 0 };
		char end;
		const char *name = cut_word(&rest, ":,", &end);

		while (end == ':') {
			struct tool_option *o = &options.option[options.n];

			if (options.n++ == MAX_TOOL_OPTIONS)
				return gpul_fail(err, GPUL_EINVAL, 0, "%s: more than %d options", name, MAX_TOOL_OPTIONS);
			o->key = cut_word(&rest, "=:,", &end);
			o->value = end == '=' ? cut_word(&rest, ":,", &end) : "";
		}
		st = start_tool(name, &options, memory, err);
	}
	return st;
}

gpul_status gpul_tools_check(const char *list, gpul_error *err)
{
	char *text = strdup(list), *rest = text;
	gpul_status st = text ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the tools");

	while (!st && *rest && strcmp(list, "help") != 0) {
		char end;
		const char *name = cut_word(&rest, ":,", &end);

		if (!find_tool(name))
			st = refuse_name(name, err);
		while (end == ':')
			(void)cut_word(&rest, ":,", &end);
	}
	free(text);
	return st;
}

static void finish_all(void)
{
	for (unsigned k = 0; k < n_started; k++)
		if (started[k].tool->finish)
			started[k].tool->finish(started[k].observer);
}

static void stop_all(void)
{
	for (unsigned k = 0; k < n_started; k++)
		if (started[k].tool->stop)
			started[k].tool->stop(started[k].observer);
}

bool gpul_tools_are_used(void)
{
	return n_started > 0;
}

int gpul_tools_finish(bool kernels_run)
{
	pthread_once(&finished, kernels_run ? stop_all : finish_all);
	return (int)gpul_tool_n_reported(NULL);
}
