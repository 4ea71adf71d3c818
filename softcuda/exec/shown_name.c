/* shown_name.c — demangles names of kernels for messages, and compares them with names that the user wrote. */
#include "softcuda/exec/shown_name_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"

/* Return the length of the name without its parameters, which start at the last '(' that is not inside brackets. */
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

/* Returns true if the string is empty, or is one template argument list "<...>". */
static bool is_template_rest(const char *at)
{
	int depth = 0;

	if (!*at)
		return true;
	do {
		depth += *at == '<' || *at == '(';
		depth -= *at == '>' || *at == ')';
	} while (*++at && depth > 0);
	return !*at && at[-1] == '>';
}

/* Returns true if `wanted` is the C++ name cxx without parameters, and perhaps without template arguments, return type and scopes. */
static bool is_part(char *cxx, const char *wanted)
{
	const size_t n = strlen(cxx), n_wanted = strlen(wanted);
	int depth = 0;

	if (n && cxx[n - 1] == ')')
		cxx[before_parameters(cxx)] = '\0';
	for (const char *at = cxx; *at && n_wanted; at++) {
		const bool begins = !depth && (at == cxx || at[-1] == ' ' || at[-1] == ':');

		if (begins && !strncmp(at, wanted, n_wanted) && is_template_rest(at + n_wanted))
			return true;
		depth += *at == '<' || *at == '(';
		depth -= *at == '>' || *at == ')';
	}
	return false;
}

bool gpul_shown_name_is(const char *name, const char *wanted)
{
	char *cxx;
	bool is;

	if (!strcmp(name, wanted))
		return true;
	cxx = gpul_demangle(name);
	is = cxx && (!strcmp(cxx, wanted) || is_part(cxx, wanted));
	free(cxx);
	return is;
}
