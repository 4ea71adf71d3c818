/* 3_ring.c — a ring of 8 slots and a ticket counter: the ticket of a message determines its slot and its order.
 *
 *     3_ring [3_ring.ptx]
 *
 * Read read_message() and check_message(); overrun() shows the loss of messages when the ring is full and the GPU does not
 * know it. */
#include <stdio.h>
#include <string.h>

#include "lesson.h"

struct reader {
	struct ring *ring;
	CUdeviceptr next;       /* the ticket counter */
	u64 position;           /* the next position to read */
	u64 of_thread[THREADS]; /* the number of messages read from each thread */
	u64 n_bad;              /* the number of messages out of order */
};

/* Read the message at the next position, if it has arrived. */
static bool read_message(struct reader *r, struct slot *out)
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

/* Check that the message contains the position at which it was read, and is the next message of its thread. */
static bool check_message(struct reader *r, const struct slot *m)
{
	const bool good = m->word[1] == r->position - 1 && (m->word[0] & 0xffffffff) == r->of_thread[m->word[0] >> 32]++;

	r->n_bad += !good;
	return good;
}

static void start_pushes(struct lesson *l, struct reader *r, unsigned threads, u64 n)
{
	gpul_error err = { 0 };

	memset(r->ring, 0, sizeof *r->ring);
	lesson_need(gpul_cu(l->drv, &err, cuMemsetD8Async(r->next, 0, sizeof(u64), l->stream)), &err);
	*r = (struct reader){ .ring = r->ring, .next = r->next };
	lesson_start(l, "push", threads, (struct lesson_arg[]){ ARG(r->ring), ARG(r->next), ARG(n) }, 3);
}

/* Four threads push 8 messages into 8 slots. */
static void ring_has_room(struct lesson *l, struct reader *r)
{
	struct slot m;

	start_pushes(l, r, 4, SLOTS / 4);
	for (uint64_t since = 0; r->position < SLOTS; lesson_wait(&since, "8 messages"))
		while (r->position < SLOTS && read_message(r, &m))
			printf("position %llu: message %llu of thread %llu%s\n", m.word[1], m.word[0] & 0xffffffff, m.word[0] >> 32,
			       check_message(r, &m) ? "" : ", out of order");
	lesson_join(l);
	printf("%d sent, %llu read, %llu out of order\n", SLOTS, r->position, r->n_bad);
}

/* One thread sends more messages than the ring has slots before the CPU reads. */
static void overrun(struct lesson *l, struct reader *r, u64 n)
{
	struct slot m;
	u64 first = 0;

	start_pushes(l, r, 1, n);
	lesson_join(l);
	while (r->position < SLOTS && read_message(r, &m)) {
		first = r->position == 1 ? m.word[1] : first;
		check_message(r, &m);
	}
	printf("%llu sent, %llu read, %llu lost: ", n, r->position, n - r->position);
	if (r->position)
		printf("position 0 contains message %llu, with a correct lap bit\n", first);
	else
		puts("slot 0 has the wrong lap bit, so the reader waits forever");
}

/* Four threads push, and the CPU reads as fast as it can.  The number of lost messages varies. */
static void full_speed(struct lesson *l, struct reader *r)
{
	const unsigned threads = 4;
	u64 n = 5000;
	struct slot m;
	bool more = true;

	start_pushes(l, r, threads, n);
	for (uint64_t since = 0; more; lesson_wait(&since, "the kernel")) {
		const bool ended = lesson_ended(l);

		for (more = !ended; read_message(r, &m); more = true)
			check_message(r, &m);
	}
	printf("%llu sent, %llu read, %llu of them out of order\n", n * threads, r->position, r->n_bad);
	if (r->position < n * threads)
		puts("(the GPU was whole laps ahead: the reader accepts each second lap, and waits forever in the laps between)");
	else
		puts("(the CPU kept up with the GPU: nothing is lost in this run)");
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
	puts("-- one lap too many, then two laps, before the CPU reads");
	overrun(&l, &r, 2 * SLOTS);
	overrun(&l, &r, 3 * SLOTS);
	puts("-- four threads and the CPU at full speed");
	full_speed(&l, &r);
	lesson_end(&l);
	return 0;
}
