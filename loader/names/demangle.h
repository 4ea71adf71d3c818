/* demangle.h — C++ names as people write them. */
#ifndef GPULOAD_LOADER_NAMES_DEMANGLE_H
#define GPULOAD_LOADER_NAMES_DEMANGLE_H

#ifdef __cplusplus
extern "C" {
#endif

/** "_Z6vecaddPKdS0_Pdi" to "vecadd(double const*, double const*, double*, int)"; owned: free().
 * NULL: the name is not mangled, this machine has no C++ runtime to demangle it, or it would
 * be longer than any that people wrote: mangled.c.  Any thread. */
char *gpul_demangle(const char *name);

#ifdef __cplusplus
}
#endif

#endif
