/* ls.h — the parts of gpuload ls.
 *
 *     FILE ── PTX, or .cu compiled by NVRTC ──> ls_ptx.c      kernels, analysed from their PTX code
 *          ── every other file ───────────────> ls_kernels.c  kernels, from the tables of the images
 *          ── with --images ──────────────────> ls_images.c   the images only, not unpacked
 *
 *          ── folder, wheel, zip, tar ─────> ls_paths.c    each file in it
 *          ── with --group, --sort ────────> ls_rows.c     the kernels of all images in one list
 *          ── with --diff ─────────────────> ls_diff.c     two files compared
 *          ── with --sass ─────────────────> ls_sass.c     machine code, by nvdisasm
 *
 * ls_text.c and ls_json.c write one image or one kernel as text or JSON. */
#ifndef GPULOAD_CLI_LS_LS_H
#define GPULOAD_CLI_LS_LS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/ls/cxx_names.h"
#include "cli/lib/options/image_filter.h"
#include "cli/lib/json/cli_json.h"
#include "cli/lib/out.h"
#include "loader/image/images.h"
#include "loader/image/kernels/kernels.h"
#include "loader/image/source.h"
#include "loader/signature/signature.h"
#include "ptx/module.h"

extern const struct cli_cmd cli_ls, cli_extract;

enum ls_sort { LS_UNSORTED, LS_BY_REGISTERS, LS_BY_SHARED, LS_BY_STACK, LS_BY_NAME };

struct ls { /* the parsed command line, and the state of the listing */
	struct image_filter filter;
	const char *kernel; /* the name of the only kernel that is listed; NULL: any */
	bool json, images_only, group, sass, strict;
	enum ls_sort sort;
	bool many;                 /* a folder or a package is listed: do not mention files without device code */
	size_t n_files, n_matched; /* n_files: number of files in the folder that have device code; n_matched: number of listed files */
	struct cxx_names *names;
	const char *const *nvrtc_args; /* for .cu files; NULL-terminated; NULL: no options */
	bool failed;                   /* an error was reported on stderr: the exit status is 1 */
};

/* ---- a file ------------------------------------------------------------------------ */

/** List the images of a file as a table, or as JSON without kernels.
 *
 * @ls      the command line
 * @path    path of the file, as the user gave it
 * @images  images of the file
 * Errors  as out_flush()
 * Threads one at a time */
gpul_status ls_images(const struct ls *ls, const char *path, const gpul_images *images, gpul_error *err);

/** List the images of a file and their kernels.  A damaged image is reported on stderr, and the others are listed.
 *
 * @ls      the command line; .failed is set if an image is damaged or no kernel matches
 * @path    path of the file, as the user gave it
 * @images  images of the file
 * Errors  as out_flush(); GPUL_ENOMEM
 * Threads one at a time */
gpul_status ls_kernels(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err);

/** List the kernels of a PTX text, with the use of their parameters, found by an analysis of the code.
 *
 * @ls     the command line
 * @path   path of the file, as the user gave it; for the first line and for messages
 * @text   the PTX
 * @image  describes the text; image->bytes is its length
 * Errors  GPUL_EFORMAT a syntax error or, with --strict, any error that ptxas reports: the message gives the line; as out_flush();
 *         GPUL_ENOMEM
 * Threads one at a time */
gpul_status ls_ptx(struct ls *ls, const char *path, const char *text, const gpul_image *image, gpul_error *err);

/** Check the PTX images of a file that is not PTX text, as ptxas does; errors are reported on stderr, one line for each image.
 *
 * @ls      the command line; .failed is set if an image is refused or damaged
 * @path    path of the file
 * @images  images of the file
 * Errors  GPUL_ENOMEM
 * Threads one at a time
 * Source  ptxas of CUDA 13.0 */
gpul_status ls_strict(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err);

/* Lists one source, which is not a folder; ls_package() and ls_folder() call it for each file. */
typedef gpul_status ls_lister(struct ls *ls, gpul_source *source, gpul_error *err);

/** List each file in a package (package.h).  Errors of one file are reported on stderr, and the others are listed.
 *
 * @ls      the command line; .failed is set if a file cannot be listed, or if none has device code
 * @source  the package
 * @list    lists one file
 * Errors  GPUL_EFORMAT a damaged package; GPUL_EUNSUPPORTED; GPUL_ENOMEM
 * Threads one at a time */
gpul_status ls_package(struct ls *ls, gpul_source *source, ls_lister *list, gpul_error *err);

