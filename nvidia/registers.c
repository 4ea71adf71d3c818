/* registers.c — finds -maxrregcount among options, and adds the limit to PTX. */
#include "nvidia/registers.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/module.h"

unsigned toolchain_max_registers(int n_options, const char *const *options)
{
	unsigned limit = 0;

	for (int k = 0; k < n_options; k++) {
		const char *o = options[k] + (options[k][0] == '-' && options[k][1] == '-');

		if (!strncmp(o, "-maxrregcount=", 14))
			limit = (unsigned)strtoul(o + 14, NULL, 10);
		else if (!strcmp(o, "-maxrregcount") && k + 1 < n_options)
			limit = (unsigned)strtoul(options[k + 1], NULL, 10);
	}
	return limit;
}

char *toolchain_limit_registers(const char *ptx, size_t ptx_bytes, unsigned limit)
{
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };
	char *text = NULL;

	if (!limit || gpul_ptx_parse(ptx, ptx_bytes, "ptx", &m, &err))
		return NULL;
	gpul_ptx_limit_registers(m, limit);
	if (gpul_ptx_print(m, &text, NULL, &err))
		text = NULL;
	gpul_ptx_module_destroy(m);
	return text;
}
