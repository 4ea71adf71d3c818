/* fatbin.c — reads fatbins: containers with the code of one program for several devices.
 *
 *     ┌────────┬─────────┬─────────┬─────────┬─────────┬───
 *     │ header │ entry 0 │ payload │ entry 1 │ payload │ ...      payload_bytes from the header's end
 *     └────────┴─────────┴─────────┴─────────┴─────────┴───
 *       16 B     64..     padded     next = entry + header_bytes + padded_bytes
 *
 * NVIDIA does not document the format.  It was observed in files of nvcc 11.0 to 13.0. */
#include <elf.h>
#include <string.h>

#include "loader/image/fatbin_internal.h"
#include "loader/image/images_internal.h"

#define MOST_HEADER  65536 /* in bytes; 64 to 144 were observed, but a header contains options of any length */
#define MOST_SM      9999
#define MOST_DAMAGED 1000 /* maximum number of damaged fatbins in a section, because each may have many entries */
#define STARTS_IN    96   /* this many stored bytes contain the ELF header, even compressed: LZ4 makes data at most slightly longer */

enum { /* bits of fatbin_entry.flags; other bits are ignored */
       FLAG_DEBUG = 0x2,
       FLAG_LZ4 = 0x2000,
       FLAG_ZSTD = 0x8000,
       FLAG_ARCH_SPECIFIC = 0x100000,   /* the target has the suffix "a", such as sm_90a */
       FLAG_FAMILY_SPECIFIC = 0x200000, /* the target has the suffix "f", such as sm_100f */
};

/* The option with which nvcc -dc marks PTX that must be linked. */
static const char compile_only[] = "--compile-only";

/* Read the header of the fatbin at the start of s; *all is set to the bytes of the whole fatbin. */
static gpul_status read_header(const gpul_walk *w, gpul_span s, gpul_span *all)
{
	fatbin_header h;

	if (s.n < sizeof h)
		return gpul_walk_fail(w, s.at, "the fatbin is cut off in its header: it has %zu of 16 bytes" GPUL_AGAIN, s.n);
	memcpy(&h, gpul_walk_see(w, s.at, sizeof h), sizeof h);
	if (h.magic != GPUL_FATBIN_MAGIC)
		return gpul_walk_fail(w, s.at,
				      "there is no fatbin at byte %zu, which starts with %08x, not %08x: the file is damaged, or has "
				      "an unknown format" GPUL_AGAIN,
				      (size_t)(s.at - w->file.at), h.magic, GPUL_FATBIN_MAGIC);
	if (h.version != 1 || h.header_bytes != sizeof h)
		return gpul_walk_fail(w, s.at,
				      "fatbin at byte %zu has version %u and a header of %u bytes, expected version 1 and 16 bytes: "
				      "the file is damaged, or newer than this gpuload",
				      (size_t)(s.at - w->file.at), h.version, h.header_bytes);
	if (h.payload_bytes > s.n - sizeof h)
		return gpul_walk_fail(w, s.at,
				      "fatbin at byte %zu claims %llu bytes, but only %zu are left: "
				      "the file is cut off or damaged" GPUL_AGAIN,
				      (size_t)(s.at - w->file.at), (unsigned long long)h.payload_bytes, s.n - sizeof h);
	*all = (gpul_span){ s.at, sizeof h + (size_t)h.payload_bytes };
	return GPUL_OK;
}

static const char *entry_damage(const fatbin_entry *e, size_t left)
{
	if (e->header_bytes < sizeof *e || e->header_bytes > MOST_HEADER || e->header_bytes > left)
		return "the length of its header is invalid";
	if (e->kind == GPUL_IMAGE_LTO && e->options_at == 0) /* nvJitLink crashes on LTO code without options */
		return "LTO code without compiler options";
	if (e->version != 0x0101)
		return "its version is not 1.1";
	if (e->padded_bytes > left - e->header_bytes)
		return "it is longer than its fatbin";
	if ((uint64_t)e->ident_at + e->ident_bytes > e->header_bytes)
		return "its identifier is outside its header";
	if (e->compressed_bytes > e->padded_bytes)
		return "its compressed size is larger than its stored size";
	if (e->compressed_bytes && !gpul_can_unpack(e->compressed_bytes, e->unpacked_bytes))
		return "its compressed and uncompressed sizes cannot both be right";
	if (e->flags & FLAG_LZ4 && e->flags & FLAG_ZSTD)
		return "it is marked as compressed by both LZ4 and zstd";
	if (e->compressed_bytes && !(e->flags & (FLAG_LZ4 | FLAG_ZSTD)))
		return "its compression method is unknown";
	if (e->arch > MOST_SM)
		return "its architecture is invalid";
	return NULL;
}

