/* event.h — a call that was read from the log, and what its pointers pointed to. */
#ifndef GPULOAD_CLI_CALLS_LOG_EVENT_H
#define GPULOAD_CLI_CALLS_LOG_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls_table.h"

struct calls_event {
	const struct calls_row *row;
	int pid, tid;
	/* number of calls of the thread around this one; a driver call that the runtime makes
	 * has depth 1 */
	unsigned depth;
	bool finished;                  /* false: the process ended during the call, or left it by longjmp() or an exception */
	uint64_t start_ns, duration_ns; /* start_ns: time since the log began */
	uint64_t result;
	const uint64_t *words;      /* the arguments */
	const uint8_t *in, *in_end; /* the captured pieces (calls/calls_log.h) */
	const uint8_t *out, *out_end;
};

struct calls_piece {
	const uint8_t *bytes;
	size_t n_bytes;
	bool cut, absent;
};

/* Read the piece at *at, and move *at past it.  At the end, the piece is absent. */
struct calls_piece calls_next_piece(const uint8_t **at, const uint8_t *end);

/* True if the call returned an error.  The answer that a stream or event is not ready does not
 * count as one. */
bool calls_failed(const struct calls_event *e);

/* Return the piece of a parameter; absent if nothing was captured.  Out-parameters of a call that failed are absent. */
struct calls_piece calls_piece_of(const struct calls_event *e, size_t param);

/* Return the text of a call's error; absent: there is none. */
struct calls_piece calls_error_text(const struct calls_event *e);

/* Return the text that a call returned, as cudaGetErrorString() does; absent: it returned none. */
struct calls_piece calls_result_text(const struct calls_event *e);

#endif
