/* shown_name.c — names of kernels in messages. */
#include "softcuda/exec/shown_name_internal.h"

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

const char *gpul_shown_name(const char *name, char *buf, size_t bytes)
{
	char *cxx = gpul_demangle(name);
	const char *shown = cxx ? cxx : name;
	const size_t end = before_parameters(shown);

	if (strlen(shown) < bytes)
		snprintf(buf, bytes, "%s", shown);
	else if (end + sizeof "(...)" <= bytes)
		snprintf(buf, bytes, "%.*s(...)", (int)end, shown);
	else
		snprintf(buf, bytes, "%.*s...", (int)bytes - 4, shown);
	free(cxx);
	return buf;
}
