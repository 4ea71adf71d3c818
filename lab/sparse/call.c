/* call.c — performs a call: finds the non-zero blocks, exchanges hellos with the other ranks, and exchanges the data, dense or sparse. */
#include <sched.h>
#include <string.h>

#include "comm/bootstrap/roster.h"
#include "lab/sparse/sparse_internal.h"
#include "core/clock.h"

enum { TURNS_PER_CHECK = 256 };

/* ---- checks of the arguments ---------------------------------------------------------------------------------------- */

static gpul_status check_buffer(const char *name, CUdeviceptr at, size_t element_bytes, gpul_error *err)
{
	if (!at || at % element_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s buffer at %#llx: expected an address that is a multiple of %zu", name,
				 (unsigned long long)at, element_bytes);
	return GPUL_OK;
}

static gpul_status begin_call(gpul_comm_sparse *s, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, gpul_comm_op op,
			      CUstream stream, gpul_error *err)
{
	const size_t element_bytes = gpul_comm_dtype_bytes(dtype), n_bytes = count * element_bytes;
	gpul_status st;

	if (s->failure.status)
		return gpul_fail(err, s->failure.status, s->failure.native, "%s", s->failure.text);
	if (element_bytes == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "unknown element type %d", (int)dtype);
	if (op != GPUL_COMM_SUM && op != GPUL_COMM_AVG)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "operation %s is not possible: a sparse all-reduce leaves out zeros, so only sum and avg are "
				 "possible",
				 gpul_comm_op_name(op));
	if (count / s->options.block >= INT32_MAX || count > SIZE_MAX / 2 / element_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu elements are too many: expected fewer than 2^31 blocks of %u elements", count,
				 s->options.block);
	st = check_buffer("send", send, element_bytes, err);
	st = st ? st : check_buffer("recv", recv, element_bytes, err);
	if (!st && send != recv && send < recv + n_bytes && recv < send + n_bytes)
		st = gpul_fail(err, GPUL_EINVAL, 0,
			       "the send and recv buffers overlap: they must be the same buffer (in place) or separate");
	if (st)
		return st;
	s->call++;
	s->send = send;
	s->recv = recv;
	s->count = count;
	s->n_bytes = n_bytes;
	s->dtype = dtype;
	s->op = op;
	s->user = stream;
	s->block_bytes = s->options.block * (uint32_t)element_bytes;
	s->n_blocks = (uint32_t)((count + s->options.block - 1) / s->options.block);
	s->n_items = s->n_launched = 0;
	s->packs = false;
	s->idle.since_ns = 0;
	s->report = (gpul_comm_sparse_report){ .n_blocks = s->n_blocks };
	return GPUL_OK;
}

/* ---- waits ------------------------------------------------------------------------------------------------------------- */

/* Find a rank from which this rank still waits for data, for the message of a time-out. */
static uint32_t awaited(const gpul_comm_sparse *s)
{
	for (uint32_t r = 0; r < s->n_ranks; r++)
		if (s->links[r].conn && !s->links[r].greeted)
			return r;
	for (uint32_t i = 0; i < s->n_slots; i++)
		for (uint32_t r = 0; r < s->n_ranks && !s->slots[i].aggregator.done; r++)
			if (s->links[r].conn && !s->slots[i].aggregator.workers[r].has)
				return r;
	for (uint32_t i = 0; i < s->n_streams; i++)
		if (!s->streams[i].worker.done && s->streams[i].aggregator != s->rank)
			return s->streams[i].aggregator;
	return s->rank;
}

/* Called after each iteration of a polling loop.  If nothing has happened, yields the CPU; checks for failures and the time-out. */
static gpul_status rest(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_error why = { 0 };
	uint64_t now;

	if (s->idle.n_events != s->n_events) {
		s->idle.n_events = s->n_events;
		s->idle.since_ns = 0;
		return GPUL_OK;
	}
	(void)sched_yield();
	if (++s->idle.turns % TURNS_PER_CHECK)
		return GPUL_OK;
	if (gpul_boot_failed(s->boot, &why))
		return gpul_sparse_fail(s, &why, -1, err);
	now = gpul_clock_ns();
	s->idle.since_ns = s->idle.since_ns ? s->idle.since_ns : now;
	if (s->options.timeout_ms < 0 || now - s->idle.since_ns < (uint64_t)s->options.timeout_ms * 1000000)
		return GPUL_OK;
	gpul_fail(&why, GPUL_ECOMM, GPUL_COMM_TIMED_OUT,
		  "sparse all-reduce: rank %u has sent nothing for %d ms, and rank %u waits for its data", awaited(s),
		  s->options.timeout_ms, s->rank);
	return gpul_sparse_fail(s, &why, (int)awaited(s), err);
}

