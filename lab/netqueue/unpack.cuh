/* unpack.cuh — the kernel of a netqueue: entries are read and checked by the first warp of each block, pieces copied by the others.
 *
 *     warp 0, the reader                      batch 0   batch 1 ... 3 (shared memory)    the other warps, the copiers
 *     poll 32 entries, lane by lane              │         │
 *     check each; refuse, or write it into ──> pieces      │
 *     store n_filled = 1 ────────────────────────┼─────────┼───────────────────────────> each polls it
 *     poll the next entries meanwhile ─────────────────> pieces                          copies its units of 4 KiB
 *     store n_filled = 2                      <──┼───────────── n_finished[0] ────────── counts: this warp has finished batch 0
 *     all copiers have finished batch 0:                                                 continues with batch 1, if it is filled
 *     now and then store done[block], credits
 *
 * The reader does not wait for copiers while a batch is free.  All copier warps of the block take units from the same list: large
 * pieces are divided among them, and a small one is copied by one warp.  The list continues from batch to batch, so all copiers get
 * the same amount of work, and no copier waits for another: the loads of one batch are in flight while the last pieces of the previous
 * batch are stored.
 *
 * Blocks do not wait for each other.  They wait for the CPU, which waits for credits of all blocks; so all blocks must be resident at
 * the same time. */
#ifndef GPULOAD_LAB_NETQUEUE_UNPACK_CUH
#define GPULOAD_LAB_NETQUEUE_UNPACK_CUH

#include "comm/device/word.cuh"
#include "lab/netqueue/copy.cuh"
#include "lab/netqueue/netqueue_layout.h"

/* A batch of up to 32 pieces; lane i has read the entry of piece i.  An invalid entry has no units. */
struct gpul_netqueue_batch {
	unsigned char *to[GPUL_NETQUEUE_LANES];
	const unsigned char *from[GPUL_NETQUEUE_LANES];
	uint32_t n_bytes[GPUL_NETQUEUE_LANES];
	uint32_t units_end[GPUL_NETQUEUE_LANES]; /* prefix sum: number of units of pieces 0 to i */
	uint64_t taken;                          /* used by the reader: number of this block's entries up to the end of this batch */
};

/* TOLD_BATCHES: a busy block reports its finished entries to the CPU once per 8 batches, because the fence before the report waits
 * for the stores of the whole multiprocessor (measured: with a report for each batch, pieces of 4 KiB took 10 % longer). */
enum { GPUL_NETQUEUE_BATCHES = 4, GPUL_NETQUEUE_NAP_NS = 40, GPUL_NETQUEUE_TOLD_BATCHES = 8 };

struct gpul_netqueue_shared {
	gpul_netqueue_batch batches[GPUL_NETQUEUE_BATCHES];
	uint32_t n_finished[GPUL_NETQUEUE_BATCHES]; /* number of copiers that have finished batch b, b + 4, b + 8 ..., modulo 2^32 */
	uint32_t n_filled;                          /* number of batches filled, modulo 2^32 */
	uint32_t leave;                             /* 1: there will be no further batch */
};

/* ---- checks of entries ---- */

struct gpul_netqueue_refusal {
	uint32_t field; /* a value of gpul_netqueue_field */
	uint64_t value, limit;
};

static __device__ __forceinline__ gpul_netqueue_refusal gpul_netqueue_refuse(uint32_t field, uint64_t value, uint64_t limit)
{
	gpul_netqueue_refusal r;

	r.field = field;
	r.value = value;
	r.limit = limit;
	return r;
}

/* Check an entry.  The sums cannot overflow: source has 36 bits, destination 56, length 20. */
static __device__ __forceinline__ gpul_netqueue_refusal gpul_netqueue_check(const gpul_netqueue_view *q, const gpul_netqueue_entry *e)
{
	const uint64_t source = gpul_netqueue_source_of(e), destination = gpul_netqueue_destination_of(e);
	const uint64_t length = gpul_netqueue_length_of(e), slot_end = (source & ~(uint64_t)(q->slot_bytes - 1)) + q->slot_bytes;

	if (length == 0 || length > q->slot_bytes)
		return gpul_netqueue_refuse(GPUL_NETQUEUE_LENGTH, length, q->slot_bytes);
	if (source >= q->bounce_bytes)
		return gpul_netqueue_refuse(GPUL_NETQUEUE_SOURCE, source, q->bounce_bytes);
	if (source + length > q->bounce_bytes)
		return gpul_netqueue_refuse(GPUL_NETQUEUE_SOURCE_END, source + length, q->bounce_bytes);
	if (source + length > slot_end)
		return gpul_netqueue_refuse(GPUL_NETQUEUE_SLOT_END, source + length, slot_end);
	if (destination >= q->destination_bytes)
		return gpul_netqueue_refuse(GPUL_NETQUEUE_DESTINATION, destination, q->destination_bytes);
	if (destination + length > q->destination_bytes)
		return gpul_netqueue_refuse(GPUL_NETQUEUE_DESTINATION_END, destination + length, q->destination_bytes);
	return gpul_netqueue_refuse(GPUL_NETQUEUE_ACCEPTED, 0, 0);
}

