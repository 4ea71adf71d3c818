/* oneshot.cuh — small messages in one round trip: every rank writes its data into the scratch of the others.
 *
 *     rank A                                     rank B
 *     put: word i, flag n ─────────────────────> scratch[n % 2][A] word i
 *     take: poll scratch[n % 2][B] word i <───── put
 *
 * A message is cut into pairs of LL words (16 bytes with 8 bytes of data).  Thread t of all threads of the grid has the pairs
 * t, t + number of threads, ...; it puts all of them before it takes the first one, so all of them travel at the same time. */
#ifndef GPULOAD_COMM_DEVICE_ONESHOT_CUH
#define GPULOAD_COMM_DEVICE_ONESHOT_CUH

#include "comm/device/desk.cuh"
#include "comm/device/pack.cuh"
#include "comm/device/reduce.cuh"

enum { GPUL_ONESHOT_BYTES = 8, GPUL_ONESHOT_AT_ONCE = 4 };

/* The 8 bytes at index i of a buffer of any alignment; bytes beyond its end are 0. */
static __device__ __forceinline__ uint64_t gpul_oneshot_load(const unsigned char *buffer, uint64_t i, uint64_t n_bytes)
{
	const unsigned char *from = buffer + i * GPUL_ONESHOT_BYTES;
	const uint64_t left = n_bytes - i * GPUL_ONESHOT_BYTES;

	if (left >= 8 && (uintptr_t)from % 8 == 0)
		return gpul_load_relaxed((const uint64_t *)from);
	const uint4 pack = gpul_load_short(from, left < 8 ? (uint32_t)left : 8);

	return (uint64_t)pack.y << 32 | pack.x;
}

static __device__ __forceinline__ void gpul_oneshot_store(unsigned char *buffer, uint64_t i, uint64_t n_bytes, uint64_t data)
{
	unsigned char *to = buffer + i * GPUL_ONESHOT_BYTES;
	const uint64_t left = n_bytes - i * GPUL_ONESHOT_BYTES;

	if (left >= 8 && (uintptr_t)to % 8 == 0)
		*(uint64_t *)to = data;
	else
		gpul_store_short(to, make_uint4((uint32_t)data, (uint32_t)(data >> 32), 0, 0), left < 8 ? (uint32_t)left : 8);
}

static __device__ __forceinline__ uint64_t gpul_oneshot_reduce(uint64_t a, uint64_t b, const gpul_comm_work *work)
{
	const uint4 sum = gpul_reduce(make_uint4((uint32_t)a, (uint32_t)(a >> 32), 0, 0),
				      make_uint4((uint32_t)b, (uint32_t)(b >> 32), 0, 0), work->dtype, work->op);

	return (uint64_t)sum.y << 32 | sum.x;
}

/* The last step of a reduction; work->op == AVG only. */
static __device__ __forceinline__ uint64_t gpul_oneshot_finish(uint64_t a, const gpul_comm_work *work, uint32_t n_ranks)
{
	const uint4 mean = gpul_finish(make_uint4((uint32_t)a, (uint32_t)(a >> 32), 0, 0), work->dtype, work->op, n_ranks);

	return (uint64_t)mean.y << 32 | mean.x;
}

/* The data of a rank for this call, in a desk. */
static __device__ __forceinline__ unsigned char *gpul_oneshot_scratch(const gpul_comm_view *comm, unsigned char *desk,
								      uint64_t number, int from)
{
	return desk + comm->sizes.scratch_at + (number % 2 * comm->sizes.n_ranks + from) * comm->sizes.scratch_bytes;
}

static __device__ __forceinline__ void gpul_oneshot_put(const gpul_comm_view *comm, uint64_t number, int peer, uint64_t i,
							uint64_t data)
{
	unsigned char *to = gpul_oneshot_scratch(comm, comm->peers[peer].their_desk, number, comm->rank);

	gpul_store_ll(to + i * 16, data, (uint32_t)number);
}

