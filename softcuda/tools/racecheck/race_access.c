/* race_access.c — checks an instruction's accesses against those in the shadow memory, and records them there.
 *
 * In the usual case (a row), the lanes access contiguous memory in order. Then most cells contain the same record, and
 * one happens-before check is enough for all of them. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

/* ---- which accesses of a record happen before the warp's next access ------------------------------------------- */

/* Find which accesses of a record happen before the next accesses of w's lanes (MEMO_...); valid until the block's `version` changes. */
static uint8_t find_class(const struct watched_warp *w, const struct record *r)
{
	const struct watched_block *b = w->block;
	const bool own_block = block_key(r->launch, r->block) == b->key;

	if (race_knows_all(w, r))
		return MEMO_ALL;
	if (r->how & HOW_ASYNC || b->shared_clock || b->any_clock || b->knows_cpu)
		return MEMO_SOME;
	if (!own_block || r->warp != w->index)
		return MEMO_NONE;
	return w->knows ? MEMO_SOME : MEMO_OWN;
}

static uint8_t classify(struct watched_warp *w, uint32_t record)
{
	struct memo *m = &w->memo[record % N_MEMOS];

	if (m->record == record && m->version == w->block->version && m->generation == w->block->watcher->generation)
		return m->class;
	*m = (struct memo){ .record = record, .version = w->block->version, .generation = w->block->watcher->generation };
	m->class = find_class(w, &race_records[record]);
	return m->class;
}

/* Returns true if the access `id` happens before the current access of the lane. */
static inline bool is_ordered(struct watched_warp *w, access_id id, unsigned lane)
{
	const uint8_t class = classify(w, id >> LANE_BITS);

	if (class == MEMO_SOME)
		return race_knows(w, lane, &race_records[id >> LANE_BITS], id & LANE_MASK);
	return class == MEMO_ALL || (class == MEMO_OWN && (id & LANE_MASK) == lane);
}

/* ---- checks of one cell of shadow memory ------------------------------------------------------------------------------ */

/* Returns true if the lane writes the value that the memory already has, or that another lane writes in the same instruction. */
static bool writes_the_same(const struct now *n, unsigned lane, access_id other, uint64_t at, unsigned bytes)
{
	const unsigned k = other & LANE_MASK;
	uint8_t value[64], others[64];
	const uint64_t offset = at - n->at[lane];

	if (race_report_same || !race_store_value(n->s, n->i, lane, value))
		return false;
	if (n->site->writes_literal && race_records[other >> LANE_BITS].site == n->site)
		return true;
	if (other >> LANE_BITS == n->record && n->on >> k & 1 && n->at[k] == n->at[lane])
		return race_store_value(n->s, n->i, k, others) && !memcmp(value + offset, others + offset, bytes);
	if (!n->shared && !range_covers(n->s->cache, n->i->src, at, bytes, false)) /* the access will fault, or is to peer memory */
		return false;
	return !memcmp(value + offset, (n->shared ? n->s->shared : (uint8_t *)0) + at, bytes);
}

static void check_against(struct now *n, unsigned lane, access_id other, const struct shadow *sh, size_t cell, uint64_t base)
{
	const struct record *r = &race_records[other >> LANE_BITS];
	uint64_t at = base + (cell << sh->shift);
	unsigned bytes = 1u << sh->shift;

	n->lacks_proxy_fence = false;
	if (race_morally_strong(n->w, n->how, r) || is_ordered(n->w, other, lane)) {
		n->lacks_proxy_fence = race_lacks_proxy_fence(n, lane, r, other & LANE_MASK);
		if (!n->lacks_proxy_fence)
			return;
	}
	if ((r->how & n->how & HOW_WRITES) && !((r->how | n->how) & (HOW_STRONG | HOW_ASYNC)) && writes_the_same(n, lane, other, at, bytes))
		return;
	if (race_is_signal(n, r, n->s ? n->at[lane] : at))
		return;
	if ((n->site->is_volatile || n->how & HOW_STRONG) && (r->site->is_volatile || r->how & HOW_STRONG) &&
	    race_awaits(n->w, lane, r, other & LANE_MASK))
		return;
	if (n->s)
		race_found(n, lane, n->at[lane], n->bytes, r, other & LANE_MASK);
	else
		race_found(n, lane, at, bytes, r, other & LANE_MASK);
}