static __device__ __forceinline__ void gpul_netqueue_write_report(gpul_netqueue_report *report, uint64_t entry,
								  const gpul_netqueue_refusal *r)
{
	report->entry = entry;
	report->field = r->field;
	report->block = blockIdx.x;
	report->value = r->value;
	report->limit = r->limit;
	gpul_store_release(&report->ready, 1);
}

static __device__ __forceinline__ void gpul_netqueue_report_refusal(const gpul_netqueue_view *q, uint64_t entry,
								    const gpul_netqueue_refusal *r)
{
	const uint64_t i = atomicAdd((unsigned long long *)&q->counts->n_refused, 1ull);

	atomicAdd((unsigned long long *)&q->counts->refused[r->field], 1ull);
	if (i < GPUL_NETQUEUE_MAX_REPORTS)
		gpul_netqueue_write_report(&q->control->reports[i], entry, r);
}

/* ---- the reader ---- */

/* The state of the reader warp; all lanes have the same values unless stated otherwise. */
struct gpul_netqueue_reader {
	uint64_t taken;                 /* number of this block's entries that the reader has taken from the ring */
	uint64_t written, abort;        /* the control words `written` and `abort`, as last read */
	uint64_t start_ns;              /* time of the first check in the current wait; 0: no check yet */
	uint64_t n_pieces, n_bytes;     /* this lane's number of pieces and bytes */
	uint64_t n_batches, n_finished; /* number of batches that the reader has filled, and number that the copiers have finished */
	/* number of batches reported to the CPU in done[], and number of entries that the copiers have finished */
	uint64_t n_told, finished;
	uint32_t n_copiers, polls;
};

static __device__ __forceinline__ uint32_t gpul_netqueue_see(const uint32_t *word)
{
	uint32_t n;

	asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(n) : "r"((uint32_t)__cvta_generic_to_shared(word)) : "memory");
	return n;
}

static __device__ __forceinline__ void gpul_netqueue_show(uint32_t *word, uint32_t n)
{
	asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"((uint32_t)__cvta_generic_to_shared(word)), "r"(n) : "memory");
}

/* Find the batches that the copiers have finished; they can be filled again. */
static __device__ __forceinline__ void gpul_netqueue_collect(const gpul_netqueue_shared *s, gpul_netqueue_reader *r, uint32_t lane)
{
	while (r->n_finished < r->n_batches) {
		const uint32_t b = (uint32_t)r->n_finished % GPUL_NETQUEUE_BATCHES,
			       n = lane == 0 ? gpul_netqueue_see(&s->n_finished[b]) : 0;

		if (__shfl_sync(~0u, n, 0) != (uint32_t)(r->n_finished / GPUL_NETQUEUE_BATCHES + 1) * r->n_copiers)
			return;
		__syncwarp(); /* orders the copiers' loads from this batch before later stores into it by any lane */
		r->finished = s->batches[b].taken;
		r->n_finished++;
	}
}

/* Report the finished entries to the CPU, which treats them as credits.  The acquire in gpul_netqueue_see() and the release here
 * order the copiers' loads before the CPU's next receive into these slots.  The release pairs with the load in
 * gpul_netqueue_read_done() (netqueue.c). */
static __device__ __forceinline__ void gpul_netqueue_publish(const gpul_netqueue_view *q, gpul_netqueue_reader *r, uint32_t lane)
{
	if (r->n_told == r->n_finished)
		return;
	if (lane == 0)
		gpul_store_release(&q->control->done[blockIdx.x], r->finished);
	r->n_told = r->n_finished;
}

