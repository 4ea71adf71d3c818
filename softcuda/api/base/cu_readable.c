/* cu_readable.c — checks whether memory that an application passes to a call is readable; NVIDIA's driver crashes if it is not. */
#include "softcuda/api/base/cu_state_internal.h"

#include <unistd.h>

#include "softcuda/exec/guard_internal.h"

struct span {
	const volatile unsigned char *at;
	size_t bytes;
};

/* Read one byte of each page; an unmapped page causes a fault, which the caller catches. */
static void read_pages(void *span)
{
	const struct span *s = span;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t k = 0; k < s->bytes; k += page)
		(void)s->at[k];
	(void)s->at[s->bytes - 1];
}

bool soft_is_readable(const void *data, size_t bytes)
{
	struct span s = { data, bytes };
	uint64_t address;

	if (!bytes)
		return true;
	if (bytes > UINTPTR_MAX - (uintptr_t)data)
		return false;
	gpul_guard_refresh();
	return gpul_guarded(NULL, read_pages, &s, &address);
}
