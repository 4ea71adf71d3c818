/* wrapper_internal.h — the functions that generated wrappers call (log.c, replace.c, capture.c).  An example of a wrapper:
 *
 *     CUresult log_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
 *         words = { dptr, bytesize }
 *         sequence = calls_enter(row, words, 2)      record: ENTER
 *         result = gpuload_calls_real[row](...)      the driver
 *         calls_exit(row, sequence, words, result)   record: EXIT */
#ifndef GPULOAD_NVIDIA_CALLS_WRAPPER_INTERNAL_H
#define GPULOAD_NVIDIA_CALLS_WRAPPER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls_table.h"

/* The functions that the wrappers call, indexed like calls_rows; the auditor (audit.c) sets them. */
extern void *gpuload_calls_real[];

/* Record the beginning of a call.  Returns its sequence number; 0: the call is not recorded, and calls_exit() must not be called. */
unsigned calls_enter(unsigned row, const uint64_t *words, unsigned n_words);
void calls_exit(unsigned row, unsigned sequence, const uint64_t *words, uint64_t result);

/* Replace the address of a driver function by that of its wrapper, if there is one.
 *
 * symbol        name of the driver function, without the suffix of an interface such as _v2
 * function      the address, which may be NULL; replaced in place
 * cuda_version  version of the interface that the program requested; 0: unknown
 * flags         CUdriverProcAddress_flags */
void calls_replace(const char *symbol, void **function, int cuda_version, uint64_t flags);

/* Append the data that the parameters point to; returns the end.  There must be room for CALLS_MAX_RECORD bytes. */
uint8_t *calls_capture_in(const struct calls_row *row, const uint64_t *words, uint8_t *at);
uint8_t *calls_capture_out(const struct calls_row *row, const uint64_t *words, uint8_t *at);
uint8_t *calls_capture_text(const char *text, uint8_t *at);
/* Append the text of an error, such as the one that cuGetErrorString() returns. */
uint8_t *calls_capture_error(const struct calls_row *row, uint64_t result, uint8_t *at);

#endif
