/* race_record.c — allocates records of accesses, and garbage-collects them.
 *
 * Shadow memory refers to records by number. When no record is free, the worker that needs a record stops the other workers between
 * two hooks, marks the records that shadow memory refers to, and frees all others. If nearly all are in use, the table grows; at its
 * maximum size, the tool forgets all accesses made so far. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { FIRST_RECORDS = 1 << 20, MOST_RECORDS = 1 << 26, SPARE = 1 << 16 };
_Static_assert((uint64_t)MOST_RECORDS << LANE_BITS <= UINT64_C(1) << 32, "an access_id has room for the number of a record");

struct record *race_records;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watcher *watchers;
static _Thread_local struct watcher *mine;
static uint64_t *used; /* bit k: record k is in use */
static uint32_t n_records = FIRST_RECORDS;
static _Atomic uint32_t cursor;  /* index in `used` of the word at which the search for free records continues */
static _Atomic uint32_t n_given; /* records allocated since the last collection */
static _Atomic bool collecting;
static _Atomic uint32_t generation;
static uint32_t n_free; /* number of free records after the last collection */

bool race_records_create(void)
{
	race_records = mmap(NULL, MOST_RECORDS * sizeof *race_records, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
	if (race_records == MAP_FAILED)
		return false;
	used = mmap(NULL, MOST_RECORDS / 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (used == MAP_FAILED)
		return false;
	used[0] = 1; /* record 0 is never allocated, because 0 means "none" */
	n_free = n_records;
	return true;
}

struct watcher *race_watcher_new(void)
{
	struct watcher *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	pthread_mutex_lock(&lock);
	k->next = watchers;
	watchers = k;
	pthread_mutex_unlock(&lock);
	return k;
}

struct watcher *race_watcher(void)
{
	if (!mine)
		mine = race_watcher_new();
	return mine;
}

/* ---- garbage collection --------------------------------------------------------------------------------------------- */

static void mark_record(access_id id)
{
	const uint32_t record = id >> LANE_BITS;

	used[record / 64] |= UINT64_C(1) << record % 64;
}

static uint32_t count_free(void)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < n_records / 64; k++)
		n += 64 - (uint32_t)__builtin_popcountll(used[k]);
	return n;
}

/* Free the records to which no shadow memory refers.  The caller is inside a hook, and holds no lock of a shadow page. */
static void collect(struct watcher *me)
{
	atomic_store(&me->inside, false);
	pthread_mutex_lock(&lock);
	if (atomic_load(&n_given) + SPARE < n_free) /* another worker has just collected garbage */
		goto out;
	atomic_store(&collecting, true);
	for (struct watcher *k = watchers; k; k = k->next)
		while (atomic_load(&k->inside))
			sched_yield();
	memset(used, 0, n_records / 8);
	used[0] = 1;
	race_shadow_each(mark_record);
	for (struct watcher *k = watchers; k; k = k->next)
		for (struct watched_block *b = k->blocks; b; b = b->next)
			race_shadow_each_of(&b->shared, mark_record);
	n_free = count_free();
	if (n_free < n_records / 2 && n_records < MOST_RECORDS) {
		n_free += n_records;
		n_records *= 2;
	} else if (n_free < n_records / 4) {
		static bool told;

		if (!told)
			gpul_tool_say(TOOL, "too many accesses: those made so far are no longer checked, so their races are not found");
		told = true;
		race_shadow_forget_all();
		for (struct watcher *k = watchers; k; k = k->next)
			for (struct watched_block *b = k->blocks; b; b = b->next)
				race_shadow_clear(&b->shared);
		memset(used, 0, n_records / 8);
		used[0] = 1;
		n_free = n_records;
	}
	atomic_store(&cursor, 0);
	atomic_store(&n_given, 0);
	atomic_fetch_add(&generation, 1);
	atomic_store(&collecting, false);
out:
	pthread_mutex_unlock(&lock);
	atomic_store(&me->inside, true);
}

void race_enter(struct watcher *k)
{
	for (;;) {
		atomic_store(&k->inside, true);
		if (!atomic_load(&collecting))
			break;
		atomic_store_explicit(&k->inside, false, memory_order_release);
		while (atomic_load(&collecting))
			sched_yield();
	}
	if (atomic_load_explicit(&n_given, memory_order_relaxed) + SPARE >= n_free)
		collect(k);
	if (k->generation != atomic_load_explicit(&generation, memory_order_relaxed)) {
		k->generation = atomic_load(&generation);
		k->first_free = k->end_free = 0;
	}
}

void race_leave(struct watcher *k)
{
	atomic_store_explicit(&k->inside, false, memory_order_release);
}

/* ---- allocating records ------------------------------------------------------------------------------------------------ */

/* Return the worker's next free record.  If it has none, reserve those of the next word of the bit map `used` for it. */
static uint32_t next_free(struct watcher *k)
{
	while (!k->end_free || k->first_free == k->end_free) {
		const uint32_t word = atomic_fetch_add(&cursor, 1);
		uint32_t record = word * 64;

		if (record >= n_records) /* cannot happen: the SPARE records are enough for all hooks that run together */
			return 0;
		if (used[word] == UINT64_MAX)
			continue;
		atomic_fetch_add_explicit(&n_given, 64 - (uint32_t)__builtin_popcountll(used[word]), memory_order_relaxed);
		k->first_free = record;
		k->end_free = record + 64;
		while (used[k->first_free / 64] >> k->first_free % 64 & 1)
			k->first_free++;
	}
	return k->first_free;
}

uint32_t race_record_new(struct watched_warp *w, const struct site *site, unsigned how)
{
	struct watched_block *b = w->block;
	struct watcher *k = b->watcher;
	const uint32_t record = next_free(k);
	const bool async = how & HOW_ASYNC;

	if (!record)
		return 0;
	race_records[record] = (struct record){ .site = site,
						.launch = b->launch,
						.block = (uint32_t)b->key,
						.stamp = w->stamp,
						.warp = (uint16_t)w->index,
						.how = (uint8_t)how,
						.pending = async };
	do
		k->first_free++;
	while (k->first_free < k->end_free && used[k->first_free / 64] >> k->first_free % 64 & 1);
	return record;
}

uint32_t race_record(struct watched_warp *w, const struct site *site, unsigned how)
{
	struct kept *kept = &w->kept[(site->number + (how & HOW_WRITES)) % N_KEPT];
	const uint64_t key = (uint64_t)w->block->serial << 32 | w->stamp;

	if (kept->site == site && kept->key == key && kept->generation == w->block->watcher->generation &&
	    race_records[kept->record].how == how)
		return kept->record;
	kept->record = race_record_new(w, site, how);
	kept->site = kept->record ? site : NULL;
	kept->key = key;
	kept->generation = w->block->watcher->generation;
	return kept->record;
}
