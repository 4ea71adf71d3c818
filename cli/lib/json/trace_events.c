/* trace_events.c — writes events of the Trace Event Format. */
#include "cli/lib/json/trace_events.h"

void trace_begin_event(struct json *j, const char *phase, unsigned process, unsigned track, const char *name)
{
	json_begin(j, NULL, '{');
	json_text(j, "ph", phase);
	json_u64(j, "pid", process);
	json_u64(j, "tid", track);
	json_text(j, "name", name);
}

void trace_add_time(struct json *j, int64_t ns)
{
	json_double(j, "ts", (double)ns / 1000);
}

void trace_begin_slice(struct json *j, unsigned process, unsigned track, const char *name, int64_t from, int64_t to)
{
	trace_begin_event(j, "X", process, track, name);
	trace_add_time(j, from);
	json_double(j, "dur", (double)(to > from ? to - from : 0) / 1000);
}

void trace_add_slice(struct json *j, unsigned process, unsigned track, const char *name, int64_t from, int64_t to)
{
	trace_begin_slice(j, process, track, name, from, to);
	json_end(j, '}');
}

void trace_add_endpoint(struct json *j, const char *phase, unsigned process, unsigned track, const char *name, uint64_t id, int64_t ns)
{
	trace_begin_event(j, phase, process, track, name);
	json_text(j, "cat", name);
	json_u64(j, "id", id);
	trace_add_time(j, ns);
	if (phase[0] == 'f')
		json_text(j, "bp", "e"); /* bind the arrow to the enclosing slice, not to the next one */
	json_end(j, '}');
}

void trace_name_process(struct json *j, unsigned process, const char *name)
{
	trace_begin_event(j, "M", process, 0, "process_name");
	json_begin(j, "args", '{');
	json_text(j, "name", name);
	json_end(j, '}');
	json_end(j, '}');
	trace_begin_event(j, "M", process, 0, "process_sort_index");
	json_begin(j, "args", '{');
	json_u64(j, "sort_index", process);
	json_end(j, '}');
	json_end(j, '}');
}

void trace_name_track(struct json *j, unsigned process, unsigned track, const char *name)
{
	trace_begin_event(j, "M", process, track, "thread_name");
	json_begin(j, "args", '{');
	json_text(j, "name", name);
	json_end(j, '}');
	json_end(j, '}');
}
