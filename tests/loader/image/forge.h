/* forge.h — build cubins of both ABI versions byte by byte, valid or damaged, without a compiler. */
#ifndef GPULOAD_TESTS_LOADER_IMAGE_FORGE_H
#define GPULOAD_TESTS_LOADER_IMAGE_FORGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORGE_SECTIONS = 64, FORGE_SYMBOLS = 32, FORGE_ROOM = 1 << 16 };

typedef struct forge {
	Elf64_Ehdr header;
	Elf64_Shdr sections[FORGE_SECTIONS]; /* [0] unused, [1] .shstrtab, [2] .strtab, [3] .symtab */
	const void *content[FORGE_SECTIONS]; /* NULL: zeroes */
	unsigned n_sections;
	Elf64_Sym symbols[FORGE_SYMBOLS];
	unsigned n_symbols;
	char section_names[4096], names[4096];
	size_t section_names_bytes, names_bytes;
	unsigned char attributes[8192]; /* attributes of all sections, consecutive */
	size_t attributes_bytes;
	unsigned char bytes[FORGE_ROOM]; /* the file, written by forge_finish() */
	size_t n_bytes;
} forge;

/* Start an empty cubin: in the format of CUDA 11 and 12 or of CUDA 13, executable or ET_REL. */
void forge_start(forge *f, bool older, unsigned sm, bool relocatable);
/* Add a section; returns its index. */
unsigned forge_section(forge *f, const char *name, uint32_t type, uint32_t info, size_t n_bytes);
unsigned forge_symbol(forge *f, const char *name, unsigned char info, unsigned char other, unsigned section);
/* Add a kernel with a .text section; returns the section's index.  *symbol is set to the index of its symbol. */
unsigned forge_kernel(forge *f, const char *name, unsigned *symbol);
/* Add an attribute to section i, which must be the last one added: forge_numbers() uses format 4, forge_value() another format. */
void forge_numbers(forge *f, unsigned i, unsigned id, unsigned n, const uint32_t *numbers);
void forge_value(forge *f, unsigned i, unsigned format, unsigned id, unsigned value);
/* Write the file to f->bytes, f->n_bytes: names, symbols, contents, section headers. */
void forge_finish(forge *f);
/* Return the header of section i in f->bytes, for tests that damage it. */
Elf64_Shdr *forge_header_of(forge *f, unsigned i);

#endif
