/* locale.c — the character set that the environment names. */
#include "cli/lib/locale.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool locale_has_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value = NULL, *set;

	for (size_t k = 0; k < 3 && !(value && *value); k++)
		value = secure_getenv(names[k]);
	set = value ? strchr(value, '.') : NULL;
	return set && (!strncasecmp(set, ".UTF-8", 6) || !strncasecmp(set, ".utf8", 5));
}
