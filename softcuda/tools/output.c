/* output.c — the files that tools write. */
#include "softcuda/tools/tool_internal.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
