/* sparse_sim.c — random cases of the protocol in a simulated network: sparse_sim [CASES [SEED]].
 *
 * A case has 1 to 32 ranks, up to 6 streams, a random set of non-zero blocks on each rank, and contributions of 1 to 8 blocks.  Messages of
 * one connection stay in order; those of different connections arrive in any order, because the next event is chosen at random: a message
 * arrives, or a worker's GPU has finished copying a result out of its buffer.  Each case checks that every rank gets exactly the dense sum,
 * no message is lost, no stream waits forever, no buffer is overwritten while it is in use, and no zero block is sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sparse/protocol.h"
#include "lab/sparse/sum.h"

enum { MOST_RANKS = 32, MOST_STREAMS = 6, MOST_BLOCKS = 96, ELEMENTS = 3, MOST = 8, QUEUE = MOST_STREAMS };

typedef float block[ELEMENTS];

struct message {
	uint32_t stream, round, limit, n;
	gpul_sparse_contribution c;
	bool is_result;
	uint32_t index[MOST * MOST_RANKS];
	block data[MOST * MOST_RANKS];
};

/* Messages from one rank to another, in order: at most one contribution or one result of each stream. */
struct connection {
	struct message *queue[2 * QUEUE];
	unsigned n;
};

struct stream {
	uint32_t end;
	int aggregator;
	gpul_sparse_aggregator a;
	gpul_sparse_worker w[MOST_RANKS];
	uint32_t index[MOST_RANKS][MOST_BLOCKS];
	block data[MOST_RANKS][MOST_BLOCKS]; /* the whole input of each rank */
	block out[MOST_RANKS][MOST_BLOCKS];
	struct message *inbox[MOST_RANKS];      /* contributions that have reached the aggregator */
	struct message *results[MOST_RANKS][2]; /* results that workers have not copied yet */
	gpul_sparse_contribution waiting[MOST_RANKS];
	bool waits[MOST_RANKS]; /* true: waiting[] is sent when the buffer for its result is free */
};

struct sim {
	uint64_t random, seed;
	uint32_t n_ranks, n_streams, most;
	struct stream streams[MOST_STREAMS];
	struct connection net[MOST_RANKS][MOST_RANKS];
	uint64_t n_blocks_sent, n_messages, n_wanted;
};

static void wrong(const struct sim *s, const char *what)
{
	printf("case %llu: %s\n", (unsigned long long)s->seed, what);
	exit(1);
}

static uint32_t below(struct sim *s, uint32_t n)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (uint32_t)((z >> 32) * n >> 32);
}

/* ---- the network ------------------------------------------------------------------------------------------------ */

static struct message *new_message(struct sim *s, uint32_t from, uint32_t to, uint32_t stream)
{
	struct connection *c = &s->net[from][to];
	struct message *m = calloc(1, sizeof *m);

	if (!m)
		abort();
	if (c->n == 2 * QUEUE)
		wrong(s, "more messages of a stream are in flight than it has buffers");
	m->stream = stream;
	c->queue[c->n++] = m;
	s->n_messages++;
	return m;
}

static void send_contribution(struct sim *s, uint32_t stream, uint32_t rank, const gpul_sparse_contribution *c)
{
	struct stream *t = &s->streams[stream];
	struct message *m = new_message(s, rank, (uint32_t)t->aggregator, stream);

	m->c = *c;
	for (uint32_t i = 0; i < c->n; i++) {
		m->index[i] = t->index[rank][c->first + i];
		memcpy(m->data[i], t->data[rank][m->index[i]], sizeof(block));
	}
	s->n_blocks_sent += c->n;
}

/* ---- the aggregator --------------------------------------------------------------------------------------------- */