/* Called after a poll that found no entries.  Returns true if there will be no more entries, or the block must end. */
static __device__ __forceinline__ bool gpul_netqueue_give_up(const gpul_netqueue_view *q, gpul_netqueue_reader *r, uint64_t first,
							     uint32_t lane)
{
	uint64_t now;

	if (r->abort != 0 || (r->written % 2 == 1 && first >= r->written / 2))
		return true;
	if (++r->polls % q->polls_per_check != 0 || q->timeout_ns == 0)
		return false;
	now = __shfl_sync(~0u, gpul_globaltimer_ns(), 0);
	if (r->start_ns == 0)
		r->start_ns = now;
	if (now - r->start_ns < q->timeout_ns)
		return false;
	if (lane == 0 && atomicAdd((unsigned long long *)&q->counts->n_timed_out, 1ull) == 0) {
		const gpul_netqueue_refusal waited = gpul_netqueue_refuse(GPUL_NETQUEUE_WAITED, now - r->start_ns, q->timeout_ns);

		gpul_netqueue_write_report(&q->control->waited, first, &waited);
		gpul_store_relaxed(&q->control->abort, 1);
	}
	return true;
}

/* Write this lane's entry into the batch as a piece.  An entry that was not accepted becomes a piece without units. */
static __device__ __forceinline__ void gpul_netqueue_fill(const gpul_netqueue_view *q, gpul_netqueue_batch *b, gpul_netqueue_reader *r,
							  const gpul_netqueue_entry *e, bool accepted, uint32_t lane)
{
	unsigned char *to = q->destination + (accepted ? gpul_netqueue_destination_of(e) : 0);
	const uint32_t n_bytes = accepted ? gpul_netqueue_length_of(e) : 0, before = (uint32_t)(uintptr_t)to % 16;
	const uint32_t whole = (before + n_bytes + GPUL_NETQUEUE_UNIT_BYTES - GPUL_NETQUEUE_REST_BYTES) / GPUL_NETQUEUE_UNIT_BYTES;
	uint32_t units = n_bytes == 0 ? 0 : whole == 0 ? 1 : whole;

	b->to[lane] = to;
	b->from[lane] = q->bounce + (accepted ? gpul_netqueue_source_of(e) : 0);
	b->n_bytes[lane] = n_bytes;
	r->n_pieces += accepted;
	r->n_bytes += n_bytes;
#pragma unroll
	for (uint32_t step = 1; step < GPUL_NETQUEUE_LANES; step *= 2) {
		const uint32_t lower = __shfl_up_sync(~0u, units, step);

		units += lane >= step ? lower : 0;
	}
	b->units_end[lane] = units;
}

/* True if both words contain the lap number of the entry; otherwise *wrong is set to the lap number that differs. */
static __device__ __forceinline__ bool gpul_netqueue_laps(const gpul_netqueue_entry *e, uint32_t lap, uint32_t *wrong)
{
	const uint32_t lap0 = (uint32_t)(e->word[0] >> GPUL_NETQUEUE_LAP_SHIFT), lap1 = (uint32_t)(e->word[1] >> GPUL_NETQUEUE_LAP_SHIFT);

	*wrong = lap0 != lap ? lap0 : lap1;
	return lap0 == lap && lap1 == lap;
}

static __device__ __forceinline__ bool gpul_netqueue_reads(uint64_t *reads)
{
	uint64_t before;

	asm volatile("atom.acquire.gpu.global.exch.b64 %0, [%1], 1;" : "=l"(before) : "l"(reads) : "memory");
	return before == 0;
}

/* Read the control words `written` and `abort`.  Only one lane of one block at a time reads them from host memory, and stores them
 * in device memory for the other blocks.  The bus delivers the same line of host memory only about once per microsecond: if each of
 * 132 blocks read it, they would wait up to 136 us for their first entries.  An acquire orders the later loads of entries and
 * pieces; it pairs with the store in gpul_netqueue_publish() of the CPU, directly or by way of the block that has read the word,
 * whose release at GPU scope is cumulative. */
static __device__ __forceinline__ void gpul_netqueue_look(const gpul_netqueue_view *q, gpul_netqueue_reader *r, uint32_t lane)
{
	uint64_t written, abort;

	if (lane == 0) {
		gpul_load_words_acquire_gpu(&q->counts->written, &written, &abort);
		if (written == r->written && abort == r->abort && gpul_netqueue_reads(&q->counts->reads)) {
			gpul_load_words_acquire(&q->control->written, &written, &abort);
			gpul_store_words_release_gpu(&q->counts->written, written, abort);
			gpul_store_release_gpu(&q->counts->reads, 0);
		}
		r->written = written;
		r->abort = abort;
	}
	r->written = __shfl_sync(~0u, r->written, 0);
	r->abort = __shfl_sync(~0u, r->abort, 0);
	__syncwarp(); /* orders what lane 0 has acquired before the loads of the other lanes */
}

