/* session.c — one connection: its memory, notes, rounds. */
#include "tests/rdma/exchange/exchange.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "core/clock.h"

enum { NOTE_ROOM = 1024, TURNS_PER_YIELD = 64 };
_Static_assert(sizeof(note) <= NOTE_ROOM, "a note fits");

void relax(unsigned *turns, bool idle)
{
	if (idle && ++*turns % TURNS_PER_YIELD == 0)
		sched_yield();
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static gpul_status memory_create(gpul_rdma *r, size_t bytes, gpul_rdma_use use, memory *out, gpul_error *err)
{
	out->bytes = (bytes + 4095) / 4096 * 4096;
	out->at = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (out->at == MAP_FAILED) {
		out->at = NULL;
		return gpul_fail(err, GPUL_ENOMEM, errno, "no memory for %zu bytes", out->bytes);
	}
	return gpul_rdma_register(r, out->at, out->bytes, use, &out->region, err);
}

static void memory_destroy(memory *m)
{
	gpul_rdma_unregister(m->region);
	if (m->at)
		munmap(m->at, m->bytes);
	*m = (memory){ 0 };
}

static gpul_status create_buffers(session *s, const plan *p, gpul_error *err)
{
	const uint64_t all_puts = PUT_SLOTS * (uint64_t)(PUT_BYTES + PAD);
	gpul_status st;

	s->slot = slot_bytes(p->max_bytes);
	s->n_slots = p->n_items < WINDOW ? p->n_items : WINDOW;
	s->n_slots += !s->n_slots;
	st = memory_create(s->r, s->n_slots * s->slot + all_puts, GPUL_RDMA_DATA, &s->out, err);
	if (!st)
		st = memory_create(s->r, s->n_slots * s->slot + all_puts, GPUL_RDMA_DATA, &s->in, err);
	if (!st)
		st = memory_create(s->r, sizeof(words), GPUL_RDMA_STEPS, &s->word_memory, err);
	s->words = (words *)(void *)s->word_memory.at;
	return st;
}

/* Write the address and key of the memory for the peer's puts to a note. */
static gpul_status write_offers(const session *s, note *out, gpul_error *err)
{
	const uint64_t puts = (uint64_t)(uintptr_t)(s->in.at + s->n_slots * s->slot);
	gpul_status st = gpul_rdma_offer(s->in.region, puts, PUT_SLOTS * (uint64_t)(PUT_BYTES + PAD), &out->puts, err);

	return st ? st : gpul_rdma_offer(s->word_memory.region, (uint64_t)(uintptr_t)s->words, sizeof(words), &out->words, err);
}

gpul_rdma_buffer buffer_in(const memory *m, uint64_t offset, uint64_t bytes, uint32_t tag)
{
	return (gpul_rdma_buffer){ .region = m->region, .at = (uint64_t)(uintptr_t)(m->at + offset), .bytes = bytes, .tag = tag };
}

/* ---- notes ------------------------------------------------------------------------------------------------------------ */

gpul_status session_tell(session *s, const note *n, gpul_error *err)
{
	const gpul_rdma_buffer b = buffer_in(&s->notes, 0, sizeof *n, NOTE_TAG);
	gpul_rdma_request request;
	gpul_status st;

	memcpy(s->notes.at, n, sizeof *n);
	st = gpul_rdma_isend(s->conn, &b, s->deadline_ms, &request, err);
	return st ? st : gpul_rdma_wait(s->conn, request, NULL, err);
}

gpul_status session_hear(session *s, note_kind kind, note *out, gpul_error *err)
{
	const gpul_rdma_buffer b = buffer_in(&s->notes, NOTE_ROOM, NOTE_ROOM, NOTE_TAG);
	gpul_rdma_request request;
	uint64_t got = 0;
	gpul_status st = gpul_rdma_irecv(s->conn, &b, 1, s->deadline_ms, &request, err);

	if (!st)
		st = gpul_rdma_wait(s->conn, request, &got, err);
	if (st)
		return st;
	memcpy(out, s->notes.at + NOTE_ROOM, sizeof *out);
	if (got != sizeof *out || (kind && out->kind != kind))
		return gpul_fail(err, GPUL_EFORMAT, (int)out->kind, "WRONG DATA: note %u of %zu bytes arrived instead of note %u",
				 out->kind, (size_t)got, kind);
	return GPUL_OK;
}

/* ---- rounds ----------------------------------------------------------------------------------------------------------- */

static gpul_status run_round(session *s, const plan *p, gpul_error *err)
{
	sends out = { 0 };
	receives in = { 0 };
	put_stream puts = { 0 };
	unsigned turns = 0;
	gpul_status st = GPUL_OK;

	puts_begin(s, p, &puts);
	while (!st && (out.ended < p->n_items || in.ended < p->n_items || !puts_done(s, &puts))) {
		bool did = false;

		st = sends_step(s, p, &out, &did, err);
		if (!st)
			st = receives_step(s, p, &in, &did, err);
		if (!st)
			st = puts_step(s, p, &puts, &did, err);
		if (!st && !did)
			st = gpul_rdma_progress(s->conn, NULL, err);
		relax(&turns, !did);
	}
	return st;
}

static gpul_status begin_client(session *s, const wishes *w, gpul_error *err)
{
	note hello = { .kind = NOTE_HELLO, .deadline_ms = (uint32_t)w->deadline_ms }, answer;
	gpul_status st = memory_create(s->r, 2 * NOTE_ROOM, GPUL_RDMA_DATA, &s->notes, err);

	hello.plan = (plan){ .connection = s->connection, .max_bytes = w->max_bytes, .n_items = w->n_items };
	if (!st)
		st = create_buffers(s, &hello.plan, err);
	if (!st)
		st = write_offers(s, &hello, err);
	if (!st)
		st = session_tell(s, &hello, err);
	if (!st)
		st = session_hear(s, NOTE_HELLO, &answer, err);
	if (st)
		return st;
	s->peer_puts = answer.puts;
	s->peer_words = answer.words;
	return GPUL_OK;
}

gpul_status session_client(session *s, const wishes *w, gpul_error *err)
{
	const uint64_t end_ns = gpul_clock_ns() + (uint64_t)(w->seconds * 1e9);
	note n = { .kind = NOTE_ROUND }, answer;
	gpul_status st;

	s->deadline_ms = w->deadline_ms;
	gpul_rdma_conn_about(s->conn, &s->info);
	st = begin_client(s, w, err);
	if (!st && w->begun)
		w->begun();
	n.plan = (plan){ .seed = w->seed,
			 .connection = s->connection,
			 .n_items = w->n_items,
			 .n_puts = w->n_puts,
			 .max_bytes = w->max_bytes,
			 .segment_bytes = s->info.segment_bytes };
	for (; !st && (n.plan.round < w->rounds || gpul_clock_ns() < end_ns); n.plan.round++) {
		st = session_tell(s, &n, err);
		if (!st)
			st = run_round(s, &n.plan, err);
		if (!st)
			st = session_hear(s, NOTE_CHECKED, &answer, err);
	}
	if (!st && w->fault >= 0)
		return fault_client(s, w, err);
	n.kind = NOTE_END;
	if (!st)
		st = session_tell(s, &n, err);
	/* The peer replies and then waits for the close, because it could detect the close before it reads the last message. */
	return st ? st : session_hear(s, NOTE_CHECKED, &answer, err);
}

static gpul_status begin_server(session *s, gpul_error *err)
{
	note hello;
	gpul_status st = memory_create(s->r, 2 * NOTE_ROOM, GPUL_RDMA_DATA, &s->notes, err);

	if (!st)
		st = session_hear(s, NOTE_HELLO, &hello, err);
	if (st)
		return st;
	s->deadline_ms = (int)hello.deadline_ms;
	s->connection = hello.plan.connection;
	s->peer_puts = hello.puts;
	s->peer_words = hello.words;
	st = create_buffers(s, &hello.plan, err);
	if (!st)
		st = write_offers(s, &hello, err);
	return st ? st : session_tell(s, &hello, err);
}

/* Wait until the client has closed the connection, because the client must close first. */
static gpul_status await_close(session *s, gpul_error *err)
{
	const uint64_t end_ns = gpul_clock_ns() + 10000000000;
	unsigned turns = 0;

	while (gpul_rdma_progress(s->conn, NULL, NULL) == GPUL_OK) {
		if (gpul_clock_ns() > end_ns)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "%s: the connection was not closed", s->info.peer);
		relax(&turns, true);
	}
	return GPUL_OK;
}

