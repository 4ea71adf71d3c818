/* nvrtc.c — compiles one program with NVRTC.  The toolkit's nvrtc.h is not used, because it may not be installed. */
#include "ptx/nvrtc/nvrtc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/nvrtc/nvrtc_internal.h"

/* ---- options of NVRTC -------------------------------------------------------------------- */

enum { MAX_OWN_OPTIONS = 4 }; /* number of options that gpuload adds: architecture, 128-bit integers, two include folders */

struct options {
	const char **words; /* gpuload's options are allocated with malloc(), the caller's options are borrowed */
	char *own[MAX_OWN_OPTIONS];
	int n, n_own;
};

static bool add_own_option(struct options *o, const char *before, const char *text)
{
	size_t bytes = strlen(before) + strlen(text) + 1;
	char *word = malloc(bytes);

	if (!word)
		return false;
	snprintf(word, bytes, "%s%s", before, text);
	o->own[o->n_own++] = word;
	o->words[o->n++] = word;
	return true;
}

static void free_options(struct options *o)
{
	for (int i = 0; i < o->n_own; i++)
		free(o->own[i]);
	free(o->words);
}

/* Collect all options: the architecture, the caller's options, and finally the toolkit's header folders. */
static bool collect_options(struct options *o, const struct ptx_nvrtc *lib, const char *const *more, const char *arch)
{
	size_t n_more = 0;

	while (more && more[n_more])
		n_more++;
	*o = (struct options){ .words = calloc(n_more + MAX_OWN_OPTIONS + 1, sizeof *o->words) };
	if (!o->words || !add_own_option(o, "--gpu-architecture=", arch))
		return false;
	/* nvcc enables __int128 by default since CUDA 11.5; NVRTC needs the option. */
	if ((lib->major > 11 || (lib->major == 11 && lib->minor >= 5)) && !add_own_option(o, "--device-int128", ""))
		return false;
	for (size_t i = 0; i < n_more; i++)
		o->words[o->n++] = more[i];
	return (!*lib->include || add_own_option(o, "-I", lib->include)) && (!*lib->cccl || add_own_option(o, "-I", lib->cccl));
}

/* ---- one program ------------------------------------------------------------------------- */

/* Copy a text or image from NVRTC. size_of() gets its size, get() its bytes.  NULL: out of memory, or the text is empty. */
static char *fetch_result(void *program, int (*size_of)(void *, size_t *), int (*get)(void *, char *), size_t *bytes)
{
	char *text;

	*bytes = 0;
	if (size_of(program, bytes) || !*bytes)
		return NULL;
	text = malloc(*bytes + 1);
	if (!text || get(program, text)) {
		free(text);
		return NULL;
	}
	text[*bytes] = 0;
	return text;
}

/* Return the first line of the log such as "kernel.cu(3): error: ...", or the start of the log if no line contains "error". */
static const char *first_error(const char *log)
{
	const char *at = strstr(log, "error");

	while (at && at > log && at[-1] != '\n')
		at--;
	return at ? at : log;
}

static gpul_status fail_compilation(const struct ptx_nvrtc *lib, int result, const char *name, const char *arch, const char *log,
				    gpul_error *err)
{
	const char *text = log && *log ? first_error(log) : lib->nvrtcGetErrorString(result);
	int n_bytes = (int)strcspn(text, "\n");

	/* NVRTC's message "error: invalid value for --gpu-architecture" contains neither the file nor the value, so replace it. */
	if (strstr(text, "--gpu-architecture"))
		return gpul_fail(err, GPUL_EUNSUPPORTED, result, "%s: NVRTC %d.%d cannot compile for %s", name, lib->major, lib->minor,
				 arch);
	if (!strncmp(text, name, strlen(name)))
		return gpul_fail(err, GPUL_EFORMAT, result, "%.*s", n_bytes, text);
	return gpul_fail(err, GPUL_EFORMAT, result, "%s: NVRTC %d.%d: %.*s", name, lib->major, lib->minor, n_bytes, text);
}

static void order_log(gpul_nvrtc_result *r, const char *name)
{
	char *ordered = r->log ? ptx_nvrtc_ordered_log(r->log, name) : NULL;

	if (ordered) {
		free(r->log);
		r->log = ordered;
	}
}

