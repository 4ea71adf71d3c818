/* run_request.c — turns the command line and the `// gpuload run:` line of the file into a request. */
#include "cli/run/run_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The two sources of options.  The command line takes precedence over the `// gpuload run:` line of the file. */
struct sources {
	const struct cli_args *command;
	struct cli_args file;
};

static const char *option_value(const struct sources *s, int opt)
{
	const char *v = cli_value(s->command, opt);

	return v ? v : cli_value(&s->file, opt);
}

/* ---- numbers ----------------------------------------------------------------------- */

static gpul_status parse_dims(const char *name, const char *text, uint32_t out[3], gpul_error *err)
{
	const char *given = text;

	if (!text)
		return GPUL_OK;
	out[0] = out[1] = out[2] = 1;
	for (int d = 0; d < 3; d++) {
		char number[16];
		size_t n = strcspn(text, ",");

		snprintf(number, sizeof number, "%.*s", (int)n, text);
		if (n == 0 || n >= sizeof number || value_parse(GPUL_U32, number, &out[d], NULL) || out[d] == 0)
			break;
		text += n;
		if (!*text)
			return GPUL_OK;
		text++;
	}
	return gpul_fail(err, GPUL_EINVAL, 0, "--%s needs X, X,Y or X,Y,Z, each at least 1, not '%s'", name, given);
}

static gpul_status parse_u32(const char *name, const char *text, uint32_t least, uint32_t *out, gpul_error *err)
{
	size_t n;

	if (!text)
		return GPUL_OK;
	if (value_parse_size(text, strlen(text), &n, NULL) || n < least || n > INT32_MAX)
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s needs a number from %u to %d, not '%s'", name, least, INT32_MAX, text);
	*out = (uint32_t)n;
	return GPUL_OK;
}

/* Parse a tolerance or a time: a number of at least 0. */
static gpul_status parse_double(const char *name, const char *text, double *out, gpul_error *err)
{
	if (!text)
		return GPUL_OK;
	if (value_parse(GPUL_F64, text, out, NULL) || !(*out >= 0))
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s needs a number of at least 0, not '%s'", name, text);
	return GPUL_OK;
}

static gpul_status parse_show(const char *text, size_t *out, gpul_error *err)
{
	*out = RUN_SHOWN;
	if (text && !strcmp(text, "all"))
		*out = SIZE_MAX;
	else if (text && value_parse_size(text, strlen(text), out, NULL))
		return gpul_fail(err, GPUL_EINVAL, 0, "--show needs a number of elements or 'all', not '%s'", text);
	return GPUL_OK;
}

static gpul_status parse_numbers(const struct sources *s, struct run_request *q, gpul_error *err)
{
	double seconds = -1;
	uint32_t device = 0;
	gpul_status st;

	q->repeat = 1;
	st = parse_dims("grid", option_value(s, RUN_GRID), q->grid, err);
	if (st == GPUL_OK)
		st = parse_dims("block", option_value(s, RUN_BLOCK), q->block, err);
	if (st == GPUL_OK)
		st = parse_u32("shared", option_value(s, RUN_SHARED), 0, &q->shared_bytes, err);
	if (st == GPUL_OK)
		st = parse_u32("repeat", option_value(s, RUN_REPEAT), 1, &q->repeat, err);
	if (st == GPUL_OK)
		st = parse_u32("device", option_value(s, RUN_DEVICE), 0, &device, err);
	if (st == GPUL_OK)
		st = parse_double("rtol", option_value(s, RUN_RTOL), &q->rtol, err);
	if (st == GPUL_OK)
		st = parse_double("atol", option_value(s, RUN_ATOL), &q->atol, err);
	if (st == GPUL_OK)
		st = parse_double("timeout", option_value(s, RUN_TIMEOUT), &seconds, err);
	if (st == GPUL_OK)
		st = parse_show(option_value(s, RUN_SHOW), &q->n_shown, err);
	q->device = (int)device;
	q->timeout_ms = seconds < 0 ? -1 : seconds > 1e9 ? INT64_C(1000000000000) : (int64_t)ceil(seconds * 1000);
	return st;
}

