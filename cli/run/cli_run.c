/* cli_run.c — gpuload run: load a file, run a kernel, print the result.  cli_run.h lists the steps. */
#include "cli/run/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/lib/message.h"
#include "core/log.h"

/* Print a line of --explain.  It goes to stderr, because stdout is for the result. */
static void print_explanation(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "gpuload %s: %s\n", cli_message_name("run"), line);
}

/* True if an argument is fn:NAME, because the kernel need not refer to the variable NAME. */
static bool has_function_argument(const struct run_request *q)
{
	for (size_t i = 0; i < q->n_args; i++)
		if (q->args[i].kind == ARG_FUNCTION)
			return true;
	return false;
}

static gpul_status load_kernel(struct run *r, gpul_error *err)
{
	gpul_load_options options = {
		.device = r->ask.device,
		.nvrtc_args = (const char *const *)r->ask.nvrtc.words,
		.kernel = r->ask.kernel,
		.kernel_only = !has_function_argument(&r->ask),
		.link_all = r->ask.link_all,
		.only_sm = r->ask.only.sm,
		.only_suffix = r->ask.only.suffix,
		.only_kind = (uint32_t)r->ask.only.kind,
		.link_args = r->ask.link_args,
		.no_cache = r->ask.no_cache,
		.explain = r->ask.explain ? print_explanation : NULL,
		.compiler_log = run_keep_compiler_log,
		.compiler_log_context = r,
	};
	gpul_status st = gpul_context_open(r->drv, r->ask.device, &r->context, err);

	if (st == GPUL_OK)
		st = gpul_module_load_sources(r->drv, r->ask.sources, r->ask.n_files, &options, &r->module, err);
	if (st == GPUL_OK)
		st = gpul_kernel_find(r->module, r->ask.kernel, &r->kernel, err);
	return st;
}

/* Plan the run.  With --json, stdout is only for the object, so a command line for the user to complete becomes the member "advice". */
static gpul_status plan(struct run *r, gpul_error *err)
{
	struct capture c;
	size_t n_bytes;
	gpul_status st;

	if (!r->ask.json)
		return run_plan(r, err);
	capture_begin(&c);
	st = run_plan(r, err);
	r->advice = capture_end(&c, &n_bytes);
	return st;
}

/* Launch the kernel.  With --json, keep what the kernel prints. */
static gpul_status launch(struct run *r, gpul_error *err)
{
	struct capture c;
	gpul_status st;

	if (!r->ask.json)
		return run_launch(r, err);
	capture_begin(&c);
	st = run_launch(r, err);
	if (st == GPUL_OK) /* prints the rest of the kernel's printf buffer; cuEventQuery(), which --timeout uses, does not */
		(void)r->drv->cuCtxSynchronize();
	r->printed = capture_end(&c, &r->printed_bytes);
	return st;
}

gpul_status run_work(struct run *r, gpul_error *err)
{
	gpul_status st = load_kernel(r, err);

	if (st == GPUL_OK)
		st = plan(r, err);
	if (st == GPUL_OK)
		st = run_functions(r, err);
	if (st == GPUL_OK)
		st = run_check_prepare(r, err);
	if (st)
		return st;
	if (r->assumed && !r->ask.json) {
		/* Print the line before the launch, so that the user can correct it if the launch fails. */
		printf("assumed   %s\n", r->assumed);
		fflush(stdout);
	}
	st = launch(r, err);
	if (st)
		return st;
	run_check_all(r);
	run_save_all(r, &r->save_error);
	return GPUL_OK;
}

/* Exit without cleanup: a running kernel cannot be stopped, and a normal exit would wait for it in the driver. */
static _Noreturn void leave_at_once(const struct run *r, const gpul_error *err)
{
	fflush(stdout);
	if (r->drv->finish_tools)
		(void)r->drv->finish_tools(1);
	cli_message("run", "%s", err->text);
	_exit(CLI_FAILED);
}

static void free_device_memory(struct run *r)
{
	for (size_t i = 0; r->device && i < r->ask.n_args; i++) {
		const struct arg *a = &r->ask.args[i];

		if (r->device[i])
			r->drv->cuMemFree(r->device[i]);
		for (size_t k = 0; k < a->n_members; k++)
			if (a->members[k].address)
				r->drv->cuMemFree(a->members[k].address);
	}
	free(r->device);
	r->device = NULL;
}

