/* plan.c — generates the connection's parameters, the requests of both ends, and the faults from a seed. */
#include "tests/rdma/sim/sim.h"

#include <string.h>

const char *const fault_names[N_FAULTS] = {
	"no fault",  "error completion", "death",     "stall",        "partition of the socket", "black hole",
	"wrong tag", "short buffer",     "deadlines", "hostile peer", "hostile order",           "abandoned",
};

/* ---- parameters ----------------------------------------------------------------------------- */

static uint32_t one_of(struct rng *r, const uint32_t *choices, unsigned n)
{
	return choices[below(r, n)];
}
#define ONE_OF(r, ...) one_of(r, (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void plan_shape(struct sim *s)
{
	struct params *p = &s->p;
	const unsigned shape = below(&s->rng, 1000);

	p->shape = p->segment_bytes > 1 << 20 ? MIXED : shape < 40 ? MANY : shape < 60 ? LONG : shape < 64 ? FLOOD : MIXED;
	if (p->shape == LONG || p->shape == FLOOD)
		p->segment_bytes = 4096;
	if (p->shape != FLOOD)
		return;
	p->n_qps = 1;
	p->slow_qp = GPUL_RDMA_MAX_QPS;
	p->post_ns = p->ack_ns = 1000;
	p->naps = 40;
	p->eager = true;
}

static void plan_params(struct sim *s)
{
	struct rng *r = &s->rng;
	struct params *p = &s->p;

	memset(p, 0, sizeof *p);
	p->first_counter = chance(r, 300) ? 0 : chance(r, 500) ? 0u - below(r, 600) : 0u - 0x10000 * below(r, 3) - below(r, 600);
	p->n_qps = chance(r, 400) ? 1 : 1 + below(r, GPUL_RDMA_MAX_QPS);
	p->segment_bytes = ONE_OF(r, 4096, 4096, 4096, 4096, 4096, 4224, 8192, 16384, 65536);
	if (chance(r, 1) && chance(r, 300))
		p->segment_bytes = GPUL_RDMA_MAX_SEGMENT;
	p->stripe_bytes = ONE_OF(r, 128, 128, 200, 256, 512, 1024, 4096, 1 << 20);
	p->striping = chance(r, 650) ? GPUL_RDMA_SPLIT : GPUL_RDMA_ROUND_ROBIN;
	p->ordered = chance(r, 700);
	p->completes_in_order = p->ordered && chance(r, 800);
	p->datagrams = chance(r, 250);
	p->unnamed = chance(r, 200);
	p->datagram_loss = p->datagrams && chance(r, 600) ? below(r, 500) : 0;
	p->repeat_ns = (20 + below(r, 2000)) * US;
	p->post_ns = ONE_OF(r, 100, 1000, 1000, 5000, 50000);
	p->ack_ns = ONE_OF(r, 10, 1000, 1000, 20000);
	p->arrive_ns = ONE_OF(r, 10, 300, 300, 20000);
	p->copy_ns = ONE_OF(r, 10, 3000, 100000, 2000000);
	p->slow_qp = chance(r, 200) ? below(r, p->n_qps) : GPUL_RDMA_MAX_QPS;
	p->in_parts = chance(r, 300) ? below(r, 500) : 0;
	p->naps = chance(r, 200) ? below(r, 40) : 0;
	p->eager = chance(r, 300);
	p->early = chance(r, 300);
	p->offsets = chance(r, 250);
	p->strictly_checked = s->seed % 8 == 0;
	plan_shape(s);
	for (unsigned i = 0; i < ENDS; i++) {
		gpul_rdma_link_desc *d = &s->ends[i].desc;
		struct area *a = s->ends[i].areas;

		*d = (gpul_rdma_link_desc){
			.n_qps = p->n_qps,
			.depth = ONE_OF(r, 64, 64, 64, 128, 256),
			.segment_bytes = p->segment_bytes,
			.stripe_bytes = p->stripe_bytes,
			.striping = p->striping,
			.ordered = p->ordered,
			.completes_in_order = p->completes_in_order,
			.unnamed_arrivals = p->unnamed,
			.inline_bytes = ONE_OF(r, 0, 0, 8, 32, 64, 220, 256),
			.control_datagrams = p->datagrams,
			.repeat_ns = p->repeat_ns,
			.first_counter = p->first_counter,
			.first_generation = chance(r, 500) ? 0 : 0x3fffff - below(r, 8),
			.n_stages = GPUL_RDMA_MAX_PARTS + (p->segment_bytes < 1 << 20 && chance(r, 300) ? below(r, 25) : 0),
		};
		for (unsigned j = 0; j < AREAS; j++)
			memset(&a[j].registered, 0, sizeof a[j].registered);
		a[2].registered.on_device = true;
		a[2].registered.staged = chance(r, 500);
		a[2].registered.flush = !a[2].registered.staged && chance(r, 700);
		a[2].small_writes_wait = a[2].registered.flush;
		s->ends[i].thread_ns = ONE_OF(r, 100, 1000, 1000, 10000);
	}
}

