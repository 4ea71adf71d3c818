/* cu_refused_table.h — lets libcudart-redirect.so.1 explain why a CUDA runtime fails: the driver reports which code called
 * cuGetExportTable for a private table of NVIDIA's driver. */
#ifndef GPULOAD_SOFTCUDA_API_CU_REFUSED_TABLE_H
#define GPULOAD_SOFTCUDA_API_CU_REFUSED_TABLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Called when a call of cuGetExportTable is refused, on the same thread.  caller: the return address of the refused call. */
typedef void gpuload_soft_refused_table(const void *caller);

/* The callback; NULL: none.  It is set before the driver is first called, and never changes. */
extern gpuload_soft_refused_table *gpuloadSoftRefusedTable;

#ifdef __cplusplus
}
#endif

#endif
