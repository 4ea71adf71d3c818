/* shown_name_internal.h — kernel names in messages: demangled, because users write C++ names and not mangled ones. */
#ifndef GPULOAD_SOFTCUDA_EXEC_SHOWN_NAME_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_SHOWN_NAME_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* Write the C++ name of a kernel or function to buf: "scale(float*, int)", or "scale(...)" if that is too long.  bytes >= 4. */
const char *gpul_shown_name(const char *name, char *buf, size_t bytes);
/* Like gpul_shown_name(), in a buffer that lives until the end of the enclosing block. */
enum { SHOWN_NAME_BYTES = 160 };
#define SHOWN_NAME(name) gpul_shown_name((name), (char[SHOWN_NAME_BYTES]){ 0 }, SHOWN_NAME_BYTES)
/* Returns true if `wanted` refers to the symbol `name`: it is the symbol, its C++ name, or a part of the C++ name: "ns::scale",
 * "scale<float>", "scale" for "void ns::scale<float>(float*)", and "buf" for the variable "work(int*)::buf". */
bool gpul_shown_name_is(const char *name, const char *wanted);

#endif
