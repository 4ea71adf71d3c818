/* text.c — words that tools share. */
#include "softcuda/tools/tool_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"

/* The bytes before the parameters: the last ( at the depth of the name itself. */
static size_t before_parameters(const char *name)
{
	size_t at = strlen(name);
	int depth = 0;

	for (size_t k = 0; name[k]; k++) {
		if (name[k] == '(' && depth == 0)
			at = k;
		depth += name[k] == '<' || name[k] == '(';
		depth -= (name[k] == '>' && (!k || name[k - 1] != '-')) || name[k] == ')';
	}
	return at;
}

const char *gpul_tool_name(const char *name, char buf[NAME_BYTES])
{
	char *cxx = gpul_demangle(name);
	const char *shown = cxx ? cxx : name;
	const size_t end = before_parameters(shown);

	if (strlen(shown) < NAME_BYTES)
		snprintf(buf, NAME_BYTES, "%s", shown);
	else if (end + sizeof "(...)" <= NAME_BYTES)
		snprintf(buf, NAME_BYTES, "%.*s(...)", (int)end, shown);
	else
		snprintf(buf, NAME_BYTES, "%.*s...", NAME_BYTES - 4, shown);
	free(cxx);
	return buf;
}

const char *gpul_tool_lanes(uint32_t lanes, char *buf, size_t bytes)
{
	size_t used = (size_t)snprintf(buf, bytes, lanes & (lanes - 1) ? "lanes" : "lane");
	char separator = ' ';

	for (unsigned l = 0; l < 32 && used < bytes; l++) {
		unsigned end = l;

		if (!(lanes >> l & 1))
			continue;
		while (end + 1 < 32 && lanes >> (end + 1) & 1)
			end++;
		used += (size_t)snprintf(buf + used, bytes - used, end > l ? "%c%u-%u" : "%c%u", separator, l, end);
		separator = ',';
		l = end;
	}
	return buf;
}