/** List each file in a folder and its sub-folders, as ls_package() does.
 *
 * @ls    the command line; .failed is set if a file cannot be listed, or if none has device code
 * @path  the folder
 * @list  lists one file
 * Errors  GPUL_ESYS the folder cannot be read (native = errno)
 * Threads one at a time */
gpul_status ls_folder(struct ls *ls, const char *path, ls_lister *list, gpul_error *err);

/** List the selected kernels with their machine code, disassembled by nvdisasm.
 *
 * @ls      the command line
 * @path    path of the file
 * @images  images of the file
 * Errors  GPUL_EUNSUPPORTED nvdisasm is not installed; GPUL_ESYS it failed; GPUL_EFORMAT no machine code, or damaged; GPUL_ENOMEM;
 *         as out_flush()
 * Threads one at a time
 * Source  nvdisasm --help of CUDA 13 */
gpul_status ls_sass(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err);

/* ls_takes_kernel() is true if --match and --kernel select this kernel; ls_selects_kernels() is true if one of them is given. */
bool ls_takes_kernel(const struct ls *ls, const char *mangled, const struct cxx_name *name);
static inline bool ls_selects_kernels(const struct ls *ls)
{
	return ls->filter.match || ls->kernel;
}

/* With --match or --kernel: report on stderr that no kernel matches, and set ls->failed. */
void ls_report_no_match(struct ls *ls, const char *path);

/* Report on stderr, one line each, the parts of the file that could not be read; false: there are none. */
bool ls_report_damaged(const char *command, const gpul_images *images);

/* ---- an image ---------------------------------------------------------------------- */

/* Return the index of an image in the list of the file, from 0; extract uses it in file names. */
static inline size_t ls_image_index(const gpul_images *images, const gpul_image *image)
{
	size_t n;

	return (size_t)(image - gpul_images_all(images, &n));
}

/* Write the members of an image's JSON object that come before "kernels", and the members that come after it. */
void ls_json_image_begin(struct json *j, const gpul_image *image, const char *section);
void ls_json_image_end(struct json *j, const gpul_images *images, const gpul_image *image);
/* Begin the JSON object of a kernel; the caller may add members, and ends the object with json_end(j, '}'). */
void ls_json_kernel(struct json *j, const gpul_kernel_info *k, const struct cxx_name *name);

/* Write one line: "libx.so: 5 images: 4 cubin, 1 ptx; sm_80 sm_90". */
void ls_text_head(struct out *o, const struct ls *ls, const char *path, const gpul_images *images);
/* Write one line: "image 3: cubin sm_90, .nv_fatbin, registered, zstd, 512 of 2048 bytes". */
void ls_text_image(struct out *o, const gpul_images *images, const gpul_image *image);
#define LS_TABLE_HEAD "  regs  shared  stack  frame  const  threads  cluster  kernel\n"
/* Write the lines of one kernel in a table. */
void ls_text_kernel(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name);
/* Write one line with the version and the options of ptxas, if they are known. */
void ls_text_build(struct out *o, const gpul_kernel_table *t);
/* Write a kernel as a paragraph, for a file that is a single image. */
void ls_text_page(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name);

/* Return the type of a parameter as declared in PTX, such as ".u64"; NULL: unknown. */
const char *ls_ptx_type(const gpul_kernel_param *p, char buf[24]);

/* ---- a kernel of a PTX file -------------------------------------------------------- */

/* Virtual registers as declared in PTX; the numbers after register allocation are not known. */
struct ls_registers {
	uint32_t b16, b32, b64, b128, predicates;
};

struct ls_kernel {
	const gpul_ptx_func *func;
	const gpul_kernel_info *info; /* borrowed: the data that ls also prints for PTX inside another file */
	gpul_signature *signature;    /* owned */
	struct ls_registers registers;
};

/** Collect the properties of one kernel that ls prints.
 *
 * @m     borrowed; must outlive *out
 * @f     a kernel of m with a body
 * @info  the same kernel in the table of gpul_kernels_read(); borrowed; must outlive *out
 * @out   owned by the caller: ls_kernel_free(), even after a failure
 * Errors  GPUL_ENOMEM
 * Source  PTX ISA 9.0, 5.1 (state spaces) */
gpul_status ls_kernel(const gpul_ptx_module *m, const gpul_ptx_func *f, const gpul_kernel_info *info, struct ls_kernel *out,
		      gpul_error *err);
void ls_kernel_free(struct ls_kernel *k);

#endif
