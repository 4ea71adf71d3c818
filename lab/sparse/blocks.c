/* blocks.c — makes the streams' lists of blocks, and the jobs of the pack kernel, from the bitmap of non-zero blocks. */
#include "lab/sparse/sparse_internal.h"

/* Return the number of blocks of a stream.  Every word of the bitmap has 32 blocks, except that the last one may have fewer. */
static uint32_t blocks_of(const gpul_comm_sparse *s, uint32_t stream)
{
	const uint32_t n_words = (s->n_blocks + WORD_BLOCKS - 1) / WORD_BLOCKS;
	const uint32_t mine = n_words / s->n_streams + (stream < n_words % s->n_streams);
	const bool has_last = n_words && (n_words - 1) % s->n_streams == stream;

	return mine * WORD_BLOCKS - (has_last ? n_words * WORD_BLOCKS - s->n_blocks : 0);
}

uint32_t gpul_sparse_block_of(const gpul_comm_sparse *s, uint32_t stream, uint32_t block)
{
	return (block / WORD_BLOCKS * s->n_streams + stream) * WORD_BLOCKS + block % WORD_BLOCKS;
}

void gpul_sparse_divide(gpul_comm_sparse *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_streams; i++) {
		struct stream *t = &s->streams[i];

		*t = (struct stream){ .aggregator = i % s->n_ranks, .slot = i / s->n_ranks, .end = blocks_of(s, i), .first = n };
		for (uint32_t at = 0; at < t->end; at += WORD_BLOCKS) {
			const uint32_t first = gpul_sparse_block_of(s, i, at);

			for (uint32_t bits = s->bitmap[first / WORD_BLOCKS]; bits; bits &= bits - 1) {
				const uint32_t bit = (uint32_t)__builtin_ctz(bits);

				s->lists[n] = first + bit;
				s->index[n++] = at + bit;
			}
		}
		t->n = n - t->first;
	}
	s->n_non_zero = n;
}

void gpul_sparse_plan_jobs(gpul_comm_sparse *s)
{
	bool more = true;
	uint32_t n_flags = 0;

	s->n_jobs = 0;
	for (uint32_t i = 0; i < s->n_streams; i++) {
		s->streams[i].first_flag = n_flags;
		n_flags += (s->streams[i].n + GPUL_SPARSE_JOB_BLOCKS - 1) / GPUL_SPARSE_JOB_BLOCKS;
	}
	for (uint32_t round = 0; more; round++) {
		more = false;
		for (uint32_t i = 0; i < s->n_streams; i++) {
			const struct stream *t = &s->streams[i];
			const uint32_t done = round * GPUL_SPARSE_JOB_BLOCKS, left = t->n > done ? t->n - done : 0;

			if (left == 0)
				continue;
			more = true;
			s->jobs[s->n_jobs++] = (gpul_sparse_job){ .to = s->packed[t->packed].gpu + gpul_sparse_packed_at(s, t, done),
								  .first = t->first + done,
								  .n = left < GPUL_SPARSE_JOB_BLOCKS ? left : GPUL_SPARSE_JOB_BLOCKS,
								  .flag = t->first_flag + round };
		}
	}
}

/* True if the blocks have been packed.  The acquire pairs with the release of the pack kernel. */
bool gpul_sparse_packed(const gpul_comm_sparse *s, const struct stream *t, uint32_t first, uint32_t n)
{
	for (uint32_t job = first / GPUL_SPARSE_JOB_BLOCKS; n && job <= (first + n - 1) / GPUL_SPARSE_JOB_BLOCKS; job++)
		if (atomic_load_explicit(&s->flags[t->first_flag + job], memory_order_acquire) != s->call)
			return false;
	return true;
}
