/* calls_join.c — keeps a list of calls for each thread, from the outermost call to the call that began last.
 *
 *     ENTER cudaMalloc, ENTER cuMemAlloc, EXIT cuMemAlloc, EXIT cudaMalloc ──> cudaMalloc, cuMemAlloc (depth 1)
 *
 * A call that longjmp() or an exception leaves has no EXIT; it counts as unfinished when a call around it ends. */
#include "cli/calls/log/calls_join.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 4096, MAX_BYTES = 4 << 20 };

static uint64_t time_of(const struct reader *r, uint64_t ticks)
{
	return ticks > r->first_ticks ? (uint64_t)((double)(ticks - r->first_ticks) * r->ns_per_tick) : 0;
}

static struct calls_event event_of(const struct reader *r, uint32_t slot, const struct reader_call *call)
{
	const struct reader_thread *t = &r->threads[slot];
	const struct calls_slot *s = &r->log->slots[slot];
	const struct calls_row *row = &calls_rows[call->row];
	struct calls_event e = { .row = row, .pid = s->pid, .tid = s->tid, .depth = call->depth, .finished = call->finished };

	e.start_ns = time_of(r, call->start);
	e.duration_ns = time_of(r, call->end) - e.start_ns;
	e.words = (const uint64_t *)(t->bytes + call->in);
	e.in = t->bytes + call->in + sizeof(uint64_t) * row->n_words;
	e.in_end = t->bytes + call->in + call->n_in;
	if (call->finished) {
		memcpy(&e.result, t->bytes + call->out, sizeof e.result);
		e.out = t->bytes + call->out + sizeof e.result;
		e.out_end = t->bytes + call->out + call->n_out;
	}
	return e;
}

static void add_to_sink(struct reader *r, uint32_t slot, const struct reader_call *call)
{
	if (r->log->wishes[call->row] == CALLS_WANTED) {
		const struct calls_event e = event_of(r, slot, call);

		r->sink->add(r->sink, &e);
	}
}

/* Copy the content of a record, because the writer will overwrite it.  Returns its position in t->bytes; SIZE_MAX: out of memory. */
static size_t keep_bytes(struct reader_thread *t, const struct calls_record *record)
{
	const size_t n = record->n_bytes - sizeof *record, at = t->n_bytes;
	size_t room = t->room ? t->room : 4096;
	uint8_t *bytes;

	while (room < at + n)
		room *= 2;
	if (room != t->room) {
		bytes = realloc(t->bytes, room);
		if (!bytes)
			return SIZE_MAX;
		t->bytes = bytes;
		t->room = room;
	}
	memcpy(t->bytes + at, record + 1, n);
	t->n_bytes += n;
	return at;
}

static void deliver_all(struct reader *r, uint32_t slot)
{
	struct reader_thread *t = &r->threads[slot];

	for (size_t i = 0; i < t->calls.n; i++)
		add_to_sink(r, slot, &t->calls.at[i]);
	t->calls.n = 0;
	t->n_bytes = 0;
}

/* Deliver the calls that have ended, although the outermost call around them still runs: it makes too many calls to keep them all. */
static void deliver_ended(struct reader *r, uint32_t slot)
{
	struct reader_thread *t = &r->threads[slot];
	size_t kept = 0;

	for (size_t i = 0; i < t->calls.n; i++) {
		if (t->calls.at[i].done)
			add_to_sink(r, slot, &t->calls.at[i]);
		else
			t->calls.at[kept++] = t->calls.at[i];
	}
	t->calls.n = kept;
	t->n_bytes = 0;
	for (size_t i = 0; i < kept; i++) { /* move the remaining calls to the start, in the same order */
		memmove(t->bytes + t->n_bytes, t->bytes + t->calls.at[i].in, t->calls.at[i].n_in);
		t->calls.at[i].in = t->n_bytes;
		t->n_bytes += t->calls.at[i].n_in;
	}
}

static void begin_call(struct reader *r, uint32_t slot, const struct calls_record *record)
{
	struct reader_thread *t = &r->threads[slot];
	const size_t n_words = calls_rows[record->row].n_words;
	struct reader_call *call;
	uint32_t depth = 0;
	size_t at;

	if (record->n_bytes < sizeof *record + n_words * sizeof(uint64_t)) {
		t->damaged = true;
		return;
	}
	if (t->calls.n >= MAX_CALLS || t->n_bytes >= MAX_BYTES)
		deliver_ended(r, slot);
	if (t->calls.n >= MAX_CALLS) { /* none of these calls has returned, so deliver_ended() could remove none */
		r->n_lost++;
		return;
	}
	for (size_t i = 0; i < t->calls.n; i++)
		depth += !t->calls.at[i].done;
	at = keep_bytes(t, record);
	call = at == SIZE_MAX ? NULL : gpul_array_push(&t->calls);
	if (!call) {
		r->n_lost++;
		return;
	}
	*call = (struct reader_call){ .row = record->row, .sequence = record->sequence, .depth = depth, .in = at };
	call->n_in = record->n_bytes - sizeof *record;
	call->start = call->end = record->ticks;
}

static void end_call(struct reader *r, uint32_t slot, const struct calls_record *record)
{
	struct reader_thread *t = &r->threads[slot];
	size_t i = t->calls.n;
	struct reader_call *call;
	struct calls_event e;

	while (i > 0 &&
	       (t->calls.at[i - 1].done || t->calls.at[i - 1].sequence != record->sequence || t->calls.at[i - 1].row != record->row))
		i--;
	if (!i || record->n_bytes < sizeof *record + sizeof(uint64_t))
		return;
	for (size_t inner = i; inner < t->calls.n; inner++)
		t->calls.at[inner].done = true;
	call = &t->calls.at[i - 1];
	call->done = true;
	call->end = record->ticks;
	call->out = keep_bytes(t, record);
	call->finished = call->out != SIZE_MAX;
	call->n_out = record->n_bytes - sizeof *record;
	if (calls_rows[call->row].names_kernel && call->finished) {
		e = event_of(r, slot, call);
		kernel_names_learn(&r->names, &e);
	}
	if (i == 1)
		deliver_all(r, slot);
}

void calls_join_record(struct reader *r, uint32_t slot, const struct calls_record *record)
{
	if (record->kind == CALLS_ENTER)
		begin_call(r, slot, record);
	else
		end_call(r, slot, record);
}

void calls_join_end(struct reader *r, uint32_t slot)
{
	deliver_all(r, slot);
}
