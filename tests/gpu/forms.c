/* forms.c — runs one kernel for each instruction form, and compares the results of two drivers.
 *
 *     forms run FOLDER --driver nvidia|soft --out DUMP [--write-hashes FILE]
 *     forms compare FOLDER REFERENCE OTHER
 *     forms check FOLDER FILE DUMP
 *
 * --write-hashes writes the results as the text of form_oracle.h; check compares a dump with such a text.  README.md in this folder
 * describes the format of the files.  For each form, a dump contains a line "NAME ok BYTES" followed by this number of bytes of output, or
 * a line "NAME refused 0: the driver's error".  compare skips a form that the reference refused; a form that only OTHER refused fails. */
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/file.h"
#include "driver/context.h"
#include "tests/gpu/form_oracle.h"
#include "tests/gpu/forms.h"

enum { BLOCK = 256, POISON = 0xcd };

/* ---- run ------------------------------------------------------------------------------------- */

struct runner {
	const gpul_driver *drv;
	gpul_context context;
	FILE *dump, *oracle; /* oracle: output of --write-hashes; NULL: none */
	unsigned ran, refused;
};

static gpul_status launch_form(const gpul_driver *drv, CUmodule module, const struct form *f, CUdeviceptr in, CUdeviceptr out,
			       gpul_error *err)
{
	CUfunction function;
	uint32_t rows = (uint32_t)f->rows;
	unsigned block = rows < BLOCK ? rows : BLOCK;
	gpul_status st = gpul_cu(drv, err, cuModuleGetFunction(&function, module, "form"));

	if (st)
		return st;
	st = gpul_cu(drv, err,
		     cuLaunchKernel(function, (rows + block - 1) / block, 1, 1, block, 1, 1, 0, NULL, (void *[]){ &in, &out, &rows },
				    NULL));
	return st ? st : gpul_cu(drv, err, cuCtxSynchronize());
}

/* Run all rows of one form; stores f->rows * f->out_bytes bytes in result. */
static gpul_status run_form(const gpul_driver *drv, const struct form *f, void *result, gpul_error *err)
{
	size_t out_bytes = f->rows * f->out_bytes;
	CUmodule module;
	CUdeviceptr in = 0, out = 0;
	gpul_status st = gpul_cu(drv, err, cuModuleLoadData(&module, f->ptx.bytes));

	if (st)
		return st;
	if ((st = gpul_cu(drv, err, cuMemAlloc(&in, f->in.n_bytes))))
		goto unload;
	if ((st = gpul_cu(drv, err, cuMemAlloc(&out, out_bytes))))
		goto free_in;
	if ((st = gpul_cu(drv, err, cuMemcpyHtoD(in, f->in.bytes, f->in.n_bytes))) ||
	    (st = gpul_cu(drv, err, cuMemsetD8Async(out, POISON, out_bytes, NULL))) || (st = launch_form(drv, module, f, in, out, err)))
		goto free_out;
	st = gpul_cu(drv, err, cuMemcpyDtoH(result, out, out_bytes));
free_out:
	drv->cuMemFree(out);
free_in:
	drv->cuMemFree(in);
unload:
	drv->cuModuleUnload(module);
	return st;
}

static void write_refused(FILE *dump, const struct form *f, const gpul_error *err)
{
	char text[sizeof err->text];

	snprintf(text, sizeof text, "%s", err->text);
	text[strcspn(text, "\n")] = 0; /* keep only the first line of the text */
	fprintf(dump, "%s refused 0: %s\n", f->name, text);
}

static int run_one(const struct form *f, void *user)
{
	struct runner *r = user;
	gpul_error err = { 0 };
	size_t bytes = f->rows * f->out_bytes;
	void *result = malloc(bytes);

	if (result && run_form(r->drv, f, result, &err) == GPUL_OK) {
		fprintf(r->dump, "%s ok %zu\n", f->name, bytes);
		fwrite(result, 1, bytes, r->dump);
		if (r->oracle)
			form_oracle_write(r->oracle, f, result);
		r->ran++;
	} else {
		write_refused(r->dump, f, &err);
		r->refused++;
		gpul_context_close(&r->context); /* a fault makes the context unusable */
		gpul_context_open(r->drv, 0, &r->context, NULL);
	}
	free(result);
	return 0;
}

/* Open the output of --write-hashes, and write comments with the GPU, its driver and the command. */
static FILE *open_oracle(const struct runner *r, const char *path)
{
	FILE *f = fopen(path, "w");
	char name[96] = "?";

	if (!f)
		return NULL;
	r->drv->cuDeviceGetName(name, sizeof name, 0);
	fprintf(f,
		"# The results of every instruction form on a GPU: see form_oracle.h.\n"
		"# %s, driver for CUDA %d.%d\n"
		"# tests/gpu/make_forms.py FORMS && build/tests/gpu/forms run FORMS --driver %s --out DUMP "
		"--write-hashes FILE\n",
		name, r->drv->version / 1000, r->drv->version % 1000 / 10, r->drv->name);
	return f;
}

static int run(const char *folder, gpul_driver_choice driver, const char *out, const char *hashes)
{
	struct runner r = { 0 };
	gpul_error err = { 0 };

	if (gpul_driver_open(driver, &r.drv, &err) || gpul_context_open(r.drv, 0, &r.context, &err)) {
		fprintf(stderr, "forms: %s\n", err.text);
		return 77;
	}
	r.dump = fopen(out, "wb");
	if (!r.dump) {
		perror(out);
		return 1;
	}
	if (hashes && !(r.oracle = open_oracle(&r, hashes))) {
		perror(hashes);
		fclose(r.dump);
		return 1;
	}
	int bad = forms_each(folder, run_one, &r);
	if (fclose(r.dump) || (r.oracle && fclose(r.oracle)))
		bad = 1;
	gpul_context_close(&r.context);
	fprintf(stderr, "forms: %u ran, %u refused on %s\n", r.ran, r.refused, r.drv->name);
	return bad || r.ran == 0;
}

