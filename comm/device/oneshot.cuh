/* oneshot.cuh — small messages in one round trip: every rank writes its data into the scratch of the others.
 *
 *     rank A                                     rank B
 *     put: word i, flag n ─────────────────────> scratch[n % 2][A] word i
 *     take: poll scratch[n % 2][B] word i <───── put
 *
 * A message is cut into pairs of LL words (16 bytes with 8 bytes of data).  Of the n threads of the grid,
 * thread t handles the pairs t, t + n, ...; it writes all of them before it reads the first one, so all of
 * them are in flight at the same time. */
#ifndef GPULOAD_COMM_DEVICE_ONESHOT_CUH
#define GPULOAD_COMM_DEVICE_ONESHOT_CUH

#include "comm/device/desk.cuh"
#include "comm/device/pack.cuh"
#include "comm/device/reduce.cuh"

enum { GPUL_ONESHOT_BYTES = 8, GPUL_ONESHOT_AT_ONCE = 4 };

/* Load the 8 bytes of pair i from a buffer of any alignment; bytes beyond its end are 0. */
static __device__ __forceinline__ uint64_t gpul_oneshot_load(const unsigned char *buffer, uint64_t i, uint64_t n_bytes)
{
	const unsigned char *from = buffer + i * GPUL_ONESHOT_BYTES;
	const uint64_t left = n_bytes - i * GPUL_ONESHOT_BYTES;

	if (left >= 8 && (uintptr_t)from % 8 == 0)
		return gpul_load_relaxed((const uint64_t *)from);
	if (left == 4 && (uintptr_t)from % 4 == 0)
		return gpul_load_relaxed32((const uint32_t *)from);
	const uint4 pack = gpul_load_short(from, left < 8 ? (uint32_t)left : 8);

	return (uint64_t)pack.y << 32 | pack.x;
}

static __device__ __forceinline__ void gpul_oneshot_store(unsigned char *buffer, uint64_t i, uint64_t n_bytes, uint64_t data)
{
	unsigned char *to = buffer + i * GPUL_ONESHOT_BYTES;
	const uint64_t left = n_bytes - i * GPUL_ONESHOT_BYTES;

	if (left >= 8 && (uintptr_t)to % 8 == 0)
		*(uint64_t *)to = data;
	else if (left == 4 && (uintptr_t)to % 4 == 0)
		*(uint32_t *)to = (uint32_t)data;
	else
		gpul_store_short(to, make_uint4((uint32_t)data, (uint32_t)(data >> 32), 0, 0), left < 8 ? (uint32_t)left : 8);
}

/* Reduce two words.  The most common reduction is inlined: a call of the large function takes a tenth of the time of a small all-reduce. */
static __device__ __forceinline__ uint64_t gpul_oneshot_reduce(uint64_t a, uint64_t b, const gpul_comm_work *work)
{
	const uint4 x = make_uint4((uint32_t)a, (uint32_t)(a >> 32), 0, 0), y = make_uint4((uint32_t)b, (uint32_t)(b >> 32), 0, 0);
	const uint4 sum = gpul_adds_f32(work) ? gpul_add_f32(x, y) : gpul_reduce(x, y, work->dtype, work->op);

	return (uint64_t)sum.y << 32 | sum.x;
}

/* Divide by the number of ranks if work->op is AVG; otherwise return `a` unchanged. */
static __device__ __forceinline__ uint64_t gpul_oneshot_finish(uint64_t a, const gpul_comm_work *work, uint32_t n_ranks)
{
	const uint4 mean = gpul_finish(make_uint4((uint32_t)a, (uint32_t)(a >> 32), 0, 0), work->dtype, work->op, n_ranks);

	return (uint64_t)mean.y << 32 | mean.x;
}

/* The values that a thread needs for a call.  They are loaded together with the number of the call, so that the loads overlap. */
struct gpul_oneshot {
	const gpul_comm_view *comm;
	uint64_t number, began_ns;
	gpul_comm_trace *trace; /* NULL: the trace is off, or this is not thread 0 */
	int rank, n_ranks;
	unsigned char *theirs[GPUL_ONESHOT_AT_ONCE], *mine[GPUL_ONESHOT_AT_ONCE]; /* desks (layout.h) of ranks `first`, first + 1 ... */
	int first;
	uint64_t scratch_at, scratch_bytes;
};

