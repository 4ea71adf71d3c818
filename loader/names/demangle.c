/* demangle.c — demangles C++ names by the demangler of the C++ runtime, if this machine has
 * one.
 *
 * The runtime is opened for the first mangled name, so that a process without mangled names
 * does not load it; a machine without it shows mangled names. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "loader/names/demangle.h"
#include "loader/names/mangled_internal.h"

/* The longest name in CUDA 13's libraries has 9225 bytes.  A mangled name of up to SHORT_BYTES
 * cannot exceed MAX_BYTES when demangled. */
enum { MAX_BYTES = 32768, SHORT_BYTES = 100 };

/* __cxa_demangle of the Itanium C++ ABI; the result comes from malloc. */
typedef char *(*demangler)(const char *name, char *buf, size_t *buf_bytes, int *status);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static demangler demangle;

static void find_demangler(void)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1" };

	for (size_t i = 0; !demangle && i < sizeof libraries / sizeof libraries[0]; i++) {
		void *lib = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL); /* never closed */
		void *p = lib ? dlsym(lib, "__cxa_demangle") : NULL;

		memcpy(&demangle, &p, sizeof demangle);
	}
}

char *gpul_demangle(const char *name)
{
	int status = 0;

	if (strncmp(name, "_Z", 2) != 0)
		return NULL;
	/* The demangler recurses for each operator of an expression, so the length of the name itself is limited, too. */
	if (strlen(name) > MAX_BYTES ||
	    (strlen(name) > SHORT_BYTES && gpul_mangled_length(name) > MAX_BYTES))
		return NULL;
	pthread_once(&once, find_demangler);
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}
