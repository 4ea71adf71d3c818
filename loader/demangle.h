/* demangle.h — C++ names as people write them. */
#ifndef GPULOAD_LOADER_DEMANGLE_H
#define GPULOAD_LOADER_DEMANGLE_H

#ifdef __cplusplus
extern "C" {
#endif

/** "_Z6vecaddPKdS0_Pdi" to "vecadd(double const*, double const*, double*, int)"; owned: free().
 * NULL: the name is not mangled, or this machine has no C++ runtime to demangle it.  Any
 * thread. */
char *gpul_demangle(const char *name);

#ifdef __cplusplus
}
#endif

#endif
