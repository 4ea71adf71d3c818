/* rounds.c — shows the rounds of a sparse all-reduce: which blocks are requested, sent and summed.  It needs no processes, network or
 * GPU: the program itself passes the messages between gpuload's state machines, and prints them.
 *
 *     ./rounds [MOST [RANK...]]      MOST: limit of blocks in a contribution; RANK: its blocks, # for one that is not zero */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sparse/protocol.h"

enum { MOST_BLOCKS = 64 };

struct rank {
	uint32_t index[MOST_BLOCKS], n; /* indices of its non-zero blocks */
	gpul_sparse_worker worker;
	gpul_sparse_contribution message; /* the last contribution that the rank has sent */
};

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "rounds: %s\n", err->text);
		exit(1);
	}
}

/* Each rank sends the blocks that the last result has requested; in round 0 it sends only the fields next and reach. */
static void send_contributions(struct rank *ranks, uint32_t n_ranks, gpul_sparse_aggregator *a)
{
	gpul_error err = { 0 };

	for (uint32_t r = 0; r < n_ranks; r++) {
		const gpul_sparse_contribution *m = &ranks[r].message;

		printf("    rank %u sends", r);
		for (uint32_t i = 0; i < m->n; i++)
			printf(" %u", ranks[r].index[m->first + i]);
		printf("%s; next %u, reach %u\n", m->n ? "" : " no block", m->next, m->reach);
		need(gpul_sparse_aggregator_take(a, r, m, ranks[r].index + m->first, &err), &err);
	}
}

/* The aggregator merges the lists of blocks.  In a real all-reduce it would also add the blocks, in the order of the ranks. */
static gpul_sparse_result send_sums(gpul_sparse_aggregator *a)
{
	int32_t position[GPUL_COMM_MAX_RANKS];
	gpul_sparse_result result;
	uint32_t block, n_sums = 0;

	while (gpul_sparse_aggregator_block(a, &block, position)) {
		printf("%s %u =", n_sums++ ? "" : "    sums:", block);
		for (uint32_t r = 0, n = 0; r < a->n_ranks; r++)
			if (position[r] >= 0)
				printf("%s%u", n++ ? "+" : " ", r);
	}
	result = gpul_sparse_aggregator_close(a);
	if (result.limit)
		printf("%s the blocks below %u\n", n_sums ? "; requests" : "    requests", result.limit);
	else
		printf("%s\n", n_sums ? "; the end" : "    the end");
	return result;
}

static uint32_t parse_blocks(struct rank *r, const char *text)
{
	const size_t n = strlen(text);

	if (n == 0 || n > MOST_BLOCKS || strspn(text, ".#") != n) {
		fprintf(stderr,
			"rounds: invalid argument '%s': expected 1 to %d characters for the blocks of a rank, # for data, . for zeros\n",
			text, MOST_BLOCKS);
		exit(2);
	}
	for (uint32_t i = 0; i < n; i++)
		if (text[i] == '#')
			r->index[r->n++] = i;
	return (uint32_t)n;
}

int main(int argc, char **argv)
{
	const char *example[] = { "..##.....#......#...............", "...#............................",
				  "..#......#####................##" };
	const char *const *texts = argc > 2 ? (const char *const *)argv + 2 : example;
	const uint32_t n_ranks = argc > 2 ? (uint32_t)argc - 2 : 3;
	const int most = argc > 1 ? atoi(argv[1]) : 2;
	struct rank ranks[GPUL_COMM_MAX_RANKS] = { 0 };
	gpul_sparse_aggregator a;
	gpul_error err = { 0 };
	uint32_t end = 0;

	if (most < 1 || n_ranks > GPUL_COMM_MAX_RANKS) {
		fprintf(stderr, "usage: rounds [MOST [RANK...]], MOST at least 1, at most %d ranks\n", GPUL_COMM_MAX_RANKS);
		return 2;
	}
	for (uint32_t r = 0; r < n_ranks; r++) {
		const uint32_t n = parse_blocks(&ranks[r], texts[r]);

		if (r && n != end) {
			fprintf(stderr, "rounds: rank %u has %u blocks, rank 0 has %u\n", r, n, end);
			return 2;
		}
		end = n;
		printf("rank %u  %s\n", r, texts[r]);
	}
	gpul_sparse_aggregator_begin(&a, n_ranks, end, (uint32_t)most);
	for (uint32_t r = 0; r < n_ranks; r++)
		ranks[r].message = gpul_sparse_worker_begin(&ranks[r].worker, ranks[r].index, ranks[r].n, end, (uint32_t)most);
	while (!a.done) {
		gpul_sparse_result result;

		printf("round %u\n", a.round);
		send_contributions(ranks, n_ranks, &a);
		result = send_sums(&a);
		for (uint32_t r = 0; r < n_ranks; r++)
			need(gpul_sparse_worker_result(&ranks[r].worker, result.round, result.limit, &ranks[r].message, &err), &err);
	}
	return 0;
}