/* Reply to the last note.  The client closes when it has the reply, which may be before this end gets the completion of the reply. */
static gpul_status end_server(session *s, gpul_error *err)
{
	gpul_error why = { 0 };
	const gpul_status st = session_tell(s, &(note){ .kind = NOTE_CHECKED }, &why);
	gpul_rdma_failure failure;

	if (!st)
		return await_close(s, err);
	gpul_rdma_conn_failed(s->conn, &failure);
	return failure.native == ESHUTDOWN ? GPUL_OK : gpul_fail(err, st, why.native, "%s", why.text);
}

gpul_status session_server(session *s, const wishes *w, gpul_error *err)
{
	note n = { .kind = NOTE_CHECKED };
	gpul_status st;

	s->serving = true;
	s->deadline_ms = w->deadline_ms;
	gpul_rdma_conn_about(s->conn, &s->info);
	st = begin_server(s, err);
	if (!st && w->begun)
		w->begun();
	while (!st) {
		st = session_hear(s, 0, &n, err);
		if (!st && n.kind == NOTE_FAULT) {
			/* The client waits for this reply before it causes the fault, so that the fault does not overtake its note. */
			(void)session_tell(s, &(note){ .kind = NOTE_CHECKED }, NULL);
			return fault_server(s, &n, err);
		}
		if (!st && n.kind == NOTE_END)
			return end_server(s, err);
		if (!st && n.kind == NOTE_ROUND)
			st = run_round(s, &n.plan, err);
		if (!st)
			st = session_tell(s, &(note){ .kind = NOTE_CHECKED }, err);
	}
	return st;
}

void session_close(session *s)
{
	gpul_rdma_conn_close(s->conn);
	memory_destroy(&s->notes);
	memory_destroy(&s->out);
	memory_destroy(&s->in);
	memory_destroy(&s->word_memory);
}
