/* tools.c — the list of all tools; starts the tools in GPULOAD_SOFT_TOOLS. */
#include "softcuda/tools/start/start_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"
#include "softcuda/tools/schedule/schedule_internal.h"
#include "softcuda/tools/synccheck/synccheck_internal.h"
#include "softcuda/tools/tool_internal.h"
#include "softcuda/tools/trace/trace_internal.h"

/* All tools; the list ends with NULL. */
static const struct tool *const tools[] = {
	&gpul_racecheck_tool, &gpul_memcheck_tool, &gpul_trace_tool, &gpul_synccheck_tool,
	&gpul_schedule_tool,  &gpul_profile_tool,  &gpul_debug_tool, NULL,
};

static struct started {
	const struct tool *tool;
	struct observer *observer;
} started[MAX_OBSERVERS];
static unsigned n_started;
static pthread_once_t finished = PTHREAD_ONCE_INIT;

/* ---- parsing GPULOAD_SOFT_TOOLS --------------------------------------------------------------------------------------- */

/* Cut the next word off *text in place, up to a character in `ends`, which is stored in *end.  Removes quoting backslashes. */
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
		return gpul_fail(err, GPUL_EINVAL, 0, "there is no tool '%s': did you mean %s? GPULOAD_SOFT_TOOLS=help lists the tools",
				 name, near);
	return gpul_fail(err, GPUL_EINVAL, 0, "there is no tool '%s': GPULOAD_SOFT_TOOLS=help lists them", name);
}

static gpul_status check_keys(const struct tool *tool, const struct tool_options *options, gpul_error *err)
{
	for (unsigned k = 0; k < options->n; k++) {
		const char *given = options->option[k].key;
		const char *const *key = tool->keys;

		while (*key && strcmp(*key, given) != 0)
			key++;
		if (!*key)
			return gpul_fail(err, GPUL_EINVAL, 0, "%s has no option '%.40s': GPULOAD_SOFT_TOOLS=help lists them", tool->name,
					 given);
	}
	return GPUL_OK;
}

/* A tool to start, and its options. */
struct wanted {
	const struct tool *tool;
	struct tool_options options;
};

static gpul_status find_wanted(const char *name, const struct wanted *earlier, unsigned n_earlier, struct wanted *out, gpul_error *err)
{
	out->tool = find_tool(name);
	if (!out->tool)
		return refuse_name(name, err);
	for (unsigned k = 0; k < n_earlier; k++)
		if (earlier[k].tool == out->tool)
			return gpul_fail(err, GPUL_EINVAL, 0, "the tool %s is given twice", name);
	return check_keys(out->tool, &out->options, err);
}

/* Parse the whole list in place before any tool is created, because creating a tool can open files. */
static gpul_status read_list(char *rest, struct wanted wanted[MAX_OBSERVERS], unsigned *n, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	while (!st && *rest) {
		struct wanted *w = &wanted[*n];
		char end;
		const char *name = cut_word(&rest, ":,", &end);

		if (*n == MAX_OBSERVERS)
			return gpul_fail(err, GPUL_EINVAL, 0, "at most %d tools can be used at the same time", MAX_OBSERVERS);
		while (end == ':') {
			struct tool_option *o = &w->options.option[w->options.n];

			if (w->options.n == MAX_TOOL_OPTIONS)
				return gpul_fail(err, GPUL_EINVAL, 0, "%s: more than %d options", name, MAX_TOOL_OPTIONS);
			w->options.n++;
			o->key = cut_word(&rest, "=:,", &end);
			o->value = end == '=' ? cut_word(&rest, ":,", &end) : "";
		}
		st = find_wanted(name, wanted, *n, w, err);
		++*n;
	}
	return st;
}

/* Create all tools, or none. */
static gpul_status create_tools(const struct wanted *wanted, unsigned n, gpul_exec_memory *memory, gpul_error *err)
{
	struct observer *observer[MAX_OBSERVERS];
	gpul_status st = GPUL_OK;
	unsigned n_created = 0;

	while (!st && n_created < n) {
		st = wanted[n_created].tool->create(&wanted[n_created].options, memory, &observer[n_created], err);
		n_created += !st;
	}
	for (unsigned k = 0; !st && k < n; k++)
		st = gpul_exec_memory_observe(memory, observer[k], err);
	for (unsigned k = 0; k < n_created; k++) {
		if (!st)
			started[n_started++] = (struct started){ wanted[k].tool, observer[k] };
		else if (wanted[k].tool->discard)
			wanted[k].tool->discard(observer[k]);
	}
	return st;
}

gpul_status gpul_tools_start(gpul_exec_memory *memory, gpul_error *err)
{
	const char *given = secure_getenv("GPULOAD_SOFT_TOOLS"), *log = secure_getenv("GPULOAD_SOFT_TOOLS_LOG");
	static char *volatile text; /* never freed, because tools keep pointers into it; volatile, so that leak checkers find the pointer */
	struct wanted wanted[MAX_OBSERVERS] = { 0 };
	unsigned n = 0;
	gpul_status st;

	if (!given || !*given)
		return GPUL_OK;
	if (!strcmp(given, "help"))
		return print_help(), GPUL_OK;
	text = strdup(given);
	if (!text)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the tools");
	st = log && *log ? gpul_tool_reports_to(log, err) : GPUL_OK;
	st = st ? st : read_list(text, wanted, &n, err);
	return st ? st : create_tools(wanted, n, memory, err);
}

gpul_status gpul_tools_check(const char *list, gpul_error *err)
{
	struct wanted wanted[MAX_OBSERVERS] = { 0 };
	char *text = strdup(list);
	unsigned n = 0;
	gpul_status st = text ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the tools");

	if (!st && strcmp(list, "help") != 0)
		st = read_list(text, wanted, &n, err);
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
