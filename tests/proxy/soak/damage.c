/* damage.c — puts errors into polled triggers before the checker reads them, to test that it finds them. */
#include <string.h>

#include "tests/proxy/soak/soak.h"

const struct damage_row damages[N_DAMAGES] = {
	[NO_DAMAGE] = { "none", "", SOAK_PUSH, false },
	[DROP] = { "drop", "wrong position", SOAK_PUSH, false },
	[REPEAT] = { "repeat", "wrong position", SOAK_PUSH, false },
	[SWAP] = { "swap", "lost or overtaken", SOAK_PUSH, false },
	[STALE_WORD] = { "stale-word", "torn", SOAK_PUSH, false },
	[STALE_SLOT] = { "stale-slot", "repeated", SOAK_PUSH, false },
	[FLIP] = { "flip", "torn", SOAK_RELEASE, false },
	[NO_PAYLOAD] = { "no-payload", "with release, but", SOAK_RELEASE, false },
	[NO_ANSWER] = { "no-answer", "the answer was not visible", SOAK_SYNC, false },
	[WRONG_LANE] = { "wrong-lane", "wrong lane", SOAK_PUSH, false },
	[OVERTAKE] = { "overtake", "out of ticket order", SOAK_PUSH, true },
};

static void swap(gpul_fifo_item *a, gpul_fifo_item *b)
{
	const gpul_fifo_item was = *a;

	memcpy(a->word, b->word, sizeof(a->word));
	memcpy(b->word, was.word, sizeof(b->word));
}

/* Make the error in `items`, which are at least two consecutive triggers of a lane from one thread (OVERTAKE: from two threads);
 * n: their number. */
static void change(enum damage damage, struct checker *c, gpul_fifo_item *items, unsigned *n)
{
	const unsigned thread = items->word[0] >> SOAK_THREAD_SHIFT & (SOAK_MAX_THREADS - 1);

	switch (damage) {
	case DROP:
		memmove(items, items + 1, --*n * sizeof(*items));
		break;
	case REPEAT:
		items[1] = items[0];
		break;
	case SWAP:
	case OVERTAKE:
		swap(&items[0], &items[1]);
		break;
	case STALE_WORD:
		items[1].word[1] = items[0].word[1];
		break;
	case STALE_SLOT:
		memcpy(items[1].word, items[0].word, sizeof(items->word));
		break;
	case FLIP:
		items[1].word[0] ^= 1ull << SOAK_RELEASE_SHIFT;
		break;
	case WRONG_LANE:
		items[1].lane ^= 1;
		break;
	case NO_ANSWER:
		c->forgets_answer = true;
		break;
	case NO_PAYLOAD:
		for (unsigned i = 0; i <= c->payload_mask; i++)
			c->payload[(size_t)thread * (c->payload_mask + 1) + i] = 0;
		break;
	default:
		break;
	}
}

bool damage_do(enum damage damage, struct checker *c, gpul_fifo_item *items, unsigned *n)
{
	if (damage == NO_ANSWER && *n) { /* needs no pair of triggers, because each waiting thread has only one trigger in flight */
		c->forgets_answer = true;
		return true;
	}
	for (unsigned i = 0; i + 1 < *n; i++) {
		const bool one = items[i].word[0] >> SOAK_THREAD_SHIFT == items[i + 1].word[0] >> SOAK_THREAD_SHIFT;
		unsigned rest = *n - i;

		if (items[i].lane != items[i + 1].lane || one == (damage == OVERTAKE))
			continue;
		change(damage, c, items + i, &rest);
		*n = i + rest;
		return true;
	}
	return false;
}
