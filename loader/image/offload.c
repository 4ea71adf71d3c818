/* offload.c — reads clang's offload binaries, each of which contains one or more images of device code.
 *
 *     ┌────────┬─────────┬─────────┬───────┬──────────────┬──────────┬────────┐
 *     │ header │ entries │ strings │ texts │ image, 8-aligned ...  │ header │ ...   several follow each other
 *     └────────┴─────────┴─────────┴───────┴──────────────┴──────────┴────────┘
 *
 * The strings ("arch" sm_80, "triple" nvptx64-nvidia-cuda) repeat what the image contains.
 *
 * Source: LLVM, llvm/Object/OffloadBinary.h: version 1 of LLVM 14 to 20 has one entry, version 2 several. */
#include <string.h>

#include "loader/image/images_internal.h"

#define OFFLOAD_MAGIC "\x10\xff\x10\xad"
#define MOST_VERSION  2
#define MOST_ENTRIES  1024

typedef struct offload_header {
	unsigned char magic[4];
	uint32_t version;
	uint64_t bytes; /* length of this offload binary */
	uint64_t entries_at;
	uint64_t n_entries; /* in version 1: the size of the only entry instead */
} offload_header;
_Static_assert(sizeof(offload_header) == 32, "as in the file");

typedef struct offload_entry {
	uint16_t image_kind, offload_kind;
	uint32_t flags;
	uint64_t strings_at, n_strings;
	uint64_t image_at, image_bytes;
} offload_entry;
_Static_assert(sizeof(offload_entry) == 40, "as in the file");

/* Read the images of an entry.  *n_left limits the total size of the images of this and later entries, because overlapping images
 * in a damaged file would otherwise be read many times. */
static gpul_status read_entry(const gpul_walk *w, gpul_span binary, uint64_t at, uint64_t *n_left)
{
	gpul_walk inner = *w;
	offload_entry e;

	if (at > binary.n || binary.n - at < sizeof e)
		return gpul_walk_fail(w, binary.at, "the offload binary is damaged: an entry is outside its %zu bytes" GPUL_AGAIN,
				      binary.n);
	memcpy(&e, binary.at + at, sizeof e);
	if (e.image_at > binary.n || e.image_bytes > binary.n - e.image_at)
		return gpul_walk_fail(w, binary.at, "the offload binary is damaged: an image ends after its %zu bytes" GPUL_AGAIN,
				      binary.n);
	if (e.image_bytes > *n_left)
		return gpul_walk_fail(w, binary.at, "the offload binary is damaged: its images overlap" GPUL_AGAIN);
	*n_left -= e.image_bytes;
	if (e.image_bytes == 0)
		return GPUL_OK;
	inner.depth++;
	return gpul_walk_skip_damage(w, w->read_member(&inner, (gpul_span){ binary.at + e.image_at, (size_t)e.image_bytes }));
}

/* Read the offload binary at the start of s; *taken is its length. */
static gpul_status read_binary(const gpul_walk *w, gpul_span s, size_t *taken)
{
	gpul_status st = GPUL_OK;
	uint64_t n_left;
	offload_header h;

	if (s.n < sizeof h || memcmp(s.at, OFFLOAD_MAGIC, 4) != 0)
		return gpul_walk_fail(w, s.at,
				      "there is no offload binary at byte %zu: the file is damaged, or has an unknown format" GPUL_AGAIN,
				      (size_t)(s.at - w->file.at));
	memcpy(&h, s.at, sizeof h);
	if (h.version == 0 || h.version > MOST_VERSION)
		return gpul_walk_fail(w, s.at,
				      "the offload binary has version %u, expected 1 or 2: the file is damaged, or newer than this "
				      "gpuload",
				      h.version);
	if (h.bytes < sizeof h || h.bytes > s.n)
		return gpul_walk_fail(w, s.at,
				      "the offload binary gives its size as %llu bytes, but only %zu bytes are left: the file is cut "
				      "off or damaged" GPUL_AGAIN,
				      (unsigned long long)h.bytes, s.n);
	*taken = (size_t)h.bytes;
	n_left = h.bytes;
	if (h.version == 1)
		h.n_entries = 1;
	for (uint64_t i = 0; i < h.n_entries && i < MOST_ENTRIES && !st; i++)
		st = read_entry(w, (gpul_span){ s.at, *taken }, h.entries_at + i * sizeof(offload_entry), &n_left);
	return st;
}

gpul_status gpul_walk_offload(const gpul_walk *w, gpul_span s)
{
	if (w->depth >= GPUL_MAX_CONTAINERS)
		return gpul_walk_fail(w, s.at, "offload binaries and archives are nested more than %d levels deep", GPUL_MAX_CONTAINERS);
	while (s.n) {
		gpul_status st;
		size_t taken = 0;

		if (*s.at == 0) { /* padding between offload binaries */
			s = (gpul_span){ s.at + 1, s.n - 1 };
			continue;
		}
		st = gpul_walk_skip_damage(w, read_binary(w, s, &taken));
		if (st || taken == 0)
			return st;
		s = (gpul_span){ s.at + taken, s.n - taken };
	}
	return GPUL_OK;
}
