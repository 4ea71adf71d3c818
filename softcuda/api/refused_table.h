/* refused_table.h — who asks for a private table of NVIDIA's driver, for libcudart-redirect.so.1, which explains to the user why a CUDA runtime fails. */
#ifndef GPULOAD_SOFTCUDA_API_REFUSED_TABLE_H
#define GPULOAD_SOFTCUDA_API_REFUSED_TABLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Called by any thread whose call of cuGetExportTable was refused, with the address to which that call returns. */
typedef void gpuload_soft_refused_table(const void *caller);

/* NULL: nobody listens.  Written before the first instruction of the driver runs, and never again. */
extern gpuload_soft_refused_table *gpuloadSoftRefusedTable;

#ifdef __cplusplus
}
#endif

#endif
