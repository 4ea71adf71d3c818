/* sink.h — writes the calls as text, as JSON, as events for Perfetto, or as a summary.
 *
 *     reader ── calls_event ──> sink->add ──> sink->out ── sink_flush() ──> the file */
#ifndef GPULOAD_CLI_CALLS_LOG_SINK_H
#define GPULOAD_CLI_CALLS_LOG_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/calls/log/event.h"
#include "cli/calls/log/kernel_names.h"
#include "cli/lib/json/cli_json.h"

enum { SINK_NAMED = 1024 };

struct sink_total {
	uint64_t n, ns, n_errors;
};

struct sink {
	void (*add)(struct sink *s, const struct calls_event *e);
	void (*end)(struct sink *s);
	struct json json; /* json.out is also the buffer for output as text */
	const struct kernel_names *names;
	struct sink_total *totals; /* totals for each row of calls_rows; only for a summary */
	bool summary_is_json;
	int named_threads[SINK_NAMED]; /* for Perfetto: threads whose names have been written, indexed by the low bits of their ids */
	uint64_t n_calls, n_lost;      /* the reader sets n_lost before it calls end() */
	int fd;
	int write_error; /* errno of the first write that failed; 0: none */
};

/** Choose a sink by its format, and begin its output.
 *
 * @format   text, json or perfetto; NULL: text
 * @summary  count the calls instead of listing them
 * @fd       where the output goes; borrowed
 * @out      released by sink_close()
 * Errors  GPUL_EINVAL an unknown format, or a summary for Perfetto; GPUL_ENOMEM */
gpul_status sink_open(const char *format, bool summary, int fd, struct sink *out, gpul_error *err);

/* Write the content of the buffer.  After an error, discard the output, so that the traced program can go on. */
void sink_flush(struct sink *s);

/** End the output, and release the memory.
 *
 * @s  the sink
 * Errors  GPUL_ESYS the output could not be written (native = errno); GPUL_ENOMEM */
gpul_status sink_close(struct sink *s, gpul_error *err);

/* The functions of a sink, in text.c, json.c and summary.c. */
void sink_add_text(struct sink *s, const struct calls_event *e);
void sink_add_json(struct sink *s, const struct calls_event *e);
void sink_add_perfetto(struct sink *s, const struct calls_event *e);
void sink_end_perfetto(struct sink *s);
void sink_add_total(struct sink *s, const struct calls_event *e);
void sink_end_summary(struct sink *s);

#endif