/* Poll this block's next 32 entries, and take the complete ones before the first incomplete one.  Returns their number.
 *
 * Entries that were below `written` at an earlier poll are just loaded.  Otherwise the loads of `written` and of the entries are in
 * flight together, so an entry may be read before it is written, although `written` already includes it.  If the laps of the first
 * entry are wrong, it is therefore read again after a fence; if they are still wrong, it is refused. */
static __device__ __forceinline__ uint32_t gpul_netqueue_take(const gpul_netqueue_view *q, gpul_netqueue_batch *b, gpul_netqueue_reader *r,
							      uint32_t lane)
{
	const uint64_t n = gpul_netqueue_entry_of(r->taken + lane, blockIdx.x, gridDim.x, q->chunk_entries);
	const gpul_netqueue_entry *at = &q->ring[n & (q->n_entries - 1)];
	const uint32_t lap = gpul_netqueue_lap(n, q->n_entries);
	const bool look = __shfl_sync(~0u, n, GPUL_NETQUEUE_LANES - 1) >= r->written / 2;
	gpul_netqueue_refusal refusal = gpul_netqueue_refuse(GPUL_NETQUEUE_ACCEPTED, 0, 0);
	gpul_netqueue_entry e;
	uint32_t wrong_lap;

	gpul_load_words(at, &e.word[0], &e.word[1]);
	if (look)
		gpul_netqueue_look(q, r, lane);
	const bool counted = n < r->written / 2;
	bool right = gpul_netqueue_laps(&e, lap, &wrong_lap);

	if (lane == 0 && counted && !right) {
		gpul_fence_sys();
		gpul_load_words_acquire(at, &e.word[0], &e.word[1]);
		right = gpul_netqueue_laps(&e, lap, &wrong_lap);
	}
	__syncwarp();
	const uint32_t incomplete = ~__ballot_sync(~0u, counted && (right || lane == 0));
	const uint32_t n_taken = incomplete ? (uint32_t)__ffs((int)incomplete) - 1 : GPUL_NETQUEUE_LANES;

	if (n_taken == 0)
		return 0;
	if (lane < n_taken)
		refusal = right ? gpul_netqueue_check(q, &e) : gpul_netqueue_refuse(GPUL_NETQUEUE_LAP, wrong_lap, lap);
	if (refusal.field != GPUL_NETQUEUE_ACCEPTED)
		gpul_netqueue_report_refusal(q, n, &refusal);
	__syncwarp();
	gpul_netqueue_fill(q, b, r, &e, lane < n_taken && refusal.field == GPUL_NETQUEUE_ACCEPTED, lane);
	return n_taken;
}

static __device__ __forceinline__ void gpul_netqueue_read(const gpul_netqueue_view *q, gpul_netqueue_shared *s, uint32_t lane)
{
	gpul_netqueue_reader r = {};
	bool leave = false;

	r.n_copiers = blockDim.x / GPUL_NETQUEUE_LANES - 1;
	while (!leave) {
		gpul_netqueue_batch *b = &s->batches[r.n_batches % GPUL_NETQUEUE_BATCHES];
		uint32_t n_taken = 0;

		do
			gpul_netqueue_collect(s, &r, lane);
		while (r.n_batches - r.n_finished == GPUL_NETQUEUE_BATCHES); /* loops while all batches are in use */
		if (r.n_finished - r.n_told >= GPUL_NETQUEUE_TOLD_BATCHES)
			gpul_netqueue_publish(q, &r, lane);
		r.start_ns = 0;
		while (!leave && (n_taken = gpul_netqueue_take(q, b, &r, lane)) == 0) {
			gpul_netqueue_collect(s, &r, lane);
			gpul_netqueue_publish(q, &r, lane);
			leave = gpul_netqueue_give_up(q, &r, gpul_netqueue_entry_of(r.taken, blockIdx.x, gridDim.x, q->chunk_entries),
						      lane);
		}
		r.taken += n_taken;
		r.n_batches += !leave;
		if (lane == 0 && !leave)
			b->taken = r.taken;
		__syncwarp(); /* wait until all lanes have written their pieces into the batch */
		if (lane == 0)
			gpul_netqueue_show(leave ? &s->leave : &s->n_filled, leave ? 1 : (uint32_t)r.n_batches);
	}
	while (r.n_finished < r.n_batches)
		gpul_netqueue_collect(s, &r, lane);
	gpul_netqueue_publish(q, &r, lane);
	if (r.n_pieces)
		atomicAdd((unsigned long long *)&q->counts->n_pieces, (unsigned long long)r.n_pieces);
	if (r.n_bytes)
		atomicAdd((unsigned long long *)&q->counts->n_bytes, (unsigned long long)r.n_bytes);
}