/* Return the distance between the threads of two accesses: 0: same warp, 1: same block, 2: different blocks. */
static unsigned distance(access_id a, access_id b)
{
	const struct record *x = &race_records[a >> LANE_BITS], *y = &race_records[b >> LANE_BITS];

	return x->launch != y->launch || x->block != y->block ? 2 : x->warp != y->warp;
}

static bool is_weak(access_id id)
{
	return !(race_records[id >> LANE_BITS].how & HOW_STRONG);
}

static bool is_write(access_id id)
{
	return race_records[id >> LANE_BITS].how & HOW_WRITES;
}

/* Returns true if the access happens before every future access to this memory by any thread. */
static bool is_settled(const struct now *n, access_id id)
{
	const struct watched_block *b = n->w->block;
	const struct record *r = &race_records[id >> LANE_BITS];

	if (!n->shared)
		return r->launch != b->launch && race_launch_before(r->launch, b->launch);
	return r->stamp <= b->floor && !(r->how & HOW_ASYNC);
}

/* Returns true if the new read may replace the old access in its slot, because every later access that races with the old one also
 * races with the new one. Strong reads do not race with strong writes, and reads do not race with reads. plain: the new access is a
 * weak read, the old one a read. */
static inline bool is_covered(struct now *n, access_id old, access_id new, bool plain)
{
	if (!old || old == new)
		return true;
	if (!is_ordered(n->w, old, new &LANE_MASK))
		return false;
	return plain || !is_weak(old) || (!is_write(old) && is_weak(new)) || is_settled(n, old);
}

/* Store a read in one of the two slots. With two slots, a write that is ordered after only one of the reads is found to race with the
 * other; the two reads should be from different blocks, or at least from different warps. */
static inline void add_read(struct now *n, struct shadow *sh, size_t c, access_id id, bool plain)
{
	access_id *first = &sh->read[0][c], *second = &sh->read[1][c];

	if (is_covered(n, *first, id, plain))
		*first = id;
	else if (is_covered(n, *second, id, plain))
		*second = id;
	else if ((plain || !is_write(*second)) && distance(*first, id) > distance(*first, *second))
		*second = id;
}

/* Keep the last write in a read slot when a strong write replaces it: in the first slot, or, if that contains a write that is at
 * least as weak, in the second. Of several strong writes, the first and the latest are kept. */
static void keep_write(const struct now *n, struct shadow *sh, size_t c, access_id last)
{
	access_id *first = &sh->read[0][c], *second = &sh->read[1][c];
	const bool weak = is_weak(last);

	if (weak && is_settled(n, last))
		return;
	if (!*first) {
		*first = last;
	} else if (!is_write(*first) || (weak && !is_weak(*first))) {
		if (!*second || !is_weak(*second))
			*second = *first;
		*first = last;
	} else if (!*second || weak || !is_weak(*second)) {
		*second = last;
	}
}

static void set_write(struct now *n, struct shadow *sh, size_t c, access_id id)
{
	const access_id last = sh->write[c];

	sh->write[c] = id;
	if (!(n->how & HOW_STRONG))
		sh->read[0][c] = sh->read[1][c] = 0;
	else if (last && last != id)
		keep_write(n, sh, c, last);
}

/* Returns true if an old access, other than the last write, cannot race with the new access, so that no check is needed. */
static inline bool cannot_race(const struct now *n, access_id old, access_id id)
{
	const unsigned how = race_records[old >> LANE_BITS].how;

	return old == id || !((how | n->how) & HOW_WRITES) ||
	       (how == n->how && how & HOW_STRONG && how >> HOW_SCOPE_AT >= SCOPE_GPU && how < HOW_COPY);
}

static void check_cell(struct now *n, struct shadow *sh, size_t c, uint64_t base, access_id id)
{
	const unsigned lane = id & LANE_MASK;
	const access_id last = sh->write[c];

	if (last && last != id)
		check_against(n, lane, last, sh, c, base);
	if (!(n->how & HOW_WRITES) && (!last || is_weak(last))) { /* then both read slots contain reads, not writes */
		add_read(n, sh, c, id, !(n->how & HOW_STRONG));
		return;
	}
	for (unsigned k = 0; k < 2; k++) {
		access_id *read = &sh->read[k][c];

		if (!*read || cannot_race(n, *read, id))
			continue;
		check_against(n, lane, *read, sh, c, base);
		if (n->how & HOW_STRONG && is_settled(n, *read))
			*read = 0;
	}
	if (n->how & HOW_WRITES)
		set_write(n, sh, c, id);
	else
		add_read(n, sh, c, id, false);
}

