/* cli_compile.c — gpuload compile: compile CUDA C++ to PTX or machine code with NVRTC. */
#include "cli/compile/cli_compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/new_file.h"
#include "cli/lib/options/nvrtc_args.h"
#include "cli/lib/message.h"
#include "core/file/file.h"
#include "loader/advice/advice.h"
#include "loader/cache/compile.h"
#include "loader/image/source.h"

/* clang-format off */
enum {
	COMPILE_OUT, COMPILE_ARCH, COMPILE_PTX, COMPILE_CUBIN, COMPILE_INCLUDE, COMPILE_DEFINE,
	COMPILE_STD, COMPILE_LINEINFO, COMPILE_NO_CACHE,
};
/* clang-format on */

/* clang-format off */  /* a table with one row per option */
static const struct cli_opt compile_opts[] = {
	[COMPILE_OUT] = { "o", "OUT",
		"output file; - is stdout (default: FILE.ptx or FILE.cubin in the current folder)", CLI_FILES },
	[COMPILE_ARCH] = { "arch", "NAME",
		"architecture, such as sm_90 or compute_90 (default: sm_75 for PTX, sm_90 for a cubin)",
		"sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120" },
	[COMPILE_PTX] = { "ptx", NULL, "compile to PTX (the default)", NULL },
	[COMPILE_CUBIN] = { "cubin", NULL, "compile to machine code for one GPU architecture", NULL },
	[COMPILE_INCLUDE] = NVRTC_INCLUDE_OPT,
	[COMPILE_DEFINE] = NVRTC_DEFINE_OPT,
	[COMPILE_STD] = NVRTC_STD_OPT,
	[COMPILE_LINEINFO] = { "lineinfo", NULL, "record source lines in the result, so that a fault names the line of FILE.cu", NULL },
	[COMPILE_NO_CACHE] = { "no-cache", NULL, "do not use the cache of compiled code (see gpuload help cache)", NULL },
	{ 0 },
};
/* clang-format on */

static const char compile_details[] = "Compiles FILE.cu with NVRTC, NVIDIA's run-time compiler, so nvcc is not needed. The result\n"
				      "is PTX, which the driver compiles for its GPU, or with --cubin the machine code of one\n"
				      "architecture. Warnings and errors of the compiler are printed on stderr. Results are kept\n"
				      "in a cache: see gpuload help cache.\n";

#define DEFAULT_PTX_ARCH   "75" /* runs on every GPU that CUDA 13 supports */
#define DEFAULT_CUBIN_ARCH "90"

/* Users may write sm_90 or compute_90; NVRTC needs compute_ for PTX and sm_ for machine code. */
static gpul_status choose_arch(const char *wanted, bool cubin, char *buf, size_t buf_bytes, gpul_error *err)
{
	const char *number = cubin ? DEFAULT_CUBIN_ARCH : DEFAULT_PTX_ARCH;
	size_t n_digits;

	if (wanted) {
		number = !strncmp(wanted, "sm_", 3) ? wanted + 3 : !strncmp(wanted, "compute_", 8) ? wanted + 8 : "";
		n_digits = strspn(number, "0123456789");
		if (n_digits < 2 || n_digits > 3 || strspn(number + n_digits, "af") > 1 ||
		    number[n_digits + strspn(number + n_digits, "af")])
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "--arch needs sm_ or compute_ and a number, such as "
					 "sm_90, not '%s'",
					 wanted);
	}
	snprintf(buf, buf_bytes, "%s%s", cubin ? "sm_" : "compute_", number);
	return GPUL_OK;
}

/* Return the default name of the output file, as nvcc chooses it: kernel.ptx in the current folder for dir/kernel.cu.  Owned. */
static char *default_out(const char *path, const char *extension)
{
	const char *name = gpul_file_name(path);
	const char *dot = strrchr(name, '.');
	char *out = NULL;

	if (asprintf(&out, "%.*s%s", (int)(dot ? (size_t)(dot - name) : strlen(name)), name, extension) < 0)
		return NULL;
	return out;
}

