/* ptx_names.c — keeps the table of names and their bindings in nested scopes. */
#include "ptx/ptx_names_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"

#define NONE UINT32_MAX

struct ptx_name {
	const char *text;
	uint32_t bytes, hash;
	uint32_t plain, ranged; /* indices of the innermost binding of the name itself, and of its range name<n>; or NONE */
	/* true if a name that consists of this name and a number was declared by itself: %r7, in addition to %r<5> */
	bool numbered_plain;
};

struct ptx_binding {
	uint32_t name, row, count, depth;
	uint32_t outer; /* index of the binding that this one hides, or NONE */
	ptx_what what;
};

static struct ptx_name *name_at(const ptx_names *n, uint32_t name)
{
	return &n->entries.at[name];
}

static struct ptx_binding *binding_at(const ptx_names *n, uint32_t b)
{
	return &n->bindings.at[b];
}

static uint32_t hash_of(const char *text, uint32_t bytes)
{
	uint32_t h = 2166136261u; /* the hash function FNV-1a */

	for (uint32_t i = 0; i < bytes; i++)
		h = (h ^ (unsigned char)text[i]) * 16777619u;
	return h;
}

bool ptx_names_init(ptx_names *n, ptx_arena *arena)
{
	*n = (ptx_names){ .arena = arena, .n_slots = 64 };
	n->slots = calloc(n->n_slots, sizeof *n->slots);
	struct ptx_name *empty = gpul_array_push(&n->entries);
	if (!n->slots || !empty)
		return false;
	*empty = (struct ptx_name){ .text = "", .plain = NONE, .ranged = NONE };
	return true;
}

void ptx_names_free(ptx_names *n)
{
	gpul_array_free(&n->entries);
	gpul_array_free(&n->bindings);
	free(n->slots);
	n->slots = NULL;
}

/* Return the slot that contains a name, or the empty slot where it must be inserted. */
static uint32_t *slot_of(const ptx_names *n, const char *text, uint32_t bytes, uint32_t hash)
{
	for (uint32_t i = hash;; i++) {
		uint32_t *slot = &n->slots[i & (n->n_slots - 1)];

		if (!*slot)
			return slot;
		const struct ptx_name *e = name_at(n, *slot);
		if (e->hash == hash && e->bytes == bytes && !memcmp(e->text, text, bytes))
			return slot;
	}
}

static bool grow_slots(ptx_names *n)
{
	uint32_t *old = n->slots;

	if (n->n_slots > UINT32_MAX / 2)
		return false;
	uint32_t *slots = calloc(n->n_slots * (size_t)2, sizeof *slots);
	if (!slots)
		return false;
	n->slots = slots;
	n->n_slots *= 2;
	for (uint32_t i = 1; i < n->entries.n; i++) {
		const struct ptx_name *e = name_at(n, i);

		*slot_of(n, e->text, e->bytes, e->hash) = i;
	}
	free(old);
	return true;
}

uint32_t ptx_names_intern(ptx_names *n, const char *text, uint32_t bytes)
{
	uint32_t hash = hash_of(text, bytes), *slot = slot_of(n, text, bytes, hash);

	if (*slot || !bytes)
		return *slot;
	if (n->entries.n >= n->n_slots / 2) {
		if (!grow_slots(n))
			return 0;
		slot = slot_of(n, text, bytes, hash);
	}
	char *copy = ptx_arena_alloc(n->arena, bytes + (size_t)1);
	struct ptx_name *e = copy ? gpul_array_push(&n->entries) : NULL;
	if (!e)
		return 0;
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	*e = (struct ptx_name){ .text = copy, .bytes = bytes, .hash = hash, .plain = NONE, .ranged = NONE };
	return *slot = (uint32_t)n->entries.n - 1;
}

const char *ptx_names_text(const ptx_names *n, uint32_t name)
{
	return name_at(n, name)->text;
}

