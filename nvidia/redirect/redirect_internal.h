/* redirect_internal.h — shared by the files of this folder: a runtime inside an object, and the ways to find it.
 *
 *     object, loaded ── imports? ──> file, mapped ──┬─ has symbols ──────> their addresses           symbols.c
 *                                                   ├─ exports them ─────> NVIDIA's libcudart.so, opened by its path
 *                                                   └─ stripped ─────────> libcudart_static.a's      archive.c
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

struct mapped { const uint8_t *bytes; size_t n_bytes; };   /* a file; all zeros: none */

struct runtime_call {
	const char *name;    /* borrowed from the mapped file that has the symbols */
	uintptr_t address;   /* of the function; as symbols count it, without the address at which the object is loaded */
};

struct static_runtime {
	struct runtime_call calls[REDIRECT_MAX_CALLS];
	size_t n_calls;
	struct mapped names;   /* where the names are, if not in the object; unmap_file() */
};

/* ---- symbols.c: ELF files and loaded objects ------------------------------------------------- */

/* Map a file; false: it cannot be read.  unmap_file() accepts zeros. */
bool map_file(const char *path, struct mapped *out);
void unmap_file(struct mapped *file);

/* The sections of a 64-bit little-endian ELF file for x86-64 that begins at `at`; NULL: it is none, or it is cut.  Every section
 * that section_bytes() returns is inside the file, and as large as its header says. */
const Elf64_Shdr *elf_sections(struct mapped elf, size_t *n_sections);
const void *section_bytes(struct mapped elf, const Elf64_Shdr *section);

/* Add the functions of the runtime API that a symbol table of a file defines, in section `index` or, if that is 0, in any.
 * Adds nothing if there is no such table.  type: SHT_SYMTAB, or SHT_DYNSYM: only what it exports. */
void add_symbols(struct mapped elf, unsigned type, size_t index, uintptr_t offset, struct static_runtime *out);

/* Are the n_bytes at an address, as symbols count it, in an executable segment of a file? */
bool is_code(struct mapped elf, uintptr_t address, size_t n_bytes);

/* The segments of an ELF file; NULL: they are not in the file.  Call elf_sections() first. */
const Elf64_Phdr *elf_segments(struct mapped elf, size_t *n_segments);

/* Does a loaded object import a function? */
bool imports(const struct link_map *map, const char *name);

/* The address of a function that a loaded object exports; 0: none. */
uintptr_t find_export(const struct link_map *map, const char *name);

/* ---- archive.c: objects without symbols ------------------------------------------------------ */

/* Does a file contain a CUDA runtime?  Looks for the name of the files by which its processes find each other. */
bool has_runtime(struct mapped object);

/* Find the runtime in a file by the machine code of a libcudart_static.a of the same version, and its functions by the symbols of
 * that archive.  path: of the file, beside whose Python packages an archive may be.  False: no archive that was found is of that version. */
bool find_by_archive(struct mapped object, const char *path, struct static_runtime *out);

/* The folder of the user with archives for this purpose, each in the place to which pip installs it below a folder of its own; false: the
 * user has none. */
bool archive_folder(char path[PATH_MAX]);

/* The version of the toolkit that compiled the kernels in an object, as in "13.4.92"; "": it has no kernels. */
void toolkit_version(struct mapped object, char version[16]);

#endif
