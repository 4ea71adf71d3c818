/* images_internal.h — declares what the readers of this folder share: the list that they build, and the state of reading a file.
 *
 *     read_content ─┬─ archive ── read_member: read_content of each member
 *                   ├─ host ELF ── search ─┬─ walk_fatbins   named sections: only fatbins
 *                   │                      └─ walk_data      plain data: fatbins and cubins in it
 *                   ├─ fatbin ── one image for each entry
 *                   └─ cubin, PTX: one image
 *
 * No byte is trusted: each reader gets a span and never reads outside it. */
#ifndef GPULOAD_LOADER_IMAGE_IMAGES_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_IMAGES_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/array.h"
#include "core/file/file.h"
#include "loader/image/source.h"
#include "loader/image/images.h"

#define GPUL_MAX_CONTAINERS 8 /* maximum depth of archives in archives */

/* Messages about a damaged file end with this advice to the user. */
#define GPUL_AGAIN "; copy or build the file again"

struct gpul_images {
	char *name;                 /* name of the source */
	gpul_file source;           /* mapping of the source, borrowed; all zeros if the source is in the caller's memory */
	GPUL_ARRAY(gpul_file) more; /* mapped members of thin archives */
	GPUL_ARRAY(gpul_image) images;
	GPUL_ARRAY(gpul_place) places;
	GPUL_ARRAY(char *) strings;
	GPUL_ARRAY(gpul_error) damaged; /* the first GPUL_DAMAGED_MAX errors */
	size_t n_damaged;
	uint32_t n_units;
	uint64_t packed_bytes, unpacked_bytes; /* sizes of all compressed images together */
};

typedef struct gpul_span {
	const unsigned char *at;
	size_t n;
} gpul_span;

/* A small read buffer for headers that are scattered over a large file.  Reading these bytes takes a quarter of the time of a page
 * fault, which maps 16 pages. */
typedef struct gpul_window {
	const unsigned char *at; /* address of the bytes that are copied to bytes[]; NULL: none */
	size_t n;
	unsigned char bytes[256]; /* room for an entry and the start of its payload */
} gpul_window;

/* The state of reading a file (a walk).  Each archive member or section is read with its own copy of this state. */
typedef struct gpul_walk {
	gpul_images *list;
	/* Reads one member of an archive; images.c sets it, because the readers cannot call images.c. */
	gpul_status (*read_member)(const struct gpul_walk *w, gpul_span member);
	const gpul_progress *progress; /* NULL: no reports */
	gpul_span file;                /* the whole file, from which offsets count; for a member of a thin archive,
				* the member's own file */
	gpul_place here;               /* where this content is (member, section); the strings may be temporary, so the list copies them */
	gpul_file source;              /* mapping of `file`; all zeros if it is in the caller's memory */
	unsigned depth;                /* number of containers around this content: archives, offload binaries */
	gpul_origin origin;
	bool relocatable;              /* true: the section contains relocatable images */
	bool section_known;            /* .relocatable is valid; else the ELF type in each cubin's header is read */
	bool read_zstd;                /* also read the start of zstd-compressed cubins, because the file has few images */
	size_t *n_searched;            /* number of bytes searched so far, whose pages are therefore mapped */
	gpul_window *window;           /* buffer for reading headers; NULL: read the mapping */
	_Atomic int64_t *rejects_left; /* number of steps that may still be spent on data that is not an image after all */
	gpul_error *err;
} gpul_walk;

/* Return the address of n bytes of the file, in the mapping (`at`) or copied to the window; valid until the next call. */
const unsigned char *gpul_walk_see(const gpul_walk *w, const unsigned char *at, size_t n);

/* Each reader adds the images of a span to the list.  It fails at the first damage; but readers of containers skip damaged parts
 * (gpul_walk_skip_damage()). */
gpul_status gpul_walk_archive(const gpul_walk *w, gpul_span archive);
gpul_status gpul_walk_elf(const gpul_walk *w, gpul_span elf);
gpul_status gpul_walk_cubin(const gpul_walk *w, gpul_span cubin);
gpul_status gpul_walk_ptx(const gpul_walk *w, gpul_span text);
gpul_status gpul_walk_offload(const gpul_walk *w, gpul_span binaries);
/* Read the fatbin at the start of the span; *taken is set to its length. */
gpul_status gpul_walk_fatbin(const gpul_walk *w, gpul_span s, size_t *taken);
/* Read a span that contains only fatbins, with zeros between them; a damaged fatbin is left out. */
gpul_status gpul_walk_fatbins(const gpul_walk *w, gpul_span s);
/* Search arbitrary data for fatbins and cubins that start in [from, to) and are complete and valid.
 *
 * *covered is the end of an image that began before `from` and extends into this block.  The threads that search
 * earlier blocks set it, and this call sets covered[1] for the block after `to`, and so on to the end of s. */