void run_clean_up(struct run *r)
{
	free_device_memory(r);
	gpul_module_unload(r->module);
	gpul_context_close(&r->context);
	free(r->assumed);
	free(r->compiler_log);
	free(r->printed);
	free(r->advice);
	free(r->times_ms);
	run_check_free(r);
	run_request_free(&r->ask);
}

/* Free the memory before the tools of the software driver report, so that they do not report it as leaked. */
static void finish_tools(struct run *r)
{
	free_device_memory(r);
	fflush(stdout);
	r->n_tool_errors = r->drv->finish_tools(0);
}

/* Print the result, even if a check failed or a file could not be written. */
static int print_result(const struct run *r, gpul_error *err)
{
	char text[sizeof err->text];
	size_t n_failed = run_explain_checks(r, text, sizeof text);
	const gpul_error *save = &r->save_error;

	if (!r->ask.json)
		run_print_text(r);
	else if (run_print_json(r, err))
		return CLI_FAILED;
	if (n_failed && save->status) {
		cli_message("run", "%s", save->text);
	}
	if (n_failed)
		gpul_fail(err, GPUL_EFORMAT, 0, "the result is not as expected: %s", text);
	else if (save->status)
		gpul_fail(err, save->status, save->native, "%s", save->text);
	else if (r->n_tool_errors)
		gpul_fail(err, GPUL_EFORMAT, 0, "the kernel has errors: %d %s reported above", r->n_tool_errors,
			  r->n_tool_errors == 1 ? "is" : "are");
	return n_failed || save->status || r->n_tool_errors ? CLI_FAILED : CLI_DONE;
}

/* Print a line of the log.  Leave out the notice that NVIDIA's driver is not installed, because the result names the driver. */
static void print_log_line(void *user, gpul_log_level level, const char *module, const char *line)
{
	(void)user;
	if (level == GPUL_LOG_NOTICE && !strncmp(line, GPUL_NO_NVIDIA_DRIVER, strlen(GPUL_NO_NVIDIA_DRIVER)))
		return;
	fprintf(stderr, level == GPUL_LOG_NOTICE ? "gpuload%.0s: %s\n" : "gpuload %s: %s\n", module, line);
}

/* In `run -- -x.cu -- ARGUMENTS` the first `--` only allows a file name that begins with a dash, and cli_parse() leaves the second one
 * among the operands.  Remove it, so that the operands are those of `run x.cu -- ARGUMENTS`. */
static struct cli_args without_leading_dashes(const struct cli_args *given)
{
	struct cli_args args = *given;
	size_t i = 1;

	if (args.n_before_dashes || !args.n_operands)
		return args;
	while (i < args.n_operands && strcmp(args.operands[i], "--") != 0)
		i++;
	args.n_before_dashes = i;
	if (i < args.n_operands)
		memmove(&args.operands[i], &args.operands[i + 1], (--args.n_operands - i) * sizeof *args.operands);
	return args;
}

static int cmd_run(const struct cli_args *given, gpul_error *err)
{
	const struct cli_args own = without_leading_dashes(given), *args = &own;
	struct run r = { 0 };
	gpul_source *first = NULL; /* the first file, opened only once, because it may be a pipe */
	gpul_status st = args->n_operands ? gpul_source_open(args->operands[0], &first, err) : GPUL_OK;
	int code;

	if (!st && run_program_wanted(args, first)) {
		st = run_program(args, first, err);
		gpul_source_close(first);
		return cli_exit_code(st);
	}
	if (!st)
		st = run_request_make(args, first, &r.ask, err);
	gpul_log_to(print_log_line, NULL);
	if (st == GPUL_OK)
		st = gpul_driver_open(r.ask.driver, &r.drv, err);
	if (st == GPUL_OK)
		st = run_work(&r, err);
	if (r.drv && r.drv->finish_tools && !r.still_running)
		finish_tools(&r);
	code = st ? cli_exit_code(st) : print_result(&r, err);
	if (st)
		run_report_failure(&r, args->n_operands ? args->operands[0] : NULL, run_wants_json(args), err);

	if (r.still_running)
		leave_at_once(&r, err);
	run_clean_up(&r);
	return code;
}

const struct cli_cmd cli_run = {
	"run", "FILE... [ARG...]", "run a kernel and print its time and its results", run_details, run_opts, cmd_run, CLI_FILES, NULL,
};
