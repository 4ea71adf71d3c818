/* cu_refused_table.h — tells libcudart-redirect.so.1 which code called cuGetExportTable for a private table of NVIDIA's driver, so
 * that it can explain to the user why a CUDA runtime fails. */
#ifndef GPULOAD_SOFTCUDA_API_CU_REFUSED_TABLE_H
#define GPULOAD_SOFTCUDA_API_CU_REFUSED_TABLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Called on any thread whose call of cuGetExportTable was refused, with that call's return address. */
typedef void gpuload_soft_refused_table(const void *caller);

/* The callback; NULL: none.  It is set before the driver is first called, and never changes. */
extern gpuload_soft_refused_table *gpuloadSoftRefusedTable;

#ifdef __cplusplus
}
#endif

#endif
