/* cubin_internal.h — reads the headers, sections and NVIDIA attributes of a cubin, and checks every access.
 *
 * A cubin is an ELF file of machine 190.  There are two formats, distinguished by EI_OSABI; ptxas 12.8 and 12.9 write
 * the newer one for sm_100 and later:
 *
 *                            CUDA 11, 12 (0x33, ABI version 7)     CUDA 13 (0x41, ABI version 8)
 *     SM in e_flags          bits 0 to 7                           bits 8 to 15
 *     "a" of sm_90a          e_flags bit 11                        .nv.compat, attribute 9;
 *                                                                  without it, e_flags bit 3
 *     barriers of a kernel   .text's sh_flags, bits 20 to 26       attribute 0x4C
 *
 * Section headers, symbols and attributes are read in place. */
#ifndef GPULOAD_LOADER_IMAGE_CUBIN_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_CUBIN_INTERNAL_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/error.h"

/* A range of the image whose bytes are not available (kernels/excerpt_internal.h); {0, 0}: the image is complete. */
typedef struct gpul_cubin_gap {
	uint64_t from, to;
} gpul_cubin_gap;

typedef struct gpul_cubin {
	const unsigned char *base; /* borrowed */
	size_t n_bytes;
	gpul_cubin_gap gap;
	Elf64_Ehdr header;
	uint32_t n_sections;
	Elf64_Shdr names; /* header of the section that contains the names of the sections */
	uint16_t sm;      /* 90 for sm_90 */
	bool older;       /* the cubin has ABI version 7 (CUDA 11 and 12) */
	bool relocatable; /* the ELF type of the cubin is ET_REL */
} gpul_cubin;

/** Check the ELF header and the extent of the section table.
 *
 * @bytes  borrowed by *out; any alignment
 * @gap    the range of bytes that are not available; the section table must be outside it
 * Errors  GPUL_EFORMAT: the message gives the place and what was expected
 * Source  the ELF specification; CUDA 11.8, 12.4 and 13.0 */
gpul_status gpul_cubin_open(const void *bytes, size_t n_bytes, gpul_cubin_gap gap, gpul_cubin *out, gpul_error *err);

/* Return the header of section i < n_sections; the range of bytes in it is not checked. */
Elf64_Shdr gpul_cubin_section(const gpul_cubin *c, uint32_t i);

/* Return the bytes of a section.  NULL: the section has no bytes, or some are outside the image or in the image's gap. */
const unsigned char *gpul_cubin_bytes(const gpul_cubin *c, const Elf64_Shdr *s);

/* True if the section's name starts with prefix; false if the name is outside its table.  Inline, because libcublas has
 * 150,000 sections that are tested several times, and the compiler knows the length of a literal. */
static inline bool gpul_cubin_is_named(const gpul_cubin *c, const Elf64_Shdr *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s->sh_name < c->names.sh_size && n <= c->names.sh_size - s->sh_name &&
	       memcmp(c->base + c->names.sh_offset + s->sh_name, prefix, n) == 0;
}

/* ---- attributes: the entries of .nv.info, .nv.info.<kernel> and .nv.compat --------------------
 *
 *      0        1        2                4
 *     ┌────────┬────────┬────────────────┬───────────────────┐
 *     │ format │ id     │ value or bytes │ payload, format 4 │ ...
 *     └────────┴────────┴────────────────┴───────────────────┘
 *     format 1: no value, 2: a byte, 3: 16 bits, 4: the payload's length, padded to 4 bytes */

typedef struct gpul_attribute {
	uint8_t format, id;
	uint16_t value; /* formats 2 and 3: the value; format 4: length of the payload */
	const unsigned char *payload;
} gpul_attribute;

typedef struct gpul_attributes {
	const unsigned char *at, *end;
} gpul_attributes;

/* Read the next attribute; false: no attribute is left, or the data is invalid (then at != end). */
bool gpul_attribute_next(gpul_attributes *a, gpul_attribute *out);

/* Return number i, of 32 or 16 bits, of the payload; 0 if the payload is shorter. */
uint32_t gpul_attribute_u32(const gpul_attribute *a, unsigned i);
uint16_t gpul_attribute_u16(const gpul_attribute *a, unsigned i);

/* ---- notes: .note.nv.tkinfo, one note for each tool that contributed to the cubin ----------- */

typedef struct gpul_cubin_build {      /* how ptxas compiled the code; borrowed from the image */
	const char *version, *options; /* such as "13.0.88" or "-arch sm_100f -m 64"; not NUL-terminated; NULL: not recorded */
	size_t version_bytes, options_bytes;
} gpul_cubin_build;

/* True if the section contains the notes of the tools. */
bool gpul_cubin_is_tool_note(const gpul_cubin *c, const Elf64_Shdr *s);
/* Read the first note of ptxas in this section; in linked code, this note describes the first object. {NULL ...}: there is no note. */
gpul_cubin_build gpul_cubin_build_of(const gpul_cubin *c, const Elf64_Shdr *s);
/* True if the architecture in the options of ptxas has this suffix: 'f' of "-arch sm_100f". */
bool gpul_cubin_build_is_for(const gpul_cubin_build *b, char suffix);

#endif
