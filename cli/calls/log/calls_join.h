/* calls_join.h — joins the two records (ENTER and EXIT) that a program writes for each CUDA call. */
#ifndef GPULOAD_CLI_CALLS_LOG_CALLS_JOIN_H
#define GPULOAD_CLI_CALLS_LOG_CALLS_JOIN_H

#include "cli/calls/log/reader.h"

/* Process the next record of the thread that owns a slot of the log.  When the thread's outermost call has ended, this call and all
 * calls that were made inside it are passed to the sink (sink.h), in the order in which they began. */
void calls_join_record(struct reader *r, uint32_t slot, const struct calls_record *record);

/* The thread of a slot has ended: pass its calls to the sink, and mark those that have not returned as unfinished. */
void calls_join_end(struct reader *r, uint32_t slot);

#endif
