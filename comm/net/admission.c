/* admission.c — decides by start-time fair queueing which sender gets the next grant; one window limits all senders together. */
#include "comm/net/admission.h"

#include <assert.h>
#include <stdlib.h>

struct sender {
	unsigned first, n; /* index of the first waiting message in the sender's ring, and the number of waiting messages */
	uint64_t message;  /* number of the sender's request for its first waiting message */
	uint64_t offset;   /* bytes of the first waiting message that have been granted so far */
	uint64_t held;     /* credits of the sender: bytes that have been granted and have not arrived */
	uint64_t start;    /* virtual time at which the sender's next grant starts */
	uint64_t since_ns; /* since when the sender has held credits without returning any */
	bool active;       /* the sender is counted in n_active */
	bool late, gone;
};

struct gpul_admission {
	gpul_admission_desc desc;
	struct sender *senders;
	uint64_t *messages; /* for each sender, a ring of max_messages message sizes */
	/* virtual time: the start of the last grant.  It advances by one byte while each active sender gets one byte */
	uint64_t virtual_time;
	unsigned n_active;  /* number of senders that hold credits or have waiting messages, except late ones */
	uint64_t in_flight; /* bytes in flight, except those of late senders */
	uint64_t held;      /* bytes in flight of all senders */
	uint64_t waiting;
	uint64_t now_ns;
};

gpul_status gpul_admission_create(const gpul_admission_desc *desc, gpul_admission **out, gpul_error *err)
{
	gpul_admission *a;

	if (desc->n_senders < 1 || desc->n_senders > 65536)
		return gpul_fail(err, GPUL_EINVAL, 0, "admission: n_senders is %u, expected 1 to 65536", desc->n_senders);
	if (desc->max_messages < 1 || desc->window_bytes < 1 || desc->grant_bytes < 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "admission: max_messages, window_bytes and grant_bytes must be at least 1");
	a = calloc(1, sizeof *a);
	if (!a)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the admission control of a receiver");
	a->desc = *desc;
	a->senders = calloc(desc->n_senders, sizeof *a->senders);
	a->messages = calloc((size_t)desc->n_senders * desc->max_messages, sizeof *a->messages);
	if (!a->senders || !a->messages) {
		gpul_admission_destroy(a);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u senders with %u messages each", desc->n_senders,
				 desc->max_messages);
	}
	*out = a;
	return GPUL_OK;
}

void gpul_admission_destroy(gpul_admission *a)
{
	if (!a)
		return;
	free(a->senders);
	free(a->messages);
	free(a);
}

static struct sender *find_sender(const gpul_admission *a, unsigned sender)
{
	assert(sender < a->desc.n_senders);
	return &a->senders[sender];
}

static void count_active(gpul_admission *a, struct sender *s)
{
	const bool active = (s->n || s->held) && !s->late && !s->gone;

	a->n_active += (unsigned)active - (unsigned)s->active;
	s->active = active;
}

/* Set the virtual time of a sender that becomes active: the sender gets no compensation for the bytes that others sent while it was
 * idle. */
static void catch_up(const gpul_admission *a, struct sender *s)
{
	s->start = s->start > a->virtual_time ? s->start : a->virtual_time;
}

/* ---- inputs ------------------------------------------------------------------------------------------------- */

bool gpul_admission_request(gpul_admission *a, unsigned sender, uint64_t bytes)
{
	struct sender *s = find_sender(a, sender);
	uint64_t *ring = a->messages + (size_t)sender * a->desc.max_messages;

	assert(bytes > 0);
	if (s->gone || s->n == a->desc.max_messages)
		return false;
	if (!s->n)
		catch_up(a, s);
	ring[((size_t)s->first + s->n) % a->desc.max_messages] = bytes;
	s->n++;
	a->waiting += bytes;
	count_active(a, s);
	return true;
}

/* Take back credits of a sender. */
static void free_credits(gpul_admission *a, struct sender *s, uint64_t bytes)
{
	assert(bytes <= s->held);
	s->held -= bytes;
	a->held -= bytes;
	if (!s->late)
		a->in_flight -= bytes;
}

