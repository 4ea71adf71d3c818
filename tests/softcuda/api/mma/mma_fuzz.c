/* mma_fuzz.c — runs matrix multiplications with random operands on any driver, and compares the results of two drivers.
 *
 *     mma_fuzz run FILE [--seed S] [--sets N] [--kept K] [--form TEXT]
 *     mma_fuzz compare FILE FILE
 *     mma_fuzz digest FILE [--sets N]
 *
 * `run` executes N sets of operands of each form (default 2500) with libcuda.so.1, which LD_LIBRARY_PATH selects, and writes to FILE the
 * results of the first K sets of each form (default 250) and a hash of each of the others.  --form: only the forms whose
 * instruction has this text.  `compare` prints, for each form, how many sets and elements differ, the greatest difference in
 * units of the last place, and the first different elements; it exits with 1 if there is a difference.  `digest` prints one
 * hash of the first N sets of each form: h200.txt has those of an H200, for N = 150. */
#include <cuda.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/api/mma/mma_fuzz.h"

struct run {
	FILE *file;
	uint64_t seed;
	unsigned sets, kept;
	const char *form;
};

struct header {
	char name[96];
	uint64_t seed;
	uint32_t sets, kept, words;
	int32_t error;
};

static int failed(CUresult r, const char *what)
{
	const char *name = NULL;

	if (r == CUDA_SUCCESS)
		return 0;
	cuGetErrorName(r, &name);
	fprintf(stderr, "mma_fuzz: %.120s: %s\n", what, name ? name : "an unknown error");
	return 1;
}

static uint64_t hash_words(const uint32_t *words, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t k = 0; k < n; k++)
		h = (h ^ words[k]) * 0x100000001b3;
	return h ^ h >> 29;
}

/* Run `sets` sets of operands, starting with number `first`; false: the driver refuses the kernel. */
static bool execute(const struct form *f, CUfunction kernel, const struct run *r, unsigned first, unsigned sets, uint32_t *out)
{
	const size_t in_words = (size_t)f->threads * form_words(f), out_words = (size_t)f->threads * f->d_words;
	uint32_t *in = malloc(sets * in_words * 4);
	CUdeviceptr din = 0, dout = 0;
	bool ok = in;

	for (unsigned k = 0; ok && k < sets; k++)
		make_operands(f, r->seed, (unsigned)(f - forms), first + k, in + k * in_words);
	ok = ok && !failed(cuMemAlloc(&din, sets * in_words * 4), f->name) && !failed(cuMemAlloc(&dout, sets * out_words * 4), f->name) &&
	     !failed(cuMemcpyHtoD(din, in, sets * in_words * 4), f->name) &&
	     !failed(cuLaunchKernel(kernel, sets, 1, 1, f->threads, 1, 1, 0, NULL, (void *[]){ &din, &dout }, NULL), f->name) &&
	     !failed(cuMemcpyDtoH(out, dout, sets * out_words * 4), f->name);
	if (din)
		cuMemFree(din);
	if (dout)
		cuMemFree(dout);
	free(in);
	return ok;
}

static bool write_results(const struct form *f, CUfunction kernel, const struct run *r)
{
	enum { BATCH = 512 };
	const size_t words = (size_t)f->threads * f->d_words;
	uint32_t *out = malloc(BATCH * words * 4);
	bool ok = out;

	for (unsigned first = 0; ok && first < r->sets; first += BATCH) {
		const unsigned n = r->sets - first < BATCH ? r->sets - first : BATCH;

		ok = execute(f, kernel, r, first, n, out);
		for (unsigned k = 0; ok && k < n; k++) {
			const uint64_t hash = hash_words(out + k * words, words);

			if (first + k < r->kept)
				ok = fwrite(out + k * words, 4, words, r->file) == words;
			else
				ok = fwrite(&hash, sizeof hash, 1, r->file) == 1;
		}
	}
	free(out);
	return ok;
}

