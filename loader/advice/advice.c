/* advice.c — see advice.h.  One row, one message; tests/loader/pitfalls makes each of them anew with
 * the tools that are installed. */
#include "loader/advice/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/names/demangle.h"

/* A message is known by a part of it, and by another part that must follow on the same line; a name
 * that it is about stands between quote and end. */
static const struct known {
	const char *part, *and_part; /* and_part "": none */
	const char *advice;          /* %s: the name */
} known[] = {
	{ "Undefined reference to '", "' in '<input>'",
	  "%s is only declared here: define it in this file, or compile with nvcc -dc and link the "
	  "file that does" },
	{ "Cannot take address of function '", "",
	  "%s is only declared here, so it has no address: define it in this file, or compile with "
	  "nvcc -dc and link the file that does" },
	{ "undefined reference to function ", "", /* the software driver's */
	  "it is only declared here: define %s in this file, or compile with nvcc -dc and link the "
	  "file that does" },
	{ "Undefined reference to '", "",
	  "none of the files that were linked defines %s: add the one that does" },
	{ "undefined reference to `__cudaRegisterLinkedBinary_", "",
	  "the device code was not linked: nvcc -dlink OBJECTS -o dlink.o, and link dlink.o too" },
	{ "hidden symbol `", "",
	  "since CUDA 13 a shared library hides the stubs of its kernels: link the archive "
	  "(-l:libNAME.a), or build with nvcc --device-entity-has-hidden-visibility=false" },
	{ "undefined reference to `__cxa_guard_", "",
	  "nvcc's host code is C++: link -lstdc++ after it" },
	{ "undefined reference to `__cudaRegisterFatBinary'", "",
	  "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
};

/* The name that a message's part ends before. */
static char *quoted_name(const char *from)
{
	char *mangled = strndup(from, strcspn(from, "', \n"));
	char *name = mangled ? gpul_demangle(mangled) : NULL;

	if (!name)
		return mangled;
	free(mangled);
	return name;
}

static const char *found(const struct known *k, const char *said)
{
	const char *at = strstr(said, k->part), *also;

	if (!at || !*k->and_part)
		return at;
	also = strstr(at, k->and_part);
	return also && also < at + strcspn(at, "\n") ? at : NULL;
}

const char *gpul_advice(const char *said, char buf[GPUL_ADVICE_BYTES])
{
	const struct known *first = NULL;
	const char *at = NULL, *hole;
	char *name;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const char *here = found(&known[i], said);

		if (here && (!at || here < at)) {
			first = &known[i];
			at = here;
		}
	}
	if (!first)
		return NULL;
	hole = strstr(first->advice, "%s");
	name = hole ? quoted_name(at + strlen(first->part)) : NULL;
	snprintf(buf, GPUL_ADVICE_BYTES, "%.*s%.100s%s",
		 (int)(hole ? hole - first->advice : 0), first->advice, name ? name : "",
		 hole ? hole + 2 : first->advice);
	free(name);
	return buf;
}

void gpul_advise(gpul_error *err)
{
	char advice[GPUL_ADVICE_BYTES];
	size_t used = err ? strlen(err->text) : 0;

	if (!err || !gpul_advice(err->text, advice) || strstr(err->text, advice))
		return;
	snprintf(err->text + used, sizeof err->text - used, ": %s", advice);
}
