/* sink.c — chooses the format of the output, and writes to a file or descriptor. */
#include "cli/calls/log/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT, JSON, PERFETTO, N_FORMATS };

static const char *const formats[] = { "text", "json", "perfetto" };

gpul_status sink_open(const char *format, bool summary, int fd, struct sink *out, gpul_error *err)
{
	size_t which = TEXT;

	while (format && which < N_FORMATS && strcmp(format, formats[which]))
		which++;
	if (which == N_FORMATS)
		return gpul_fail(err, GPUL_EINVAL, 0, "unknown format '%s'; it must be text, json or perfetto", format);
	if (summary && which == PERFETTO)
		return gpul_fail(err, GPUL_EINVAL, 0, "--summary cannot be combined with the format perfetto: use --format text or json");
	*out = (struct sink){ .fd = fd, .add = which == TEXT ? sink_add_text : which == JSON ? sink_add_json : sink_add_perfetto };
	if (which == PERFETTO) {
		out->end = sink_end_perfetto;
		json_begin(&out->json, NULL, '{');
		json_begin(&out->json, "traceEvents", '[');
	}
	if (summary) {
		out->add = sink_add_total;
		out->end = sink_end_summary;
		out->summary_is_json = which == JSON;
		out->totals = calloc(n_calls_rows, sizeof *out->totals);
		if (!out->totals)
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the summary");
	}
	return GPUL_OK;
}

void sink_flush(struct sink *s)
{
	struct out *o = &s->json.out;

	for (size_t at = 0; at < o->n && !s->write_error && !o->failed;) {
		ssize_t n = write(s->fd, o->at + at, o->n - at);

		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR)
			s->write_error = errno;
	}
	if (!o->failed)
		o->n = 0;
}

gpul_status sink_close(struct sink *s, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	if (s->end)
		s->end(s);
	sink_flush(s);
	if (s->json.out.failed)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the log");
	else if (s->write_error)
		st = gpul_fail(err, GPUL_ESYS, s->write_error, "cannot write the log: %s", strerror(s->write_error));
	out_free(&s->json.out);
	free(s->totals);
	return st;
}
