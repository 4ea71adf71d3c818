/* compile_source.c — compiles CUDA C++ to PTX for the device that will run it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "loader/cache/compile.h"
#include "loader/choose/choose_internal.h"

/* True if the caller's options already select debug information; NVRTC accepts only one such option. */
static bool has_debug_option(const char *const *args)
{
	static const char *const names[] = { "-lineinfo", "--generate-line-info", "-G", "--device-debug" };

	for (; *args; args++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (!strcmp(*args, names[i]))
				return true;
	return false;
}

gpul_status gpul_compile_source(gpul_source *source, uint32_t cc, const gpul_load_options *options, bool relocatable,
				gpul_nvrtc_result *out, gpul_error *err)
{
	const char **args, *text;
	size_t n = 0;
	char arch[32];
	gpul_status st = gpul_source_text(source, &text, err);

	if (st)
		return st;
	while (options->nvrtc_args && options->nvrtc_args[n])
		n++;
	args = calloc(n + 3, sizeof *args);
	if (!args)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the compiler's options");
	for (size_t i = 0; i < n; i++)
		args[i] = options->nvrtc_args[i];
	if (!has_debug_option(args))
		args[n++] = "-lineinfo"; /* so that a fault can name the line of the source */
	if (relocatable)
		args[n] = "--relocatable-device-code=true";
	snprintf(arch, sizeof arch, "compute_%u", cc);
	st = gpul_compile_cached(text, gpul_source_name(source), args, arch, options->no_cache, out, err);
	gpul_log_lines(GPUL_LOG_INFO, "loader", out->log);
	if (st && options->compiler_log && out->log && *out->log)
		options->compiler_log(options->compiler_log_context, out->log);
	free(args);
	return st;
}
