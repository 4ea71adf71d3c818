/* event.h — a CUDA call that was read from the log, with the data to which its pointer arguments point. */
#ifndef GPULOAD_CLI_CALLS_LOG_EVENT_H
#define GPULOAD_CLI_CALLS_LOG_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls_table.h"

struct calls_event {
	const struct calls_row *row;
	int pid, tid;
	/* number of unfinished calls of the thread that contain this call; a driver call that the CUDA runtime makes has depth 1 */
	unsigned depth;
	bool finished;                  /* false: the process ended during the call, or left it by longjmp() or an exception */
	uint64_t start_ns, duration_ns; /* start_ns: time since the log began */
	uint64_t result;
	const uint64_t *words;      /* the arguments of the call, as 8-byte words */
	const uint8_t *in, *in_end; /* data that was captured at ENTER (in) and EXIT (out), as pieces (calls/calls_log.h) */
	const uint8_t *out, *out_end;
};

struct calls_piece {
	const uint8_t *bytes;
	size_t n_bytes;
	bool cut, absent;
};

/* Read the piece at *at, and move *at to the next piece.  At the end of the pieces, the result is marked as absent. */
struct calls_piece calls_next_piece(const uint8_t **at, const uint8_t *end);

/* True if the call returned an error.  CUDA_ERROR_NOT_READY, the result of a query of a busy stream or event, does not count as one. */
bool calls_failed(const struct calls_event *e);

/* Return the piece captured for a parameter; absent if there is none.  Out-parameters of a call that failed are absent. */
struct calls_piece calls_piece_of(const struct calls_event *e, size_t param);

/* Return the text of a call's error; absent if there is none. */
struct calls_piece calls_error_text(const struct calls_event *e);

/* Return the text that a call returned, as cudaGetErrorString() does; absent if it returned none. */
struct calls_piece calls_result_text(const struct calls_event *e);

#endif
