/* array.c — grows an array by half of its size. */
#include "core/array.h"

#include <string.h>

bool gpul_array_reserve(void *pointer, size_t n, size_t *room, size_t element_bytes)
{
	char *at;

	memcpy(&at, pointer, sizeof at); /* memcpy(), because a cast of the caller's pointer would break strict aliasing */
	if (n == *room) {
		size_t wanted = *room ? *room + *room / 2 + 1 : 8;
		size_t bytes;

		if (__builtin_mul_overflow(wanted, element_bytes, &bytes))
			return false;
		at = realloc(at, bytes);
		if (!at)
			return false;
		memcpy(pointer, &at, sizeof at);
		*room = wanted;
	}
	memset(at + n * element_bytes, 0, element_bytes);
	return true;
}
