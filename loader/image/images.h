/* images.h — the device code in files: a list of images, each a span of the mapped file and what
 * is known of it without unpacking it.
 *
 *     source ── archive members │ host ELF sections │ fatbins │ bare cubin or PTX ──> gpul_images
 *                                                                                      │
 *                       kernels.h: what is in one  <── gpul_image_unpack (LZ4, zstd) <─┘
 *
 * An image is REGISTERED where its section says that the CUDA runtime will be told of it
 * (.nv_fatbin, __nv_relfatbin) or where the file is device code itself; EMBEDDED where it was
 * found in plain data (.rodata, .ldata, .cask_resource ...), for some library's own use.
 *
 * The formats are NVIDIA's and undocumented; the readers say what was seen in which version. */
#ifndef GPULOAD_LOADER_IMAGE_IMAGES_H
#define GPULOAD_LOADER_IMAGE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_image_kind { /* numbered as in a fatbin's entries */
	GPUL_IMAGE_PTX = 1,
	GPUL_IMAGE_CUBIN = 2,
	GPUL_IMAGE_LTO = 8, /* NVVM IR for nvJitLink; nothing in it can be listed */
} gpul_image_kind;

typedef enum gpul_compression {
	GPUL_COMPRESSION_NONE,
	GPUL_COMPRESSION_LZ4,
	GPUL_COMPRESSION_ZSTD,
} gpul_compression;

typedef enum gpul_origin { GPUL_ORIGIN_REGISTERED, GPUL_ORIGIN_EMBEDDED } gpul_origin;

typedef struct gpul_image {
	gpul_image_kind kind;
	gpul_compression compression;
	gpul_origin origin;
	uint16_t sm;        /* 90 of sm_90; 0: not told */
	char suffix;        /* 'a' of sm_90a, 'f' of sm_100f, else 0 */
	bool relocatable;   /* to be linked before it can be loaded: nvcc -dc */
	bool debug;         /* made by nvcc -G */
	uint32_t unit;      /* images of one unit are one program for several devices (one fatbin);
	                     * a driver loads one image of a unit */
	uint32_t place;     /* row of gpul_images.places */
	uint64_t offset;    /* of the stored bytes in the file; of a member's file, for thin archives */
	const void *stored; /* borrowed from the mapping */
	uint64_t stored_bytes;
	bool ended;          /* a NUL follows the stored bytes: PTX can be used as it lies there */
	uint64_t bytes;      /* unpacked; what the container says, and unpacking holds it to */
	const char *options; /* PTX: for ptxas; LTO: what it was compiled with; borrowed, not ended by
			      * NUL; NULL: none */
	size_t options_bytes;
	const void *fatbin;    /* the whole fatbin it is of, borrowed from the mapping; NULL: none */
	uint64_t fatbin_bytes;
} gpul_image;

/* A PTX file gives its options for ptxas on a comment line before .version:
 *
 *     // ptxas options: -maxrregcount=40 */
#define GPUL_PTX_OPTIONS "// ptxas options:"

typedef struct gpul_place { /* where images lie; strings owned by the list */
	const char *file;    /* as it was named by the caller */
	const char *member;  /* of an archive; NULL: none */
	const char *section; /* of a host ELF; "" otherwise */
} gpul_place;

typedef struct gpul_images gpul_images; /* opaque: the list and its strings */

/* Told while a long scan or unpacking goes on, from one thread at a time, at most about 20 times a
 * second. */
typedef struct gpul_progress {
	void (*tell)(void *context, uint64_t done, uint64_t total); /* NULL: nobody wants to know */
	void *context;
} gpul_progress;

/** All images in the order of the file, and their number: of an archive, member by member; members of a thin archive
 * are read from their own files.  Nothing is decompressed to make the list, and a file without device code gives an
 * empty one.  Borrowed from the list, which belongs to a source: gpul_source_images() in source.h makes it. */
const gpul_image *gpul_images_all(const gpul_images *images, size_t *n);
/** Where one of them lies; borrowed from the list. */
const gpul_place *gpul_images_place(const gpul_images *images, const gpul_image *image);

/** How many bytes a fatbin, or the ELF or PTX at an address that comes without a length, has by
 * its own headers.
 *
 * What the driver's load calls do: trust the headers.  For memory that the caller vouches for, such
 * as a program's own registered fatbin.
 *
 * @image  a fatbin, a fatbin wrapper, a cubin, or PTX that ends in NUL
 * @bytes  set to where the content starts: behind a wrapper's pointer; else image itself
 * @n      set to its length in bytes
 * Errors  GPUL_EFORMAT none of these
 * Threads any thread may call
 * Source  - */
gpul_status gpul_image_extent(const void *image, const void **bytes, size_t *n, gpul_error *err);

/** What a cubin's ELF header says.
 *
 * @bytes    a cubin
 * @n_bytes  its length
 * @sm       set to 90 of sm_90
 * @suffix   set to 'a' or 0
 * @relocatable  set: ET_REL, to be linked before it is loaded
 * Errors  GPUL_EFORMAT not a cubin
 * Threads any thread may call
 * Source  seen in CUDA 11 to 13 */
gpul_status gpul_cubin_target(const void *bytes, size_t n_bytes, uint16_t *sm, char *suffix,
			      bool *relocatable, gpul_error *err);

typedef struct gpul_unpacked {
	const void *bytes; /* a NUL follows PTX (not counted) */
	size_t n_bytes;
	void *owned; /* private: room for the next image; NULL: none was needed yet */
} gpul_unpacked;

/** The bytes of an image as the driver takes them.
 *
 * Not compressed and, for PTX, followed by NUL: the file's own bytes, no copy.  LTO-IR is scrambled
 * in the file; what nvJitLink takes is a fatbin, so a fatbin of that one image is made.
 *
 * @image  borrowed from an open list, which must outlive *out
 * @out    gpul_unpacked_free(); may hold a buffer of an earlier image, which is used again
 * Errors  GPUL_EFORMAT the payload is damaged or is not image->bytes long; GPUL_EUNSUPPORTED a
 *         compression that this build lacks; GPUL_ENOMEM
 * Threads any thread may call, each with an out of its own
 * Source  LZ4 block format; RFC 8878 (zstd) */
gpul_status gpul_image_unpack(const gpul_image *image, gpul_unpacked *out, gpul_error *err);
/** A zeroed one is fine; cannot fail. */
void gpul_unpacked_free(gpul_unpacked *u);

/** "ptx", "cubin", "lto"; "none", "lz4", "zstd"; "registered", "embedded". */
const char *gpul_image_kind_name(gpul_image_kind kind);
const char *gpul_compression_name(gpul_compression c);
const char *gpul_origin_name(gpul_origin origin);
/** "sm_90a" into buf, which has room for 16 bytes; returns buf. */
const char *gpul_image_arch(const gpul_image *image, char buf[16]);

#ifdef __cplusplus
}
#endif

#endif
