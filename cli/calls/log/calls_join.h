/* calls_join.h — joins the two records of each call of a thread. */
#ifndef GPULOAD_CLI_CALLS_LOG_CALLS_JOIN_H
#define GPULOAD_CLI_CALLS_LOG_CALLS_JOIN_H

#include "cli/calls/log/reader.h"

/* Process a record of the thread that owns a slot.  When the outermost call has ended, it and all calls inside of it go to the
 * sink, in the order in which they began. */
void calls_join_record(struct reader *r, uint32_t slot, const struct calls_record *record);

/* The thread of a slot has ended: pass its calls to the sink, and mark those that have not returned as unfinished. */
void calls_join_end(struct reader *r, uint32_t slot);

#endif