/* ---- ARG=WHAT ---------------------------------------------------------------------- */

static gpul_status parse_target(const char *name, const char *text, const char *dir, const struct run_request *q, struct run_target *out,
				gpul_error *err)
{
	const char *equals = strchr(text, '=');
	size_t arg;

	if (!equals || !equals[1] || value_parse_size(text, (size_t)(equals - text), &arg, NULL))
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s needs ARG=WHAT, where ARG is a number, counted from 0, not '%s'", name, text);
	if (q->has_args && arg >= q->n_args)
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s %s: argument %zu does not exist; the %zu arguments are numbered from 0", name,
				 text, arg, q->n_args);
	if (q->has_args && q->args[arg].kind != ARG_BUFFER)
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s %s: argument %zu is %s, not a buffer", name, text, arg, q->args[arg].text);
	*out = (struct run_target){ arg, equals + 1, dir };
	return GPUL_OK;
}

static gpul_status parse_targets(const struct sources *s, struct run_request *q, gpul_error *err)
{
	const struct cli_args *from[2] = { &s->file, s->command };
	const char *dirs[2] = { q->dir, NULL };
	size_t room = s->file.n_given + s->command->n_given + 1;
	gpul_status st = GPUL_OK;

	q->expects = calloc(room, sizeof *q->expects);
	q->saves = calloc(room, sizeof *q->saves);
	q->force = cli_value(s->command, RUN_FORCE) || cli_value(&s->file, RUN_FORCE);
	if (!q->expects || !q->saves)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu options", room);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; st == GPUL_OK && i < from[k]->n_given; i++) {
			const struct cli_given *g = &from[k]->given[i];

			if (g->opt == RUN_EXPECT)
				st = parse_target("expect", g->value, dirs[k], q, &q->expects[q->n_expects++], err);
			else if (g->opt == RUN_SAVE)
				st = parse_target("save", g->value, dirs[k], q, &q->saves[q->n_saves++], err);
		}
	return st;
}

/* ---- files and their options ------------------------------------------------------ */

/* True if the file name has a suffix of files with device code, such as .ptx, or .so with version numbers (libx.so.2.1). */
static bool has_suffix_of_code(const char *name)
{
	static const char *const suffixes[] = { ".ptx", ".cu", ".cubin", ".fatbin", ".ltoir", ".o", ".a", ".so" };
	const char *so = strstr(name, ".so.");
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t k = strlen(suffixes[i]);

		if (n > k && !strcmp(name + n - k, suffixes[i]))
			return true;
	}
	return so && !so[strspn(so, ".so0123456789")];
}

/* Split the operands into FILE... and ARG...: an operand after the first FILE is also a FILE if it exists or if its suffix is that
 * of a file with code.  An ARG contains '=' or '[' or has a prefix such as fn:, which is rare in file names; the user writes a FILE
 * with these characters as ./NAME. */
static void split_operands(const struct cli_args *args, struct run_request *q)
{
	q->files = args->operands;
	q->file = q->files[0];
	q->n_files = 1;
	while (q->n_files < args->n_operands) {
		const char *word = args->operands[q->n_files];

		if (strpbrk(word, "=[") && word[0] != '.' && word[0] != '/')
			break;
		if (access(word, F_OK) && !has_suffix_of_code(word))
			break;
		q->n_files++;
	}
}

static gpul_status parse_driver(const char *text, gpul_driver_choice *out, gpul_error *err)
{
	*out = GPUL_DRIVER_AUTO;
	if (text && !gpul_driver_choice_parse(text, out))
		return gpul_fail(err, GPUL_EINVAL, 0, "--driver must be auto, nvidia or soft, not '%s'", text);
	return GPUL_OK;
}