static __device__ __forceinline__ void gpul_oneshot_desks(gpul_oneshot *o, int first)
{
#pragma unroll
	for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++) {
		const bool is_peer = first + k < o->n_ranks && first + k != o->rank;

		o->theirs[k] = is_peer ? o->comm->peers[first + k].their_desk : NULL;
		o->mine[k] = is_peer ? o->comm->peers[first + k].desk : NULL;
	}
	o->first = first;
}

/* Return the time, for the trace. gpul_trace_now() is not used, because it would wait for the load of comm->trace. */
static __device__ __forceinline__ uint64_t gpul_oneshot_now(const gpul_oneshot *o)
{
	return o->trace ? gpul_globaltimer_ns() | 1 : 0;
}

static __device__ __forceinline__ void gpul_oneshot_event(const gpul_oneshot *o, uint32_t kind, uint64_t began_ns, int peer)
{
	if (o->trace)
		gpul_trace_write(o->trace, kind, began_ns, peer, o->number, 0);
}

/* Begin a call; block 0 also sends the signature of the call to all ranks (gpul_desk_greet()). */
static __device__ __forceinline__ void gpul_oneshot_begin(gpul_oneshot *o, const gpul_comm_view *comm, const gpul_comm_work *work)
{
	o->comm = comm;
	o->rank = comm->rank;
	o->n_ranks = (int)comm->sizes.n_ranks;
	o->scratch_at = comm->sizes.scratch_at;
	o->scratch_bytes = comm->sizes.scratch_bytes;
	gpul_oneshot_desks(o, 0);
	o->number = gpul_desk_number(comm);
	o->trace = threadIdx.x == 0 ? comm->trace : NULL;
	gpul_desk_greet(comm, work, o->number, false);
	o->began_ns = gpul_oneshot_now(o);
}

/* Return the address of pair i of the data that rank `from` writes into a desk in this call. */
static __device__ __forceinline__ unsigned char *gpul_oneshot_scratch(const gpul_oneshot *o, unsigned char *desk, int from, uint64_t i)
{
	return desk + o->scratch_at + (o->number % 2 * o->n_ranks + from) * o->scratch_bytes + i * 16;
}

static __device__ __forceinline__ void gpul_oneshot_put(const gpul_oneshot *o, unsigned char *desk, uint64_t i, uint64_t data)
{
	gpul_store_ll(gpul_oneshot_scratch(o, desk, o->rank, i), data, (uint32_t)o->number);
}

/* Write 8 bytes of data as pair i into the scratch of all other ranks. */
static __device__ __forceinline__ void gpul_oneshot_put_all(gpul_oneshot *o, uint64_t i, uint64_t data)
{
	for (int first = 0; first < o->n_ranks; first += GPUL_ONESHOT_AT_ONCE) {
		if (first != o->first)
			gpul_oneshot_desks(o, first);
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++)
			if (o->theirs[k])
				gpul_oneshot_put(o, o->theirs[k], i, data);
	}
}

/* Send pair i of part r of a buffer to rank r, for every rank r except this one. */
static __device__ __forceinline__ void gpul_oneshot_put_parts(gpul_oneshot *o, uint64_t i, const unsigned char *send, uint64_t part_bytes)
{
	for (int first = 0; first < o->n_ranks; first += GPUL_ONESHOT_AT_ONCE) {
		if (first != o->first)
			gpul_oneshot_desks(o, first);
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++)
			if (o->theirs[k])
				gpul_oneshot_put(o, o->theirs[k], i, gpul_oneshot_load(send + (first + k) * part_bytes, i, part_bytes));
	}
}

