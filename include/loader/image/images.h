/* images.h — lists the device code in a file: each image is a range of bytes of the mapped file, with properties that
 * are read without decompressing.
 *
 *     source ── archive members │ host ELF sections │ fatbins │ bare cubin or PTX ──> gpul_images
 *                                                                                      │
 *                       kernels.h: its kernels     <── gpul_image_unpack (LZ4, zstd) <─┘
 *
 * An image is REGISTERED if its section shows that the program registers it with the CUDA runtime (.nv_fatbin,
 * __nv_relfatbin), or if the file itself is device code.  It is EMBEDDED if it was found in plain data (.rodata, .ldata,
 * .cask_resource ...), which a library loads by itself.
 *
 * The formats are NVIDIA's and undocumented; each reader names the versions in which it was observed. */
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
			       GPUL_IMAGE_LTO = 8, /* NVVM IR for nvJitLink; its kernels cannot be listed */
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
	uint16_t sm;        /* 90 for sm_90; 0: unknown */
	char suffix;        /* 'a' for sm_90a, 'f' for sm_100f, else 0 */
	bool relocatable;   /* must be linked before it can be loaded (nvcc -dc) */
	bool debug;         /* compiled by nvcc -G */
	uint32_t unit;      /* number of its unit: images of one unit (one fatbin) are one program for
	                     * several devices, of which a driver loads one image */
	uint32_t place;     /* index in gpul_images.places */
	uint64_t offset;    /* offset of the stored bytes in the file (for thin archives, in the member's file) */
	const void *stored; /* borrowed from the mapping */
	uint64_t stored_bytes;
	bool ended;          /* a NUL follows the stored bytes, so that PTX can be used without a copy */
	uint64_t bytes;      /* decompressed size according to the container; decompressing checks it */
	const char *options; /* PTX: options for ptxas; LTO: options of the compiler; borrowed, no NUL at the end; NULL: none */
	size_t options_bytes;
	const void *fatbin; /* the whole fatbin that contains the image, borrowed from the mapping; NULL: none */
	uint64_t fatbin_bytes;
} gpul_image;

/* A PTX file gives its options for ptxas on a comment line before .version:
 *
 *     // ptxas options: -maxrregcount=40 */
#define GPUL_PTX_OPTIONS "// ptxas options:"

typedef struct gpul_place {  /* the location of images; strings owned by the list */
	const char *file;    /* the path as the caller gave it */
	const char *member;  /* member of an archive; NULL: none */
	const char *section; /* section of a host ELF file; else "" */
} gpul_place;

typedef struct gpul_images gpul_images; /* opaque: the list and its strings */

/* Reports the progress of a long search or decompression.  One thread at a time calls it, at most 20 times per second. */
typedef struct gpul_progress {
	void (*tell)(void *context, uint64_t done, uint64_t total); /* done and total are in bytes; NULL: no reports */
	void *context;
} gpul_progress;

/** Return all images in the order of the file, and set *n to their number: in an archive, member by member; members
 * of a thin archive are read from their own files.  Nothing is decompressed, and the list of a file without device
 * code is empty.  Borrowed from the list, which belongs to a source: gpul_source_images() in source.h creates it. */
const gpul_image *gpul_images_all(const gpul_images *images, size_t *n);
/** Return the location of an image of the list; borrowed from the list. */
const gpul_place *gpul_images_place(const gpul_images *images, const gpul_image *image);

/** Return the errors of the parts of the file that could not be read: a damaged member of an archive, a member of a thin archive
 * that is missing, a damaged fatbin among others.  The images of the other parts are listed.  Each error names its part and the
 * reason; *n is their number, of which the first GPUL_DAMAGED_MAX are kept.  Borrowed from the list. */
#define GPUL_DAMAGED_MAX 64
const gpul_error *gpul_images_damaged(const gpul_images *images, size_t *n);

/** Get the length of device code that is given as an address without a length, from its own headers.
 *
 * The headers are trusted, as in the driver's load calls.  Only for trusted memory, such as a program's own registered fatbin.
 *
 * @image  a fatbin, a fatbin wrapper, a cubin, or NUL-terminated PTX
 * @bytes  set to the start of the content: the fatbin that a wrapper points to, else image itself
 * @n      set to its length in bytes
 * Errors  GPUL_EFORMAT not such code, or its headers are damaged */
gpul_status gpul_image_extent(const void *image, const void **bytes, size_t *n, gpul_error *err);

/** Read the target of a cubin from its ELF header.
 *
 * @bytes    a cubin
 * @n_bytes  its length
 * @sm       set to 90 of sm_90
 * @suffix   set to 'a', 'f' or 0
 * @relocatable  set to true for ET_REL, which must be linked before it is loaded
 * Errors  GPUL_EFORMAT not a cubin
 * Source  observed in CUDA 11 to 13 */
gpul_status gpul_cubin_target(const void *bytes, size_t n_bytes, uint16_t *sm, char *suffix, bool *relocatable, gpul_error *err);

/** Copy the PTX that ptxas kept in a cubin for debuggers (nvcc -lineinfo, -G).
 *
 * @bytes       a cubin
 * @n_bytes     its length
 * @index       0 is the first text; linked code has one text for each source file that was compiled with line information
 * @text        set to the text, which a NUL follows; the caller calls free().  NULL: there are not that many texts
 * @text_bytes  set to its length without that NUL
 * Errors  GPUL_EFORMAT not a cubin, or the text is outside it; GPUL_ENOMEM
 * Source  observed in CUDA 13.0 */
gpul_status gpul_cubin_ptx(const void *bytes, size_t n_bytes, size_t index, char **text, size_t *text_bytes, gpul_error *err);

typedef struct gpul_unpacked {
	const void *bytes; /* a NUL follows PTX (not counted) */
	size_t n_bytes;
	void *owned; /* private: a buffer that is reused for the next image; NULL: none yet */
} gpul_unpacked;

/** Get the bytes of an image in the form that the driver accepts.
 *
 * The result is not compressed, and PTX ends with a NUL; if the file has the image in this form, its bytes are used without a
 * copy.  LTO-IR is scrambled in the file, and nvJitLink accepts it only in a fatbin: the result is a fatbin with this image alone.
 *
 * @image  borrowed from a list, whose source must outlive *out
 * @out    owned by the caller: gpul_unpacked_free(); may hold the buffer of an earlier image, which is reused
 * Errors  GPUL_EFORMAT the payload is damaged or is not image->bytes long; GPUL_EUNSUPPORTED a
 *         compression that this build lacks; GPUL_ENOMEM
 * Threads any thread may call, each with a separate *out
 * Source  LZ4 block format; RFC 8878 (zstd) */
gpul_status gpul_image_unpack(const gpul_image *image, gpul_unpacked *out, gpul_error *err);
/** Free the buffer; accepts a zeroed *u; cannot fail. */
void gpul_unpacked_free(gpul_unpacked *u);

/** Return a name: "ptx", "cubin", "lto"; "none", "lz4", "zstd"; "registered", "embedded". */
const char *gpul_image_kind_name(gpul_image_kind kind);
const char *gpul_compression_name(gpul_compression c);
const char *gpul_origin_name(gpul_origin origin);
/** Write "sm_90a" into buf, which has room for 16 bytes; returns buf. */
const char *gpul_image_arch(const gpul_image *image, char buf[16]);

#ifdef __cplusplus
}
#endif

#endif
