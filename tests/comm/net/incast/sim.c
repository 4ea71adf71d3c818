/* sim.c — the simulated network: a heap of events, the senders, the link. */
#include "tests/comm/net/incast/sim.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "comm/net/admission.h"

enum { MAX_EVENTS = 4096, MAX_MESSAGES = 64, STALL_NS = 400000 };

enum what {
	MESSAGE,        /* a sender's request reaches the receiver */
	GRANTED,        /* a grant reaches its sender */
	QUEUED,         /* the data of a grant reaches the queue */
	SERVED,         /* the last byte of the data of a grant has left the link */
	DEATH,          /* a sender's process ends */
	HEARD_OF_DEATH, /* the receiver detects the end of a sender's process */
	TICK,
};

struct event {
	uint64_t ns, order;
	enum what what;
	gpul_admission_grant grant; /* MESSAGE and DEATH use only its sender and bytes */
};

struct sim {
	const struct sim_plan *p;
	gpul_admission *a;
	uint64_t random, now, order;
	struct event heap[MAX_EVENTS];
	unsigned n_events;

	uint64_t link_free_ns, queued;
	bool dead[SIM_SENDERS], left[SIM_SENDERS];
	uint64_t size[SIM_SENDERS][MAX_MESSAGES], requested_ns[SIM_SENDERS][MAX_MESSAGES];
	unsigned n_sent[SIM_SENDERS], n_requested[SIM_SENDERS], n_done[SIM_SENDERS];
	uint64_t next_message[SIM_SENDERS], next_offset[SIM_SENDERS];      /* the values that the next grant must have */
	uint64_t last_arrival_ns[SIM_SENDERS], last_grant_ns[SIM_SENDERS]; /* these keep the events of a connection in order */
	uint64_t got[SIM_SENDERS];
	struct sim_figures f;
};

uint64_t sim_random(uint64_t *state, uint64_t n)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return n ? (z ^ z >> 31) % n : 0;
}

/* ---- the heap ------------------------------------------------------------------------------------------------ */

static bool is_before(const struct event *x, const struct event *y)
{
	return x->ns != y->ns ? x->ns < y->ns : x->order < y->order;
}

static void swap_events(struct event *x, struct event *y)
{
	const struct event z = *x;

	*x = *y;
	*y = z;
}