/* ---- requests ---------------------------------------------------------------------------------- */

static uint32_t message_bytes(struct sim *s)
{
	struct rng *r = &s->rng;
	const uint32_t segment = s->p.segment_bytes;

	switch (below(r, 16)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
	case 3:
		return 1 + below(r, 300);
	case 4:
		return 4095 + below(r, 3);
	case 5:
	case 6:
		return segment - 1 + below(r, 3);
	case 7:
		return segment < 1 << 20 ? segment * (1 + below(r, 8)) : segment;
	case 8:
		return segment < 1 << 20 ? segment * (1 + below(r, 6)) + below(r, 3) - 1 : 2 * segment;
	case 9:
		return below(r, segment < 1 << 20 ? 4 * segment : 2 * segment);
	case 10:
		return 128 * below(r, 32);
	default:
		return below(r, segment < 1 << 17 ? segment : 1 << 17);
	}
}

static struct work *new_work(struct sim *s, unsigned end, enum work_kind kind)
{
	struct end *e = &s->ends[end];
	struct work *w = &e->works[e->n_works++];
	struct rng *r = &s->rng;

	*w = (struct work){ .kind = (uint8_t)kind, .end = (uint8_t)end, .n_parts = 1, .to = NONE, .signal = NONE };
	e->stream[kind][e->planned[kind]++] = w;
	w->pause_ns = s->p.eager || chance(r, 700) ? 0 : chance(r, 900) ? below(r, 20000) : below(r, 2000000);
	switch (s->p.fault) {
	case WRONG_TAG:
	case SHORT_BUFFER:
		w->limit_ns = chance(r, 400) ? FOREVER : 0;
		break;
	case DEADLINE:
		w->limit_ns = chance(r, 800) ? 1 + delay(r, 200000) : 0;
		break;
	default:
		/* A lost operation may have no completion, and a silent peer is not an error: only deadlines end such requests. */
		w->limit_ns = s->p.fault == BLACK_HOLE || s->p.fault == STALL || s->lenient || chance(r, 300)
				      ? 10 * MS + random_bits(r) % (3 * SECOND)
				      : 0;
	}
	if (s->p.harmless)
		w->limit_ns = chance(r, 400) ? FOREVER : 0;
	return w;
}

/* Choose an area for a buffer; one_piece: not area 1, which has several pieces. */
static unsigned choose_area(struct sim *s, bool one_piece)
{
	const unsigned area = below(&s->rng, 4);

	return area > 2 || (area == 1 && one_piece) ? 0 : area;
}

static void plan_send(struct sim *s, unsigned from, uint32_t bytes, uint32_t tag, const struct buffer *into)
{
	struct work *w = new_work(s, from, SEND);
	struct buffer *b;

	w->area = (uint8_t)choose_area(s, !s->p.ordered);
	w->buffers[0] = new_buffer(s, from, w->area, SEND_FROM, bytes, w);
	w->tags[0] = tag;
	b = &s->ends[from].buffers[w->buffers[0]];
	b->noise = into->noise; /* the receive expects the same content */
}

/* Plan one receive of end `to`, and the messages for it. */
static void plan_messages(struct sim *s, unsigned to, uint32_t bytes, unsigned n)
{
	struct rng *r = &s->rng;
	struct work *w = new_work(s, to, RECV);
	struct end *e = &s->ends[to];
	unsigned order[GPUL_RDMA_MAX_PARTS];

	w->area = (uint8_t)choose_area(s, n > 1);
	w->n_parts = (uint8_t)n;
	for (unsigned i = 0; i < n; i++) {
		const uint32_t most = s->p.segment_bytes;
		uint32_t room;

		if (n > 1)
			bytes = message_bytes(s) % (most + 1);
		room = bytes;
		if (chance(r, 350))
			room += n > 1 ? below(r, most - bytes + 1) : below(r, chance(r, 500) && most < 1 << 20 ? 4 * most : 100);
		w->buffers[i] = new_buffer(s, to, w->area, RECV_INTO, room, w);
		e->buffers[w->buffers[i]].filled = bytes;
		w->tags[i] = n > 1 ? i * 7 + below(r, 7) : below(r, 5);
		order[i] = i;
	}
	for (unsigned i = n; i > 1; i--) { /* shuffle the order of the sends */
		const unsigned j = below(r, i), t = order[i - 1];

		order[i - 1] = order[j];
		order[j] = t;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct buffer *b = &e->buffers[w->buffers[order[i]]];

		plan_send(s, !to, b->filled, w->tags[order[i]], b);
	}
}

