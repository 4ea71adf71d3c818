/* embed.c — unpacks the files that the build put into the program. */
#include "core/file/embed.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if GPUL_HAVE_ZSTD
#include <zstd.h>
#endif

/* Return the size of the unpacked text.  *packed: the data is compressed, because it starts with zstd's magic number. */
static size_t text_bytes(const gpul_embedded *file, bool *packed)
{
	const size_t n = (size_t)(file->end - file->begin);

	*packed = n >= 4 && !memcmp(file->begin, "\x28\xb5\x2f\xfd", 4);
#if GPUL_HAVE_ZSTD
	if (*packed) {
		const unsigned long long whole = ZSTD_getFrameContentSize(file->begin, n);

		return whole < SIZE_MAX / 2 ? (size_t)whole : SIZE_MAX; /* zstd's error values are larger than any size */
	}
#endif
	return n;
}

static bool unpack(const gpul_embedded *file, char *text, size_t n, bool packed)
{
	const size_t n_packed = (size_t)(file->end - file->begin);

	if (!packed) {
		memcpy(text, file->begin, n);
		return true;
	}
#if GPUL_HAVE_ZSTD
	return ZSTD_decompress(text, n, file->begin, n_packed) == n;
#else
	(void)n_packed;
	return false;
#endif
}

gpul_status gpul_embedded_text(const gpul_embedded *file, char **text, size_t *n, gpul_error *err)
{
	bool packed;
	const size_t bytes = text_bytes(file, &packed);
	char *out = bytes == SIZE_MAX ? NULL : malloc(bytes + 1);

	if (bytes != SIZE_MAX && !out)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the %zu bytes of %s", bytes, file->name);
	if (!out || !unpack(file, out, bytes, packed)) {
		free(out);
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s, which is a part of this program, cannot be unpacked: the program file is damaged; "
				 "install gpuload again",
				 file->name);
	}
	out[bytes] = 0;
	*text = out;
	if (n)
		*n = bytes;
	return GPUL_OK;
}
