/* names.c — see names.h. */
#include "loader/names/names.h"

#include <string.h>

size_t gpul_name_before_params(const char *demangled)
{
	size_t n = strlen(demangled);
	int depth = 0;

	if (n == 0 || demangled[n - 1] != ')')
		return n;
	for (size_t i = n; i > 0; i--) {
		depth += demangled[i - 1] == ')';
		depth -= demangled[i - 1] == '(';
		if (depth == 0)
			return i - 1;
	}
	return n;
}

bool gpul_name_means(const char *demangled, const char *asked)
{
	size_t n_asked = strlen(asked), n;

	if (strcmp(demangled, asked) == 0)
		return true;
	if (strncmp(demangled, "void ", 5) == 0 && strncmp(asked, "void ", 5) != 0)
		demangled += 5;
	n = gpul_name_before_params(demangled);
	if (strcmp(demangled, asked) == 0 ||
	    (n == n_asked && strncmp(demangled, asked, n) == 0))
		return true;
	return n_asked < n && strncmp(demangled, asked, n_asked) == 0 &&
	       demangled[n_asked] == '<';
}