static void add_event(struct sim *s, uint64_t ns, enum what what, const gpul_admission_grant *grant)
{
	unsigned i = s->n_events++;

	assert_true(i < MAX_EVENTS);
	s->heap[i] = (struct event){ .ns = ns, .order = s->order++, .what = what, .grant = *grant };
	for (; i && is_before(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap_events(&s->heap[i], &s->heap[(i - 1) / 2]);
}

static struct event next_event(struct sim *s)
{
	const struct event first = s->heap[0];

	s->heap[0] = s->heap[--s->n_events];
	for (unsigned i = 0, child; (child = 2 * i + 1) < s->n_events; i = child) {
		if (child + 1 < s->n_events && is_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!is_before(&s->heap[child], &s->heap[i]))
			break;
		swap_events(&s->heap[i], &s->heap[child]);
	}
	return first;
}

/* ---- the senders and the link ---------------------------------------------------------------------------------- */

static uint64_t way(struct sim *s)
{
	return s->p->delay_ns + sim_random(&s->random, s->p->jitter_ns);
}

/* Return the time of an arrival: `ns`, but not before the previous arrival on the same connection. */
static uint64_t arrival(uint64_t *last_ns, uint64_t ns)
{
	return *last_ns = ns > *last_ns ? ns : *last_ns;
}

static void announce_message(struct sim *s, unsigned sender, uint64_t at_ns)
{
	const gpul_admission_grant g = { .sender = sender };

	if (s->n_sent[sender] == s->p->n_messages || s->dead[sender])
		return;
	s->n_sent[sender]++;
	add_event(s, at_ns, MESSAGE, &g);
}

static void hear_of_message(struct sim *s, unsigned sender)
{
	const unsigned i = s->n_requested[sender];
	const uint64_t bytes = 1 + sim_random(&s->random, s->p->message_bytes[sender]);

	assert_int_equal(gpul_admission_request(s->a, sender, bytes), !s->left[sender]);
	s->size[sender][i] = bytes;
	s->requested_ns[sender][i] = s->now;
	s->n_requested[sender]++;
	announce_message(s, sender, s->p->backlogged ? s->now : s->now + sim_random(&s->random, 4 * bytes * s->p->ns_per_byte));
}

/* A grant has reached its sender, which sends the data immediately unless it is stalled. */
static void send_data(struct sim *s, const gpul_admission_grant *g)
{
	const bool stalled = (int)g->sender == s->p->stalls && s->now < STALL_NS;

	if (!s->dead[g->sender])
		add_event(s, arrival(&s->last_arrival_ns[g->sender], (stalled ? STALL_NS : s->now) + way(s)), QUEUED, g);
}

static void send_grant(struct sim *s, const gpul_admission_grant *g)
{
	add_event(s, arrival(&s->last_grant_ns[g->sender], s->now + way(s)), GRANTED, g);
}

static void queue_data(struct sim *s, const gpul_admission_grant *g)
{
	s->queued += g->bytes;
	s->f.most_queued = s->queued > s->f.most_queued ? s->queued : s->f.most_queued;
	s->link_free_ns = (s->link_free_ns > s->now ? s->link_free_ns : s->now) + g->bytes * s->p->ns_per_byte;
	add_event(s, s->link_free_ns, SERVED, g);
}

static void receive_data(struct sim *s, const gpul_admission_grant *g)
{
	s->queued -= g->bytes;
	if (s->left[g->sender])
		return;
	gpul_admission_arrived(s->a, g->sender, g->bytes);
	s->got[g->sender] += g->bytes;
	s->f.bytes += g->bytes;
	if (!g->last)
		return;
	assert_int_equal(g->message, s->n_done[g->sender]);
	if (s->now - s->requested_ns[g->sender][g->message] > s->f.longest_wait_ns)
		s->f.longest_wait_ns = s->now - s->requested_ns[g->sender][g->message];
	if (++s->n_done[g->sender] == s->p->n_messages && !s->f.first_done_ns) {
		s->f.first_done_ns = s->now;
		memcpy(s->f.share, s->got, sizeof s->got);
	}
}

/* ---- invariants ------------------------------------------------------------------------------------------------- */

static void check_grant(struct sim *s, const gpul_admission_grant *g)
{
	assert_false(s->left[g->sender]);
	assert_true(g->message < s->n_requested[g->sender]);
	assert_int_equal(g->message, s->next_message[g->sender]);
	assert_int_equal(g->offset, s->next_offset[g->sender]);
	assert_in_range(g->bytes, 1, s->p->grant_bytes);
	assert_true(g->offset + g->bytes <= s->size[g->sender][g->message]);
	assert_int_equal(g->last, g->offset + g->bytes == s->size[g->sender][g->message]);
	s->next_message[g->sender] += g->last;
	s->next_offset[g->sender] = g->last ? 0 : g->offset + g->bytes;
}

static void check_state(struct sim *s)
{
	const uint64_t most = s->p->window_bytes > s->p->grant_bytes ? s->p->window_bytes : s->p->grant_bytes;
	const uint64_t in_flight = gpul_admission_in_flight(s->a), held = gpul_admission_held(s->a);
	uint64_t sum = 0, sum_on_time = 0;

	for (unsigned i = 0; i < s->p->n_senders; i++) {
		sum += gpul_admission_held_by(s->a, i);
		sum_on_time += gpul_admission_is_late(s->a, i) ? 0 : gpul_admission_held_by(s->a, i);
	}
	assert_int_equal(sum, held);
	assert_int_equal(sum_on_time, in_flight);
	s->f.late_bytes = held - in_flight > s->f.late_bytes ? held - in_flight : s->f.late_bytes;
	assert_true(in_flight <= most + s->f.late_bytes);
	/* The link is never idle without a reason: a message waits only while credits are in flight, or held by late senders. */
	if (gpul_admission_waiting(s->a))
		assert_true(held > 0);
	if (s->p->dies < 0)
		assert_true(s->queued <= held);
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

static void handle_event(struct sim *s, const struct event *e)
{
	switch (e->what) {
	case MESSAGE:
		hear_of_message(s, e->grant.sender);
		return;
	case GRANTED:
		send_data(s, &e->grant);
		return;
	case QUEUED:
		queue_data(s, &e->grant);
		return;
	case SERVED:
		receive_data(s, &e->grant);
		return;
	case DEATH:
		s->dead[e->grant.sender] = true;
		add_event(s, s->now + 200000, HEARD_OF_DEATH, &e->grant);
		return;
	case HEARD_OF_DEATH:
		s->left[e->grant.sender] = true;
		gpul_admission_leave(s->a, e->grant.sender);
		return;
	case TICK:
		gpul_admission_tick(s->a, s->now);
		if (s->n_events)
			add_event(s, s->now + 5000, TICK, &e->grant);
		return;
	}
}

static void begin_run(struct sim *s)
{
	const gpul_admission_desc desc = { .n_senders = s->p->n_senders,
					   .max_messages = MAX_MESSAGES,
					   .window_bytes = s->p->window_bytes,
					   .grant_bytes = s->p->grant_bytes,
					   .late_ns = s->p->late_ns };
	gpul_admission_grant g = { 0 };

	assert_true(s->p->n_senders <= SIM_SENDERS && s->p->n_messages <= MAX_MESSAGES);
	assert_int_equal(gpul_admission_create(&desc, &s->a, NULL), GPUL_OK);
	for (unsigned i = 0; i < s->p->n_senders; i++)
		announce_message(s, i, s->p->backlogged ? 0 : sim_random(&s->random, 100000));
	if (s->p->dies >= 0) {
		g.sender = (unsigned)s->p->dies;
		add_event(s, 1 + sim_random(&s->random, 300000), DEATH, &g);
	}
	add_event(s, 0, TICK, &g);
}

struct sim_figures sim_run(const struct sim_plan *p)
{
	struct sim *s = calloc(1, sizeof *s);
	struct sim_figures f;

	assert_non_null(s);
	s->p = p;
	s->random = p->seed;
	for (begin_run(s); s->n_events;) {
		const struct event e = next_event(s);
		gpul_admission_grant g;

		s->now = e.ns;
		if (e.what != TICK)
			s->f.end_ns = e.ns;
		handle_event(s, &e);
		/* report all requests of the same time before the next grant */
		while ((!s->n_events || s->heap[0].ns != s->now) && gpul_admission_next(s->a, &g)) {
			check_grant(s, &g);
			send_grant(s, &g);
		}
		if (!s->n_events || s->heap[0].ns != s->now)
			check_state(s);
	}
	for (unsigned i = 0; i < p->n_senders; i++)
		s->f.n_unfinished += s->left[i] ? 0 : p->n_messages - s->n_done[i];
	assert_int_equal(gpul_admission_held(s->a), 0);
	assert_int_equal(gpul_admission_waiting(s->a), 0);
	f = s->f;
	gpul_admission_destroy(s->a);
	free(s);
	return f;
}
