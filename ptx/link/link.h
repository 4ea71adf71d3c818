/* link.h — several relocatable PTX modules, as nvcc -dc writes them, to one that loads.
 *
 *     a.ptx  .extern .func f;  .visible .entry k  ┐
 *     b.ptx  .visible .func f {...}  $str         ├──>  one text: f, k, $str, $str__3
 *     c.ptx  .weak .func g {...}     $str         ┘
 *
 * What a linker does to machine code, done to text: names are what joins modules, so a declaration
 * finds its definition by saying nothing more, and a private name that two modules use is renamed in
 * one of them.  DWARF (.section) is dropped, as is the chain of inlined calls that leans on it; .loc
 * lines stay, their files numbered anew. */
#ifndef GPULOAD_PTX_LINK_LINK_H
#define GPULOAD_PTX_LINK_LINK_H

#include <stddef.h>

#include "core/error.h"
#include "ptx/module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ptx_link_input {
	const gpul_ptx_module *module;
	const char *name;   /* for messages: file, member */
} gpul_ptx_link_input;

/** Link.
 *
 * The result needs the newest .version of the inputs, and the lowest .target that all of them run
 * on.  Of several .weak definitions the first is kept, unless one is not weak; of .common variables
 * the largest.  .extern .shared arrays without a definition stay: their size comes with the launch.
 * So do the functions that each driver provides: vprintf, malloc, free, __assertfail.
 *
 * @inputs     n of them; borrowed
 * @n          at least 1
 * @out_text   PTX, NUL-terminated; owned by the caller: free(); untouched on failure
 * @out_bytes  size without the NUL; may be NULL
 * Errors  GPUL_EFORMAT, with the symbol as it is in the PTX (mangled) in single quotes, and the
 *         inputs: a symbol defined twice, or nowhere though referred to (by which function); two
 *         that differ in what they are, their size, or their parameters; targets that no one
 *         device satisfies; GPUL_ENOMEM
 * Threads any thread may call; the modules are only read
 * Source  PTX ISA 9.0, Linking Directives; Module Directives, .target */
gpul_status gpul_ptx_link(const gpul_ptx_link_input *inputs, size_t n, char **out_text,
			  size_t *out_bytes, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
