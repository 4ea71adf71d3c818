/* cu_source_line.c — finds the line of CUDA C++ that a fault message names, and reads it from its file if the file is unchanged. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file/file.h"
#include "softcuda/api/base/cu_state_internal.h"

enum { MAX_SOURCE_BYTES = 16 << 20 };

/* Returns true if the source file has not changed since it was compiled. If the PTX records the modification time and size of the
 * file, compare them. Otherwise the file must be no newer than the PTX file and than the time at which images were first loaded. */
static bool is_unchanged(const gpul_exec_fault *f, int64_t loaded)
{
	struct stat source, ptx;

	if (stat(f->source, &source) || !S_ISREG(source.st_mode) || source.st_size > MAX_SOURCE_BYTES)
		return false;
	if (f->source_timestamp)
		return (uint64_t)source.st_mtime == f->source_timestamp && (uint64_t)source.st_size == f->source_bytes;
	return source.st_mtime <= loaded && (!f->image || stat(f->image, &ptx) || source.st_mtime <= ptx.st_mtime);
}

void soft_source_line(const gpul_exec_fault *f, int64_t loaded, char *buf, size_t buf_bytes)
{
	gpul_file file;
	const char *at, *end;
	int n;

	*buf = '\0';
	if (!*f->source || !is_unchanged(f, loaded) || gpul_file_open_regular(f->source, &file, NULL))
		return;
	at = file.bytes;
	end = at + file.n_bytes;
	for (uint32_t line = 1; line < f->source_line && at < end; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline ? newline + 1 : end;
	}
	n = (int)strcspn(at, "\r\n"); /* cut the line at its end; the text ends in a NUL */
	if (at < end && n > 0 && (size_t)n < buf_bytes)
		snprintf(buf, buf_bytes, "%.*s", n, at);
	gpul_file_close(&file);
}
