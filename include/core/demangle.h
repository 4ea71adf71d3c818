/* demangle.h — converts mangled C++ names to the form in the source. */
#ifndef GPULOAD_CORE_DEMANGLE_H
#define GPULOAD_CORE_DEMANGLE_H

#ifdef __cplusplus
extern "C" {
#endif

/** Demangle "_Z6vecaddPKdS0_Pdi" to "vecadd(double const*, double const*, double*, int)"; owned: free().  A prefix
 * "__nv_static_..." is removed first: nvlink adds it to the names of static kernels.  NULL: the name is not mangled, this
 * machine has no C++ runtime to demangle it, or the result would be too long (mangled.c).  Any thread. */
char *gpul_demangle(const char *name);

#ifdef __cplusplus
}
#endif

#endif
