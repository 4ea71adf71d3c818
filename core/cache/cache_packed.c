/* cache_packed.c — stores large texts in parts that several threads compress and decompress.
 *
 *     {u64 text_bytes; u64 bytes of each stored part; the parts}
 *
 * A part has PART_BYTES of the text; the last part may have fewer.  It is compressed if gpuload was built with zstd and that makes it
 * smaller. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if GPUL_HAVE_ZSTD
#include <zstd.h>
#endif

#include "core/cache/cache.h"
#include "core/thread/parallel.h"

enum { LEVEL = 1 /* compression level of zstd: PTX becomes 5 times smaller, at 400 MB/s */, PART_BYTES = 4 << 20 };

struct part {
	char *text; /* start of the part in the text */
	size_t text_bytes;
	char *stored; /* start of the part in the stored bytes */
	size_t stored_bytes, room;
	bool failed;
};

struct packing {
	struct part *parts;
	size_t n;
	_Atomic size_t next; /* index of the first part that no thread has started */
	void (*work)(struct part *p);
};

static void work(void *packing)
{
	struct packing *k = packing;

	for (size_t i; (i = atomic_fetch_add(&k->next, 1)) < k->n;)
		k->work(&k->parts[i]);
}

static void work_in_parallel(struct packing *k)
{
	const unsigned n_cpus = gpul_cpus();

	gpul_parallel(k->n < n_cpus ? (unsigned)k->n : n_cpus, work, k);
}

/* Divide a text into parts of PART_BYTES; the last one may be smaller.  Returns false if out of memory. */
static bool divide(struct packing *k, char *text, size_t text_bytes)
{
	k->n = text_bytes / PART_BYTES + (text_bytes % PART_BYTES != 0);
	k->parts = calloc(k->n + 1, sizeof *k->parts);
	for (size_t i = 0; k->parts && i < k->n; i++) {
		k->parts[i].text = text + i * PART_BYTES;
		k->parts[i].text_bytes = i + 1 < k->n ? PART_BYTES : text_bytes - i * PART_BYTES;
	}
	return k->parts;
}

static void unpack(struct part *p)
{
#if GPUL_HAVE_ZSTD
	if (p->stored_bytes != p->text_bytes) {
		p->failed = ZSTD_decompress(p->text, p->text_bytes, p->stored, p->stored_bytes) != p->text_bytes;
		return;
	}
#endif
	p->failed = p->stored_bytes != p->text_bytes;
	if (!p->failed)
		memcpy(p->text, p->stored, p->text_bytes);
}

/* Find the parts in n stored bytes.  False: gpul_cache_store_text() did not write these bytes. */
static bool find_parts(struct packing *k, char *stored, size_t n)
{
	char *at;

	if (n / sizeof(uint64_t) < k->n + 1)
		return false;
	at = stored + (k->n + 1) * sizeof(uint64_t);
	for (size_t i = 0; i < k->n; i++) {
		uint64_t bytes;

		memcpy(&bytes, stored + (i + 1) * sizeof bytes, sizeof bytes);
		if (bytes > (size_t)(stored + n - at))
			return false;
		k->parts[i].stored = at;
		k->parts[i].stored_bytes = (size_t)bytes;
		at += bytes;
	}
	return at == stored + n;
}

/* Unpack n stored bytes.  NULL: gpul_cache_store_text() did not write these bytes, or memory ran out. */
static char *unpack_text(char *stored, size_t n, size_t *text_bytes)
{
	struct packing k = { .work = unpack };
	uint64_t whole = UINT64_MAX;
	char *text = NULL;
	bool ok;

	if (n >= sizeof whole)
		memcpy(&whole, stored, sizeof whole);
	if (whole / PART_BYTES <= n / sizeof whole) /* a damaged number must not lead to a large allocation */
		text = malloc((size_t)whole + 1);
	ok = text && divide(&k, text, (size_t)whole) && find_parts(&k, stored, n);
	if (ok)
		work_in_parallel(&k);
	for (size_t i = 0; ok && i < k.n; i++)
		ok = !k.parts[i].failed;
	free(k.parts);
	if (!ok) {
		free(text);
		return NULL;
	}
	text[whole] = 0;
	*text_bytes = (size_t)whole;
	return text;
}

bool gpul_cache_find_text(const gpul_cache_key *key, char **text, size_t *text_bytes)
{
	void *found = NULL;
	size_t n = 0;
	char *out;

	if (!gpul_cache_find(key, &found, &n))
		return false;
	out = unpack_text(found, n, text_bytes);
	free(found);
	if (!out)
		return false;
	*text = out;
	return true;
}

static void pack(struct part *p)
{
	p->stored_bytes = p->text_bytes;
#if GPUL_HAVE_ZSTD
	const size_t n = ZSTD_compress(p->stored, p->room, p->text, p->text_bytes, LEVEL);

	if (!ZSTD_isError(n) && n < p->text_bytes) {
		p->stored_bytes = n;
		return;
	}
#endif
	memcpy(p->stored, p->text, p->text_bytes);
}

void gpul_cache_store_text(const gpul_cache_key *key, const char *text, size_t text_bytes)
{
	struct packing k = { .work = pack };
	const uint64_t whole = text_bytes;
#if GPUL_HAVE_ZSTD
	const size_t room = ZSTD_compressBound(PART_BYTES);
#else
	const size_t room = PART_BYTES;
#endif
	char *bytes = divide(&k, (char *)(uintptr_t)text, text_bytes) ? malloc((k.n + 1) * sizeof whole + k.n * room) : NULL;

	if (bytes) {
		char *const first = bytes + (k.n + 1) * sizeof whole;
		char *at = first;

		memcpy(bytes, &whole, sizeof whole);
		for (size_t i = 0; i < k.n; i++) {
			k.parts[i].stored = first + i * room;
			k.parts[i].room = room;
		}
		work_in_parallel(&k);
		for (size_t i = 0; i < k.n; i++) { /* move the parts together, because each may be smaller than its room */
			const uint64_t n = k.parts[i].stored_bytes;

			memcpy(bytes + (i + 1) * sizeof n, &n, sizeof n);
			memmove(at, k.parts[i].stored, (size_t)n);
			at += n;
		}
		gpul_cache_store(key, bytes, (size_t)(at - bytes));
	}
	free(bytes);
	free(k.parts);
}
