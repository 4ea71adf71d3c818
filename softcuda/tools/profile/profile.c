/* profile.c — the tool `profile`: parses its options and creates its observer. */
#include "softcuda/tools/profile/profile_internal.h"

#include <errno.h>
#include <string.h>

#include "softcuda/tools/tool_internal.h"

enum format { AS_TABLE, AS_JSON, AS_PAGE };

static struct settings {
	const char *path; /* output file; "-": stdout; NULL: stderr */
	enum format format;
	uint64_t sm, registers; /* registers per thread; 0: estimated */
	const char *most;       /* limits, as "COUNTER=N,..."; NULL: none */
	FILE *to; /* output; NULL: only check limits.  Opened at the start, because the program may change its working directory */
} settings = { .sm = 90 };

static struct observer observer = {
	.name = "profile",
	.wants = gpul_profile_wants,
	.after = gpul_profile_after,
	.block_begins = gpul_profile_block_begins,
	.launch_begins = gpul_profile_launch_begins,
};

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static gpul_status read_format(const char *text, gpul_error *err)
{
	if (!text)
		settings.format = !settings.path                      ? AS_TABLE
				  : ends_with(settings.path, ".json") ? AS_JSON
				  : ends_with(settings.path, ".html") ? AS_PAGE
								      : AS_TABLE;
	else if (!strcmp(text, "table"))
		settings.format = AS_TABLE;
	else if (!strcmp(text, "json"))
		settings.format = AS_JSON;
	else if (!strcmp(text, "html"))
		settings.format = AS_PAGE;
	else
		return gpul_fail(err, GPUL_EINVAL, 0, "profile: unknown format '%.40s': expected table, json or html", text);
	return GPUL_OK;
}

static gpul_status create(const struct tool_options *o, gpul_exec_memory *memory, struct observer **out, gpul_error *err)
{
	const char *path = gpul_tool_option(o, "file");
	gpul_status st;

	(void)memory;
	settings.most = gpul_tool_option(o, "most");
	if (path && *path)
		settings.path = path;
	st = read_format(gpul_tool_option(o, "format"), err);
	st = st ? st : gpul_tool_number(o, "profile", "sm", 1, &settings.sm, err);
	st = st ? st : gpul_tool_number(o, "profile", "registers", 1, &settings.registers, err);
	if (st)
		return st;
	if (settings.sm > UINT32_MAX || !gpul_architecture((unsigned)settings.sm))
		return gpul_fail(err, GPUL_EINVAL, 0, "profile: unknown limits of sm_%llu; known architectures: %s",
				 (unsigned long long)settings.sm, gpul_architectures());
	if (settings.registers > 255)
		return gpul_fail(err, GPUL_EINVAL, 0, "profile: a thread has at most 255 registers, not %llu",
				 (unsigned long long)settings.registers);
	st = gpul_profile_check_limits(settings.most, err);
	if (st)
		return st;
	if (!settings.path && settings.most)
		goto done;
	settings.to = settings.path ? gpul_tool_open_file(settings.path) : stderr;
	if (!settings.to)
		return gpul_fail(err, GPUL_ESYS, errno, "profile: cannot write %s: %s", settings.path, strerror(errno));
done:
	observer.before = gpul_profile_before();
	*out = &observer;
	return GPUL_OK;
}

static void discard(struct observer *o)
{
	(void)o;
	gpul_tool_discard_file(settings.to, settings.path);
	settings.to = NULL;
}

static void finish(struct observer *o)
{
	struct profile p = { .architecture = gpul_architecture((unsigned)settings.sm), .registers_given = settings.registers };
	FILE *to = settings.to;

	(void)o;
	if (gpul_profile_collect(&p, (unsigned)settings.registers, NULL)) {
		gpul_tool_report("profile", "no memory for the result");
		return;
	}
	if (!to)
		;
	else if (settings.format == AS_JSON)
		gpul_profile_write_json(&p, to);
	else if (settings.format == AS_PAGE)
		gpul_profile_write_page(&p, to);
	else
		gpul_profile_write_table(&p, to);
	if (to && (fflush(to) || ferror(to)))
		gpul_tool_report("profile", "cannot write %s: %s", settings.path, strerror(errno));
	else if (to && to != stderr && to != stdout)
		gpul_tool_say("profile", "wrote %s", settings.path);
	if (settings.most)
		gpul_profile_limit(&p, settings.most);
	gpul_profile_free(&p);
}

static const char *const keys[] = { "file", "format", "most", "sm", "registers", NULL };

const struct tool gpul_profile_tool = {
	.name = "profile",
	.summary =
		"count instructions, divergence, memory transactions, bank conflicts: file=FILE|- format=table|json|html most=COUNTER=N sm=90 registers=N",
	.keys = keys,
	.create = create,
	.discard = discard,
	.finish = finish,
};
