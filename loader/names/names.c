/* names.c — compares a demangled name with a name that a user typed. */
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

bool gpul_name_matches(const char *demangled, const char *wanted)
{
	size_t n_wanted = strlen(wanted), n;

	if (strcmp(demangled, wanted) == 0)
		return true;
	if (strncmp(demangled, "void ", 5) == 0 && strncmp(wanted, "void ", 5) != 0)
		demangled += 5;
	n = gpul_name_before_params(demangled);
	if (strcmp(demangled, wanted) == 0 || (n == n_wanted && strncmp(demangled, wanted, n) == 0))
		return true;
	return n_wanted < n && strncmp(demangled, wanted, n_wanted) == 0 && demangled[n_wanted] == '<';
}