static void plan_put(struct sim *s, unsigned from)
{
	struct rng *r = &s->rng;
	struct end *e = &s->ends[from], *peer = &s->ends[!from];
	struct work *w = new_work(s, from, PUT);
	const uint32_t bytes = chance(r, 150) ? 0 : message_bytes(s);
	const unsigned lanes = sizeof e->lane_planned / sizeof *e->lane_planned;
	unsigned area = choose_area(s, false);

	w->area = e->areas[area].registered.staged || (area == 1 && !s->p.ordered) ? 0 : (uint8_t)area;
	w->buffers[0] = new_buffer(s, from, w->area, PUT_FROM, bytes, w);
	area = choose_area(s, true);
	if (peer->areas[area].registered.staged)
		area = 0;
	w->to = new_buffer(s, !from, area, PUT_INTO, bytes, w);
	peer->buffers[w->to].noise = e->buffers[w->buffers[0]].noise;
	if (!bytes || chance(r, 700))
		w->signal = new_buffer(s, !from, 0, SIGNAL_INTO, 8, w);
	w->value = random_bits(r);
	w->lane = below(r, lanes);
	w->put_number = e->lane_planned[w->lane]++;
}

static void plan_flush(struct sim *s, unsigned end)
{
	struct work *w = new_work(s, end, FLUSH);

	w->area = (uint8_t)below(&s->rng, AREAS);
	w->buffers[0] = NONE; /* NONE: flush any address of the area */
}

static void plan_requests(struct sim *s)
{
	struct rng *r = &s->rng;
	const bool huge = s->p.segment_bytes > 1 << 20;

	for (unsigned to = 0; to < ENDS; to++) {
		const bool quiet = chance(r, 150);

		switch (s->p.shape) {
		case MANY:
			for (unsigned n = quiet ? 0 : 270 + below(r, 500); n; n--)
				plan_messages(s, to, below(r, 40), 1);
			break;
		case LONG:
			for (unsigned n = below(r, 4); n; n--)
				plan_messages(s, to, message_bytes(s), 1);
			plan_messages(s, to, 4096 * (250 + below(r, 60)) + below(r, 4096), 1);
			plan_messages(s, to, message_bytes(s), 1);
			break;
		case FLOOD:
			if (to == s->seed % 2)
				continue;
			plan_messages(s, to, 4096 * (2500 + below(r, 300)), 1);
			for (unsigned n = 1400; n; n--)
				plan_messages(s, to, below(r, 40), 1);
			break;
		default:
			for (unsigned n = quiet ? below(r, 2) : below(r, huge ? 4 : 16); n; n--)
				plan_messages(s, to, message_bytes(s), chance(r, 250) ? 2 + below(r, 7) : 1);
		}
		for (unsigned n = chance(r, 500) || huge ? 0 : below(r, chance(r, 20) ? 300 : 16); n; n--)
			plan_put(s, to);
		for (unsigned n = chance(r, 700) ? 0 : below(r, 5); n; n--)
			plan_flush(s, to);
	}
}

/* ---- the whole plan ----------------------------------------------------------------------------- */

static void reset_end(struct sim *s, struct end *e)
{
	for (unsigned i = 0; i < AREAS; i++) {
		struct area *a = &e->areas[i];

		memset(a->memory, UNTOUCHED, a->used ? a->used + 64 : 0);
		a->used = 64;
		a->n_buffers = 0;
	}
	e->n_buffers = e->n_works = e->n_active = 0;
	memset(e->planned, 0, sizeof e->planned);
	memset(e->started, 0, sizeof e->started);
	memset(e->ready_ns, 0, sizeof e->ready_ns);
	memset(e->lane_next, 0, sizeof e->lane_next);
	memset(e->lane_planned, 0, sizeof e->lane_planned);
	e->inbox_head = e->inbox_tail = e->backlog_head = e->backlog_tail = 0;
	e->n_writes = e->copies = e->run_stamp = e->n_messages = 0;
	e->dead = e->stalled = e->failed = false;
	e->failed_ns = e->last_tick_ns = e->idle_ns = e->away_until_ns = 0;
	e->next_run_ns = e->next_deadline_ns = UINT64_MAX;
	e->stale = 0;
	e->ended_copy = UINT64_MAX;
	s->n_unsettled[e->index] = s->n_settled[e->index] = 0;
}

bool make_plan(struct sim *s, uint64_t seed)
{
	s->seed = seed;
	s->rng.state = seed * 0xd1342543de82ef95 + 1;
	s->now = SECOND + below(&s->rng, 1000000);
	s->n_heap = 0;
	s->n_futures = s->steps = 0;
	s->path_broken = s->hole = s->partition = s->aborted = s->lenient = false;
	s->reason[0] = 0;
	reset_end(s, &s->ends[0]);
	reset_end(s, &s->ends[1]);
	plan_params(s);
	for (unsigned i = 0; i < ENDS; i++) {
		reset_referee(&s->ends[i], s->p.first_counter);
		for (unsigned j = 0; j < GPUL_RDMA_MAX_QPS; j++)
			s->ends[i].queues[j] = (struct sent_queue){ .taken = s->p.first_counter,
								    .retired = s->p.first_counter,
								    .recvs = GPUL_RDMA_RECVS };
	}
	plan_fault(s);
	plan_requests(s);
	spoil_requests(s);
	register_all(s);
	for (unsigned i = 0; i < ENDS; i++)
		s->ends[i].n_left = s->ends[i].n_works;
	return create_links(s);
}
