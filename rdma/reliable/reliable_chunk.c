/* reliable_chunk.c — what becomes of a chunk in flight: acknowledged, or lost; and the queue of events. */
#include "rdma/reliable/reliable_internal.h"

/* ---- events ------------------------------------------------------------------------------------------------------- */

void rel_add_event(gpul_rel *r, const gpul_rel_event *e)
{
	assert(r->event_head - r->event_tail < r->event_slots);
	r->events[r->event_head++ & (r->event_slots - 1)] = *e;
}

bool gpul_rel_poll(gpul_rel *r, gpul_rel_event *out)
{
	if (r->event_tail == r->event_head)
		return false;
	*out = r->events[r->event_tail++ & (r->event_slots - 1)];
	return true;
}

/* ---- trace -------------------------------------------------------------------------------------------------------- */

void gpul_rel_record(gpul_rel *r, gpul_rel_trace *trace)
{
	r->trace = trace;
}

void rel_trace_add(gpul_rel *r, const gpul_rel_step *step)
{
	const struct rel_out *m = &r->out[rel_chunk_at(r, step->chunk)->message & (r->o.messages - 1)];
	gpul_rel_trace *t = r->trace;

	if (m->m.local - t->local >= t->bytes)
		return;
	if (t->n < t->max)
		t->steps[t->n] = *step;
	t->n++;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

void rel_chunk_acked(gpul_rel *r, uint32_t chunk)
{
	struct rel_chunk *c = rel_chunk_at(r, chunk);
	struct rel_out *m = &r->out[c->message & (r->o.messages - 1)];

	rel_trace(r, (gpul_rel_step){ r->heard_ns, GPUL_REL_ACKED, chunk, c->path, c->packet, 0 });
	c->state = CHUNK_ACKED;
	if (--m->n_unacked == 0)
		rel_add_event(r, &(gpul_rel_event){ .id = m->m.id, .bytes = m->m.bytes });
	while (r->oldest != r->next_chunk && rel_chunk_at(r, r->oldest)->state == CHUNK_ACKED)
		r->oldest++;
	while (r->out_oldest != r->out_next && !r->out[r->out_oldest & (r->o.messages - 1)].n_unacked)
		r->out_oldest++;
}

void rel_chunk_lost(gpul_rel *r, uint32_t chunk)
{
	/* A chunk is in the ring at most once, and new chunks are sent only when it is empty, so it has room for all in flight. */
	assert(r->lost_head - r->lost_tail < r->o.window);
	rel_chunk_at(r, chunk)->state = CHUNK_LOST;
	r->lost[r->lost_head++ & (r->o.window - 1)] = chunk;
}

bool rel_chunk_peek_lost(gpul_rel *r, uint32_t *chunk)
{
	for (; r->lost_tail != r->lost_head; r->lost_tail++) {
		*chunk = r->lost[r->lost_tail & (r->o.window - 1)];
		/* an acknowledgement of an earlier copy may have arrived meanwhile */
		if (!rel_before(*chunk, r->oldest) && rel_chunk_at(r, *chunk)->state == CHUNK_LOST)
			return true;
	}
	return false;
}
