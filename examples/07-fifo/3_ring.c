/* 3_ring.c — a ring of 8 slots and a ticket counter: each message has a place of its own, and an order.
 *
 *     3_ring [3_ring.ptx]
 *
 * Read take() and fits(); overrun() shows what a full ring does, when nobody tells the GPU that it is full. */
#include <stdio.h>
#include <string.h>

#include "lesson.h"

struct reader {
	struct ring *ring;
	CUdeviceptr next;     /* the ticket counter */
	u64 position;         /* that the reader awaits */
	u64 of_thread[THREADS]; /* messages that it took of each */
	u64 n_bad;            /* messages that were not the awaited ones */
};

/* Take the message at the awaited position, if it is there. */
static bool take(struct reader *r, struct slot *out)
{
	const struct slot *s = &r->ring->slot[r->position % SLOTS];
	const u64 lap = r->position / SLOTS % 2 ? 0 : LAP;

	out->word[0] = __atomic_load_n(&s->word[0], __ATOMIC_ACQUIRE);
	out->word[1] = __atomic_load_n(&s->word[1], __ATOMIC_ACQUIRE);
	if ((out->word[0] & LAP) != lap || (out->word[1] & LAP) != lap)
		return false;
	out->word[0] &= PAYLOAD;
	out->word[1] &= PAYLOAD;
	r->position++;
	return true;
}

/* Is it what should be there: that position's, and its thread's next? */
static bool fits(struct reader *r, const struct slot *m)
{
	const bool good = m->word[1] == r->position - 1 &&
			  (m->word[0] & 0xffffffff) == r->of_thread[m->word[0] >> 32]++;

	r->n_bad += !good;
	return good;
}

static void start(struct lesson *l, struct reader *r, unsigned threads, u64 n)
{
	gpul_error err = { 0 };

	memset(r->ring, 0, sizeof *r->ring);
	lesson_need(gpul_cu(l->drv, &err, cuMemsetD8Async(r->next, 0, sizeof(u64), l->stream)), &err);
	*r = (struct reader){ .ring = r->ring, .next = r->next };
	lesson_start(l, "push", threads, (struct lesson_arg[]){ ARG(r->ring), ARG(r->next), ARG(n) }, 3);
}

/* 8 messages for 8 slots. */
static void ring_has_room(struct lesson *l, struct reader *r)
{
	struct slot m;

	start(l, r, 4, SLOTS / 4);
	for (uint64_t since = 0; r->position < SLOTS; lesson_wait(&since, "8 messages"))
		while (r->position < SLOTS && take(r, &m))
			printf("position %llu: message %llu of thread %llu%s\n", m.word[1], m.word[0] & 0xffffffff,
			       m.word[0] >> 32, fits(r, &m) ? "" : ", which is wrong");
	lesson_join(l);
	printf("%d sent, %llu taken, %llu out of order\n", SLOTS, r->position, r->n_bad);
}

/* One thread sends more than fits while the CPU is busy elsewhere. */
static void overrun(struct lesson *l, struct reader *r, u64 n)
{
	struct slot m;
	u64 first = 0;

	start(l, r, 1, n);
	lesson_join(l);
	while (r->position < SLOTS && take(r, &m)) {
		first = r->position == 1 ? m.word[1] : first;
		fits(r, &m);
	}
	printf("%llu sent, %llu taken, %llu lost: ", n, r->position, n - r->position);
	if (r->position)
		printf("where 0 should be is %llu, and its lap bit is right\n", first);
	else
		puts("slot 0 is of the wrong lap, and stays so: the reader waits for ever");
}

/* Four threads and a CPU that reads as fast as it can: what gets through is chance. */
static void full_speed(struct lesson *l, struct reader *r)
{
	const unsigned threads = 4;
	u64 n = 5000;
	struct slot m;
	bool more = true;

	start(l, r, threads, n);
	for (uint64_t since = 0; more; lesson_wait(&since, "the kernel")) {
		const bool ended = lesson_ended(l);

		for (more = !ended; take(r, &m); more = true)
			fits(r, &m);
	}
	printf("%llu sent, %llu taken, of them %llu not the awaited ones\n", n * threads, r->position, r->n_bad);
}

int main(int argc, char **argv)
{
	struct lesson l;
	struct reader r = { 0 };

	lesson_begin(&l, argc > 1 ? argv[1] : "3_ring.ptx");
	r.ring = lesson_host(&l, sizeof *r.ring);
	r.next = lesson_device(&l, sizeof(u64));
	puts("-- four threads, 8 slots, 8 messages");
	ring_has_room(&l, &r);
	puts("-- one lap too many, then two, before the CPU looks");
	overrun(&l, &r, 2 * SLOTS);
	overrun(&l, &r, 3 * SLOTS);
	puts("-- four threads at full speed, the CPU too");
	full_speed(&l, &r);
	lesson_end(&l);
	return 0;
}