/* Find the options of an entry: its header contains {u32 offset, bytes}; the offset counts from the start of the entry. */
static bool find_options(const gpul_walk *w, const unsigned char *entry, const fatbin_entry *e, uint32_t *at, uint32_t *n)
{
	if (e->options_at < sizeof *e || e->options_at > e->header_bytes - 8)
		return false;
	entry = gpul_walk_see(w, entry, e->header_bytes);
	memcpy(at, entry + e->options_at, sizeof *at);
	memcpy(n, entry + e->options_at + sizeof *at, sizeof *n);
	return *at <= e->header_bytes && *n <= e->header_bytes - *at;
}

/* Read the entry at the start of s; the end of s is the end of the fatbin. */
static gpul_status read_entry(const gpul_walk *w, gpul_span s, fatbin_entry *e)
{
	const char *wrong;
	uint32_t at, n;

	if (s.n < sizeof *e)
		return gpul_walk_fail(w, s.at, "fatbin entry at byte %zu is cut off: it has %zu of 64 bytes" GPUL_AGAIN,
				      (size_t)(s.at - w->file.at), s.n);
	memcpy(e, gpul_walk_see(w, s.at, sizeof *e), sizeof *e);
	wrong = entry_damage(e, s.n);
	if (!wrong && e->options_at && !find_options(w, s.at, e, &at, &n))
		wrong = "its options are outside its header";
	if (wrong)
		return gpul_walk_fail(w, s.at, "fatbin entry at byte %zu is damaged: %s" GPUL_AGAIN, (size_t)(s.at - w->file.at), wrong);
	return GPUL_OK;
}

static gpul_span after(gpul_span s, size_t n)
{
	return (gpul_span){ s.at + n, s.n - n };
}

/* Read the options of PTX or LTO code; for a cubin, this part of the header contains other data. */
static void read_options(const gpul_walk *w, gpul_image *image, const unsigned char *entry, const fatbin_entry *e)
{
	uint32_t at, n;
	const char *text;

	if (!e->options_at || !find_options(w, entry, e, &at, &n))
		return;
	text = (const char *)gpul_walk_see(w, entry, e->header_bytes) + at;
	n = (uint32_t)strnlen(text, n);
	for (; n && *text == ' '; text++, at++)
		n--;
	while (n && text[n - 1] == ' ')
		n--;
	if (n == 0)
		return;
	image->options = (const char *)entry + at;
	image->options_bytes = n;
}

/* True if the ELF header of a cubin has the type ET_REL. */
static bool is_relocatable_cubin(const gpul_walk *w, const gpul_image *image)
{
	gpul_image start = *image;
	Elf64_Ehdr h;

	if (w->section_known || (image->compression == GPUL_COMPRESSION_ZSTD && !w->read_zstd))
		return false;
	if (w->window && image->stored_bytes > STARTS_IN)
		start.stored_bytes = STARTS_IN;
	start.stored = gpul_walk_see(w, image->stored, (size_t)start.stored_bytes);
	return gpul_image_start(&start, &h, sizeof h) && h.e_type == ET_REL;
}

static bool is_compile_only(const gpul_image *image)
{
	return image->kind == GPUL_IMAGE_PTX && image->options &&
	       memmem(image->options, image->options_bytes, compile_only, sizeof compile_only - 1);
}