static void close_round(struct sim *s, uint32_t stream)
{
	struct stream *t = &s->streams[stream];
	struct message sums = { .stream = stream, .is_result = true };
	int32_t position[GPUL_COMM_MAX_RANKS];
	gpul_sparse_result result;

	while (gpul_sparse_aggregator_block(&t->a, &sums.index[sums.n], position)) {
		const void *blocks[MOST_RANKS];

		for (uint32_t r = 0; r < s->n_ranks; r++)
			blocks[r] = position[r] < 0 ? NULL : t->inbox[r]->data[position[r]];
		gpul_sparse_sum(sums.data[sums.n++], blocks, s->n_ranks, ELEMENTS, GPUL_COMM_F32, GPUL_COMM_SUM);
	}
	result = gpul_sparse_aggregator_close(&t->a);
	sums.round = result.round;
	sums.limit = result.limit;
	for (uint32_t r = 0; r < s->n_ranks; r++) {
		free(t->inbox[r]);
		t->inbox[r] = NULL;
		*new_message(s, (uint32_t)t->aggregator, r, stream) = sums;
	}
}

static void take_contribution(struct sim *s, uint32_t from, struct message *m)
{
	struct stream *t = &s->streams[m->stream];
	gpul_error err = { 0 };

	if (t->inbox[from])
		wrong(s, "a contribution overwrites another one");
	t->inbox[from] = m;
	if (gpul_sparse_aggregator_take(&t->a, from, &m->c, m->index, &err))
		wrong(s, err.text);
	if (gpul_sparse_aggregator_ready(&t->a))
		close_round(s, m->stream);
}

/* ---- a worker ---------------------------------------------------------------------------------------------------- */

/* Send a rank's waiting contribution if the buffer for the result of its round is free. */
static void contribute(struct sim *s, uint32_t stream, uint32_t rank)
{
	struct stream *t = &s->streams[stream];

	if (!t->waits[rank] || t->results[rank][t->waiting[rank].round % 2])
		return;
	t->waits[rank] = false;
	send_contribution(s, stream, rank, &t->waiting[rank]);
}

static void take_result(struct sim *s, uint32_t rank, struct message *m)
{
	struct stream *t = &s->streams[m->stream];
	struct message **buffer = &t->results[rank][m->round % 2];
	gpul_error err = { 0 };

	if (*buffer)
		wrong(s, "a result overwrites another one");
	*buffer = m;
	if (gpul_sparse_worker_result(&t->w[rank], m->round, m->limit, &t->waiting[rank], &err))
		wrong(s, err.text);
	t->waits[rank] = !t->w[rank].done;
	contribute(s, m->stream, rank);
}

/* Finish the GPU's copy of a result to its destination. */
static void copy_away(struct sim *s, uint32_t stream, uint32_t rank, uint32_t which)
{
	struct stream *t = &s->streams[stream];
	struct message *m = t->results[rank][which];

	for (uint32_t i = 0; i < m->n; i++)
		memcpy(t->out[rank][m->index[i]], m->data[i], sizeof(block));
	t->results[rank][which] = NULL;
	free(m);
	contribute(s, stream, rank);
}

/* ---- a case ------------------------------------------------------------------------------------------------------- */

/* Choose the non-zero blocks of a rank: single blocks or clusters, on some ranks more than on others. */
static void begin_worker(struct sim *s, struct stream *t, uint32_t stream, uint32_t rank)
{
	static const uint32_t percents[] = { 0, 1, 3, 10, 50, 100 };
	const uint32_t percent = percents[below(s, 6)], cluster = 1 + below(s, 8);
	uint32_t n = 0;
	gpul_sparse_contribution hello;
	bool on = false;

	for (uint32_t i = 0; i < t->end; i++) {
		if (i % cluster == 0)
			on = below(s, 100) < percent;
		if (!on)
			continue;
		/* values include -0, and numbers that can cancel to 0 in the sum */
		for (uint32_t k = 0; k < ELEMENTS; k++)
			t->data[rank][i][k] = below(s, 4) == 0 ? -0.0f : (float)below(s, 1000) / 7 - 71;
		t->index[rank][n++] = i;
	}
	hello = gpul_sparse_worker_begin(&t->w[rank], t->index[rank], n, t->end, s->most);
	send_contribution(s, stream, rank, &hello);
	s->n_wanted += n;
}