/* Compile a program, and copy the log, even if the compilation has failed. */
static gpul_status compile_program(const struct ptx_nvrtc *lib, void *program, const char *name, const char *arch, const struct options *o,
				   gpul_nvrtc_result *out, gpul_error *err)
{
	bool cubin = !strncmp(arch, "sm_", 3);
	int result = lib->nvrtcCompileProgram(program, o->n, o->words);
	size_t log_bytes;

	out->log = fetch_result(program, lib->nvrtcGetProgramLogSize, lib->nvrtcGetProgramLog, &log_bytes);
	if (result)
		order_log(out, name);
	if (result)
		return fail_compilation(lib, result, name, arch, out->log, err);
	if (cubin)
		out->image = fetch_result(program, lib->nvrtcGetCUBINSize, lib->nvrtcGetCUBIN, &out->image_bytes);
	else
		out->image = fetch_result(program, lib->nvrtcGetPTXSize, lib->nvrtcGetPTX, &out->image_bytes);
	if (!out->image)
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory for the compiled image", name);
	if (!cubin)
		out->image_bytes--; /* NVRTC's size of PTX includes the terminating NUL */
	return GPUL_OK;
}

static gpul_status compile_text(const struct ptx_nvrtc *lib, const char *source, const char *name, const struct options *o,
				bool device_only, const char *arch, gpul_nvrtc_result *out, gpul_error *err)
{
	const char *names[PTX_NVRTC_MAX_HEADERS], *texts[PTX_NVRTC_MAX_HEADERS];
	int n_headers = ptx_nvrtc_headers(device_only, names, texts);
	void *program = NULL;
	int result = lib->nvrtcCreateProgram(&program, source, name, n_headers, texts, names);
	gpul_status st;

	if (result)
		return fail_compilation(lib, result, name, arch, NULL, err);
	st = compile_program(lib, program, name, arch, o, out, err);
	lib->nvrtcDestroyProgram(&program);
	return st;
}

/* Compile again without the host code; functions without annotation are then compiled for the device, too.  If this also fails,
 * report the new errors for a program, and the first ones, which show what annotation is missing, for other files. */
static gpul_status compile_device_code(const struct ptx_nvrtc *lib, const char *source, const char *name, struct options *o,
				       const char *arch, gpul_nvrtc_result *out, gpul_error *why)
{
	char *kernels = ptx_nvrtc_without_host_code(source);
	gpul_nvrtc_result again = { 0 };
	gpul_error why_again = { 0 };
	gpul_status st;

	o->words[o->n++] = "-default-device";
	st = compile_text(lib, kernels ? kernels : source, name, o, true, arch, &again, &why_again);
	free(kernels);
	if (st && !gpul_nvrtc_main_line(source) && !strstr(out->log, "cannot open source file") &&
	    !(again.log && ptx_nvrtc_log_has_error_in(again.log, name) && !ptx_nvrtc_log_has_error_in(out->log, name))) {
		gpul_nvrtc_result_free(&again);
		return st;
	}
	gpul_nvrtc_result_free(out);
	*out = again;
	*why = why_again;
	return st;
}

/* True if the compilation failed because NVRTC cannot compile host code or lacks host headers. */
static bool failed_by_host_code(const char *log)
{
	return log && (strstr(log, "not allowed in JIT mode") || strstr(log, "cannot open source file") || strstr(log, "cuda") ||
		       strstr(log, "\"std\""));
}

gpul_status gpul_nvrtc_compile(const char *source, const char *name, const char *const *options, const char *arch, gpul_nvrtc_result *out,
			       gpul_error *err)
{
	const struct ptx_nvrtc *lib;
	struct options o = { 0 };
	gpul_error why = { 0 };
	gpul_status st;

	*out = (gpul_nvrtc_result){ 0 };
	st = ptx_nvrtc_open(&lib, err);
	if (st)
		return st;
	if (!collect_options(&o, lib, options, arch)) {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory for the compiler's options", name);
		goto free_o;
	}
	st = compile_text(lib, source, name, &o, false, arch, out, &why);
	if (st && failed_by_host_code(out->log))
		st = compile_device_code(lib, source, name, &o, arch, out, &why);
	if (st)
		st = gpul_fail(err, st, why.native, "%s", why.text);
free_o:
	free_options(&o);
	return st;
}

void gpul_nvrtc_result_free(gpul_nvrtc_result *r)
{
	free(r->image);
	free(r->log);
	*r = (gpul_nvrtc_result){ 0 };
}

gpul_status gpul_nvrtc_find(const char **path, int *major, int *minor, gpul_error *err)
{
	const struct ptx_nvrtc *lib;
	gpul_status st = ptx_nvrtc_open(&lib, err);

	if (st)
		return st;
	*path = lib->path;
	if (major)
		*major = lib->major;
	if (minor)
		*minor = lib->minor;
	return GPUL_OK;
}
