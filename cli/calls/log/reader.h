/* reader.h — reads the records of all threads in the order of their times, and joins the beginning and the end of each call.
 *
 *     rings ── records, merged by time ──> calls of a thread, until the outermost has ended ──> sink */
#ifndef GPULOAD_CLI_CALLS_LOG_READER_H
#define GPULOAD_CLI_CALLS_LOG_READER_H

#include "calls/calls_log.h"
#include "cli/calls/log/kernel_names.h"
#include "cli/calls/log/sink.h"
#include "core/array.h"

struct reader_call {
	uint32_t row, sequence, depth;
	bool done, finished;
	uint64_t start, end;         /* times, in ticks of the clock that the records use */
	size_t in, n_in, out, n_out; /* positions and sizes, in the thread's `bytes`, of the contents of the ENTER and the EXIT record */
};

struct reader_thread {                        /* state of the thread that writes to a slot's ring */
	GPUL_ARRAY(struct reader_call) calls; /* calls in the order in which they began; the first is the outermost */
	uint8_t *bytes;
	size_t n_bytes, room;
	uint64_t at;    /* position of the next record */
	uint64_t ticks; /* time of the next record */
	bool damaged;   /* the program has overwritten the ring with invalid data */
};

/* fd is a pidfd; -1: the system does not support pidfds */
struct reader_process {
	int pid, fd;
};

struct reader {
	struct calls_header *log;
	struct sink *sink;
	int fd;                         /* descriptor of the shared memory */
	uint64_t first_ticks, first_ns; /* start of the log, in ticks and in ns */
	double ns_per_tick;
	struct kernel_names names;
	struct reader_thread *threads; /* one element for each slot */
	uint32_t *heap;                /* slots with unread records: the earliest first */
	size_t n_heap;
	uint64_t heads[CALLS_MAX_SLOTS];
	GPUL_ARRAY(struct reader_process) processes;
	uint64_t n_lost;
};

/** Create the shared memory.
 *
 * @wishes  an enum calls_wish for each row of calls_rows (filter.h)
 * @sink    borrowed; its calls are added by reader_drain()
 * @out     must not be on the stack, because it is large; released by reader_close()
 * Errors  GPUL_ESYS the memory cannot be created (native = errno); GPUL_ENOMEM */
gpul_status reader_open(const uint8_t *wishes, struct sink *sink, struct reader *out, gpul_error *err);

/* Read the records that have arrived.  Returns true if there were any. */
bool reader_drain(struct reader *r);

/* Returns true if a process that has made a call is running. */
bool reader_has_processes(struct reader *r);

/* Read the remaining records, and set sink->n_lost; programs that still run then continue without a log. */
void reader_close(struct reader *r);

#endif
