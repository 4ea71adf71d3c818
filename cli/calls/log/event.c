/* event.c — splits the bytes that were recorded for a call into pieces: arguments, texts and results. */
#include "cli/calls/log/event.h"

#include <string.h>

#include "calls/calls_log.h"

/* The value of CUDA_ERROR_NOT_READY and cudaErrorNotReady. */
enum { NOT_READY = 600 };

struct calls_piece calls_next_piece(const uint8_t **at, const uint8_t *end)
{
	struct calls_piece p = { .absent = true };
	uint64_t word;

	if (!*at || end - *at < (ptrdiff_t)sizeof word)
		return p;
	memcpy(&word, *at, sizeof word);
	*at += sizeof word;
	p = (struct calls_piece){ *at, (uint32_t)word, word & CALLS_CUT, word & CALLS_ABSENT };
	if (p.n_bytes > (size_t)(end - *at)) {
		*at = end;
		return (struct calls_piece){ .absent = true };
	}
	*at += (p.n_bytes + 7) / 8 * 8 < (size_t)(end - *at) ? (p.n_bytes + 7) / 8 * 8 : (size_t)(end - *at);
	return p;
}

static bool has_status(const struct calls_event *e)
{
	return e->finished && e->row->result && e->row->result->kind == CALLS_ENUM;
}

bool calls_failed(const struct calls_event *e)
{
	return has_status(e) && (uint32_t)e->result && (uint32_t)e->result != NOT_READY;
}

static bool is_in(enum calls_capture capture)
{
	return capture == CALLS_IN || capture == CALLS_TEXT_IN;
}

struct calls_piece calls_piece_of(const struct calls_event *e, size_t param)
{
	const enum calls_capture wanted = e->row->params[param].capture;
	const uint8_t *at = is_in(wanted) ? e->in : e->out, *end = is_in(wanted) ? e->in_end : e->out_end;
	struct calls_piece p = { .absent = true };

	if (wanted == CALLS_NOTHING || (!is_in(wanted) && (!e->finished || (has_status(e) && (uint32_t)e->result))))
		return p;
	for (size_t i = 0; i <= param; i++) {
		const enum calls_capture capture = e->row->params[i].capture;

		if (capture != CALLS_NOTHING && is_in(capture) == is_in(wanted))
			p = calls_next_piece(&at, end);
	}
	return p;
}

struct calls_piece calls_error_text(const struct calls_event *e)
{
	const uint8_t *at = e->out;

	if (!has_status(e) || !(uint32_t)e->result)
		return (struct calls_piece){ .absent = true };
	return calls_next_piece(&at, e->out_end);
}

struct calls_piece calls_result_text(const struct calls_event *e)
{
	const uint8_t *at = e->out;

	if (!e->finished || !e->row->result || e->row->result->kind != CALLS_TEXT)
		return (struct calls_piece){ .absent = true };
	return calls_next_piece(&at, e->out_end);
}