/* ---- hellos ------------------------------------------------------------------------------------------------------------ */

static size_t hello_at(const gpul_comm_sparse *s, size_t base, uint32_t rank)
{
	const size_t each = (s->layout.own_hellos_at - s->layout.hellos_at) / 2 / s->n_ranks;

	return base + ((size_t)(s->call % 2) * s->n_ranks + rank) * each;
}

/* Start the streams, and send each rank a hello, which describes the streams that the receiver aggregates. */
static gpul_status greet(gpul_comm_sparse *s, uint32_t *n_puts, gpul_error *err)
{
	const size_t hellos = (size_t)((unsigned char *)&s->steps->hellos[s->rank] - (unsigned char *)s->steps);
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; i < s->n_streams; i++) {
		struct stream *t = &s->streams[i];

		t->contribution = gpul_sparse_worker_begin(&t->worker, s->index + t->first, t->n, t->end, s->most);
	}
	for (uint32_t d = 1; !st && d < s->n_ranks; d++) {
		const uint32_t to = (s->rank + d) % s->n_ranks;
		const size_t at = hello_at(s, s->layout.own_hellos_at, to);
		struct hello *h = (struct hello *)(void *)(s->area.cpu + at);

		*h = (struct hello){ .call = s->call, .count = s->count, .n_non_zero = s->n_non_zero, .dtype = s->dtype, .op = s->op };
		for (uint32_t k = 0; k < s->n_slots; k++) {
			h->slots[k].next = s->streams[k * s->n_ranks + to].contribution.next;
			h->slots[k].reach = s->streams[k * s->n_ranks + to].contribution.reach;
		}
		st = gpul_sparse_put(s, to, &s->area, at, sizeof *h, hello_at(s, s->layout.hellos_at, s->rank), hellos, s->call, n_puts,
				     err);
	}
	return st;
}

static gpul_status check_hello(gpul_comm_sparse *s, uint32_t rank, const struct hello *h, gpul_error *err)
{
	gpul_error why = { 0 };

	if (h->call == s->call && h->count == s->count && h->dtype == s->dtype && h->op == s->op && h->n_non_zero <= s->n_blocks)
		return GPUL_OK;
	gpul_fail(&why, GPUL_ECOMM, GPUL_COMM_MISMATCH,
		  "sparse all-reduce %llu: ranks disagree: rank %u has %llu %s, %s; rank %u has %llu %s, %s", (unsigned long long)s->call,
		  rank, (unsigned long long)h->count, gpul_comm_dtype_name((gpul_comm_dtype)h->dtype),
		  gpul_comm_op_name((gpul_comm_op)h->op), s->rank, (unsigned long long)s->count, gpul_comm_dtype_name(s->dtype),
		  gpul_comm_op_name(s->op));
	return gpul_sparse_fail(s, &why, (int)rank, err);
}

/* Wait for the hellos of all ranks, and add up their numbers of non-zero blocks. */
static gpul_status await_hellos(gpul_comm_sparse *s, uint64_t *n_non_zero, gpul_error *err)
{
	uint32_t n_missing = s->n_ranks - 1;
	gpul_status st = GPUL_OK;

	*n_non_zero = s->n_non_zero;
	for (uint32_t r = 0; r < s->n_ranks; r++)
		s->links[r].greeted = false;
	while (!st && n_missing) {
		st = gpul_sparse_progress(s, err);
		for (uint32_t r = 0; !st && r < s->n_ranks; r++) {
			const struct hello *h = (const struct hello *)(const void *)(s->area.cpu + hello_at(s, s->layout.hellos_at, r));

			if (!s->links[r].conn || s->links[r].greeted ||
			    atomic_load_explicit(&s->steps->hellos[r], memory_order_acquire) < s->call)
				continue;
			s->links[r].greeted = true;
			n_missing--;
			s->n_events++;
			st = check_hello(s, r, h, err);
			*n_non_zero += h->n_non_zero;
		}
		st = st || !n_missing ? st : rest(s, err);
	}
	return st;
}

/* True if the dense algorithm needs to send less.  A dense ring sends each block 2 (n - 1) / n times.  The sparse algorithm sends
 * (n - 1) / n of a rank's non-zero blocks, and each sum that the rank has computed to n - 1 ranks.  So the factor 2 becomes d + u,
 * where d is the density of the data, and u the density of the sums, at most n d. */
static bool is_dense(const gpul_comm_sparse *s, double density)
{
	const double sums = s->n_ranks * density < 1 ? s->n_ranks * density : 1;

	return s->options.comm && (density + sums) / 2 * 100 > s->options.percent;
}

/* ---- exchange ------------------------------------------------------------------------------------------------------------ */

