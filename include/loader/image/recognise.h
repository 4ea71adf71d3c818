/* recognise.h — recognises the kind of a file from its first bytes.
 *
 *     text    .version ...            PTX
 *             anything, named *.cu    CUDA C++
 *             ... __global__ ...      CUDA C++, in a pipe or in a file of another name
 *     bytes   7f 45 4c 46             ELF: e_machine 190 is a cubin, else a host file
 *             21 3c 61 72 63 68 3e    ar archive, "!<arch>"
 *             50 ed 55 ba             fatbin
 *             b1 43 62 46             the 24-byte wrapper that points to a fatbin
 *             10 ff 10 ad             clang's offload binary
 *             __CLANG_OFFLOAD_BUNDLE__, CCOB, ELF of e_machine 224: code for AMD GPUs
 *             42 43 c0 de, 42 43 ...  LLVM bitcode (NVVM, LTO) */
#ifndef GPULOAD_LOADER_IMAGE_RECOGNISE_H
#define GPULOAD_LOADER_IMAGE_RECOGNISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_content {
	GPUL_CONTENT_EMPTY, /* no bytes, or only white space */
	GPUL_CONTENT_PTX,   /* a text whose first word is .version, or a text named *.ptx */
	GPUL_CONTENT_CUDA,  /* a text named *.cu, or with __global__ in it */
	GPUL_CONTENT_TEXT,  /* any other text */
	GPUL_CONTENT_CUBIN,
	GPUL_CONTENT_HOST_ELF, /* .o, .so or executable */
	GPUL_CONTENT_ARCHIVE,
	GPUL_CONTENT_FATBIN,
	GPUL_CONTENT_FATBIN_WRAPPER,
	GPUL_CONTENT_OFFLOAD, /* clang's container of device code */
	GPUL_CONTENT_HIP,     /* for AMD GPUs: a bundle of clang, compressed or not */
	GPUL_CONTENT_HSACO,   /* for AMD GPUs: machine code */
	GPUL_CONTENT_BITCODE,
	GPUL_CONTENT_UNKNOWN, /* anything else */
} gpul_content;

typedef struct gpul_recognised {
	gpul_content kind;
	uint32_t sm;           /* CUBIN: 90 for sm_90; else 0 */
	uint64_t bytes_needed; /* CUBIN: the end of its header tables, so the file must be at least this long; else 0 */
} gpul_recognised;

/** Recognise the content of a file; never reads past n_bytes.
 * bytes may be NULL if n_bytes is 0.  name distinguishes CUDA C++ (.cu) and PTX (.ptx) from other text; may be NULL. */
gpul_recognised gpul_recognise(const void *bytes, size_t n_bytes, const char *name);

/** Return a description of the kind for messages, such as "a cubin (GPU machine code)". */
const char *gpul_content_text(gpul_content kind);

#ifdef __cplusplus
}
#endif

#endif