static void begin(struct sim *s)
{
	s->n_ranks = below(s, 20) == 0 ? 1 + below(s, MOST_RANKS) : 1 + below(s, 8);
	s->n_streams = 1 + below(s, MOST_STREAMS);
	s->most = 1 + below(s, MOST);
	for (uint32_t i = 0; i < s->n_streams; i++) {
		struct stream *t = &s->streams[i];

		t->end = below(s, 10) == 0 ? below(s, 2) : below(s, MOST_BLOCKS) + 1;
		t->aggregator = (int)(i % s->n_ranks);
		gpul_sparse_aggregator_begin(&t->a, s->n_ranks, t->end, s->most);
	}
	for (uint32_t i = 0; i < s->n_streams; i++)
		for (uint32_t r = 0; r < s->n_ranks; r++)
			begin_worker(s, &s->streams[i], i, r);
}

static void deliver(struct sim *s, uint32_t from, uint32_t to)
{
	struct connection *c = &s->net[from][to];
	struct message *m = c->queue[0];

	memmove(c->queue, c->queue + 1, --c->n * sizeof *c->queue);
	if (m->is_result)
		take_result(s, to, m);
	else
		take_contribution(s, from, m);
}

/* Execute the event with number `chosen` among the possible ones; return the number of possible events. */
static uint32_t happen(struct sim *s, uint32_t chosen)
{
	uint32_t n = 0;

	for (uint32_t from = 0; from < s->n_ranks; from++)
		for (uint32_t to = 0; to < s->n_ranks; to++)
			if (s->net[from][to].n && n++ == chosen) {
				deliver(s, from, to);
				return n;
			}
	for (uint32_t i = 0; i < s->n_streams; i++)
		for (uint32_t r = 0; r < s->n_ranks; r++)
			for (uint32_t k = 0; k < 2; k++)
				if (s->streams[i].results[r][k] && n++ == chosen) {
					copy_away(s, i, r, k);
					return n;
				}
	return n;
}

static void check(struct sim *s)
{
	for (uint32_t i = 0; i < s->n_streams; i++) {
		const struct stream *t = &s->streams[i];

		if (!t->a.done)
			wrong(s, "an aggregator waits for ever");
		for (uint32_t b = 0; b < t->end; b++) {
			const void *blocks[MOST_RANKS];
			block sum;

			for (uint32_t r = 0; r < s->n_ranks; r++)
				blocks[r] = t->data[r][b];
			gpul_sparse_sum(sum, blocks, s->n_ranks, ELEMENTS, GPUL_COMM_F32, GPUL_COMM_SUM);
			for (uint32_t r = 0; r < s->n_ranks; r++)
				if (memcmp(sum, t->out[r][b], sizeof sum) != 0)
					wrong(s, "a sum differs from the dense one");
		}
		for (uint32_t r = 0; r < s->n_ranks; r++)
			if (!t->w[r].done)
				wrong(s, "a worker waits for ever");
	}
	if (s->n_blocks_sent != s->n_wanted)
		wrong(s, "not each non-zero block was sent once");
}

static void run_case(struct sim *s, uint64_t seed)
{
	memset(s, 0, sizeof *s);
	s->seed = s->random = seed;
	begin(s);
	for (uint32_t n; (n = happen(s, UINT32_MAX)) > 0;)
		(void)happen(s, below(s, n));
	check(s);
}

int main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 300, first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	struct sim *s = malloc(sizeof *s);
	uint64_t n_messages = 0;

	if (!s)
		abort();
	for (uint64_t i = 0; i < n; i++) {
		run_case(s, first + i);
		n_messages += s->n_messages;
	}
	free(s);
	printf("%llu cases, %llu messages: 0 wrong\n", (unsigned long long)n, (unsigned long long)n_messages);
	return 0;
}