/* Collect the options for compiling, linking and selecting code.  Options -D and -I of the `// gpuload run:` line come first. */
static gpul_status collect_load_options(const struct sources *s, struct run_request *q, gpul_error *err)
{
	const struct nvrtc_rows rows = { RUN_INCLUDE, RUN_DEFINE, RUN_STD };
	const struct cli_args *args = s->command;
	size_t n = 0;
	gpul_status st = nvrtc_args_add(&q->nvrtc, &s->file, rows, err);

	if (!st)
		st = nvrtc_args_add(&q->nvrtc, args, rows, err);
	if (st)
		return st;
	st = parse_driver(cli_value(args, RUN_DRIVER), &q->driver, err);
	if (st)
		return st;
	q->link_all = cli_value(args, RUN_LINK_ALL) != NULL;
	q->no_cache = cli_value(args, RUN_NO_CACHE) != NULL;
	q->explain = cli_value(args, RUN_EXPLAIN) != NULL;
	q->link_args = calloc(args->n_given + 1, sizeof *q->link_args);
	if (!q->link_args)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the linker options");
	for (size_t i = 0; i < args->n_given; i++)
		if (args->given[i].opt == RUN_LINK_ARG)
			q->link_args[n++] = args->given[i].value;
	return image_filter_parse(cli_value(args, RUN_SM), cli_value(args, RUN_KIND), NULL, &q->only, err);
}

/* ---- programs ---------------------------------------------------------------------- */

gpul_status run_program_options(const struct cli_args *args, struct run_program_options *out, gpul_error *err)
{
	const struct nvrtc_rows rows = { RUN_INCLUDE, RUN_DEFINE, RUN_STD };
	uint32_t device = 0;
	gpul_status st;

	*out = (struct run_program_options){ .no_cache = cli_value(args, RUN_NO_CACHE) != NULL };
	st = parse_driver(cli_value(args, RUN_DRIVER), &out->driver, err);
	if (!st)
		st = parse_u32("device", cli_value(args, RUN_DEVICE), 0, &device, err);
	out->device = (int)device;
	return st ? st : nvrtc_args_add(&out->nvcc, args, rows, err);
}

bool run_program_has_options_only(const struct cli_args *args)
{
	static const bool applies[RUN_N_OPTS] = {
		[RUN_DRIVER] = true, [RUN_DEVICE] = true, [RUN_INCLUDE] = true,
		[RUN_DEFINE] = true, [RUN_STD] = true,    [RUN_NO_CACHE] = true,
	};

	for (size_t i = 0; i < args->n_given; i++)
		if (!applies[args->given[i].opt] && !run_tools_have(args->given[i].opt))
			return false;
	return true;
}

/* ---- the request ------------------------------------------------------------------- */

/* The options that the `// gpuload run:` line of a file may contain.  They choose how the kernel is run, but do not write files or
 * choose the driver, so that running an unknown file is safe. */
static const bool allowed_in_file[RUN_N_OPTS] = {
	[RUN_KERNEL] = true, [RUN_GRID] = true, [RUN_BLOCK] = true,        [RUN_SHARED] = true, [RUN_REPEAT] = true,
	[RUN_EXPECT] = true, [RUN_SHOW] = true, [RUN_RTOL] = true,         [RUN_ATOL] = true,   [RUN_INCLUDE] = true,
	[RUN_DEFINE] = true, [RUN_STD] = true,  [RUN_PROFILE_MOST] = true,
};

static gpul_status check_file_options(const struct sources *s, gpul_error *err)
{
	for (size_t i = 0; i < s->file.n_given; i++)
		if (!allowed_in_file[s->file.given[i].opt])
			return gpul_fail(err, GPUL_EINVAL, 0, "--%s is not allowed in the gpuload run: line of a file",
					 run_opts[s->file.given[i].opt].name);
	return GPUL_OK;
}

/* If the error is in the `// gpuload run:` line, put the file name and the line number before its text. */
static gpul_status add_line_number(const struct run_request *q, gpul_status st, const gpul_error *why, gpul_error *err)
{
	if (st == GPUL_OK)
		return st;
	if (q->line.number == 0)
		return gpul_fail(err, st, why->native, "%s", why->text);
	return gpul_fail(err, st, why->native, "%s:%u: %s", q->file, q->line.number, why->text);
}