static bool run_form(const struct form *f, const struct run *r)
{
	struct header h = {
		.seed = r->seed, .sets = r->sets, .kept = r->kept < r->sets ? r->kept : r->sets, .words = f->threads * f->d_words
	};
	char *ptx = form_ptx(f);
	CUmodule module;
	CUfunction kernel;
	bool ok;

	form_name(f, h.name);
	h.error = cuModuleLoadData(&module, ptx);
	if (!h.error) {
		h.error = cuModuleGetFunction(&kernel, module, "k");
		if (h.error)
			cuModuleUnload(module);
	}
	free(ptx);
	failed((CUresult)h.error, f->name);
	ok = fwrite(&h, sizeof h, 1, r->file) == 1;
	if (h.error)
		return ok;
	ok = ok && write_results(f, kernel, r);
	cuModuleUnload(module);
	return ok;
}

static int run_all(const char *path, struct run *r)
{
	CUdevice device;
	CUcontext context;
	char name[80] = "";
	bool ok = true;

	if (failed(cuInit(0), "cuInit") || failed(cuDeviceGet(&device, 0), "cuDeviceGet") ||
	    failed(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain") ||
	    failed(cuCtxSetCurrent(context), "cuCtxSetCurrent"))
		return 1;
	cuDeviceGetName(name, sizeof name, device);
	r->file = fopen(path, "wb");
	if (!r->file) {
		fprintf(stderr, "mma_fuzz: %s: %s\n", path, strerror(errno));
		return 1;
	}
	for (unsigned k = 0; ok && k < n_forms; k++)
		if (!r->form || strstr(forms[k].name, r->form))
			ok = run_form(&forms[k], r);
	ok = !fclose(r->file) && ok;
	printf("%s: %s\n", name, ok ? "all forms were executed" : "failed");
	return !ok;
}

/* ---- comparing two files of results ------------------------------------------------------------------------------ */

struct differences {
	uint64_t sets, elements, most;
	unsigned shown;
};

static uint64_t element_at(const uint32_t *words, unsigned bits, unsigned k)
{
	uint64_t wide;

	if (bits == 64)
		return memcpy(&wide, words + 2 * k, 8), wide;
	return words[k * bits / 32] >> k * bits % 32 & (bits == 32 ? UINT32_MAX : (1u << bits) - 1);
}

static void compare_set(const struct form *f, unsigned set, const uint32_t *x, const uint32_t *y, struct differences *sum)
{
	const unsigned bits = element_bits(f->d), n = f->threads * f->d_words * 32 / bits;
	bool differs = false;

	for (unsigned k = 0; k < n; k++) {
		const uint64_t a = element_at(x, bits, k), b = element_at(y, bits, k), apart = distance(f->d, a, b);

		if (!apart)
			continue;
		differs = true;
		sum->elements++;
		sum->most = apart > sum->most ? apart : sum->most;
		if (sum->shown++ < 4)
			printf("  %s set %u thread %u element %u: %0*" PRIx64 " %0*" PRIx64 "\n", f->name, set, k * bits / 32 / f->d_words,
			       k % (f->d_words * 32 / bits), (int)bits / 4, a, (int)bits / 4, b);
	}
	sum->sets += differs;
}

static const struct form *find_form(const char *name)
{
	for (unsigned k = 0; k < n_forms; k++) {
		char one[96];

		form_name(&forms[k], one);
		if (!strcmp(one, name))
			return &forms[k];
	}
	return NULL;
}

/* Compare the results of one form; false: the files are damaged. */
static bool compare_form(FILE *a, FILE *b, const struct header *h, struct differences *sum)
{
	const struct form *f = find_form(h->name);
	uint32_t *x = malloc(h->words * 4), *y = malloc(h->words * 4);
	bool ok = f && x && y;

	for (unsigned k = 0; ok && k < h->kept; k++) {
		ok = fread(x, 4, h->words, a) == h->words && fread(y, 4, h->words, b) == h->words;
		if (ok)
			compare_set(f, k, x, y, sum);
	}
	for (unsigned k = h->kept; ok && k < h->sets; k++) {
		uint64_t p, q;

		ok = fread(&p, 8, 1, a) == 1 && fread(&q, 8, 1, b) == 1;
		sum->sets += ok && p != q;
	}
	free(x);
	free(y);
	return ok;
}

/* Skip the results of a form that only one of the drivers has executed. */
static bool skip_form(FILE *f, const struct header *h)
{
	const long bytes = (long)h->kept * h->words * 4 + (long)(h->sets - h->kept) * 8;

	return h->error || !fseek(f, bytes, SEEK_CUR);
}

static int compare_files(const char *path_a, const char *path_b)
{
	FILE *a = fopen(path_a, "rb"), *b = fopen(path_b, "rb");
	struct header h, g;
	uint64_t sets = 0, different = 0;
	bool ok = a && b;

	while (ok && fread(&h, sizeof h, 1, a) == 1) {
		struct differences sum = { 0 };

		ok = fread(&g, sizeof g, 1, b) == 1 && !strcmp(g.name, h.name) && g.seed == h.seed && g.sets == h.sets && g.kept == h.kept;
		if (ok && (h.error || g.error)) {
			ok = skip_form(a, &h) && skip_form(b, &g);
			different += h.error != g.error;
			printf("%-68s refused with error %d and %d\n", h.name, h.error, g.error);
			continue;
		}
		ok = ok && compare_form(a, b, &h, &sum);
		sets += h.sets;
		different += sum.sets;
		printf("%-68s %6u sets, %6" PRIu64 " differ; %6" PRIu64 " elements of the first %u, at most %" PRIu64 " units\n", h.name,
		       h.sets, sum.sets, sum.elements, h.kept, sum.most);
	}
	if (!ok)
		fprintf(stderr, "mma_fuzz: the files cannot be read, or are of different runs (after %s)\n", a && b ? h.name : "opening");
	printf("%" PRIu64 " sets, %" PRIu64 " differ\n", sets, different);
	if (a)
		fclose(a);
	if (b)
		fclose(b);
	return !ok || different;
}

static int print_digests(const char *path, unsigned most)
{
	FILE *f = fopen(path, "rb");
	struct header h;
	bool ok = f;

	while (ok && fread(&h, sizeof h, 1, f) == 1) {
		uint64_t digest = 0, hash;
		uint32_t *words = malloc(h.words * 4);

		ok = words;
		for (unsigned k = 0; ok && !h.error && k < h.sets; k++) {
			if (k < h.kept) {
				ok = fread(words, 4, h.words, f) == h.words;
				hash = hash_words(words, h.words);
			} else {
				ok = fread(&hash, 8, 1, f) == 1;
			}
			digest = k < most ? (digest ^ hash) * 0x9e3779b97f4a7c15 : digest;
		}
		free(words);
		printf("%016" PRIx64 " %s\n", digest, h.name);
	}
	if (f)
		fclose(f);
	return !ok;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' }, { "sets", 1, NULL, 'n' }, { "kept", 1, NULL, 'k' }, { "form", 1, NULL, 'f' }, { NULL, 0, NULL, 0 }
	};
	struct run r = { .seed = 1, .sets = 2500, .kept = 250 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			r.seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			r.sets = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'k':
			r.kept = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'f':
			r.form = optarg;
			break;
		default:
			return 2;
		}
	if (argc - optind == 2 && !strcmp(argv[optind], "run"))
		return run_all(argv[optind + 1], &r);
	if (argc - optind == 3 && !strcmp(argv[optind], "compare"))
		return compare_files(argv[optind + 1], argv[optind + 2]);
	if (argc - optind == 2 && !strcmp(argv[optind], "digest"))
		return print_digests(argv[optind + 1], r.sets);
	fprintf(stderr, "usage: mma_fuzz run FILE [options] | mma_fuzz compare FILE FILE | mma_fuzz digest FILE [--sets N]\n");
	return 2;
}
