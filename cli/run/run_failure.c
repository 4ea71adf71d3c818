/* run_failure.c — report a failed run: the message with its line of source, or a JSON object. */
#include "cli/run/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/json/cli_json.h"
#include "cli/lib/message.h"

void run_keep_compiler_log(void *context, const char *log)
{
	struct run *r = context;

	free(r->compiler_log);
	r->compiler_log = strdup(log);
}

/* Return the source line of CUDA C++ at which the kernel faulted; "": the line is unknown, or the error is not a fault. */
static const char *fault_line(const struct run *r, const gpul_error *err)
{
	const char *fault = r->drv && r->drv->last_fault ? r->drv->last_fault() : "";

	/* err begins with the text of the fault, unless another call failed; gpul_text_fit() keeps at least the compared 12 bytes */
	if (err->status != GPUL_ECUDA || !r->drv || !r->drv->last_fault_line || !*fault || strncmp(err->text, fault, 12) != 0)
		return "";
	return r->drv->last_fault_line();
}

static const char *status_name(gpul_status st)
{
	/* clang-format off */
	static const char *const names[] = {
		[GPUL_OK] = "ok",		  [GPUL_EINVAL] = "usage",  [GPUL_ENOMEM] = "memory",
		[GPUL_EFORMAT] = "format",	  [GPUL_ESYS] = "system",   [GPUL_ECUDA] = "cuda",
		[GPUL_EUNSUPPORTED] = "unsupported", [GPUL_EVERBS] = "verbs",
		[GPUL_ECOMM] = "comm",
	};
	/* clang-format on */

	return names[st];
}

static void print_json(const struct run *r, const char *file, const gpul_error *err)
{
	struct json j = { 0 };
	const char *line = fault_line(r, err);

	json_begin(&j, NULL, '{');
	if (file)
		json_text(&j, "file", file);
	if (r->kernel) {
		json_text(&j, "kernel", gpul_kernel_name(r->kernel));
		json_text(&j, "demangled", gpul_kernel_demangled(r->kernel));
	}
	json_begin(&j, "error", '{');
	json_text(&j, "kind", status_name(err->status));
	json_i64(&j, "code", err->native);
	json_text(&j, "message", err->text);
	if (*line)
		json_text(&j, "source_line", line);
	if (r->compiler_log)
		json_text(&j, "compiler_log", r->compiler_log);
	if (r->advice)
		json_text(&j, "advice", r->advice);
	json_end(&j, '}');
	if (r->printed)
		json_chars(&j, "printf", r->printed, r->printed_bytes);
	json_bool(&j, "ok", false);
	json_end(&j, '}');
	(void)json_print(&j, NULL);
}

void run_report_failure(const struct run *r, const char *file, bool json, gpul_error *err)
{
	const char *line = fault_line(r, err);

	if (json)
		print_json(r, file, err);
	cli_message_log(r->compiler_log, file, err);
	if (*line) {
		cli_message("run", "%s\n%s", err->text, line);
		err->status = GPUL_OK; /* prevents main() from printing the error again */
	}
}