/* ---- rows: lanes first to end - 1 access adjacent memory; lane l from cell (l - first) << log_cells on ---------------------- */

static void check_row_slowly(struct now *n, struct shadow *sh, size_t c, unsigned log_cells, uint64_t base, unsigned first, unsigned end)
{
	for (unsigned l = first; l < end; l++)
		for (unsigned k = 0; k < 1u << log_cells; k++)
			check_cell(n, sh, c + ((size_t)(l - first) << log_cells) + k, base, n->record << LANE_BITS | l);
}

/* Returns true if all accesses recorded in the cells happen before the lanes' accesses, or are earlier accesses of the same lanes. */
static bool row_is_ordered(struct now *n, const access_id *cell, unsigned n_cells, unsigned log_cells, unsigned first)
{
	uint32_t known = 0, own = 0;

	for (unsigned k = 0; k < n_cells; k++) {
		const access_id id = cell[k];
		const uint32_t record = id >> LANE_BITS;

		if (!id || record == known)
			continue;
		if (record != own) {
			const uint8_t class = classify(n->w, record);

			if (class == MEMO_ALL) {
				known = record;
				continue;
			}
			if (class != MEMO_OWN)
				return false;
			own = record;
		}
		if ((id & LANE_MASK) != first + (k >> log_cells))
			return false;
	}
	return true;
}

static bool all_zero(const access_id *cell, unsigned n_cells)
{
	access_id any = 0;

	for (unsigned k = 0; k < n_cells; k++)
		any |= cell[k];
	return !any;
}

/* Return the record that all cells contain; 0 if the cells differ or are empty. */
static uint32_t only_record(const access_id *cell, unsigned n_cells)
{
	access_id differ = 0;

	for (unsigned k = 0; k < n_cells; k++)
		differ |= cell[k] ^ cell[0];
	return differ >> LANE_BITS ? 0 : cell[0] >> LANE_BITS;
}

static bool row_is_known(struct now *n, const access_id *cell, unsigned n_cells, unsigned log_cells, unsigned first)
{
	const uint32_t only = only_record(cell, n_cells);

	if (only)
		return classify(n->w, only) == MEMO_ALL || row_is_ordered(n, cell, n_cells, log_cells, first);
	return all_zero(cell, n_cells) || row_is_ordered(n, cell, n_cells, log_cells, first);
}

static void set_row(access_id *cell, unsigned n_cells, unsigned log_cells, access_id first)
{
	for (unsigned k = 0; k < n_cells; k++)
		cell[k] = first + (k >> log_cells);
}

/* Returns true if the two recorded reads are kept, instead of the new one: no access of either happens before the new read, whose
 * thread is no farther from the first read's threads (distance()) than those of the second read are. */
static bool reads_stay(struct now *n, const access_id *read0, const access_id *read1, unsigned n_cells, access_id id)
{
	const uint32_t first = only_record(read0, n_cells), second = only_record(read1, n_cells);

	return first && second && classify(n->w, first) == MEMO_NONE && classify(n->w, second) == MEMO_NONE &&
	       distance(read0[0], id) <= distance(read0[0], read1[0]);
}

static void read_row(struct now *n, struct shadow *sh, size_t c, unsigned log_cells, uint64_t base, unsigned first, unsigned end)
{
	const unsigned n_cells = (end - first) << log_cells;
	const access_id id = n->record << LANE_BITS | first;
	access_id *write = sh->write + c, *read0 = sh->read[0] + c, *read1 = sh->read[1] + c;

	if (!row_is_known(n, write, n_cells, log_cells, first))
		check_row_slowly(n, sh, c, log_cells, base, first, end);
	else if (row_is_known(n, read0, n_cells, log_cells, first))
		set_row(read0, n_cells, log_cells, id);
	else if (!reads_stay(n, read0, read1, n_cells, id))
		check_row_slowly(n, sh, c, log_cells, base, first, end);
}

