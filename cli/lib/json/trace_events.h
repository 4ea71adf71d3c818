/* trace_events.h — writes events that trace viewers draw: the Trace Event Format of the Chromium project.
 *
 *     process ─ track ─ slice [from, to)                "X"
 *                       arrow from slice to slice       "s" ... "f", paired by category and id
 *                       asynchronous event              "b" ... "e", paired by category and id
 *
 * Times are in ns from any origin; the file has microseconds.  A viewer draws only arrows that lead forwards in time. */
#ifndef GPULOAD_CLI_LIB_JSON_TRACE_EVENTS_H
#define GPULOAD_CLI_LIB_JSON_TRACE_EVENTS_H

#include "cli/lib/json/cli_json.h"

/* Start an event; the caller adds members, and ends the object. */
void trace_begin_event(struct json *j, const char *phase, unsigned process, unsigned track, const char *name);
void trace_add_time(struct json *j, int64_t ns);

/* Write a slice; after trace_begin_slice(), the caller adds args, and ends the object. */
void trace_begin_slice(struct json *j, unsigned process, unsigned track, const char *name, int64_t from, int64_t to);
void trace_add_slice(struct json *j, unsigned process, unsigned track, const char *name, int64_t from, int64_t to);

/* Write one end of an arrow ("s", "f") or of an asynchronous event ("b", "e"); the name is used as the category, too. */
void trace_add_endpoint(struct json *j, const char *phase, unsigned process, unsigned track, const char *name, uint64_t id, int64_t ns);

/* Give a process a name; viewers sort processes by number. */
void trace_name_process(struct json *j, unsigned process, const char *name);
void trace_name_track(struct json *j, unsigned process, unsigned track, const char *name);

#endif
