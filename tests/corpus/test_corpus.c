/* test_corpus.c — run every kernel of every PTX file on one driver and compare with the
 * references.
 *
 *     test_corpus [--driver auto|nvidia|soft] [--ptx FOLDER] [--kernel NAME] [--only TEXT]
 *
 * Prints one line for each kernel and file, then "N passed, N failed, N skipped".  Exit status: 0 all
 * passed, 1 a test failed, 2 usage error, 77 the driver is not available. */
#include <dirent.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/file.h"
#include "driver/context.h"
#include "tests/corpus/corpus.h"
#include "tests/corpus/host.h"

struct options {
	gpul_driver_choice driver;
	const char *folder;      /* with --ptx; else the folder that is at work */
	const char *kernel;      /* NULL: all */
	const char *only;        /* part of a file's name; NULL: all */
	const char *assert_path; /* set in the child process of the assert case */
};

struct session {
	const gpul_driver *drv;
	gpul_context context;
	unsigned arch; /* 90 for compute capability 9.0 */
	unsigned passed, failed, skipped;
};

static const struct corpus_case *const tables[] = { corpus_float_cases, corpus_integer_cases, corpus_warp_cases,    corpus_call_cases,
						    corpus_host_cases,  corpus_library_cases, corpus_threads_cases, corpus_half_cases };

/* Read a file into a string that the caller may change and frees; NULL with *err set on failure. */
static char *read_text(const char *path, gpul_error *err)
{
	gpul_file file;

	if (gpul_file_open(path, &file, err))
		return NULL;
	char *text = malloc(file.n_bytes + 1);
	if (text)
		memcpy(text, file.bytes, file.n_bytes + 1); /* including the NUL */
	else
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %s", path);
	gpul_file_close(&file);
	return text;
}

/* NVIDIA's driver refuses PTX for a newer GPU than the present one.  These kernels use no features of
 * the newer GPU, so change the .target line in place to the present GPU; the new number is not longer.
 * Returns whether the text was changed. */
static bool lower_target(char *text, unsigned arch)
{
	char *at = strstr(text, ".target sm_"), number[16];

	if (!at)
		return false;
	at += strlen(".target sm_");
	size_t digits = strspn(at, "0123456789");
	if (strtoul(at, NULL, 10) <= arch)
		return false;
	snprintf(number, sizeof number, "%-*u", (int)digits, arch);
	memcpy(at, number, digits);
	return true;
}

static gpul_status open_context(struct session *s, gpul_error *err)
{
	gpul_status st = gpul_context_open(s->drv, 0, &s->context, err);
	int major = 0, minor = 0;

	if (st)
		return st;
	if ((st = gpul_cu(s->drv, err, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, s->context.device))) ||
	    (st = gpul_cu(s->drv, err, cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, s->context.device))))
		return st;
	/* The software driver runs any target. */
	s->arch = strcmp(s->drv->name, "soft") ? (unsigned)(major * 10 + minor) : UINT_MAX;
	return gpul_cu(s->drv, err, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384)); /* recursion without optimisation needs a large stack */
}

static void run_case(struct session *s, const struct corpus_case *k, const char *path, const char *name)
{
	struct corpus c = { .drv = s->drv, .path = path, .seed = 1 };
	char *text = read_text(path, &c.err);
	bool lowered = text && lower_target(text, s->arch);

	if (text && !gpul_cu(s->drv, &c.err, cuModuleLoadData(&c.module, text))) {
		k->run(&c);
		corpus_release(&c);
		s->drv->cuModuleUnload(c.module);
	}
	free(text);
	printf("%s %s %s%s%s%s\n", c.err.status ? "FAIL" : "ok  ", k->kernel, name, lowered ? " (as the GPU's own architecture)" : "",
	       c.err.status ? ": " : "", c.err.text);
	fflush(stdout);
	s->failed += c.err.status != GPUL_OK;
	s->passed += c.err.status == GPUL_OK;
	if (c.err.status == GPUL_ECUDA) { /* a fault makes the context unusable: open a new one for the next case */
		gpul_error ignored = { 0 };
		gpul_context_close(&s->context);
		open_context(s, &ignored);
	}
}

