/* host_symbols_internal.h — the symbol tables of a host program or library (its stubs, their visibility),
 * or of a cubin (its variables). */
#ifndef GPULOAD_LOADER_NAMES_HOST_SYMBOLS_INTERNAL_H
#define GPULOAD_LOADER_NAMES_HOST_SYMBOLS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpul_host_table { /* symbols, and their string table */
	const void *symbols, *names;
	size_t symbols_bytes, names_bytes;
} gpul_host_table;

typedef struct gpul_host_object {
	const void *bytes;            /* borrowed */
	size_t n_bytes;
	gpul_host_table all, dynamic; /* .symtab, .dynsym; all zeros: missing */
	size_t n_symbols;             /* of .symtab */
	bool has_device_code;         /* it has a section of device code */
	bool relocatable_only;        /* all device code still needs a device link */
	bool device_linked;           /* it has a fatbin from nvcc -dlink */
	bool linked;                  /* a program or a library, not an object */
	bool shared;                  /* ET_DYN without an interpreter: a library */
} gpul_host_object;

/* Read the tables of a 64-bit little-endian ELF file, a cubin too; false: it is another file.  Everything in out
 * points into bytes. */
bool gpul_host_read(const void *bytes, size_t n_bytes, gpul_host_object *out);

/* The function that contains an address of the file; NULL: unknown. */
const char *gpul_host_function_at(const gpul_host_object *o, uint64_t address);

/* The i-th symbol of .symtab if it is a variable of at least min_bytes; else NULL.  i < o->n_symbols. */
const char *gpul_host_variable(const gpul_host_object *o, size_t i, size_t min_bytes);

/* The number of symbols of .dynsym. */
size_t gpul_host_n_dynamic(const gpul_host_object *o);

/* True if other files can use this symbol; true if this file uses a symbol of another file. */
bool gpul_host_exports(const gpul_host_object *o, const char *name);
bool gpul_host_imports(const gpul_host_object *o, const char *name);

#endif
