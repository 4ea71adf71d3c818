/* finding.c — reports each error that a tool finds once, and counts it. */
#include "softcuda/tools/tool_internal.h"

#include <stdlib.h>
#include <string.h>

struct tool_finding {
	struct tool_finding *next;  /* next finding in the same slot of the hash table */
	struct tool_finding *first; /* the reported finding that has the same text; NULL: this one was reported itself */
	struct tool_finding *newer; /* the next newer finding in the list of reported findings */
	struct finding_key key;
	char *text;
	uint64_t n; /* number of occurrences of a reported finding */
};

static struct tool_finding **slot_of(struct tool_findings *f, const struct finding_key *key)
{
	const uint64_t hash = ((uintptr_t)key->what[0] ^ (uintptr_t)key->what[1] * 3 ^ key->number) * UINT64_C(0x9e3779b97f4a7c15);

	return &f->slot[hash >> 32 & (FINDING_SLOTS - 1)];
}

/* Find the finding with this key in the list that begins at `at`.  The caller holds the lock. */
static struct tool_finding *find_key(struct tool_finding *at, const struct finding_key *key)
{
	while (at && (at->key.what[0] != key->what[0] || at->key.what[1] != key->what[1] || at->key.number != key->number))
		at = at->next;
	return at;
}

/* Count the finding if it was found before; returns false if it is new.  The caller holds the lock. */
static bool count_known(struct tool_findings *f, const struct finding_key *key)
{
	struct tool_finding *known = find_key(*slot_of(f, key), key);

	if (known)
		(known->first ? known->first : known)->n++;
	return known;
}

bool gpul_finding_known(struct tool_findings *f, const struct finding_key *key)
{
	bool known;

	pthread_mutex_lock(&f->lock);
	known = count_known(f, key);
	pthread_mutex_unlock(&f->lock);
	return known;
}

/* Return the reported finding with this number and text; NULL: none. The caller holds the lock. */
static struct tool_finding *find_text(const struct tool_findings *f, uint64_t number, const char *text)
{
	struct tool_finding *at = f->oldest;

	while (at && (at->key.number != number || strcmp(at->text, text) != 0))
		at = at->newer;
	return at;
}

bool gpul_finding_new(struct tool_findings *f, const struct finding_key *key, const char *text)
{
	struct tool_finding *made = calloc(1, sizeof *made), **slot = slot_of(f, key), *first;
	char *copy = strdup(text);
	bool is_new = false;

	pthread_mutex_lock(&f->lock);
	if (!made || !copy || count_known(f, key)) { /* another thread has added the same finding since the search */
		free(made);
		free(copy);
		pthread_mutex_unlock(&f->lock);
		return false;
	}
	first = find_text(f, key->number, text);
	*made = (struct tool_finding){ .next = *slot, .key = *key, .first = first };
	*slot = made;
	if (first) {
		first->n++;
		free(copy);
	} else {
		made->text = copy;
		made->n = 1;
		*(f->newest ? &f->newest->newer : &f->oldest) = made;
		f->newest = made;
		is_new = true;
	}
	pthread_mutex_unlock(&f->lock);
	return is_new;
}

void gpul_findings_say_counts(struct tool_findings *f, const char *tool, const char *times)
{
	pthread_mutex_lock(&f->lock);
	for (const struct tool_finding *at = f->oldest; at; at = at->newer)
		if (at->n > 1)
			gpul_tool_say(tool, "%s: %llu %s", at->text, (unsigned long long)at->n, times);
	pthread_mutex_unlock(&f->lock);
}