void gpul_admission_arrived(gpul_admission *a, unsigned sender, uint64_t bytes)
{
	struct sender *s = find_sender(a, sender);

	free_credits(a, s, bytes);
	s->since_ns = a->now_ns;
	if (s->late) { /* the sender sends again, so its remaining credits count again; the window may be exceeded for a while */
		s->late = false;
		a->in_flight += s->held;
		catch_up(a, s);
	}
	count_active(a, s);
}

void gpul_admission_leave(gpul_admission *a, unsigned sender)
{
	struct sender *s = find_sender(a, sender);
	const uint64_t *ring = a->messages + (size_t)sender * a->desc.max_messages;

	for (unsigned i = 0; i < s->n; i++)
		a->waiting -= ring[((size_t)s->first + i) % a->desc.max_messages] - (i ? 0 : s->offset);
	free_credits(a, s, s->held);
	s->n = 0;
	s->gone = true;
	count_active(a, s);
}

void gpul_admission_tick(gpul_admission *a, uint64_t now_ns)
{
	a->now_ns = now_ns;
	for (unsigned i = 0; a->desc.late_ns && i < a->desc.n_senders; i++) {
		struct sender *s = &a->senders[i];

		if (!s->held || s->late || now_ns - s->since_ns < a->desc.late_ns)
			continue;
		s->late = true;
		a->in_flight -= s->held;
		count_active(a, s);
	}
}

/* ---- grants ------------------------------------------------------------------------------------------------- */

/* Return the limit of the credits that one sender may hold.  The limit keeps a sender that receives grants, but does not send, from
 * taking the whole window. */
static uint64_t share(const gpul_admission *a)
{
	const uint64_t part = a->desc.window_bytes / a->n_active;

	return part > a->desc.grant_bytes ? part : a->desc.grant_bytes;
}

static void take_piece(gpul_admission *a, struct sender *s, uint64_t message_bytes, uint64_t bytes, gpul_admission_grant *out)
{
	*out = (gpul_admission_grant){ .sender = (unsigned)(s - a->senders),
				       .message = s->message,
				       .offset = s->offset,
				       .bytes = bytes,
				       .last = s->offset + bytes == message_bytes };
	if (!s->held)
		s->since_ns = a->now_ns;
	s->held += bytes;
	a->virtual_time = s->start > a->virtual_time ? s->start : a->virtual_time;
	s->start += bytes;
	s->offset += bytes;
	a->held += bytes;
	a->in_flight += bytes;
	a->waiting -= bytes;
	if (!out->last)
		return;
	s->first = (s->first + 1) % a->desc.max_messages;
	s->n--;
	s->message++;
	s->offset = 0;
}

/* Find the sender of the next grant: among those that may get one, the sender with the earliest virtual start.  NULL: there is none. */
static struct sender *choose_sender(const gpul_admission *a)
{
	struct sender *best = NULL;

	for (unsigned i = 0; i < a->desc.n_senders; i++) {
		struct sender *s = &a->senders[i];

		if (s->n && !s->late && s->held < share(a) && (!best || s->start < best->start))
			best = s;
	}
	return best;
}

bool gpul_admission_next(gpul_admission *a, gpul_admission_grant *out)
{
	struct sender *s = a->waiting ? choose_sender(a) : NULL;
	uint64_t size, bytes;

	if (!s)
		return false;
	size = a->messages[(size_t)(s - a->senders) * a->desc.max_messages + s->first];
	bytes = size - s->offset < a->desc.grant_bytes ? size - s->offset : a->desc.grant_bytes;
	/* If the next grant does not fit into the window, wait: smaller grants of other senders must not overtake it. */
	if (a->in_flight && (bytes > a->desc.window_bytes || a->in_flight > a->desc.window_bytes - bytes))
		return false;
	take_piece(a, s, size, bytes, out);
	return true;
}

/* ---- state -------------------------------------------------------------------------------------------------- */

uint64_t gpul_admission_in_flight(const gpul_admission *a)
{
	return a->in_flight;
}

uint64_t gpul_admission_held(const gpul_admission *a)
{
	return a->held;
}

uint64_t gpul_admission_held_by(const gpul_admission *a, unsigned sender)
{
	return find_sender(a, sender)->held;
}

bool gpul_admission_is_late(const gpul_admission *a, unsigned sender)
{
	return find_sender(a, sender)->late;
}

uint64_t gpul_admission_waiting(const gpul_admission *a)
{
	return a->waiting;
}
