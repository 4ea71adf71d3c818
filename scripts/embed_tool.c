/* embed_tool.c — a build tool that prepares the files that core/file/embed.h embeds in gpuload.
 *
 *     embed compile ARCH FILE.cu OPTION...    compiles CUDA C++ to PTX on standard output with NVRTC, for machines without nvcc
 *     embed pack FILE OUT                     compresses a file with zstd; copies it if the build has no zstd */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/file.h"
#include "ptx/nvrtc/nvrtc.h"
#if GPUL_HAVE_ZSTD
#include <zstd.h>
#endif

static int report(const gpul_error *err)
{
	fprintf(stderr, "embed: %s\n", err->text);
	return 1;
}

static int compile(const char *arch, const char *path, const char *const *options)
{
	gpul_nvrtc_result out = { 0 };
	gpul_error err = { 0 };
	gpul_file source = { 0 };
	gpul_status st = gpul_file_open(path, &source, &err);

	st = st ? st : gpul_nvrtc_compile(source.bytes, path, options, arch, &out, &err);
	if (out.log && *out.log)
		fprintf(stderr, "%s\n", out.log);
	if (!st)
		fwrite(out.image, 1, out.image_bytes, stdout);
	gpul_nvrtc_result_free(&out);
	gpul_file_close(&source);
	return st ? report(&err) : fflush(stdout) != 0;
}

/* Return the compressed (without zstd: copied) bytes of a file, which the caller frees, and their number; NULL: out of memory. */
static void *packed(const gpul_file *f, size_t *n)
{
#if GPUL_HAVE_ZSTD
	enum { BEST = 19 };
	const size_t room = ZSTD_compressBound(f->n_bytes);
	void *out = malloc(room);

	*n = out ? ZSTD_compress(out, room, f->bytes, f->n_bytes, BEST) : 0;
	if (out && ZSTD_isError(*n)) {
		free(out);
		return NULL;
	}
#else
	void *out = malloc(f->n_bytes);

	*n = f->n_bytes;
	if (out)
		memcpy(out, f->bytes, *n);
#endif
	return out;
}

static int pack(const char *from, const char *to)
{
	gpul_error err;
	gpul_file f;
	size_t n;

	if (gpul_file_open(from, &f, &err))
		return report(&err);
	void *bytes = packed(&f, &n);
	FILE *out = bytes ? fopen(to, "wb") : NULL;
	int failed = !out || fwrite(bytes, 1, n, out) != n;

	if (out)
		failed |= fclose(out) != 0;
	if (failed) {
		fprintf(stderr, "embed: cannot write %s\n", to);
		remove(to);
	}
	free(bytes);
	gpul_file_close(&f);
	return failed;
}

int main(int n, char **words)
{
	if (n >= 4 && !strcmp(words[1], "compile"))
		return compile(words[2], words[3], (const char *const *)words + 4);
	if (n == 4 && !strcmp(words[1], "pack"))
		return pack(words[2], words[3]);
	fputs("usage: embed compile ARCH FILE.cu OPTION... | embed pack FILE OUT\n", stderr);
	return 2;
}
