/* names.h — a kernel's C++ name, and what people call it. */
#ifndef GPULOAD_LOADER_NAMES_NAMES_H
#define GPULOAD_LOADER_NAMES_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where the parameter list of a demangled name begins: 17 of "void f<(int)3, 4>(int*)", its
 * length of "f". */
size_t gpul_name_before_params(const char *demangled);

/** Does a demangled name mean what was asked for?
 *
 * With its parameters or without; a template's instance with its arguments or without; with the
 * return type that a template's name begins with, void, or without. */
bool gpul_name_means(const char *demangled, const char *asked);

#ifdef __cplusplus
}
#endif

#endif
