/* shown_name_internal.h — names of kernels in messages: as in C++, because nobody has written the mangled ones. */
#ifndef GPULOAD_SOFTCUDA_EXEC_SHOWN_NAME_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_SHOWN_NAME_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* The name of a kernel or function as in C++: "scale(float*, int)"; if it is too long for the buffer, "scale(...)".  Returns buf; bytes: 4
 * at least. */
const char *gpul_shown_name(const char *name, char *buf, size_t bytes);
/* The same in a buffer of the block in which it is written. */
enum { SHOWN_NAME_BYTES = 160 };
#define SHOWN_NAME(name) gpul_shown_name((name), (char[SHOWN_NAME_BYTES]){ 0 }, SHOWN_NAME_BYTES)
/* True: a user may call it so: the name itself, as in C++, or a part of that: "ns::scale", "scale<float>", "scale" for
 * "void ns::scale<float>(float*)", and "buf" for the variable "work(int*)::buf". */
bool gpul_shown_name_is(const char *name, const char *wanted);

#endif