uint32_t ptx_names_count(const ptx_names *n)
{
	return (uint32_t)n->entries.n;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Return the length of a name without its trailing digits. */
static uint32_t prefix_bytes(const char *text, uint32_t bytes)
{
	while (bytes && is_digit(text[bytes - 1]))
		bytes--;
	return bytes;
}

/* Mark "%r" when "%r7" is declared by itself, because "%r7" then cannot be found by the prefix "%r" and a number. */
static bool mark_numbered(ptx_names *n, uint32_t name)
{
	const struct ptx_name *e = name_at(n, name);
	uint32_t prefix = prefix_bytes(e->text, e->bytes);

	if (prefix == e->bytes || !prefix)
		return true;
	uint32_t p = ptx_names_intern(n, e->text, prefix);
	if (p)
		name_at(n, p)->numbered_plain = true;
	return p != 0;
}

bool ptx_names_bind(ptx_names *n, uint32_t name, ptx_what what, uint32_t row, uint32_t count)
{
	struct ptx_binding *b = gpul_array_push(&n->bindings);

	if (!b || (!count && !mark_numbered(n, name)))
		return false;
	struct ptx_name *e = name_at(n, name);
	uint32_t *head = count ? &e->ranged : &e->plain;
	*b = (struct ptx_binding){ .name = name, .row = row, .count = count, .depth = n->depth, .outer = *head, .what = what };
	*head = (uint32_t)n->bindings.n - 1;
	if (count && is_digit(e->text[e->bytes - 1]))
		n->digit_prefix = true;
	return true;
}

/* Replace the result by binding b if the scope of b is deeper. */
static void keep_deeper(const ptx_names *n, uint32_t b, uint32_t number, bool *have, ptx_found *out)
{
	const struct ptx_binding *it = binding_at(n, b);

	if (*have && it->depth <= out->depth)
		return;
	*have = true;
	*out = (ptx_found){ .what = it->what, .row = it->row, .number = number, .depth = it->depth };
}

/* Find "<prefix><number>" among the registers that a declaration prefix<count> declares. */
static void find_ranged(const ptx_names *n, const char *text, uint32_t bytes, uint32_t prefix, bool *have, ptx_found *out)
{
	uint32_t digits = bytes - prefix, name;
	uint64_t number = 0;

	if (!digits || digits > 9)
		return;
	name = *slot_of(n, text, prefix, hash_of(text, prefix));
	if (!name)
		return;
	for (uint32_t i = prefix; i < bytes; i++)
		number = number * 10 + (unsigned)(text[i] - '0');
	for (uint32_t b = name_at(n, name)->ranged; b != NONE; b = binding_at(n, b)->outer) {
		if (number >= binding_at(n, b)->count)
			continue;
		keep_deeper(n, b, (uint32_t)number, have, out);
		return;
	}
}

/* Find a name that was declared by itself, or by a prefix with a range; each division into prefix and number is tried. */
static bool find_slowly(const ptx_names *n, const char *text, uint32_t bytes, uint32_t prefix, ptx_found *out)
{
	uint32_t name = *slot_of(n, text, bytes, hash_of(text, bytes));
	bool have = false;

	if (name && name_at(n, name)->plain != NONE)
		keep_deeper(n, name_at(n, name)->plain, 0, &have, out);
	if (!n->digit_prefix) {
		find_ranged(n, text, bytes, prefix, &have, out);
		return have;
	}
	for (uint32_t p = bytes > prefix + 9 ? bytes - 9 : prefix; p < bytes; p++)
		find_ranged(n, text, bytes, p, &have, out);
	return have;
}

bool ptx_names_find(const ptx_names *n, const char *text, uint32_t bytes, ptx_found *out)
{
	uint32_t prefix = prefix_bytes(text, bytes);
	bool have = false;

	if (prefix < bytes && prefix && !n->digit_prefix) {
		uint32_t name = *slot_of(n, text, prefix, hash_of(text, prefix));

		/* in the most common case, such as %r3 of %r<5>, look up only the prefix */
		if (name && name_at(n, name)->ranged != NONE && !name_at(n, name)->numbered_plain) {
			find_ranged(n, text, bytes, prefix, &have, out);
			return have;
		}
	}
	return find_slowly(n, text, bytes, prefix, out);
}

bool ptx_names_find_range(const ptx_names *n, uint32_t name, uint32_t count, ptx_found *out)
{
	uint32_t b = name_at(n, name)->ranged;
	bool have = false;

	if (count && b != NONE)
		keep_deeper(n, b, 0, &have, out); /* two ranges of one name always overlap, because every range begins at 0 */
	return have;
}

void ptx_names_open_scope(ptx_names *n)
{
	n->depth++;
}

void ptx_names_close_scope(ptx_names *n)
{
	while (n->bindings.n) {
		const struct ptx_binding *b = &n->bindings.at[n->bindings.n - 1];

		if (b->depth < n->depth)
			break;
		struct ptx_name *e = name_at(n, b->name);
		if (b->count)
			e->ranged = b->outer;
		else
			e->plain = b->outer;
		n->bindings.n--;
	}
	n->depth--;
}

const char *ptx_names_near(const ptx_names *n, const char *text, uint32_t bytes)
{
	enum { LONGEST = 48 }; /* limits the time, because a comparison takes time quadratic in the length */
	char wanted[LONGEST + 1];
	const char *best = NULL;
	size_t best_distance = bytes > 4 ? 3 : bytes > 1 ? 2 : 0;

	if (bytes > LONGEST)
		return NULL;
	memcpy(wanted, text, bytes);
	wanted[bytes] = 0;
	for (size_t i = 1; i < n->entries.n; i++) {
		const struct ptx_name *e = &n->entries.at[i];

		if (e->plain == NONE || e->bytes > bytes + 2 || bytes > e->bytes + 2)
			continue;
		size_t d = gpul_text_distance(wanted, e->text);
		if (d && d < best_distance) {
			best = e->text;
			best_distance = d;
		}
	}
	return best;
}