/* Wait for pair i of one rank: true, leave. */
static __device__ __forceinline__ bool gpul_oneshot_take_one(const gpul_comm_view *comm, uint64_t number, int peer, uint64_t i,
							     uint64_t *data)
{
	const unsigned char *from = gpul_oneshot_scratch(comm, comm->peers[peer].desk, number, peer) + i * 16;
	gpul_comm_spin spin = gpul_comm_spin_for(comm, GPUL_COMM_WAITED_FOR_DATA, peer, number);
	const uint64_t began = gpul_trace_now(comm);

	while (!gpul_load_ll(from, data, (uint32_t)number))
		if (gpul_comm_give_up(&spin))
			return true;
	gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_DATA, began, peer, number, 0);
	return false;
}

/* Wait for pair i of up to GPUL_ONESHOT_AT_ONCE ranks at a time, first ... (own data is not waited for): true, leave. */
static __device__ __forceinline__ bool gpul_oneshot_take(const gpul_comm_view *comm, uint64_t number, int first, uint64_t i,
							 uint64_t *data)
{
	const int n_ranks = (int)comm->sizes.n_ranks;
	const unsigned char *from[GPUL_ONESHOT_AT_ONCE];
	const uint64_t began = gpul_trace_now(comm);
	gpul_comm_spin spin = gpul_comm_spin_for(comm, GPUL_COMM_WAITED_FOR_DATA, first, number);
	bool complete;

#pragma unroll
	for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++) {
		const int rank = first + k;

		from[k] = rank < n_ranks && rank != comm->rank ?
			gpul_oneshot_scratch(comm, comm->peers[rank].desk, number, rank) + i * 16 : NULL;
	}
	do {
		complete = true;
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++)
			if (from[k] && !gpul_load_ll(from[k], &data[k], (uint32_t)number)) {
				complete = false;
				spin.peer = first + k;
			}
	} while (!complete && !gpul_comm_give_up(&spin));
	gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_DATA, began, spin.peer, number, 0);
	return !complete;
}

/* Reduce pair i of all ranks; own is this rank's. */
static __device__ __forceinline__ bool gpul_oneshot_reduce_all(const gpul_comm_view *comm, const gpul_comm_work *work,
							       uint64_t number, uint64_t i, uint64_t own, uint64_t *out)
{
	const int n_ranks = (int)comm->sizes.n_ranks;
	uint64_t sum = 0;

	for (int first = 0; first < n_ranks; first += GPUL_ONESHOT_AT_ONCE) {
		uint64_t data[GPUL_ONESHOT_AT_ONCE];

		if (gpul_oneshot_take(comm, number, first, i, data))
			return true;
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++) {
			const uint64_t term = first + k == comm->rank ? own : data[k];

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
static __device__ __forceinline__ bool gpul_oneshot_receive_all(const gpul_comm_view *comm, uint64_t number, uint64_t i,
								unsigned char *recv, uint64_t part_bytes)
{
	const int n_ranks = (int)comm->sizes.n_ranks;

	for (int first = 0; first < n_ranks; first += GPUL_ONESHOT_AT_ONCE) {
		uint64_t data[GPUL_ONESHOT_AT_ONCE];

		if (gpul_oneshot_take(comm, number, first, i, data))
			return true;
#pragma unroll
		for (int k = 0; k < GPUL_ONESHOT_AT_ONCE; k++)
			if (first + k < n_ranks && first + k != comm->rank)
				gpul_oneshot_store(recv + (first + k) * part_bytes, i, part_bytes, data[k]);
	}
	return false;
}

/* The end of every one-shot call: leave is this thread's answer so far; began_ns: of the block, for the trace. */
static __device__ __forceinline__ bool gpul_oneshot_end(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number,
							uint64_t began_ns, bool leave)
{
	const uint64_t waits = gpul_trace_now(comm);

	if (blockIdx.x == 0 && !leave)
		leave = gpul_desk_check(comm, work, number);
	leave = gpul_comm_any_leaves(leave);
	gpul_trace_add(comm, GPUL_COMM_EVENT_WAIT_GREETING, waits, -1, number, 0);
	return gpul_desk_end(comm, work, number, began_ns, leave);
}

#endif
