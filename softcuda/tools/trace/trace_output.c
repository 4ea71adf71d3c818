/* trace_output.c — buffers the lines of a trace before they are written to the file. */
#include "softcuda/tools/trace/trace_internal.h"

#include <stdlib.h>

enum { BUFFER_BYTES = 1 << 17 };

char *gpul_trace_line(struct trace_output *o)
{
	return o->lines + o->n_bytes;
}

void gpul_trace_flush(struct trace_output *o)
{
	fwrite(o->lines, 1, o->n_bytes, o->to);
	o->n_bytes = 0;
}

void gpul_trace_written(struct trace_output *o, const char *end)
{
	o->n_bytes = (size_t)(end - o->lines);
	if (o->n_bytes > BUFFER_BYTES || o->to == stdout) /* stdout is flushed after each line, because the program may also print there */
		gpul_trace_flush(o);
}

gpul_status gpul_trace_open_lines(struct trace_output *o, gpul_error *err)
{
	o->lines = malloc(BUFFER_BYTES + TRACE_LINE_BYTES);
	return o->lines ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
}

void gpul_trace_close_lines(struct trace_output *o)
{
	gpul_trace_flush(o);
	free(o->lines);
	o->lines = NULL;
}
