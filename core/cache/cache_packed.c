/* cache_packed.c — stores large texts as {u64 text_bytes; the text}; the text is compressed with zstd if gpuload was built with it. */
#include <stdlib.h>
#include <string.h>
#if GPUL_HAVE_ZSTD
#include <zstd.h>
#endif

#include "core/cache/cache.h"

enum { LEVEL = 1 /* compression level of zstd: PTX becomes 5 times smaller, at 400 MB/s */ };

/* Unpack n bytes to text, which has room for text_bytes.  False: the bytes were not written by gpul_cache_store_text(). */
static bool unpack(const char *bytes, size_t n, char *text, size_t text_bytes)
{
#if GPUL_HAVE_ZSTD
	if (n != text_bytes)
		return ZSTD_decompress(text, text_bytes, bytes, n) == text_bytes;
#endif
	if (n != text_bytes)
		return false;
	memcpy(text, bytes, n);
	return true;
}

bool gpul_cache_find_text(const gpul_cache_key *key, char **text, size_t *text_bytes)
{
	uint64_t whole = 0;
	void *found = NULL;
	size_t n = 0;
	char *out;

	if (!gpul_cache_find(key, &found, &n))
		return false;
	if (n >= sizeof whole)
		memcpy(&whole, found, sizeof whole);
	out = n >= sizeof whole && whole < SIZE_MAX ? malloc((size_t)whole + 1) : NULL;
	if (out && !unpack((const char *)found + sizeof whole, n - sizeof whole, out, (size_t)whole)) {
		free(out);
		out = NULL;
	}
	free(found);
	if (!out)
		return false;
	out[whole] = 0;
	*text = out;
	*text_bytes = (size_t)whole;
	return true;
}

/* Compress the text.  Returns the compressed size, or text_bytes if the text must be stored uncompressed. */
static size_t pack(char *to, size_t room, const char *text, size_t text_bytes)
{
#if GPUL_HAVE_ZSTD
	const size_t n = ZSTD_compress(to, room, text, text_bytes, LEVEL);

	if (!ZSTD_isError(n) && n < text_bytes)
		return n;
#else
	(void)room;
#endif
	memcpy(to, text, text_bytes);
	return text_bytes;
}

void gpul_cache_store_text(const gpul_cache_key *key, const char *text, size_t text_bytes)
{
	const uint64_t whole = text_bytes;
#if GPUL_HAVE_ZSTD
	const size_t room = ZSTD_compressBound(text_bytes);
#else
	const size_t room = text_bytes;
#endif
	char *bytes = malloc(sizeof whole + room);

	if (!bytes)
		return;
	memcpy(bytes, &whole, sizeof whole);
	gpul_cache_store(key, bytes, sizeof whole + pack(bytes + sizeof whole, room, text, text_bytes));
	free(bytes);
}
