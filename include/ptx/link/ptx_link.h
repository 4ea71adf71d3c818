/* ptx_link.h — links several relocatable PTX modules, as nvcc -dc writes them, into one loadable module.
 *
 *     a.ptx  .extern .func f;  .visible .entry k  ┐
 *     b.ptx  .visible .func f {...}  $str         ├──>  one text: f, k, $str, $str__3
 *     c.ptx  .weak .func g {...}     $str         ┘
 *
 * Modules refer to each other by name, so the linked text needs only one declaration or definition of each shared name;
 * a private name that two modules use is renamed in one of them.  DWARF sections (.section) are dropped, and with
 * them the chains of inlined calls that refer to .debug_str; .loc lines stay, with new file numbers. */
#ifndef GPULOAD_PTX_LINK_PTX_LINK_H
#define GPULOAD_PTX_LINK_PTX_LINK_H

#include <stddef.h>

#include "core/error.h"
#include "ptx/module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ptx_link_input {
	const gpul_ptx_module *module;
	const char *name; /* for messages: the file and, in an archive, the member */
} gpul_ptx_link_input;

/** Link modules into one PTX text.
 *
 * The result has the newest .version of the inputs, and the lowest .target that can run all of them.  Of several
 * definitions a strong one is kept, else the first .weak one; of several .common variables the largest.  An .extern
 * .shared array needs no definition, because the launch sets its size; nor do the functions that every driver
 * provides: vprintf, malloc, free, __assertfail, cudaGraphSetConditional, and those of the device runtime.  NVIDIA's device runtime
 * (libcudadevrt.a) is left out, because it calls functions that only NVIDIA's driver has.
 *
 * @inputs     array of n modules; borrowed
 * @n          at least 1
 * @out_text   PTX, NUL-terminated; owned by the caller: free(); untouched on failure
 * @out_bytes  size without the NUL; may be NULL
 * Errors  GPUL_EFORMAT, with the mangled symbol in single quotes and the names of the inputs: a symbol is defined twice; it is used
 *         but not defined; its declarations differ in kind, size or parameters; no device can run all targets; GPUL_ENOMEM
 * Threads any thread may call; the modules are only read
 * Source  PTX ISA 9.0, Linking Directives; Module Directives, .target */
gpul_status gpul_ptx_link(const gpul_ptx_link_input *inputs, size_t n, char **out_text, size_t *out_bytes, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
