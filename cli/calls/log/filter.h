/* filter.h — parses the filter of gpuload calls, which selects the CUDA calls to record. */
#ifndef GPULOAD_CLI_CALLS_LOG_FILTER_H
#define GPULOAD_CLI_CALLS_LOG_FILTER_H

#include <stdint.h>

#include "core/error.h"

/** Read a filter: a list, separated by commas, of calls (cuMemAlloc, or cuMemAlloc_v2 for one interface), patterns (cuMem*) and classes
 * (memory, launch ..., driver, runtime).  `!` before an item removes its calls; if the first item has a `!`, the list starts from all
 * calls.
 *
 * @filter  the list; NULL or "all": all calls
 * @wishes  set to an enum calls_wish for each row of calls_rows; CALLS_HIDDEN: not selected, but recorded to learn kernel names
 * Errors  GPUL_EINVAL an item that matches no call; the message suggests a similar name */
gpul_status filter_read(const char *filter, uint8_t *wishes, gpul_error *err);

#endif
