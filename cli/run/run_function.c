/* run_function.c — reads function pointers for fn:NAME arguments from the variables of the loaded module.
 *
 * A function pointer is valid only in its own module, so it is read from the module that is launched. */
#include "cli/run/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"
#include "loader/symbol/symbol.h"

gpul_status run_functions(struct run *r, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0; st == GPUL_OK && i < r->ask.n_args; i++) {
		struct arg *a = &r->ask.args[i];
		uint64_t value = 0;

		if (a->kind != ARG_FUNCTION)
			continue;
		st = gpul_function_pointer(r->module, a->variable, a->index, &value, err);
		memcpy(a->data, &value, sizeof value);
	}
	return st;
}

void run_print_functions(const struct run *r)
{
	for (size_t i = 0; i < r->ask.n_args; i++) {
		const struct arg *a = &r->ask.args[i];
		bool is_kernel = false;
		const char *name = a->kind == ARG_FUNCTION ? gpul_function_pointer_target(r->module, a->variable, a->index, &is_kernel)
							   : NULL;
		char *demangled = name ? gpul_demangle(name) : NULL;

		if (name)
			printf("arg %-5zu %s: %s%s\n", i, a->text, demangled ? demangled : name,
			       is_kernel ? ", a kernel: device code may launch it, not call it" : "");
		free(demangled);
	}
}