/* Wait for pair i of one rank.  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_oneshot_take_one(const gpul_oneshot *o, int peer, uint64_t i, uint64_t *data)
{
	const unsigned char *from = gpul_oneshot_scratch(o, o->comm->peers[peer].desk, peer, i);
	const uint64_t began = gpul_oneshot_now(o);
	gpul_comm_spin spin = gpul_comm_spin_for(o->comm, GPUL_COMM_WAITED_FOR_DATA, peer, o->number);

	while (!gpul_load_ll(from, data, (uint32_t)o->number))
		if (gpul_comm_give_up(&spin))
			return true;
	gpul_oneshot_event(o, GPUL_COMM_EVENT_WAIT_DATA, began, peer);
	return false;
}

/* Wait for pair i of up to GPUL_ONESHOT_AT_ONCE ranks at a time, starting with rank `first` and skipping this rank.  Returns true if
 * the kernel must end. */
static __device__ __forceinline__ bool gpul_oneshot_take(gpul_oneshot *o, int first, uint64_t i, uint64_t *data)
{
	const uint64_t began = gpul_oneshot_now(o);
	gpul_comm_spin spin = gpul_comm_spin_for(o->comm, GPUL_COMM_WAITED_FOR_DATA, first, o->number);
	bool complete;

	if (first != o->first)
		gpul_oneshot_desks(o, first);
	do {
		complete = true;
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++)
			if (o->mine[k] && !gpul_load_ll(gpul_oneshot_scratch(o, o->mine[k], first + k, i), &data[k], (uint32_t)o->number)) {
				complete = false;
				spin.peer = first + k;
			}
	} while (!complete && !gpul_comm_give_up(&spin));
	gpul_oneshot_event(o, GPUL_COMM_EVENT_WAIT_DATA, began, spin.peer);
	return !complete;
}

/* Reduce pair i of all ranks; own: this rank's data. */
static __device__ __forceinline__ bool gpul_oneshot_reduce_all(gpul_oneshot *o, const gpul_comm_work *work, uint64_t i, uint64_t own,
							       uint64_t *out)
{
	const int n_ranks = o->n_ranks;
	uint64_t sum = 0;

	for (int first = 0; first < n_ranks; first += GPUL_ONESHOT_AT_ONCE) {
		uint64_t data[GPUL_ONESHOT_AT_ONCE];

		if (gpul_oneshot_take(o, first, i, data))
			return true;
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++) {
			const uint64_t term = first + k == o->rank ? own : data[k];

			if (first + k == 0)
				sum = term;
			else if (first + k < n_ranks)
				sum = gpul_oneshot_reduce(sum, term, work);
		}
	}
	*out = work->op == GPUL_COMM_AVG ? gpul_oneshot_finish(sum, work, (uint32_t)n_ranks) : sum;
	return false;
}

/* Store pair i of all other ranks' parts into a buffer that has a part for each rank. */
static __device__ __forceinline__ bool gpul_oneshot_receive_all(gpul_oneshot *o, uint64_t i, unsigned char *recv, uint64_t part_bytes)
{
	const int n_ranks = o->n_ranks;

	for (int first = 0; first < n_ranks; first += GPUL_ONESHOT_AT_ONCE) {
		uint64_t data[GPUL_ONESHOT_AT_ONCE];

		if (gpul_oneshot_take(o, first, i, data))
			return true;
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++)
			if (first + k < n_ranks && first + k != o->rank)
				gpul_oneshot_store(recv + (first + k) * part_bytes, i, part_bytes, data[k]);
	}
	return false;
}

/* End a one-shot call. leave: whether this thread has decided to end the kernel. */
static __device__ __forceinline__ bool gpul_oneshot_end(const gpul_oneshot *o, const gpul_comm_work *work, bool leave)
{
	const uint64_t waits = gpul_oneshot_now(o);

	if (blockIdx.x == 0 && !leave)
		leave = gpul_desk_check(o->comm, work, o->number);
	leave = gpul_comm_any_leaves(leave);
	gpul_oneshot_event(o, GPUL_COMM_EVENT_WAIT_GREETING, waits, -1);
	return gpul_desk_end(o->comm, work, o->number, o->began_ns, leave);
}

#endif
