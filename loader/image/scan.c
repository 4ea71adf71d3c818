/* scan.c — fatbins and cubins in plain data, where libraries keep code that they load themselves.
 *
 * What looks like one is only taken when all of it is sound: numbers in data must not become
 * images, and programs that handle fatbins have the magic numbers as data of their own. */
#include <string.h>

#include "loader/image/images_internal.h"

/* The next place where a fatbin or an ELF file might start, or s.n. */
static size_t find_magic(gpul_span s)
{
	for (size_t i = 0; i + 4 <= s.n; i++)
		if (memcmp(s.at + i, "\x50\xed\x55\xba", 4) == 0 || memcmp(s.at + i, "\x7f" "ELF", 4) == 0)
			return i;
	return s.n;
}

gpul_status gpul_walk_data(const gpul_walk *w, gpul_span s)
{
	for (;;) {
		size_t skip = find_magic(s), taken = 0;
		gpul_status st = GPUL_OK;

		if (skip == s.n)
			return GPUL_OK;
		s = (gpul_span){ s.at + skip, s.n - skip };
		if (*s.at == 0x7f) {
			taken = gpul_cubin_extent(s);
			if (taken)
				st = gpul_walk_cubin(w, (gpul_span){ s.at, taken });
		} else if (gpul_fatbin_bytes(s)) {
			st = gpul_walk_fatbin(w, s, &taken);
		}
		if (st)
			return st;
		taken = taken ? taken : 1;
		s = (gpul_span){ s.at + taken, s.n - taken };
	}
}
