/* netqueue.cu — two kernels that copy packets to their destinations: one trusts the entries, the other checks them.
 *
 * One warp: lane 0 polls the ring, all lanes copy.  */
#include "netqueue.h"

static __device__ void load_entry(const struct entry *e, u64 *a, u64 *b)
{
	asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(*a), "=l"(*b) : "l"(e) : "memory");
}

static __device__ void store_release(u64 *p, u64 value)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

static __device__ u64 now_ns()
{
	u64 ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Wait for entry n; false: it has not arrived within 10 s. */
static __device__ bool poll(struct queue *q, u64 n, u64 *a, u64 *b)
{
	const u64 lap = n / ENTRIES + 1, start = now_ns();

	do {
		load_entry(&q->ring[n % ENTRIES], a, b);
		if (*a >> 56 == lap && *b >> 56 == lap)
			return true;
	} while (now_ns() - start < 10000000000ull);
	q->timed_out = 1;
	return false;
}

/* Load 16 bytes from any address: load the two aligned blocks that contain them, and shift.
 * Both contain bytes of the piece, so neither is outside of the bounce memory. */
static __device__ uint4 load_16(const unsigned char *from)
{
	const unsigned shift = (unsigned)(u64)from % 16, words = shift / 4, bits = shift % 4 * 8;
	const uint4 *blocks = (const uint4 *)(from - shift);
	const uint4 low = blocks[0], high = shift ? blocks[1] : low;
	const unsigned w[9] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0 };
	unsigned out[4];

#pragma unroll
	for (int i = 0; i < 4; i++) {
		unsigned a = w[i], b = w[i + 1];

#pragma unroll
		for (unsigned k = 1; k <= 3; k++)   /* w[i + words], without indexing an array at run time */
			if (k == words) {
				a = w[i + k];
				b = w[i + k + 1];
			}
		out[i] = __funnelshift_r(a, b, bits);
	}
	return make_uint4(out[0], out[1], out[2], out[3]);
}

/* Copy a piece without a store to a byte outside of it: 16 bytes at a time where the destination is aligned, the rest byte by byte. */
static __device__ void copy(unsigned char *to, const unsigned char *from, unsigned n)
{
	const unsigned boundary = (unsigned)(16 - (u64)to % 16) % 16, head = boundary < n ? boundary : n, blocks = (n - head) / 16;
	const unsigned tail = head + blocks * 16;

	if (threadIdx.x < head)
		to[threadIdx.x] = from[threadIdx.x];
	for (unsigned i = threadIdx.x; i < blocks; i += 32)
		*(uint4 *)(to + head + i * 16) = load_16(from + head + i * 16);
	if (tail + threadIdx.x < n)
		to[tail + threadIdx.x] = from[tail + threadIdx.x];
}

/* True if the piece ends inside its slot and inside the destination.  Only lane 0 calls it. */
static __device__ bool fits(struct queue *q, u64 n, u64 source, u64 length, u64 destination, u64 to_bytes)
{
	const bool bad_source = length == 0 || source % SLOT_BYTES + length > SLOT_BYTES || source + length > BOUNCE_BYTES;

	if (!bad_source && destination + length <= to_bytes)
		return true;
	if (q->n_refused < MOST_REFUSALS) {
		q->refusals[q->n_refused].entry = n;
		q->refusals[q->n_refused].end = bad_source ? source + length : destination + length;
		q->refusals[q->n_refused].limit = bad_source ? BOUNCE_BYTES : to_bytes;
	}
	q->n_refused++;
	return false;
}

static __device__ void unpack(struct queue *q, unsigned char *to, u64 to_bytes, u64 n_entries, bool checks)
{
	for (u64 n = 0; n < n_entries; n++) {
		u64 a = 0, b = 0;
		bool go = true, fit = true;

		if (threadIdx.x == 0)
			go = poll(q, n, &a, &b);
		a = __shfl_sync(~0u, a, 0);
		b = __shfl_sync(~0u, b, 0);
		if (!__shfl_sync(~0u, (int)go, 0))
			return;
		const u64 source = a & 0xfffffffff, length = a >> 36 & 0xfffff, destination = b & 0xffffffffffffff;

		if (checks && threadIdx.x == 0)
			fit = fits(q, n, source, length, destination, to_bytes);
		if (__shfl_sync(~0u, (int)fit, 0))
			copy(to + destination, q->bounce + source, (unsigned)length);
		__syncwarp();   /* all lanes have read the slot */
		if (threadIdx.x == 0)
			store_release(&q->done, n + 1);
	}
}

extern "C" __global__ void trusting(struct queue *q, unsigned char *to, u64 to_bytes, u64 n_entries)
{
	unpack(q, to, to_bytes, n_entries, false);
}

extern "C" __global__ void checking(struct queue *q, unsigned char *to, u64 to_bytes, u64 n_entries)
{
	unpack(q, to, to_bytes, n_entries, true);
}
