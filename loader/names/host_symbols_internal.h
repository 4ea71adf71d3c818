/* host_symbols_internal.h — reads the symbol tables of a host program or library (its stubs and their
 * visibility), or of a cubin (its variables). */
#ifndef GPULOAD_LOADER_NAMES_HOST_SYMBOLS_INTERNAL_H
#define GPULOAD_LOADER_NAMES_HOST_SYMBOLS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpul_host_table { /* a symbol table and its string table */
	const void *symbols, *names;
	size_t symbols_bytes, names_bytes;
} gpul_host_table;

typedef struct gpul_host_object {
	const void *bytes; /* borrowed */
	size_t n_bytes;
	gpul_host_table all, dynamic; /* .symtab and .dynsym; all zeros if the file does not have it */
	size_t n_symbols;             /* number of symbols in .symtab */
	bool has_device_code;         /* the file has a section of device code */
	bool has_hip_code;            /* the file has a section of code for AMD GPUs */
	bool relocatable_only;        /* the file has device code, but none of it is linked */
	bool device_linked;           /* the file has a fatbin from nvcc -dlink */
	bool linked;                  /* the file is a program or a library, not an object */
	bool shared;                  /* the file is a library: ET_DYN without an interpreter */
} gpul_host_object;

/* Read the symbol tables of a 64-bit little-endian ELF file, which may be a cubin; false: it is another kind of file.  All
 * pointers in *out point into bytes. */
bool gpul_host_read(const void *bytes, size_t n_bytes, gpul_host_object *out);

/* Return the name of the function that contains an address of the file; NULL: unknown. */
const char *gpul_host_function_at(const gpul_host_object *o, uint64_t address);

/* Return the name of the i-th symbol of .symtab if it is a variable of at least min_bytes; else NULL.  i < o->n_symbols. */
const char *gpul_host_variable(const gpul_host_object *o, size_t i, size_t min_bytes);

/* Return the number of symbols of .dynsym. */
size_t gpul_host_n_dynamic(const gpul_host_object *o);

/* Exports: other files can use the symbol `name` of this file.  Imports: this file uses the symbol `name` of another file. */
bool gpul_host_exports(const gpul_host_object *o, const char *name);
bool gpul_host_imports(const gpul_host_object *o, const char *name);

#endif
