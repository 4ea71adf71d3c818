/* text.c — computes edit distances, finds the name nearest to a misspelt one, reads byte counts, shortens messages. */
#include "core/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 255

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment: dynamic programming over prefixes; three rows of the table are kept. */
size_t gpul_text_distance(const char *a, const char *b)
{
	uint16_t rows[3][MAX_NAME + 1];
	size_t n = strnlen(a, MAX_NAME), m = strnlen(b, MAX_NAME);

	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (uint16_t)j;
	for (size_t i = 1; i <= n; i++) {
		uint16_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];

		row[0] = (uint16_t)i;
		for (size_t j = 1; j <= m; j++) {
			size_t d = min3(above[j] + 1u, row[j - 1] + 1u, above[j - 1] + (size_t)(a[i - 1] != b[j - 1]));

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1u < d)
				d = two_above[j - 2] + 1u;
			row[j] = (uint16_t)d;
		}
	}
	return rows[n % 3][m];
}

const char *gpul_text_nearest(const char *name, const char *const *names, size_t n_names)
{
	const char *best = NULL, *begun = NULL;
	size_t best_distance = SIZE_MAX, n_begun = 0, n = strnlen(name, MAX_NAME);

	for (size_t i = 0; i < n_names; i++) {
		size_t length = strnlen(names[i], MAX_NAME), limit = (n > length ? n : length) / 3;
		size_t d = gpul_text_distance(name, names[i]);

		if (d <= (limit ? limit : 1) && d < best_distance && d < length) {
			best = names[i];
			best_distance = d;
		}
		if (n > 0 && !strncmp(name, names[i], n)) {
			begun = names[i];
			n_begun++;
		}
	}
	return best ? best : n_begun == 1 ? begun : NULL;
}

bool gpul_text_bytes(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	unsigned long long n;
	int shift;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	shift = unit ? 10 * (int)(unit - units + 1) : 0;
	if (errno || (*end && (!unit || end[1])) || n > UINT64_MAX >> shift)
		return false;
	*out = (uint64_t)n << shift;
	return true;
}

/* ---- shortening texts --------------------------------------------------------------------- */

enum { LEAST_WORD_BYTES = 40, MARK_BYTES = 3 };
static const char mark[] = "...";

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

/* Return the length of the word at `at`; 0 if a blank is there. */
static size_t word_bytes(const char *at)
{
	return strcspn(at, " \t\n");
}

/* Replace the middle of the n bytes at `at` by the mark, so that at most `most` bytes remain: one
 * third from the start, two thirds from the end.  Return how many remain. */
static size_t cut_middle(char *at, size_t n, size_t most)
{
	size_t head = (most - MARK_BYTES) / 3, tail = n - (most - MARK_BYTES - head);

	while (head > 0 && is_continuation(at[head]))
		head--;
	while (tail < n && is_continuation(at[tail]))
		tail++;
	memcpy(at + head, mark, MARK_BYTES);
	memmove(at + head + MARK_BYTES, at + tail, strlen(at + tail) + 1);
	return head + MARK_BYTES + n - tail;
}

/* Return the length that the text has after words longer than `most` bytes are cut to `most`. */
static size_t bytes_with_words_of(const char *text, size_t most)
{
	size_t sum = 0;

	for (size_t n; *text; text += n ? n : 1) {
		n = word_bytes(text);
		sum += n > most ? most : n ? n : 1;
	}
	return sum;
}

static void shorten_words(char *text, size_t room_bytes)
{
	size_t most = room_bytes;

	while (most > LEAST_WORD_BYTES && bytes_with_words_of(text, most) >= room_bytes)
		most--;
	for (size_t n; *text; text += n ? n : 1) {
		n = word_bytes(text);
		if (n > most)
			n = cut_middle(text, n, most);
	}
}

void gpul_text_fit(char *text, size_t room_bytes)
{
	char *first;
	size_t n = strlen(text), span, excess;

	if (n < room_bytes)
		return;
	shorten_words(text, room_bytes);
	n = strlen(text);
	first = strchr(text, '/');
	span = first ? (size_t)(strrchr(text, '/') - first) + 1 : 0;
	excess = n + 1 - room_bytes;
	if (n >= room_bytes && span > LEAST_WORD_BYTES) {
		cut_middle(first, span, span > excess + LEAST_WORD_BYTES ? span - excess : LEAST_WORD_BYTES);
		n = strlen(text);
	}
	if (n < room_bytes)
		return;
	n = room_bytes - 1 - MARK_BYTES;
	while (n > 0 && is_continuation(text[n]))
		n--;
	memcpy(text + n, mark, sizeof mark);
}
