/* ls.h — the parts of `gpuload ls`.
 *
 *     FILE ── a PTX file, or .cu through NVRTC ──> ls_ptx.c     what its code tells of each kernel
 *          ── any other, and containers ─────────> ls_kernels.c what the images' tables tell
 *          ── with --images ─────────────────────> ls_images.c  the images alone, not unpacked
 *
 * ls_text.c and ls_json.c write one image, or one kernel of it, for people and for programs. */
#ifndef GPULOAD_CLI_LS_LS_H
#define GPULOAD_CLI_LS_LS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/ls/cxx_names.h"
#include "cli/lib/image_filter.h"
#include "cli/lib/json.h"
#include "cli/lib/out.h"
#include "loader/image/images.h"
#include "loader/image/kernels/kernels.h"
#include "loader/signature/signature.h"
#include "ptx/module.h"

extern const struct cli_cmd cli_ls, cli_extract;

struct ls { /* one command line */
	struct image_filter filter;
	bool json, images_only;
	struct cxx_names *names;
	const char *const *nvrtc_args; /* for .cu files, then NULL; NULL: none */
	bool failed;                   /* something was told on stderr: the exit status is 1 */
};

/* ---- a file ------------------------------------------------------------------------ */

/** The images of a file as a table, or as JSON without their kernels.
 *
 * @ls      the command line
 * @path    as given
 * @images  the file's
 * Errors  those of out_flush()
 * Threads one at a time
 * Source  - */
gpul_status ls_images(const struct ls *ls, const char *path, const gpul_images *images,
		      gpul_error *err);

/** The images of a file and their kernels.
 *
 * A damaged image is told on stderr, and the rest is listed.
 *
 * @ls      the command line; .failed is set when something was told
 * @path    as given
 * @images  the file's
 * Errors  those of out_flush(); GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status ls_kernels(struct ls *ls, const char *path, const gpul_images *images,
		       gpul_error *err);

/** The kernels of one PTX text, with what their code tells of them.
 *
 * @ls     the command line
 * @path   as given, for the head line and for messages
 * @text   the PTX
 * @image  what is known of it; its bytes are the text's length
 * Errors  GPUL_EFORMAT not PTX: the line is told; those of out_flush(); GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status ls_ptx(struct ls *ls, const char *path, const char *text, const gpul_image *image,
		   gpul_error *err);

/* Tell on stderr that no kernel has the name that was asked for; nothing when none was. */
void ls_tell_no_match(struct ls *ls, const char *path);

/* ---- an image ---------------------------------------------------------------------- */

/* The index of an image: its row in the file's list, from 0; extract names files by it. */
size_t ls_image_index(const gpul_images *images, const gpul_image *image);

/* The members of an image's JSON object up to where "kernels" goes, and those behind it. */
void ls_json_image_begin(struct json *j, const gpul_image *image, const char *section);
void ls_json_image_end(struct json *j, const gpul_images *images, const gpul_image *image);
/* A kernel's object, left open for more members: json_end(j, '}'). */
void ls_json_kernel(struct json *j, const gpul_kernel_info *k, const struct cxx_name *name);

/* One line: "libx.so: 5 images: 4 cubin, 1 ptx; sm_80 sm_90". */
void ls_text_head(struct out *o, const struct ls *ls, const char *path,
		  const gpul_images *images);
/* One line: "image 3: cubin sm_90, .nv_fatbin, registered, zstd, 512 of 2048 bytes". */
void ls_text_image(struct out *o, const gpul_images *images, const gpul_image *image);
/* The head of a table of kernels, and a kernel's lines in it. */
void ls_text_table_head(struct out *o);
void ls_text_kernel(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name);
/* The same as a paragraph: for a file that is one image. */
void ls_text_page(struct out *o, const gpul_kernel_info *k, const struct cxx_name *name);

/* The type of a parameter as PTX declares it, ".u64"; NULL: not told. */
const char *ls_ptx_type(const gpul_kernel_param *p, char buf[24]);

/* ---- a kernel of a PTX file -------------------------------------------------------- */

/* Registers as declared: PTX is not allocated yet, so these are virtual ones. */
struct ls_registers { uint32_t b16, b32, b64, b128, predicates; };

struct ls_kernel {
	const gpul_ptx_func *func;
	gpul_signature *signature;    /* owned */
	struct ls_registers registers;
	/* Variables of the body, and those of the module that its code names. */
	uint64_t shared_bytes, local_bytes, const_bytes;
};

/** Fill one row.
 *
 * @m     borrowed; must outlive *out
 * @f     a kernel of m with a body
 * @out   owned by the caller: ls_kernel_free(), also after a failure
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  PTX ISA 9.0, 5.1 (state spaces) */
gpul_status ls_kernel(const gpul_ptx_module *m, const gpul_ptx_func *f, struct ls_kernel *out,
		      gpul_error *err);
void ls_kernel_free(struct ls_kernel *k);

#endif
