/* host_symbols_internal.h — the symbols of a host program or library: who a stub is, and who can see
 * it; of a cubin: its variables. */
#ifndef GPULOAD_LOADER_NAMES_HOST_SYMBOLS_INTERNAL_H
#define GPULOAD_LOADER_NAMES_HOST_SYMBOLS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpul_host_table { /* of symbols, and the names they use */
	const void *symbols, *names;
	size_t symbols_bytes, names_bytes;
} gpul_host_table;

typedef struct gpul_host_object {
	const void *bytes;            /* borrowed */
	size_t n_bytes;
	gpul_host_table all, dynamic; /* .symtab, .dynsym; all empty: there is none */
	size_t n_symbols;             /* of .symtab */
	bool has_device_code;         /* a section that the CUDA runtime is told of */
	bool relocatable_only;        /* and all of it waits for a device link */
	bool device_linked;           /* nvcc -dlink made a fatbin for it */
	bool linked;                  /* a program or a library, no object */
	bool shared;                  /* ET_DYN without an interpreter: a library */
} gpul_host_object;

/* Read the tables of a 64-bit little-endian ELF file, a cubin too; false: it is not such a file.  Everything in out
 * points into bytes. */
bool gpul_host_read(const void *bytes, size_t n_bytes, gpul_host_object *out);

/* The function that an address belongs to, as the file has addresses; NULL: not told. */
const char *gpul_host_function_at(const gpul_host_object *o, uint64_t address);

/* The i-th symbol of .symtab, if that is a variable of at least min_bytes; NULL: it is not.  i below
 * o->n_symbols. */
const char *gpul_host_variable(const gpul_host_object *o, size_t i, size_t min_bytes);

/* How many symbols the next two look through. */
size_t gpul_host_n_dynamic(const gpul_host_object *o);

/* Can other files use this symbol?  Does this file use another's? */
bool gpul_host_exports(const gpul_host_object *o, const char *name);
bool gpul_host_imports(const gpul_host_object *o, const char *name);

#endif