/* ---- compare --------------------------------------------------------------------------------- */

struct comparison {
	struct form_dump reference, other;
	unsigned passed, failed, skipped;
};

static void print_row(const char *what, const void *bytes, size_t n)
{
	printf("    %-9s", what);
	for (size_t i = 0; i < n; i++)
		printf("%s%02x", i % 4 ? "" : " ", ((const unsigned char *)bytes)[i]);
	printf("\n");
}

/* Compare one form.  Rows are printed as bytes in memory order; the form gives the types of the operands. */
static int compare_one(const struct form *f, void *user)
{
	struct comparison *c = user;
	struct form_result a = form_dump_find(&c->reference, f->name), b = form_dump_find(&c->other, f->name);
	size_t bad = 0, first = 0, bytes = f->out_bytes;

	if (!a.bytes) {
		printf("skip %s: the reference refused it\n", f->title);
		c->skipped++;
		return 0;
	}
	if (!b.bytes) {
		printf("FAIL %s (%s): %.*s\n", f->title, f->name, (int)b.why_bytes, b.why);
		c->failed++;
		return 0;
	}
	for (size_t i = f->rows; i-- > 0;)
		if (!form_row_agrees(f, a.bytes + i * bytes, b.bytes + i * bytes))
			bad++, first = i;
	if (bad) {
		printf("FAIL %s (%s): %zu of %zu rows differ, first row %zu\n", f->title, f->name, bad, f->rows, first);
		print_row("operands", (const char *)f->in.bytes + first * f->in_bytes, f->in_bytes);
		print_row("reference", a.bytes + first * bytes, bytes);
		print_row("other", b.bytes + first * bytes, bytes);
	}
	c->failed += bad != 0;
	c->passed += bad == 0;
	return 0;
}

static int compare(const char *folder, const char *reference, const char *other)
{
	struct comparison c = { 0 };
	gpul_error err = { 0 };
	int bad = 1;

	if (form_dump_open(reference, &c.reference, &err) || form_dump_open(other, &c.other, &err))
		fprintf(stderr, "forms: %s\n", err.text);
	else
		bad = forms_each(folder, compare_one, &c) || c.failed || c.passed == 0;
	form_dump_close(&c.reference);
	form_dump_close(&c.other);
	printf("%u passed, %u failed, %u skipped\n", c.passed, c.failed, c.skipped);
	return bad;
}

/* ---- check: a dump and the committed results of a GPU ---------------------------------------------------- */

struct checking {
	const char *oracle;
	struct form_dump dump;
	unsigned passed, failed, without; /* without: number of forms that the file lacks */
};

static int check_one(const struct form *f, void *user)
{
	struct checking *c = user;
	struct form_result result = form_dump_find(&c->dump, f->name);
	const form_verdict v = result.bytes ? form_oracle_compare(c->oracle, f, result.bytes) : FORM_DIFFERS;

	if (v == FORM_OUTDATED || v == FORM_UNKNOWN) {
		printf("skip %s: %s\n", f->title, v == FORM_UNKNOWN ? "not in the file" : "the form has changed since the run on a GPU");
		c->without++;
	} else if (!result.bytes || v == FORM_DIFFERS) {
		printf("FAIL %s (%s): %s\n", f->title, f->name, result.bytes ? "differs from the GPU" : "the driver refused it");
		c->failed++;
	} else {
		c->passed++;
	}
	return 0;
}

static int check(const char *folder, const char *file, const char *dump)
{
	struct checking c = { 0 };
	gpul_error err = { 0 };
	gpul_file text;
	int bad = 1;

	if (gpul_file_open(file, &text, &err)) {
		fprintf(stderr, "forms: %s\n", err.text);
		return 1;
	}
	c.oracle = text.bytes;
	if (form_dump_open(dump, &c.dump, &err))
		fprintf(stderr, "forms: %s\n", err.text);
	else
		bad = forms_each(folder, check_one, &c) || c.failed || c.passed == 0;
	form_dump_close(&c.dump);
	gpul_file_close(&text);
	printf("%u passed, %u failed, %u skipped\n", c.passed, c.failed, c.without);
	return bad;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "driver", required_argument, NULL, 'd' },
					       { "out", required_argument, NULL, 'o' },
					       { "write-hashes", required_argument, NULL, 'w' },
					       { NULL, 0, NULL, 0 } };
	gpul_driver_choice driver = GPUL_DRIVER_AUTO;
	const char *out = NULL, *hashes = NULL;
	int usage = 0;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'o')
			out = optarg;
		else if (opt == 'w')
			hashes = optarg;
		else
			usage |= opt != 'd' || !gpul_driver_choice_parse(optarg, &driver);
	}
	argc -= optind;
	argv += optind;
	if (!usage && argc == 2 && !strcmp(argv[0], "run") && out)
		return run(argv[1], driver, out, hashes);
	if (!usage && argc == 4 && !strcmp(argv[0], "compare"))
		return compare(argv[1], argv[2], argv[3]);
	if (!usage && argc == 4 && !strcmp(argv[0], "check"))
		return check(argv[1], argv[2], argv[3]);
	fprintf(stderr, "usage: forms run FOLDER --driver nvidia|soft --out DUMP [--write-hashes FILE]\n"
			"       forms compare FOLDER REFERENCE OTHER\n"
			"       forms check FOLDER FILE DUMP\n");
	return 2;
}
