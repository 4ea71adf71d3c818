/* redirect_internal.h — the CUDA runtime inside an object, and the ways to find it.
 *
 *     object, loaded ── imports? ──> file, mapped ──┬─ has symbols ──────> their addresses           symbols.c
 *                                                   ├─ exports them ─────> NVIDIA's libcudart.so, opened by its path
 *                                                   └─ stripped ─────────> libcudart_static.a's      redirect_archive.c
 *     each address <── a jump to the function of that name in our libcudart.so                       redirect.c */
#ifndef GPULOAD_NVIDIA_REDIRECT_INTERNAL_H
#define GPULOAD_NVIDIA_REDIRECT_INTERNAL_H

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REDIRECT_MAX_CALLS = 1024 };

/* A mapped file.  All members are 0 if no file is mapped. */
struct mapped {
	const uint8_t *bytes;
	size_t n_bytes;
};

struct runtime_call {
	const char *name;  /* borrowed from the mapped file that contains the symbols */
	uintptr_t address; /* address of the function in the symbol table, relative to the load address */
};

struct static_runtime {
	struct runtime_call calls[REDIRECT_MAX_CALLS];
	size_t n_calls;
	struct mapped names; /* file that contains the names, if it is not the object; release it with unmap_file() */
};

/* ---- symbols.c: ELF files -------------------------------------------------------------------- */

/* Map a file; false: it cannot be read.  unmap_file() accepts a struct of zeros. */
bool map_file(const char *path, struct mapped *out);
void unmap_file(struct mapped *file);

/* Return the sections of a 64-bit little-endian ELF file for x86-64 that starts at `at`; NULL: not such a file, or truncated.
 * Every section that section_bytes() returns is inside the file and as large as its header says. */
const Elf64_Shdr *elf_sections(struct mapped elf, size_t *n_sections);
const void *section_bytes(struct mapped elf, const Elf64_Shdr *section);

/* Add the functions of the runtime API that a symbol table of a file defines in section `index` (0: in any section).  Adds
 * nothing if the table is missing.  type: SHT_SYMTAB; or SHT_DYNSYM: only exported functions. */
void add_symbols(struct mapped elf, unsigned type, size_t index, uintptr_t offset, struct static_runtime *out);

/* True if the n_bytes at an address (relative to the load address) are in an executable segment of a file. */
bool is_code(struct mapped elf, uintptr_t address, size_t n_bytes);

/* Return the segments of an ELF file; NULL: the table is not inside the file.  Call elf_sections() first. */
const Elf64_Phdr *elf_segments(struct mapped elf, size_t *n_segments);

/* ---- redirect_archive.c: objects without symbols ------------------------------------------------------ */

/* True if a file contains a CUDA runtime: it then contains the name of the files by which processes with a runtime find each other. */
bool has_runtime(struct mapped object);

/* Find the runtime in a file by comparison with a libcudart_static.a of the same version, and its functions by the archive's
 * symbols.  path: the path of the file; a Python package beside it may contain an archive.  Returns false if no archive of that
 * version was found. */
bool find_by_archive(struct mapped object, const char *path, struct static_runtime *out);

/* Get the user's folder for copies of libcudart_static.a: one sub-folder for each version, as pip installs it; false: no such folder. */
bool archive_folder(char path[PATH_MAX]);

/* Get the version of the toolkit that compiled the kernels in an object, such as "13.4.92"; "": no kernels. */
void toolkit_version(struct mapped object, char version[16]);

#endif
