/* options.c — parses the options of a tool, and opens the files that it writes. */
#include "softcuda/tools/tool_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *gpul_tool_option(const struct tool_options *o, const char *key)
{
	for (unsigned k = 0; k < o->n; k++)
		if (!strcmp(o->option[k].key, key))
			return o->option[k].value;
	return NULL;
}

gpul_status gpul_tool_number(const struct tool_options *o, const char *tool, const char *key, uint64_t least, uint64_t *out,
			     gpul_error *err)
{
	const char *text = gpul_tool_option(o, key);
	unsigned long long n;
	char *end;

	if (!text)
		return GPUL_OK;
	n = strtoull(text, &end, 0);
	if (!*text || *end || *text == '-' || n < least)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s: %s needs a number of at least %llu, not '%.40s'", tool, key,
				 (unsigned long long)least, text);
	*out = n;
	return GPUL_OK;
}

FILE *gpul_tool_open_file(const char *path)
{
	return strcmp(path, "-") ? fopen(path, "we") : stdout;
}

void gpul_tool_discard_file(FILE *to, const char *path)
{
	struct stat s;

	if (!to || to == stdout || to == stderr)
		return;
	if (!fstat(fileno(to), &s) && S_ISREG(s.st_mode))
		(void)unlink(path);
	(void)fclose(to);
}