static void write_row(struct now *n, struct shadow *sh, size_t c, unsigned log_cells, uint64_t base, unsigned first, unsigned end)
{
	const unsigned n_cells = (end - first) << log_cells;
	access_id *write = sh->write + c, *read0 = sh->read[0] + c, *read1 = sh->read[1] + c;
	const bool read = !all_zero(read0, n_cells), twice = !all_zero(read1, n_cells);

	if (!row_is_known(n, write, n_cells, log_cells, first) || (read && !row_is_known(n, read0, n_cells, log_cells, first)) ||
	    (twice && !row_is_known(n, read1, n_cells, log_cells, first))) {
		check_row_slowly(n, sh, c, log_cells, base, first, end);
		return;
	}
	if (read)
		memset(read0, 0, n_cells * sizeof *read0);
	if (twice)
		memset(read1, 0, n_cells * sizeof *read1);
	set_row(write, n_cells, log_cells, n->record << LANE_BITS | first);
}

/* ---- pieces: the part of an access that is in one page of shadow memory ------------------------------------------------------ */

/* Split the shadow cells if needed for accesses whose addresses and sizes are ORed in `bits`.  Returns false if out of memory. */
static bool fit_cells(struct shadow *sh, uint64_t bits)
{
	const unsigned shift = (unsigned)__builtin_ctzll(bits | 16);

	return shift >= sh->shift || race_shadow_split(sh, shift);
}

/* Find the shadow cells of [at, at + bytes), accessed in parts of part_bytes; false: there are none.  base: address of the first cell. */
static bool find_cells(struct shadow *sh, uint64_t at, uint64_t bytes, uint64_t part_bytes, uint64_t base, size_t *first, size_t *end)
{
	if (!fit_cells(sh, at | part_bytes))
		return false;
	*first = (at - base) >> sh->shift;
	*end = (at + bytes - base) >> sh->shift;
	if (*end > sh->n_cells || *first >= *end) /* the address is invalid, so the access will fault */
		return false;
	sh->first = *first < sh->first ? *first : sh->first;
	sh->end = *end > sh->end ? *end : sh->end;
	return true;
}

static uint64_t base_of(const struct now *n, uint64_t at)
{
	return n->shared ? 0 : at & ~(uint64_t)(PAGE_BYTES - 1);
}

static struct shadow *lock_shadow(const struct now *n, uint64_t at)
{
	return n->shared ? &n->w->block->shared : race_page_lock(at, false);
}

static void unlock_shadow(const struct now *n, struct shadow *sh)
{
	if (!n->shared)
		race_page_unlock(sh);
}

/* Store the values of the active lanes first to end - 1 while the page is locked; the instruction itself stores them again afterwards. So
 * a block that writes the same bytes next finds these values in memory, even if this block has not executed its store yet. */
static void store_early(const struct now *n, unsigned first, unsigned end)
{
	const unsigned kinds = HOW_WRITES | HOW_READS | HOW_STRONG | HOW_ASYNC | HOW_MBARRIER;
	uint8_t value[64];

	if (!n->s || n->shared || race_report_same || n->site->is_volatile || (n->how & kinds) != HOW_WRITES)
		return;
	for (unsigned l = first; l < end; l++)
		if (!(n->at[l] & (n->bytes - 1)) && range_covers(n->s->cache, n->i->src, n->at[l], n->bytes, true) &&
		    race_store_value(n->s, n->i, l, value))
			memcpy((uint8_t *)(uintptr_t)n->at[l], value, n->bytes);
}

/* Check an access of one lane that may cross pages. */
static void check_span(struct now *n, unsigned lane, uint64_t at, uint64_t end)
{
	while (at < end) {
		const uint64_t base = base_of(n, at), stop = n->shared || end - base <= PAGE_BYTES ? end : base + PAGE_BYTES;
		struct shadow *sh = lock_shadow(n, at);
		size_t c, last;

		if (!sh)
			return;
		if (find_cells(sh, at, stop - at, stop - at, base, &c, &last))
			for (; c < last; c++)
				check_cell(n, sh, c, base, n->record << LANE_BITS | lane);
		store_early(n, lane, lane + 1);
		unlock_shadow(n, sh);
		at = stop;
	}
}

