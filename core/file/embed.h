/* embed.h — reads files that are embedded in the program: the PTX of kernels, and a web page.
 *
 *     build/kernels/PATH.zst ── .incbin ──> the program ── gpul_embedded_text(), at the first use ──> the text
 *
 * scripts/rules_kernels.py lists the files, compiles those in CUDA C++, and compresses all with zstd; without zstd it copies them. */
#ifndef GPULOAD_CORE_FILE_EMBED_H
#define GPULOAD_CORE_FILE_EMBED_H

#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_embedded {
	const char *name;                 /* file name, for messages */
	const unsigned char *begin, *end; /* the bytes of the file, which may be compressed */
} gpul_embedded;

/* Define `symbol`, a static const gpul_embedded with the content of the file `path`, from the repository or compiled by the
 * build.  The assembler finds the file in build/kernels (-Wa,-I).  Only one source file may define a symbol. */
#define GPUL_EMBED(symbol, path) \
	__asm__(".pushsection .rodata\n" \
		".global gpul_embedded_" #symbol ", gpul_embedded_" #symbol "_end\n" \
		".hidden gpul_embedded_" #symbol ", gpul_embedded_" #symbol "_end\n" \
		"gpul_embedded_" #symbol ": .incbin \"" path ".zst\"\n" \
		"gpul_embedded_" #symbol "_end: .byte 0\n" \
		".popsection"); \
	extern const unsigned char gpul_embedded_##symbol[], gpul_embedded_##symbol##_end[]; \
	static const gpul_embedded symbol = { path, gpul_embedded_##symbol, gpul_embedded_##symbol##_end }

/** Unpack the text of an embedded file.
 *
 * @file  defined by GPUL_EMBED()
 * @text  ends with a NUL; owned by the caller: free(); untouched on failure
 * @n     its length in bytes, without the NUL; may be NULL
 * Errors  GPUL_ENOMEM; GPUL_EFORMAT the program file is damaged
 * Source  zstd manual: ZSTD_decompress() */
gpul_status gpul_embedded_text(const gpul_embedded *file, char **text, size_t *n, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