/* Return the folder to which paths in the `// gpuload run:` line are relative: the folder of the file, or the current folder if the
 * file is a pipe.  Owned by the caller; NULL: no memory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (!slash || stat(path, &st) || !S_ISREG(st.st_mode))
		return strdup(".");
	return strndup(path, (size_t)(slash - path) + 1);
}

/* Open every FILE, even if its `// gpuload run:` line is not used, so that a missing file is reported before other errors. */
static gpul_status open_sources(struct run_request *q, gpul_source *first, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	q->sources = calloc(q->n_files, sizeof *q->sources);
	if (!q->sources) {
		gpul_source_close(first);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu files", q->n_files);
	}
	q->sources[0] = first;
	for (size_t i = first ? 1 : 0; !st && i < q->n_files; i++)
		st = gpul_source_open(q->files[i], &q->sources[i], err);
	return st;
}

static gpul_status read_line(struct sources *s, struct run_request *q, gpul_error *err)
{
	const char *kernel = cli_value(s->command, RUN_KERNEL);
	gpul_error why = { 0 };
	gpul_status st;

	if (s->command->n_operands > q->n_files) /* the command line has ARGs, so the `// gpuload run:` line of the file is ignored */
		return GPUL_OK;
	st = run_line_find(q->sources[0], kernel, &q->line, err);
	if (!st && q->line.number == 0)
		run_line_tell_misspelt(q->sources[0]);
	if (st || q->line.number == 0)
		return st;
	q->dir = folder_of(q->file);
	if (!q->dir)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a path");
	st = cli_parse(run_opts, q->line.words, q->line.n_words, &s->file, &why);
	if (st == GPUL_OK)
		st = check_file_options(s, &why);
	return add_line_number(q, st, &why, err);
}

static gpul_status parse_args(const struct sources *s, struct run_request *q, gpul_error *err)
{
	bool in_command = s->command->n_operands > q->n_files;
	const char **texts = in_command ? s->command->operands + q->n_files : s->file.operands;
	size_t n = in_command ? s->command->n_operands - q->n_files : s->file.n_operands;

	q->has_args = in_command || q->line.number;
	q->args = calloc(n + 1, sizeof *q->args);
	if (!q->args)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu arguments", n);
	for (; q->n_args < n; q->n_args++) {
		gpul_error why = { 0 };
		gpul_status st = arg_parse(texts[q->n_args], in_command ? NULL : q->dir, &q->args[q->n_args], &why);

		if (st)
			return add_line_number(q, st, &why, err);
	}
	return GPUL_OK;
}

gpul_status run_request_make(const struct cli_args *args, gpul_source *first, struct run_request *out, gpul_error *err)
{
	struct sources s = { .command = args };
	gpul_status st;

	*out = (struct run_request){ 0 };
	if (args->n_operands == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "run needs a FILE: gpuload run FILE [ARG...]; gpuload help run explains it");
	split_operands(args, out);
	st = open_sources(out, first, err);
	if (!st)
		st = read_line(&s, out, err);
	if (st)
		goto done;
	out->kernel = option_value(&s, RUN_KERNEL);
	out->json = run_wants_json(args);
	st = parse_numbers(&s, out, err);
	if (st == GPUL_OK)
		st = parse_args(&s, out, err);
	if (st == GPUL_OK)
		st = parse_targets(&s, out, err);
	if (st == GPUL_OK)
		st = collect_load_options(&s, out, err);
	if (st == GPUL_OK)
		st = run_tools_select(args, &s.file, &out->driver, err);
done:
	cli_args_free(&s.file);
	if (st)
		run_request_free(out);
	return st;
}

bool run_wants_json(const struct cli_args *args)
{
	return cli_value(args, RUN_JSON) != NULL;
}

void run_request_free(struct run_request *q)
{
	for (size_t i = 0; q->sources && i < q->n_files; i++)
		gpul_source_close(q->sources[i]);
	free(q->sources);
	for (size_t i = 0; i < q->n_args; i++)
		arg_free(&q->args[i]);
	free(q->args);
	nvrtc_args_free(&q->nvrtc);
	free(q->link_args);
	free(q->expects);
	free(q->saves);
	free(q->dir);
	run_line_free(&q->line);
	*q = (struct run_request){ 0 };
}
