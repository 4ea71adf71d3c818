/* advice.c — the table of known messages.  tests/loader/pitfalls provokes each message with the
 * installed tools. */
#include "loader/advice/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/names/demangle.h"

/* A message is recognised by a part of it and by a second part that follows on the same line.  The name
 * that the message is about follows the first part. */
static const struct known_message {
	const char *part, *and_part; /* and_part "": there is no second part */
	const char *advice;          /* %s stands for the name */
} known[] = {
	{ "Undefined reference to '", "' in '<input>'",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -dc and link "
	  "the file that defines it" },
	{ "Cannot take address of function '", "",
	  "%s is declared but not defined, so it has no address: define it in this file, or compile "
	  "with nvcc -dc and link the file that defines it" },
	{ "undefined reference to function ", "", /* the software driver reports this */
	  "it is declared but not defined: define %s in this file, or compile with nvcc -dc and link "
	  "the file that defines it" },
	{ "Undefined reference to '", "",
	  "no linked file defines %s: add the file that does" },
	{ "undefined reference to `__cudaRegisterLinkedBinary_", "",
	  "the device code was not linked: run nvcc -dlink OBJECTS -o dlink.o, and link dlink.o too" },
	{ "hidden symbol `", "",
	  "since CUDA 13 a shared library hides the stubs of its kernels: link the archive "
	  "(-l:libNAME.a), or build with nvcc --device-entity-has-hidden-visibility=false" },
	{ "undefined reference to `__cxa_guard_", "",
	  "the host code that nvcc generates is C++: add -lstdc++ at the end of the link command" },
	{ "undefined reference to `__cudaRegisterFatBinary'", "",
	  "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
};

/* Demangle the name that begins at `from`; owned. */
static char *quoted_name(const char *from)
{
	char *mangled = strndup(from, strcspn(from, "', \n"));
	char *name = mangled ? gpul_demangle(mangled) : NULL;

	if (!name)
		return mangled;
	free(mangled);
	return name;
}

static const char *find_message(const struct known_message *k, const char *text)
{
	const char *at = strstr(text, k->part), *also;

	if (!at || !*k->and_part)
		return at;
	also = strstr(at, k->and_part);
	return also && also < at + strcspn(at, "\n") ? at : NULL;
}

const char *gpul_advice(const char *message, char buf[GPUL_ADVICE_BYTES])
{
	const struct known_message *first = NULL;
	const char *at = NULL, *hole;
	char *name;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const char *here = find_message(&known[i], message);

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