static gpul_status begin_streams(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_error why = { 0 };

	for (uint32_t k = 0; k < s->n_slots; k++) {
		const struct stream *t = &s->streams[k * s->n_ranks + s->rank];

		s->slots[k] = (struct slot){ 0 };
		gpul_sparse_aggregator_begin(&s->slots[k].aggregator, s->n_ranks, t->end, s->most);
		for (uint32_t r = 0; r < s->n_ranks; r++) {
			const struct hello *h = (const struct hello *)(const void *)(s->area.cpu + hello_at(s, s->layout.hellos_at, r));
			const gpul_sparse_contribution c = { .next = h->slots[k].next, .reach = h->slots[k].reach };

			if (gpul_sparse_aggregator_take(&s->slots[k].aggregator, r, r == s->rank ? &t->contribution : &c, NULL, &why))
				return gpul_sparse_fail(s, &why, (int)r, err);
		}
	}
	return GPUL_OK;
}

static bool all_done(const gpul_comm_sparse *s)
{
	if (s->n_launched != s->n_items)
		return false;
	for (uint32_t k = 0; k < s->n_slots; k++)
		if (!s->slots[k].aggregator.done)
			return false;
	for (uint32_t i = 0; i < s->n_streams; i++)
		if (!s->streams[i].worker.done)
			return false;
	return true;
}

/* Run until this rank has received everything, and the other ranks have acknowledged its data.  Until then this rank must also make
 * progress for the other ranks: a provider acknowledges data only while the receiver makes progress. */
static gpul_status exchange(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_status st = begin_streams(s, err);

	st = st ? st : gpul_sparse_clear(s, err);
	while (!st && (!all_done(s) || gpul_sparse_busy(s))) {
		st = gpul_sparse_progress(s, err);
		for (uint32_t k = 0; !st && k < s->n_slots; k++)
			st = gpul_sparse_aggregate(s, k, err);
		for (uint32_t i = 0; !st && i < s->n_streams; i++)
			st = gpul_sparse_work(s, i, err);
		st = st ? st : gpul_sparse_scatter(s, err);
		st = st ? st : rest(s, err);
	}
	return st ? st : gpul_sparse_finish(s, err);
}

/* ---- the call ----------------------------------------------------------------------------------------------------------- */

/* Perform the steps of a call that can fail on this rank alone.  The hello reports such a failure to the other ranks. */
static gpul_status find_and_pack(gpul_comm_sparse *s, gpul_error *err)
{
	const double own = s->n_blocks ? 1.0 / s->n_blocks : 0;
	gpul_error why = { 0 };
	gpul_status st = gpul_sparse_room_for_tables(s, &why);

	st = st ? st : gpul_sparse_find_blocks(s, &why);
	if (!st) {
		gpul_sparse_divide(s);
		s->report.n_non_zero = s->n_non_zero;
		if (!is_dense(s, own * s->n_non_zero)) /* starts before the hellos are exchanged, so that both run in parallel */
			st = gpul_sparse_pack(s, &why);
	}
	return st ? gpul_sparse_fail(s, &why, (int)s->rank, err) : GPUL_OK;
}

static gpul_status reduce(gpul_comm_sparse *s, gpul_error *err)
{
	uint64_t n_non_zero = 0;
	uint32_t n_puts = 0;
	gpul_error why = { 0 };
	gpul_status st = find_and_pack(s, err);

	st = st ? st : greet(s, &n_puts, err);
	st = st ? st : await_hellos(s, &n_non_zero, err);
	while (!st && n_puts) { /* wait for the puts in flight, because they decrement a counter in this function's stack frame */
		st = gpul_sparse_progress(s, err);
		st = st ? st : rest(s, err);
	}
	if (st)
		return st;
	s->report.density = (double)n_non_zero / s->n_ranks / s->n_blocks;
	s->report.dense = is_dense(s, s->report.density);
	if (s->report.dense) {
		s->report.sent_bytes = 0;
		return gpul_comm_allreduce(s->options.comm, s->send, s->recv, s->count, s->dtype, s->op, s->user, err);
	}
	if (!s->packs)
		st = gpul_sparse_pack(s, &why);
	if (st)
		return gpul_sparse_fail(s, &why, (int)s->rank, err);
	return exchange(s, err);
}

gpul_status gpul_comm_sparse_allreduce(gpul_comm_sparse *s, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype,
				       gpul_comm_op op, CUstream stream, gpul_comm_sparse_report *report, gpul_error *err)
{
	gpul_status st;

	if (count == 0 && !s->failure.status) {
		if (report)
			*report = (gpul_comm_sparse_report){ 0 };
		return GPUL_OK;
	}
	st = begin_call(s, send, recv, count, dtype, op, stream, err);
	st = st ? st : reduce(s, err);
	if (!st && report)
		*report = s->report;
	return st;
}