static void check_lane(struct now *n, unsigned lane)
{
	check_span(n, lane, n->at[lane], n->at[lane] + n->bytes);
}

/* Check a copy's access to a whole page that has no cells.  Returns false if the page has cells, which must be checked one by one. */
static bool check_whole_page(struct now *n, uint64_t at)
{
	struct shadow *page = race_page_lock(at, true), whole;

	if (!page || page->write) {
		if (page)
			race_page_unlock(page);
		return !page;
	}
	whole = (struct shadow){ .shift = PAGE_SHIFT, .n_cells = 1, .write = &page->all[0], .read = { &page->all[1], &page->all[2] } };
	check_cell(n, &whole, 0, at, n->record << LANE_BITS);
	race_page_unlock(page);
	return true;
}

void race_check_span(struct now *n, uint64_t at, uint64_t end)
{
	while (at < end) {
		const uint64_t next = (at | (PAGE_BYTES - 1)) + 1, stop = next < end ? next : end;

		if (stop - at != PAGE_BYTES || !check_whole_page(n, at))
			check_span(n, 0, at, stop);
		at = stop;
	}
}

/* Check the adjacent accesses of the active lanes first to end - 1, which are all in one page of shadow memory. */
static void check_piece(struct now *n, unsigned first, unsigned end)
{
	const uint64_t at = n->at[first], base = base_of(n, at);
	struct shadow *sh = lock_shadow(n, at);
	size_t c, last;

	if (!sh)
		return;
	if (find_cells(sh, at, (end - first) * (uint64_t)n->bytes, n->bytes, base, &c, &last)) {
		const unsigned log_cells = (unsigned)__builtin_ctz(n->bytes) - sh->shift;

		if (n->how & HOW_READS && n->how & HOW_WRITES)
			check_row_slowly(n, sh, c, log_cells, base, first, end);
		else if (n->how & HOW_WRITES)
			write_row(n, sh, c, log_cells, base, first, end);
		else
			read_row(n, sh, c, log_cells, base, first, end);
		store_early(n, first, end);
	}
	unlock_shadow(n, sh);
}

/* ---- the lanes of an instruction ------------------------------------------------------------------------------------------------ */

static void check_row(struct now *n, unsigned first, unsigned end)
{
	while (first < end) {
		const uint64_t room = n->shared ? UINT64_MAX : PAGE_BYTES - (n->at[first] & (PAGE_BYTES - 1));
		const unsigned fit = room / n->bytes < end - first ? (unsigned)(room / n->bytes) : end - first;

		check_piece(n, first, first + fit);
		first += fit;
	}
}

static bool is_row(const struct now *n)
{
	uint64_t skew = 0;

	for (unsigned l = 0; l < LANES; l++)
		skew |= n->at[l] - n->at[0] - l * (uint64_t)n->bytes;
	return !skew;
}

/* Return the end of the run of active lanes that starts at `first` and whose addresses are `step` bytes apart (0: equal). */
static unsigned end_of_run(const struct now *n, unsigned first, uint64_t step)
{
	unsigned end = first + 1;

	while (end < LANES && n->on >> end & 1 && n->at[end] - n->at[end - 1] == step)
		end++;
	return end;
}

void race_check_lanes(struct now *n)
{
	const bool aligned = !(n->bytes & (n->bytes - 1)) && !(n->at[first_lane(n->on)] & (n->bytes - 1));
	/* Lanes that read one address, or access it with strong accesses, do not race with each other, so only two of them are checked. */
	const bool any_two = n->how & HOW_STRONG || !(n->how & HOW_WRITES);
	unsigned end;

	if (!n->record)
		return;
	if (n->on == ALL_LANES && aligned && !n->site->bulk && is_row(n)) {
		check_row(n, 0, LANES);
		return;
	}
	for (unsigned first = 0; first < LANES; first = end) {
		end = first + 1;
		if (!(n->on >> first & 1))
			continue;
		if (aligned && !n->site->bulk && (end = end_of_run(n, first, n->bytes)) > first + 1) {
			check_row(n, first, end);
			continue;
		}
		end = any_two ? end_of_run(n, first, 0) : first + 1;
		check_lane(n, first);
		if (end > first + 1)
			check_lane(n, end - 1);
	}
}