gpul_status gpul_walk_data(const gpul_walk *w, gpul_span s, size_t from, size_t to, _Atomic size_t *covered);

/* List the images of a source; the caller frees the list with gpul_images_close(). */
gpul_status gpul_images_list(const gpul_source *source, const gpul_progress *progress, gpul_images **out, gpul_error *err);
void gpul_images_close(gpul_images *images); /* accepts NULL */
/* Fail if the file, or the file of a member, was truncated after it was opened: gpul_source_check(). */
gpul_status gpul_images_check(const gpul_images *images, gpul_error *err);

/* Return the length of the cubin at the start of the span; 0: no complete cubin is there. */
size_t gpul_cubin_extent(gpul_span s);

/* A part of a file that is to be searched. */
typedef struct gpul_region {
	const char *section; /* section name, "" without section headers; must stay valid during the search */
	gpul_span bytes;
	bool fatbins; /* true: read with gpul_walk_fatbins(); false: with gpul_walk_data() */
	bool offload; /* true: read with gpul_walk_offload() */
	bool relocatable;
	gpul_origin origin;
} gpul_region;

/* Search regions, in parallel if they are large, and add their images in the order of the file. */
gpul_status gpul_walk_regions(const gpul_walk *w, const gpul_region *regions, size_t n);

/* True if `stored_bytes` can plausibly decompress to `bytes`; checked before memory is allocated. */
bool gpul_can_unpack(uint64_t stored_bytes, uint64_t bytes);
/* Like gpul_can_unpack(), for all images of the list and one more, because many small images together can also be a decompression bomb. */
bool gpul_can_unpack_all(gpul_images *list, uint64_t stored_bytes, uint64_t bytes);

/* Decompress the first n bytes of an image into out; false: not possible. */
bool gpul_image_start(const gpul_image *image, void *out, size_t n);

/* Release the pages of mapped files that are completely between from and end; later reads load them again. */
void gpul_images_release_pages(const gpul_images *list, const void *from, const void *end);

/* Append an image at the walk's current place: place, unit, origin and relocatable are set, other members are 0.
 * NULL: out of memory, reported in w->err.  unit: number of an existing unit, or GPUL_NEW_UNIT. */
#define GPUL_NEW_UNIT UINT32_MAX
gpul_image *gpul_walk_add(const gpul_walk *w, uint32_t unit);

/* Fail with "FILE(MEMBER), SECTION: message"; at: address of the wrong byte in w->file, or NULL. */
gpul_status gpul_walk_fail(const gpul_walk *w, const void *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
gpul_status gpul_walk_no_memory(const gpul_walk *w);
/* Called after a part of a file could not be read: keeps the error in the list and clears w->err, so that reading continues with
 * the next part.  Returns GPUL_OK, or st if the cause is not damage. */
gpul_status gpul_walk_skip_damage(const gpul_walk *w, gpul_status st);
/* Append the error of a part of the file to the list. */
gpul_status gpul_walk_add_damage(const gpul_walk *w, const gpul_error *why);

/* The fields of a source are declared here for the files that read its content. */
struct gpul_source {
	char *name;
	gpul_file file;
	bool borrowed; /* file describes the caller's memory: only bytes and n_bytes are set */
	gpul_content content;
	char *text;          /* copy of the text that ends in NUL; NULL: not needed */
	gpul_images *images; /* list of the images in the source; NULL: not listed yet */
};

/* ---- magic.c: searches plain data for the magic numbers of fatbins and ELF files ---- */

/* Return the first position in [from, to) of the four bytes 50 ed 55 ba or 7f 45 4c 46, or `to` if there is none.
 * The four bytes may extend past `to` but not past n; from <= to <= n.  As fast as memory can be read. */
size_t gpul_magic_find(const unsigned char *bytes, size_t n, size_t from, size_t to);

/* True if the four bytes at `at` are one of the magic numbers. */
bool gpul_magic_is(const unsigned char *bytes, size_t n, size_t at);

/* ---- stripped.c: finds the registered fatbins of a program without section headers ----
 *
 *     wrapper in .data:  46 62 43 b1 │ version │ data ──> fatbin │ more
 *
 * The program's constructors pass each wrapper to the CUDA runtime.  In a position-independent program (PIE, .so) a
 * relocation sets data when the program is loaded. */

typedef struct gpul_loaded { /* a loaded segment of a program */
	uint64_t address;
	gpul_span bytes; /* the bytes of the segment in the file */
	bool writable;
} gpul_loaded;

/* Mark the images from index `first` on as REGISTERED if a wrapper points to their fatbin.  dynamic: the dynamic
 * section, may be empty.  Returns false if out of memory. */
bool gpul_stripped_register(gpul_images *list, size_t first, const gpul_loaded *loaded, size_t n, gpul_span dynamic);

#endif
