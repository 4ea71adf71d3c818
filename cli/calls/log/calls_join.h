/* calls_join.h — joins the two records of each call of a thread. */
#ifndef GPULOAD_CLI_CALLS_LOG_CALLS_JOIN_H
#define GPULOAD_CLI_CALLS_LOG_CALLS_JOIN_H

#include "cli/calls/log/reader.h"

/* Take a record of the thread in a slot.  When the outermost call has ended, it and all calls inside of it go to the sink, in the
 * order of their beginnings. */
void calls_join_record(struct reader *r, uint32_t slot, const struct calls_record *record);

/* The thread has ended: its calls go to the sink, and those that have not returned are unfinished. */
void calls_join_end(struct reader *r, uint32_t slot);

#endif
