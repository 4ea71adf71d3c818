/* names.h — matches a kernel's demangled name with a name that a user typed. */
#ifndef GPULOAD_LOADER_NAMES_NAMES_H
#define GPULOAD_LOADER_NAMES_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Return the offset of the parameter list in a demangled name: 17 for "void f<(int)3, 4>(int*)"; without a list, the name's length. */
size_t gpul_name_before_params(const char *demangled);

/** True if a user may call the kernel by `wanted`: the demangled name with or without its parameters, without template arguments,
 * or without the return type (void) that the name of a template instance has. */
bool gpul_name_matches(const char *demangled, const char *wanted);

#ifdef __cplusplus
}
#endif

#endif
