/* pack.h — build containers in memory: fatbins, archives, host ELF files, valid or with one wrong number.
 *
 *     pack p = { 0 };
 *     size_t fatbin = pack_fatbin(&p);
 *     pack_entry(&p, &(pack_of){ .kind = 1, .sm = 90 }, text, sizeof text);
 *     pack_fatbin_end(&p, fatbin);
 *     pack_images_of(p.at, p.n, "test", &list, &err);
 *     pack_free(&p); */
#ifndef GPULOAD_TESTS_LOADER_IMAGE_PACK_H
#define GPULOAD_TESTS_LOADER_IMAGE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image/images.h"

typedef struct pack { /* a growing buffer; all zero: empty */
	unsigned char *at;
	size_t n, room;
} pack;

void pack_free(pack *p);
/* Append bytes, or zeros; both functions return the offset of the appended bytes. */
size_t pack_bytes(pack *p, const void *bytes, size_t n);
size_t pack_zeros(pack *p, size_t n);
size_t pack_u32(pack *p, uint32_t v);
/* Append zeros until the size is a multiple of `multiple`. */
void pack_align(pack *p, size_t multiple);
/* Overwrite n bytes with a little-endian number. */
void pack_set(pack *p, size_t at, uint64_t v, size_t n);

/* Offsets of the fields of a fatbin's header and of an entry. */
/* clang-format off */
enum {
	FATBIN_VERSION = 4, FATBIN_HEADER_BYTES = 6, FATBIN_PAYLOAD = 8,
	ENTRY_KIND = 0, ENTRY_HEADER_BYTES = 4, ENTRY_PADDED = 8, ENTRY_COMPRESSED = 16,
	ENTRY_OPTIONS = 20, ENTRY_ARCH = 28, ENTRY_FLAGS = 40, ENTRY_UNPACKED = 56,
	FLAG_64_BIT = 0x1, FLAG_DEBUG = 0x2, FLAG_LINUX = 0x10, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000,
	FLAG_LTO = 0x10000, FLAG_A = 0x100000, FLAG_F = 0x200000,
};
/* clang-format on */

typedef struct pack_of {   /* the properties of a fatbin's entry; 0 in a field selects nvcc's default */
	unsigned kind, sm; /* 1 PTX, 2 cubin, 8 LTO */
	uint64_t flags;    /* in addition to 64-bit and Linux; with FLAG_LZ4 or FLAG_ZSTD the payload is compressed */
	const char *options;
} pack_of;

/* Begin a fatbin, add entries, end the fatbin; pack_fatbin_end() sets its length. */
size_t pack_fatbin(pack *p);
size_t pack_entry(pack *p, const pack_of *what, const void *payload, size_t n);
void pack_fatbin_end(pack *p, size_t fatbin);
/* Append a complete fatbin with one entry. */
size_t pack_fatbin_of(pack *p, const pack_of *what, const void *payload, size_t n);

/* Begin an archive, "!<arch>\n" or "!<thin>\n"; then add members. */
void pack_archive(pack *p, bool thin);
/* Add a member as `ar` writes it.  name has at most 16 bytes and the form of the header ("vec.o/", "/0", "#1/20");
 * bytes NULL: only a header, as in a thin archive. */
size_t pack_member(pack *p, const char *name, const void *bytes, size_t n);

typedef struct pack_section {
	const char *name;
	uint32_t type;  /* 0: SHT_PROGBITS */
	uint64_t flags; /* 0: SHF_ALLOC */
	const void *bytes;
	size_t n;
} pack_section;

/* Build a host library (x86-64) with these sections and one segment that loads everything.  Returns the offset of the
 * section headers: [0] null, [1] section names, then the sections. */
size_t pack_elf(pack *p, const pack_section *sections, size_t n);

/* List the images of a valid pack; the test fails if they cannot be listed. */
const gpul_images *pack_open(const pack *p);
/* Return the only image of a list; the test fails if the list has none or several. */
const gpul_image *pack_only(const gpul_images *list);
size_t pack_count(const gpul_images *list);
/* Check that listing the images fails with this status and a message that contains `words`. */
void pack_expect_refused(const pack *p, gpul_status st, const char *words);

/* Open a source (a path or memory) and list its images; pack_images_close() closes both.  At most eight may be open at a time. */
gpul_status pack_images_open(const char *path, const gpul_progress *progress, const gpul_images **out, gpul_error *err);
gpul_status pack_images_of(const void *bytes, size_t n_bytes, const char *name, const gpul_images **out, gpul_error *err);
void pack_images_close(const gpul_images *list);

#endif