static void fill_image(const gpul_walk *w, gpul_image *image, const unsigned char *entry, const fatbin_entry *e)
{
	const char *payload = (const char *)entry + e->header_bytes;
	size_t padded = (size_t)e->padded_bytes;

	image->kind = (gpul_image_kind)e->kind;
	image->compression = !e->compressed_bytes  ? GPUL_COMPRESSION_NONE
			     : e->flags & FLAG_LZ4 ? GPUL_COMPRESSION_LZ4
						   : GPUL_COMPRESSION_ZSTD;
	image->sm = (uint16_t)e->arch;
	image->suffix = e->flags & FLAG_ARCH_SPECIFIC ? 'a' : e->flags & FLAG_FAMILY_SPECIFIC ? 'f' : '\0';
	image->debug = e->flags & FLAG_DEBUG;
	image->stored = payload;
	image->offset = (uint64_t)((const unsigned char *)payload - w->file.at);
	image->stored_bytes = e->compressed_bytes ? e->compressed_bytes : padded;
	image->bytes = e->compressed_bytes ? e->unpacked_bytes : padded;
	if (image->kind != GPUL_IMAGE_CUBIN)
		read_options(w, image, entry, e);
	if (image->kind == GPUL_IMAGE_PTX && !e->compressed_bytes) { /* the zeros after the text are padding */
		image->bytes = image->stored_bytes = strnlen(payload, padded);
		image->ended = image->bytes < padded;
	}
	if (image->kind == GPUL_IMAGE_LTO || (image->kind == GPUL_IMAGE_CUBIN && is_relocatable_cubin(w, image)))
		image->relocatable = true;
}

static bool is_listed(const fatbin_entry *e)
{
	return e->kind == GPUL_IMAGE_PTX || e->kind == GPUL_IMAGE_CUBIN || e->kind == GPUL_IMAGE_LTO;
}

gpul_status gpul_walk_fatbin(const gpul_walk *w, gpul_span s, size_t *taken)
{
	gpul_span all = s, rest;
	fatbin_entry e;
	gpul_status st = read_header(w, s, &all);
	uint32_t unit = w->list->n_units;
	size_t first = w->list->images.n;
	bool compiled_only = false;
	int64_t steps = 0;

	if (st)
		return st;
	for (rest = after(all, sizeof(fatbin_header)); rest.n; rest = after(rest, gpul_fatbin_entry_bytes(&e))) {
		gpul_image *image;

		steps++;
		st = read_entry(w, rest, &e);
		if (st && w->rejects_left)
			atomic_fetch_sub(w->rejects_left, steps);
		if (st)
			return st;
		if (!is_listed(&e))
			continue;
		if (e.compressed_bytes && !gpul_can_unpack_all(w->list, e.compressed_bytes, e.unpacked_bytes))
			return gpul_walk_fail(w, rest.at,
					      "the images up to byte %zu would decompress from %llu to %llu bytes: the file is damaged, or "
					      "was made to use up memory" GPUL_AGAIN,
					      (size_t)(rest.at - w->file.at), (unsigned long long)w->list->packed_bytes,
					      (unsigned long long)w->list->unpacked_bytes);
		image = gpul_walk_add(w, unit);
		if (!image)
			return GPUL_ENOMEM;
		w->list->n_units = unit + 1;
		image->fatbin = all.at;
		image->fatbin_bytes = all.n;
		fill_image(w, image, rest.at, &e);
		compiled_only |= !w->section_known && is_compile_only(image);
	}
	for (; compiled_only && first < w->list->images.n; first++)
		w->list->images.at[first].relocatable = true; /* nvcc -dc: all images of the fatbin are relocatable */
	*taken = all.n;
	return GPUL_OK;
}

/* Return the offset of the next magic number of a fatbin after the start of s; s.n: none. */
static size_t next_fatbin(gpul_span s)
{
	const uint32_t magic = GPUL_FATBIN_MAGIC;
	const unsigned char *p = s.n > sizeof magic ? memmem(s.at + 1, s.n - 1, &magic, sizeof magic) : NULL;

	return p ? (size_t)(p - s.at) : s.n;
}

gpul_status gpul_walk_fatbins(const gpul_walk *w, gpul_span s)
{
	int64_t damaged_left = MOST_DAMAGED;

	while (s.n) {
		gpul_status st;
		size_t taken;

		if (*gpul_walk_see(w, s.at, 1) == 0) { /* skip the zeros by which the linker pads the fatbins of two objects */
			s = after(s, 1);
			continue;
		}
		st = gpul_walk_fatbin(w, s, &taken);
		if (st && (damaged_left-- == 0 || !gpul_can_unpack_all(w->list, 0, 0)))
			return st;
		if (st) { /* continue at the next fatbin */
			st = gpul_walk_skip_damage(w, st);
			taken = next_fatbin(s);
		}
		if (st)
			return st;
		s = after(s, taken);
	}
	return GPUL_OK;
}
