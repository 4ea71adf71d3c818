/* tool_text.c — text helpers that tools share. */
#include "softcuda/tools/tool_internal.h"

#include <stdio.h>

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
