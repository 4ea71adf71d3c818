/* so_backtrace.c — a library that wraps backtrace(), as libasan does, so that its own frame comes first. */
#include <dlfcn.h>
#include <execinfo.h>

int backtrace(void **frames, int n)
{
	int (*real)(void **, int);

	*(void **)&real = dlsym(RTLD_NEXT, "backtrace");
	n = real ? real(frames, n) : 0;
	__asm__ volatile("" : : "r"(frames) : "memory"); /* prevents a tail call */
	return n;
}
