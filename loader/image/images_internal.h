/* images_internal.h — what the readers of this folder share: the list in the making and the walk
 * that fills it.
 *
 *     read_content ─┬─ archive ── read_member: read_content of each member
 *                   ├─ host ELF ── search ─┬─ walk_fatbins   named sections: fatbins, nothing else
 *                   │                      └─ walk_data      plain data: fatbins and cubins in it
 *                   ├─ fatbin ── one image an entry
 *                   └─ cubin, PTX: an image
 *
 * All bytes are unchecked: each reader is given a span and never looks outside it. */
#ifndef GPULOAD_LOADER_IMAGE_IMAGES_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_IMAGES_INTERNAL_H

#include <stdatomic.h>

#include "core/array.h"
#include "core/file.h"
#include "loader/image/source.h"
#include "loader/image/images.h"

/* What to do about a damaged file: ends the messages that say where it is damaged. */
#define GPUL_AGAIN "; copy or build it again"

struct gpul_images {
	char *name;                 /* of the source */
	gpul_file source;           /* borrowed from it; zeroed: it is in the caller's memory */
	GPUL_ARRAY(gpul_file) more; /* of thin archives: the members */
	GPUL_ARRAY(gpul_image) images;
	GPUL_ARRAY(gpul_place) places;
	GPUL_ARRAY(char *) strings;
	uint32_t n_units;
	uint64_t packed_bytes, unpacked_bytes; /* of all compressed images together */
};

typedef struct gpul_span {
	const unsigned char *at;
	size_t n;
} gpul_span;

/* A look at a few bytes here and there in a large file.  A page fault maps 16 pages, and takes four times
 * as long as reading these bytes does. */
typedef struct gpul_window {
	const unsigned char *at; /* what the bytes are a copy of; NULL: nothing yet */
	size_t n;
	unsigned char bytes[256]; /* an entry and the start of what it holds */
} gpul_window;

/* Where a walk is.  Copied to go deeper: what is changed in the copy ends with it. */
typedef struct gpul_walk {
	gpul_images *list;
	/* Reads one member of an archive: images.c, which is above the readers. */
	gpul_status (*read_member)(const struct gpul_walk *w, gpul_span member);
	const gpul_progress *progress; /* NULL: nobody wants to know */
	gpul_span file;        /* whole: what offsets count from; of a thin archive's member, the
				* member's file */
	gpul_place here;       /* member and section may be short-lived strings: kept when needed */
	gpul_file source;      /* what file lies in; zeroed: in the caller's memory */
	bool in_archive;
	gpul_origin origin;
	bool relocatable;      /* by the section it is in */
	bool section_tells;    /* ... which is known; else cubins are looked into */
	bool unhurried;        /* ... though they be compressed by zstd: a file of few images */
	size_t *n_searched;    /* bytes that were gone through: mapped now */
	gpul_window *window;   /* look through it; NULL: at the bytes themselves */
	_Atomic int64_t *patience; /* steps that may yet be spent on what is no image after all */
	gpul_error *err;
} gpul_walk;

/* n bytes at `at`, to be read at once: in the file or in the window. */
const unsigned char *gpul_walk_see(const gpul_walk *w, const unsigned char *at, size_t n);

/* Each adds the images of a span to the list, or fails by the first thing that is damaged. */
gpul_status gpul_walk_archive(const gpul_walk *w, gpul_span archive);
gpul_status gpul_walk_elf(const gpul_walk *w, gpul_span elf);
gpul_status gpul_walk_cubin(const gpul_walk *w, gpul_span cubin);
gpul_status gpul_walk_ptx(const gpul_walk *w, gpul_span text);
/* The fatbin that starts the span; *taken is how long it is. */
gpul_status gpul_walk_fatbin(const gpul_walk *w, gpul_span s, size_t *taken);
/* A span of fatbins and nothing else but zeros between them. */
gpul_status gpul_walk_fatbins(const gpul_walk *w, gpul_span s);
/* A span of anything: a fatbin or a cubin that starts below `to` and is whole and sound is taken, all
 * else is not ours.
 *
 * *covered is where an image ends that began before `from`, and reaches in here: threads at work on
 * what lies before move it, and so does this one for the to - from bytes behind `to`, in covered[1],
 * and so on to the end of s. */
gpul_status gpul_walk_data(const gpul_walk *w, gpul_span s, size_t from, size_t to,
			   _Atomic size_t *covered);

/* List the images of a source; gpul_images_close(). */
gpul_status gpul_images_list(const gpul_source *source, const gpul_progress *progress,
			     gpul_images **out, gpul_error *err);
void gpul_images_close(gpul_images *images); /* NULL is fine */

/* How long the whole cubin is that starts the span; 0: there is none. */
size_t gpul_cubin_extent(gpul_span s);

/* Stretches of one file, to be searched together. */
typedef struct gpul_region {
	const char *section; /* "" where there are none; stays until the search is done */
	gpul_span bytes;
	bool fatbins;        /* walk_fatbins; else walk_data */
	bool relocatable;
	gpul_origin origin;
} gpul_region;

/* Search regions, in parallel where they are large, and add what is found in their order. */
gpul_status gpul_walk_regions(const gpul_walk *w, const gpul_region *regions, size_t n);

/* Can so few bytes be that many, unpacked?  Asked before memory is. */
bool gpul_can_unpack(uint64_t stored_bytes, uint64_t bytes);
/* The same for one image more, beside those of the list: a thousand small ones are a bomb, too. */
bool gpul_can_unpack_all(gpul_images *list, uint64_t stored_bytes, uint64_t bytes);

/* The first n bytes of an image, unpacked; false: they cannot be had. */
bool gpul_image_start(const gpul_image *image, void *out, size_t n);

/* Let go of the pages that lie wholly between from and end and are a mapped file's: what is read again
 * is read from the file again. */
void gpul_images_let_go(const gpul_images *list, const void *from, const void *end);

/* A new image at the walk's place, zeroed but for place, unit, origin and relocatable; NULL: no
 * memory, and w->err says so.  unit: of the list; GPUL_NEW_UNIT: one of its own. */
#define GPUL_NEW_UNIT UINT32_MAX
gpul_image *gpul_walk_add(const gpul_walk *w, uint32_t unit);

/* Fail with "FILE(MEMBER), SECTION: what ..."; at: byte that is wrong, in w->file; NULL: none. */
gpul_status gpul_walk_fail(const gpul_walk *w, const void *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
gpul_status gpul_walk_no_memory(const gpul_walk *w);

#endif