/* A PTX file needs no compilation, so copy it if the output has a name or is stdout. */
static gpul_status copy_ptx(const struct cli_args *args, const gpul_source *source, const char *out, gpul_error *err)
{
	size_t n_bytes;
	const char *bytes = gpul_source_bytes(source, &n_bytes);

	if (cli_value(args, COMPILE_CUBIN))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s is already PTX, but --cubin needs CUDA C++; use ptxas to compile PTX to machine code",
				 gpul_source_name(source));
	if (!cli_value(args, COMPILE_OUT))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s is already PTX: there is nothing to compile (-o OUT would copy the file)",
				 gpul_source_name(source));
	return file_overwrite(out, NULL, 0, bytes, strnlen(bytes, n_bytes), err);
}

static gpul_status compile_source(const struct cli_args *args, const struct nvrtc_args *options, const char *arch, gpul_source *source,
				  const char *out, gpul_error *err)
{
	const char *name = gpul_source_name(source), *text;
	gpul_nvrtc_result result = { 0 };
	gpul_status st = gpul_source_text(source, &text, err);

	if (st)
		return st;
	st = gpul_compile_cached(text, name, (const char *const *)options->words, arch, cli_value(args, COMPILE_NO_CACHE) != NULL, &result,
				 err);
	if (st)
		gpul_advise(err);
	cli_message_log(result.log, name, st ? err : NULL);
	if (!st)
		st = file_overwrite(out, NULL, 0, result.image, result.image_bytes, err);
	gpul_nvrtc_result_free(&result);
	return st;
}

static gpul_status compile(const struct cli_args *args, const struct nvrtc_args *options, const char *arch, const char *out,
			   gpul_error *err)
{
	gpul_source *source;
	gpul_content content;
	gpul_status st = gpul_source_open(args->operands[0], &source, err);

	if (st)
		return st;
	content = gpul_source_content(source);
	if (content == GPUL_CONTENT_PTX)
		st = copy_ptx(args, source, out, err);
	else if (content == GPUL_CONTENT_CUDA || content == GPUL_CONTENT_TEXT)
		st = compile_source(args, options, arch, source, out, err);
	else
		st = gpul_fail(err, GPUL_EFORMAT, 0,
			       "%s is %s: compile needs CUDA C++; to get the device code out of a binary, use gpuload extract",
			       gpul_source_name(source), gpul_content_text(content));
	gpul_source_close(source);
	return st;
}

static int cmd_compile(const struct cli_args *args, gpul_error *err)
{
	const struct nvrtc_rows rows = { COMPILE_INCLUDE, COMPILE_DEFINE, COMPILE_STD };
	bool cubin = cli_value(args, COMPILE_CUBIN) != NULL;
	const char *out = cli_value(args, COMPILE_OUT);
	struct nvrtc_args options = { 0 };
	char arch[32], *default_name = NULL;
	gpul_status st;

	if (args->n_operands != 1 || (cubin && cli_value(args, COMPILE_PTX))) {
		gpul_fail(err, GPUL_EINVAL, 0,
			  args->n_operands == 1 ? "--ptx and --cubin cannot be combined"
						: "compile needs one FILE.cu: gpuload compile FILE.cu");
		return CLI_USAGE;
	}
	st = choose_arch(cli_value(args, COMPILE_ARCH), cubin, arch, sizeof arch, err);
	if (st == GPUL_OK && !out) {
		out = default_name = default_out(args->operands[0], cubin ? ".cubin" : ".ptx");
		if (!out)
			st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a file name");
	}
	if (st == GPUL_OK)
		st = nvrtc_args_add(&options, args, rows, err);
	if (st == GPUL_OK && cli_value(args, COMPILE_LINEINFO))
		st = nvrtc_args_append(&options, "-lineinfo", err);
	if (st == GPUL_OK)
		st = compile(args, &options, arch, out, err);
	nvrtc_args_free(&options);
	free(default_name);
	return cli_exit_code(st);
}

const struct cli_cmd cli_compile = {
	"compile", "FILE.cu", "compile CUDA C++ to PTX or machine code, with NVRTC", compile_details, compile_opts, cmd_compile,
	CLI_FILES, NULL,
};
