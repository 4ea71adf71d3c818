/* cache_key.c — computes the digest of everything that a result depends on.
 *
 * The digest is SHA-256, so that nobody can write a source that has the same key as another
 * source.  It takes 4 ms per megabyte, while a compiler takes seconds. */
#include <stdlib.h>
#include <string.h>

#include "core/cache/cache_internal.h"

#ifndef GPUL_VERSION
#error "GPUL_VERSION comes from configure.py"
#endif

gpul_cache_key *gpul_cache_key_create(const char *purpose)
{
	gpul_cache_key *key = malloc(sizeof *key);

	if (!key)
		return NULL;
	gpul_sha256_begin(&key->state);
	gpul_cache_key_add_text(key, "gpuload " GPUL_VERSION);
	gpul_cache_key_add_text(key, purpose);
	return key;
}

static void add_length(gpul_cache_key *key, uint64_t length)
{
	gpul_sha256_add(&key->state, &length, sizeof length);
}

void gpul_cache_key_add(gpul_cache_key *key, const void *bytes, size_t n_bytes)
{
	if (!key)
		return;
	add_length(key, n_bytes);
	gpul_sha256_add(&key->state, bytes, n_bytes);
}

void gpul_cache_key_add_text(gpul_cache_key *key, const char *text)
{
	if (key && !text)
		add_length(key, UINT64_MAX); /* UINT64_MAX represents NULL, because no text is that long */
	else if (key)
		gpul_cache_key_add(key, text, strlen(text));
}

void gpul_cache_key_destroy(gpul_cache_key *key)
{
	free(key);
}

void gpul_cache_key_digest(const gpul_cache_key *key, unsigned char digest[GPUL_SHA256_BYTES])
{
	gpul_sha256 copy = key->state;

	gpul_sha256_end(&copy, digest);
}
