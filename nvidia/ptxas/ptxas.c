/* ptxas.c — the program ptxas: checks PTX with NVIDIA's ptxas, and writes the PTX itself to the output file.
 *
 *     ptxas -v -arch=sm_90 k.ptx -o k.cubin     runs NVIDIA's ptxas -v -arch=sm_90 k.ptx -o /tmp/…, then copies k.ptx to k.cubin
 *     ptxas --version                           runs NVIDIA's ptxas, or else prints a text with a release number, which clients read */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file/file.h"
#include "ptx/module.h"
#include "nvidia/real.h"
#include "nvidia/registers.h"

/* exit status of ptxas for an error in its input */
enum { NOT_PTX = 255 };

struct request {
	const char *input, *output;
	int output_at;           /* index of the argument that is, or ends with, the name of the output file; 0: none */
	const char *output_head; /* text before the name in that argument: "" or "--output-file=" */
	bool version;
};

static bool begins_like_ptx(const char *path)
{
	char head[4096];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return false;
	n = fread(head, 1, sizeof head - 1, f);
	fclose(f);
	head[n] = '\0';
	return strstr(head, ".version") || (n > 1 && !strncmp(head, "//", 2));
}

static void read_arguments(int argc, char **argv, struct request *r)
{
	static const char *const heads[] = { "--output-file=", "-output-file=", "-o=" };

	*r = (struct request){ .output = "elf.o", .output_head = "" };
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		bool apart = !strcmp(a, "-o") || !strcmp(a, "--output-file") || !strcmp(a, "-output-file");

		r->version |= !strcmp(a, "--version") || !strcmp(a, "-V");
		if (apart && i + 1 < argc) {
			r->output_at = ++i;
			r->output = argv[i];
			r->output_head = "";
			continue;
		}
		if (*a != '-' && begins_like_ptx(a))
			r->input = a;
		for (size_t k = 0; !apart && k < sizeof heads / sizeof *heads; k++) {
			size_t n = strlen(heads[k]);

			if (strncmp(a, heads[k], n) || !a[n])
				continue;
			r->output_at = i;
			r->output = a + n;
			r->output_head = heads[k];
			break;
		}
	}
}

/* ---- NVIDIA's ptxas -------------------------------------------------------------------------- */

static bool keep_path(const char *path, void *context)
{
	return !access(path, X_OK) && snprintf(context, TOOLCHAIN_PATH_BYTES, "%s", path) > 0;
}

static bool find_real(char path[TOOLCHAIN_PATH_BYTES])
{
	static const char *const sub[] = { "bin", NULL }, *const files[] = { "ptxas", NULL };

	return toolchain_search("GPULOAD_PTXAS", "cuda_nvcc", sub, files, keep_path, path) ||
	       toolchain_search("GPULOAD_PTXAS", "../triton/backends/nvidia", sub, files, keep_path, path);
}

/* Run a program; returns its exit status, or 128 + the number of the signal that ended it. */
static int run_program(const char *path, char **argv)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		execv(path, argv);
		fprintf(stderr, "gpuload ptxas: cannot run %s: %s\n", path, strerror(errno));
		_exit(NOT_PTX);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return NOT_PTX;
	if (child < 0)
		return NOT_PTX;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Run NVIDIA's ptxas with the same arguments, except that its output goes to a temporary file. */
static int check_with_real(const char *real, int argc, char **argv, const struct request *r)
{
	char **copy = calloc((size_t)argc + 3, sizeof *copy);
	char option[] = "-o", temporary[] = "/tmp/gpuload-ptxas-XXXXXX", *output = NULL;
	int fd = mkstemp(temporary), status = NOT_PTX;

	if (copy && fd >= 0 && asprintf(&output, "%s%s", r->output_head, temporary) > 0) {
		memcpy(copy, argv, (size_t)argc * sizeof *copy);
		if (r->output_at) {
			copy[r->output_at] = output;
		} else {
			copy[argc] = option;
			copy[argc + 1] = temporary;
		}
		status = run_program(real, copy);
	} else {
		fprintf(stderr, "gpuload ptxas: cannot create a temporary file in /tmp: %s\n", strerror(errno));
	}
	if (fd >= 0) {
		close(fd);
		unlink(temporary);
	}
	free(output);
	free(copy);
	return status;
}

/* ---- without NVIDIA's ptxas ------------------------------------------------------------------ */

static int check_with_parser(const char *input, const gpul_file *file)
{
	gpul_ptx_module *module = NULL;
	gpul_error err = { 0 };

	if (gpul_ptx_parse(file->bytes, file->n_bytes, input, &module, &err)) {
		fprintf(stderr, "ptxas error   : %s\nptxas fatal   : Ptx assembly aborted due to errors\n", err.text);
		return NOT_PTX;
	}
	gpul_ptx_module_destroy(module);
	return 0;
}

/* Write the PTX with the register limit in its kernels, and a NUL, so that a program can pass the file's contents to cuModuleLoadData. */
static int write_output(const char *path, const gpul_file *file, unsigned max_registers)
{
	FILE *f = fopen(path, "w");
	const size_t bytes = strnlen(file->bytes, file->n_bytes);
	char *limited = toolchain_limit_registers(file->bytes, bytes, max_registers);
	const size_t n = limited ? strlen(limited) : bytes;
	bool ok = f && fwrite(limited ? limited : file->bytes, 1, n, f) == n && fputc('\0', f) != EOF;

	free(limited);
	if (f && fclose(f))
		ok = false;
	if (!ok)
		fprintf(stderr, "ptxas fatal   : cannot write %s: %s\n", path, strerror(errno));
	return ok ? 0 : NOT_PTX;
}

int main(int argc, char **argv)
{
	char real[TOOLCHAIN_PATH_BYTES];
	bool have_real = find_real(real);
	gpul_file file = { 0 };
	gpul_error err = { 0 };
	struct request r;
	int status;

	read_arguments(argc, argv, &r);
	if (have_real && (r.version || !r.input)) {
		execv(real, argv);
		fprintf(stderr, "gpuload ptxas: cannot run %s: %s\n", real, strerror(errno));
		return NOT_PTX;
	}
	if (r.version) {
		puts("ptxas: gpuload's program in place of the PTX assembler\nCuda compilation tools, release 13.0, V13.0.0");
		return 0;
	}
	if (!r.input) {
		fprintf(stderr, "ptxas fatal   : no input file with PTX\n");
		return NOT_PTX;
	}
	if (gpul_file_open(r.input, &file, &err)) {
		fprintf(stderr, "ptxas fatal   : %s\n", err.text);
		return NOT_PTX;
	}
	status = have_real ? check_with_real(real, argc, argv, &r) : check_with_parser(r.input, &file);
	if (!status)
		status = write_output(r.output, &file, toolchain_max_registers(argc - 1, (const char *const *)argv + 1));
	gpul_file_close(&file);
	return status;
}