/* ---- the copiers ---- */

/* Copy units first, first + n_copiers ... of the batch.  Returns the number of this warp's first unit in the next batch. */
static __device__ __forceinline__ uint32_t gpul_netqueue_copy_batch(const gpul_netqueue_batch *b, uint32_t first, uint32_t n_copiers,
								    uint32_t lane)
{
	const uint32_t units_end = b->units_end[lane], n_units = __shfl_sync(~0u, units_end, GPUL_NETQUEUE_LANES - 1);
	uint32_t u = first;

	for (; u < n_units; u += n_copiers) {
		const uint32_t piece = (uint32_t)__popc(__ballot_sync(~0u, units_end <= u));
		const uint32_t units_before = __shfl_sync(~0u, units_end, (int)(piece + GPUL_NETQUEUE_LANES - 1) % GPUL_NETQUEUE_LANES);
		const bool last = u + 1 == __shfl_sync(~0u, units_end, (int)piece);
		const uint32_t part = u - (piece ? units_before : 0), n_bytes = b->n_bytes[piece];
		unsigned char *to = b->to[piece];
		/* All units but the first begin at destination addresses that are multiples of 16; the last unit includes the remainder. */
		const uint32_t before = (uint32_t)(uintptr_t)to % 16, begin = part ? part * GPUL_NETQUEUE_UNIT_BYTES - before : 0;
		const uint32_t end = last ? n_bytes : (part + 1) * GPUL_NETQUEUE_UNIT_BYTES - before;

		gpul_netqueue_copy(to + begin, b->from[piece] + begin, end - begin, lane);
	}
	return u - n_units;
}

/* Wait until more than n batches (modulo 2^32) are filled.  Returns false if there will be no more.  One lane polls for the whole warp. */
static __device__ __forceinline__ bool gpul_netqueue_next_batch(const gpul_netqueue_shared *s, uint32_t n, uint32_t lane)
{
	uint32_t more = 0;

	if (lane == 0) {
		while ((more = gpul_netqueue_see(&s->n_filled) != n) == 0) {
			if (gpul_netqueue_see(&s->leave)) { /* stored after the last n_filled, so n_filled must be read again */
				more = gpul_netqueue_see(&s->n_filled) != n;
				break;
			}
			__nanosleep(GPUL_NETQUEUE_NAP_NS);
		}
	}
	more = __shfl_sync(~0u, more, 0);
	__syncwarp(); /* makes what lane 0 has acquired visible to the other lanes before they load the batch */
	return more;
}

static __device__ __forceinline__ void gpul_netqueue_copy_batches(gpul_netqueue_shared *s, uint32_t warp, uint32_t lane)
{
	const uint32_t n_copiers = blockDim.x / GPUL_NETQUEUE_LANES - 1;
	uint32_t first = warp - 1;

	for (uint32_t n = 0; gpul_netqueue_next_batch(s, n, lane); n++) {
		const uint32_t b = n % GPUL_NETQUEUE_BATCHES;

		first = gpul_netqueue_copy_batch(&s->batches[b], first, n_copiers, lane);
		__syncwarp(); /* wait until all lanes have loaded their bytes of the batch */
		if (lane == 0)
			asm volatile("red.release.cta.shared.add.u32 [%0], 1;" ::"r"((uint32_t)__cvta_generic_to_shared(&s->n_finished[b]))
				     : "memory");
	}
}

static __device__ __forceinline__ void gpul_netqueue_unpack_block(const gpul_netqueue_view *q)
{
	__shared__ gpul_netqueue_shared shared;
	const uint32_t warp = threadIdx.x / GPUL_NETQUEUE_LANES, lane = threadIdx.x % GPUL_NETQUEUE_LANES;

	if (threadIdx.x < GPUL_NETQUEUE_BATCHES)
		shared.n_finished[threadIdx.x] = 0;
	if (threadIdx.x == 0)
		shared.n_filled = shared.leave = 0;
	__syncthreads();
	if (warp == 0)
		gpul_netqueue_read(q, &shared, lane);
	else
		gpul_netqueue_copy_batches(&shared, warp, lane);
}

#endif
