/* demangle.c — C++ names by the C++ runtime's own demangler, if this machine has one.
 *
 * It is opened when the first mangled name is asked for: a process that names its kernel
 * exactly never pays for it, and a machine without it shows mangled names. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "loader/loader_internal.h"
#include "loader/names/mangled_internal.h"

/* The longest name in CUDA 13's libraries has 9225 bytes.  A short mangled one is never longer. */
enum { MOST_BYTES = 32768, SHORT_BYTES = 100 };

/* The Itanium C++ ABI's cxxabi.h: the result is from malloc. */
typedef char *(*demangler)(const char *name, char *buf, size_t *buf_bytes, int *status);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static demangler demangle;

static void find_demangler(void)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1" };

	for (size_t i = 0; !demangle && i < sizeof libraries / sizeof libraries[0]; i++) {
		void *lib =
			dlopen(libraries[i],
			       RTLD_LAZY | RTLD_LOCAL); /* kept: names are asked for again */
		void *p = lib ? dlsym(lib, "__cxa_demangle") : NULL;

		memcpy(&demangle, &p, sizeof demangle);
	}
}

char *gpul_demangle(const char *name)
{
	int status = 0;

	if (strncmp(name, "_Z", 2) != 0)
		return NULL;
	if (strlen(name) > SHORT_BYTES && gpul_mangled_length(name) > MOST_BYTES)
		return NULL;
	pthread_once(&once, find_demangler);
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}
