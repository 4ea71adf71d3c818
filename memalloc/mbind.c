/* mbind.c — calls mbind(2); in a separate file, so that tests can replace the function. */
#include <sys/syscall.h>
#include <unistd.h>

#include "memalloc/mem_internal.h"

long gpul_mem_mbind(void *at, size_t bytes, int policy, const unsigned long *mask, unsigned long n_bits, unsigned flags)
{
	return syscall(SYS_mbind, at, bytes, policy, mask, n_bits, flags);
}
