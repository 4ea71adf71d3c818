/* demangle.c — demangles C++ names with the demangler of the C++ runtime library, if this machine has it.
 *
 * The library is opened for the first mangled name, so that a process without mangled names
 * does not load it.  Without the library, names are shown mangled. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/demangle.h"
#include "core/mangled_internal.h"

/* The longest name in CUDA 13's libraries has 9225 bytes when demangled.  A mangled name of up to SHORT_BYTES never exceeds
 * MAX_BYTES when demangled. */
enum { MAX_BYTES = 32768, SHORT_BYTES = 100 };

/* __cxa_demangle of the Itanium C++ ABI; the result comes from malloc. */
typedef char *(*demangler)(const char *name, char *buf, size_t *buf_bytes, int *status);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static demangler demangle;

static void find_demangler(void)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1" };

	for (size_t i = 0; !demangle && i < sizeof libraries / sizeof libraries[0]; i++) {
		void *lib = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL); /* never closed, because the demangler stays in use */
		void *p = lib ? dlsym(lib, "__cxa_demangle") : NULL;

		memcpy(&demangle, &p, sizeof demangle);
	}
}

/* Return the name that a static kernel had before nvlink made it unique; other names are returned unchanged.
 *
 *     __nv_static_32__b4148644_10_onerank_cu_fdf47990__ZN...    prefix, length, "_", this many bytes, "_", name
 *
 * libnccl 2.18 to 2.32 contain such names. */
static const char *name_before_linking(const char *name)
{
	static const char prefix[] = "__nv_static_";
	const char *at = name + sizeof prefix - 1;
	size_t n = 0;

	if (strncmp(name, prefix, sizeof prefix - 1) != 0)
		return name;
	for (; *at >= '0' && *at <= '9' && n < MAX_BYTES; at++)
		n = n * 10 + (size_t)(*at - '0');
	if (n == 0 || *at != '_' || strnlen(at + 1, n + 2) < n + 2 || at[n + 1] != '_')
		return name;
	return at + n + 2;
}

char *gpul_demangle(const char *linked_name)
{
	const char *name = name_before_linking(linked_name);
	int status = 0;

	if (strncmp(name, "_Z", 2) != 0)
		return name == linked_name ? NULL : strdup(name);
	/* The demangler recurses for each operator of an expression, so the length of the mangled name is limited, too. */
	if (strlen(name) > MAX_BYTES || (strlen(name) > SHORT_BYTES && gpul_mangled_length(name) > MAX_BYTES))
		return NULL;
	pthread_once(&once, find_demangler);
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}