static void run_file(struct session *s, const struct options *o, const char *name)
{
	char path[4096];
	size_t stem = strcspn(name, ".");

	snprintf(path, sizeof path, "%s/%s", o->folder, name);
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct corpus_case *k = tables[t]; k->kernel; k++)
			if (strlen(k->file) == stem && !strncmp(name, k->file, stem) && (!o->kernel || !strcmp(o->kernel, k->kernel)))
				run_case(s, k, path, name);
}

static int is_wanted(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && !strcmp(e->d_name + n - 4, ".ptx");
}

static void run_folder(struct session *s, const struct options *o)
{
	struct dirent **names = NULL;
	int n = scandir(o->folder, &names, is_wanted, alphasort);

	for (int i = 0; i < n; i++) {
		if (!o->only || strstr(names[i]->d_name, o->only))
			run_file(s, o, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* The files of --ptx; else those of the repository and those that the build compiled for other architectures. */
static void run_folders(struct session *s, struct options *o)
{
	static const char *const folders[] = { "tests/corpus/ptx", GPUL_KERNELS "/tests/corpus" };

	if (o->folder) {
		run_folder(s, o);
		return;
	}
	for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
		o->folder = folders[k];
		run_folder(s, o);
	}
}

static int run_assert_child(struct session *s, const char *path)
{
	struct corpus c = { .drv = s->drv, .path = path, .seed = 1 };
	char *text = read_text(path, &c.err);

	if (!text)
		return 1;
	lower_target(text, s->arch);
	gpul_status st = gpul_cu(s->drv, &c.err, cuModuleLoadData(&c.module, text));
	free(text);
	int rc = st ? 1 : corpus_assert_child(&c);
	/* NVIDIA's driver prints the failed assertion; the software driver returns it in the error
	 * text. */
	fprintf(stderr, "%s\n", c.err.text);
	return rc;
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "driver", required_argument, NULL, 'd' }, { "ptx", required_argument, NULL, 'p' },
		{ "kernel", required_argument, NULL, 'k' }, { "only", required_argument, NULL, 'o' },
		{ "assert", required_argument, NULL, 'a' }, { NULL, 0, NULL, 0 },
	};

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'd' && !gpul_driver_choice_parse(optarg, &o->driver))
			return false;
		else if (opt == 'p')
			o->folder = optarg;
		else if (opt == 'k')
			o->kernel = optarg;
		else if (opt == 'o')
			o->only = optarg;
		else if (opt == 'a')
			o->assert_path = optarg;
		else if (opt == '?')
			return false;
	}
	return optind == argc;
}

int main(int argc, char **argv)
{
	struct options o = { .driver = GPUL_DRIVER_AUTO, .folder = NULL };
	struct session s = { 0 };
	gpul_error err = { 0 };

	if (!parse(argc, argv, &o)) {
		fprintf(stderr, "usage: test_corpus [--driver auto|nvidia|soft] [--ptx FOLDER] "
				"[--kernel NAME] [--only TEXT]\n");
		return 2;
	}
	if (gpul_driver_open(o.driver, &s.drv, &err) || open_context(&s, &err)) {
		fprintf(stderr, "test_corpus: %s\n0 passed, 0 failed, 1 skipped\n", err.text);
		return 77;
	}
	if (o.assert_path)
		return run_assert_child(&s, o.assert_path);
	run_folders(&s, &o);
	gpul_context_close(&s.context);
	if (s.passed + s.failed == 0)
		s.failed++, fprintf(stderr, "test_corpus: the kernel was not found\n");
	printf("%u passed, %u failed, %u skipped\n", s.passed, s.failed, s.skipped);
	return s.failed != 0;
}
