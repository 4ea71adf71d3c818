/* protocols.cu — three protocols to signal that data has arrived: LL, LL128, Simple; and a
 * wrong variant of each.
 *
 * Block 0 sends, block 1 receives; each is one warp.  The data of message m is words that all contain m, so that the receiver
 * can detect errors.  */
#include "protocols.h"

/* ---- loads and stores ---- */

static __device__ void store32(void *p, unsigned value)
{
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

static __device__ void store(u64 *p, u64 value)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

static __device__ void store_release(u64 *p, u64 value)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

static __device__ u64 load(const u64 *p)
{
	u64 value;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
	return value;
}

static __device__ void store_two(u64 *p, u64 a, u64 b)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}

static __device__ void load_two(const u64 *p, u64 *a, u64 *b)
{
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(*a), "=l"(*b) : "l"(p) : "memory");
}

static __device__ u64 now_ns()
{
	u64 ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Limits a wait to 10 s. */
struct patience {
	u64 start_ns;
	unsigned polls;
};

static __device__ bool is_over(struct patience *p, struct result *result)
{
	if (p->polls == 0)
		p->start_ns = now_ns();
	if (++p->polls % 256 != 0 || now_ns() - p->start_ns < 10000000000ull)
		return false;
	result->timed_out = 1;
	return true;
}

/* ---- LL: each 8-byte word is 4 bytes of data and the number of the message ---- */

static __device__ u64 ll_word(unsigned data, u64 message)
{
	return message << 32 | data;
}

static __device__ void send_ll(struct wire *w, unsigned n_bytes, u64 message)
{
	for (unsigned i = threadIdx.x; i < n_bytes / 4; i += 32)
		store(&w->area[i], ll_word((unsigned)message, message));
}

/* Returns the number of wrong words. */
static __device__ unsigned receive_ll(struct wire *w, unsigned n_bytes, u64 message, struct result *result)
{
	struct patience patience = { 0, 0 };
	unsigned n_wrong = 0;

	for (unsigned i = threadIdx.x; i < n_bytes / 4; i += 32) {
		u64 word;

		while ((word = load(&w->area[i])) >> 32 != message && !is_over(&patience, result))
			;
		n_wrong += (unsigned)word != (unsigned)message;
	}
	return n_wrong;
}

/* ---- LL128: a line of 128 bytes, stored by 8 lanes with one instruction; its last word is the flag ---- */

static __device__ void send_ll128(struct wire *w, unsigned n_bytes, u64 message)
{
	const unsigned n_lines = (n_bytes / 8 + DATA_WORDS - 1) / DATA_WORDS, part = threadIdx.x % 8;

	for (unsigned line = threadIdx.x / 8; line < n_lines; line += 4)
		store_two(&w->area[line * LINE_WORDS + 2 * part], message, message);  /* the last of 8 lanes stores data and flag */
}

static __device__ unsigned receive_ll128(struct wire *w, unsigned n_bytes, u64 message, struct result *result)
{
	const unsigned n_lines = (n_bytes / 8 + DATA_WORDS - 1) / DATA_WORDS, part = threadIdx.x % 8;
	struct patience patience = { 0, 0 };
	unsigned n_wrong = 0;

	for (unsigned base = 0; base < n_lines; base += 4) {
		const unsigned line = base + threadIdx.x / 8;
		const bool mine = line < n_lines;
		u64 a = message, b = message;

		do {   /* the whole warp loads again until the flags of its four lines are right */
			if (mine)
				load_two(&w->area[line * LINE_WORDS + 2 * part], &a, &b);
		} while (__any_sync(~0u, mine && part == 7 && b != message && !is_over(&patience, result)));
		n_wrong += (mine && a != message) + (mine && part != 7 && b != message);
	}
	return n_wrong;
}

/* ---- Simple: data, then a step counter for all of it ---- */

static __device__ void send_simple(struct wire *w, unsigned n_bytes, u64 message)
{
	for (unsigned i = threadIdx.x; i < n_bytes / 8; i += 32)
		store(&w->area[i], message);   /* relaxed, because in slow motion the receiver reads words before their step */
	__syncthreads();
	if (threadIdx.x == 0)
		store_release(&w->step, message);
}

static __device__ unsigned receive_simple(struct wire *w, unsigned n_bytes, u64 message, struct result *result)
{
	struct patience patience = { 0, 0 };
	unsigned n_wrong = 0;

	if (threadIdx.x == 0)
		while (load(&w->step) < message && !is_over(&patience, result))
			;
	__syncthreads();
	for (unsigned i = threadIdx.x; i < n_bytes / 8; i += 32)
		n_wrong += ((volatile u64 *)w->area)[i] != message;
	return n_wrong;
}

/* ---- full speed: messages go there and back; half a round trip is the time of one message ---- */

static __device__ void send(struct wire *w, unsigned protocol, unsigned n_bytes, u64 message)
{
	if (protocol == LL)
		send_ll(w, n_bytes, message);
	else if (protocol == LL128)
		send_ll128(w, n_bytes, message);
	else
		send_simple(w, n_bytes, message);
}

static __device__ unsigned receive(struct wire *w, unsigned protocol, unsigned n_bytes, u64 message, struct result *result)
{
	const unsigned n_wrong = protocol == LL	     ? receive_ll(w, n_bytes, message, result)
				 : protocol == LL128 ? receive_ll128(w, n_bytes, message, result)
						     : receive_simple(w, n_bytes, message, result);

	__syncthreads();   /* wait until the whole warp has read the message */
	return n_wrong;
}

extern "C" __global__ void ping_pong(struct wire *there, struct wire *back, struct result *result, unsigned protocol, unsigned n_bytes,
				     unsigned n_messages)
{
	const u64 start = now_ns();
	unsigned n_wrong = 0;

	for (u64 message = 1; message <= n_messages && !((volatile struct result *)result)->timed_out; message++) {
		if (blockIdx.x == 0) {
			send(there, protocol, n_bytes, message);
			n_wrong += receive(back, protocol, n_bytes, message, result);
		} else {
			n_wrong += receive(there, protocol, n_bytes, message, result);
			send(back, protocol, n_bytes, message);
		}
	}
	atomicAdd(&result->n_wrong, n_wrong);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		result->ns = now_ns() - start;
}

/* ---- slow motion: after a part of a message the sender waits until the receiver has polled twice ---- */

static __device__ void let_receiver_poll(struct wire *w)
{
	const u64 start = now_ns();

	__syncthreads();
	if (threadIdx.x == 0)
		for (const u64 polls = load(&w->polls); load(&w->polls) < polls + 2 && now_ns() - start < 2000000000ull;)
			;
	__syncthreads();
}

/* The receiver of the slow kernels: polls until messages 1 and 2 have arrived, according to its
 * protocol. */
static __device__ void take_slowly(struct wire *w, struct result *result, unsigned protocol, bool constant_flag)
{
	const unsigned n_words = protocol == LL ? 32 : protocol == LL128 ? DATA_WORDS : 32;
	const u64 start = now_ns();

	for (u64 message = 1, polls = 1; message <= 2 && now_ns() - start < 10000000000ull; polls++) {
		const u64 flag = constant_flag ? 1 : message;
		const u64 step = load(&w->step);                               /* in Simple, loaded before the data */
		const u64 word = load(&w->area[threadIdx.x]);
		const u64 last = __shfl_sync(~0u, word, LINE_WORDS - 1);       /* in LL128, loaded by the same instruction as the data */
		const bool arrived = protocol == LL	 ? word >> 32 == flag
				     : protocol == LL128 ? last == flag
							 : step >= message;
		const u64 data = protocol == LL ? (unsigned)word : word;
		const bool all = __all_sync(~0u, arrived);
		const unsigned wrong = __ballot_sync(~0u, threadIdx.x < n_words && data != message);

		if (threadIdx.x == 0) {
			if (all) {
				struct record *r = &result->records[result->n_records++];

				r->message = message;
				r->n_words = n_words;
				r->n_wrong = __popc(wrong);
			}
			store_release(&w->polls, polls);
		}
		message += all;
	}
	if (threadIdx.x == 0)
		store_release(&w->polls, ~0ull >> 1);   /* the sender no longer needs to wait */
}

/* LL, wrong variant 1: data and flag are stored by two stores of 4 bytes, the flag first. */
extern "C" __global__ void ll_two_stores(struct wire *w, struct result *result)
{
	if (blockIdx.x == 1)
		return take_slowly(w, result, LL, false);
	for (u64 message = 1; message <= 2; message++) {
		store32((unsigned *)&w->area[threadIdx.x] + 1, (unsigned)message);
		let_receiver_poll(w);
		store32(&w->area[threadIdx.x], (unsigned)message);
		let_receiver_poll(w);
	}
}

/* LL, wrong variant 2: the flag is 1 in every message. */
extern "C" __global__ void ll_constant_flag(struct wire *w, struct result *result)
{
	if (blockIdx.x == 1)
		return take_slowly(w, result, LL, true);
	for (u64 message = 1; message <= 2; message++) {
		store(&w->area[threadIdx.x], ll_word((unsigned)message, 1));
		let_receiver_poll(w);
	}
}

/* LL128, wrong variant: the line is stored in two halves, the one with the flag first. */
extern "C" __global__ void ll128_two_halves(struct wire *w, struct result *result)
{
	if (blockIdx.x == 1)
		return take_slowly(w, result, LL128, false);
	for (u64 message = 1; message <= 2; message++)
		for (unsigned half = 0; half < 2; half++) {
			if (threadIdx.x < 8 && (threadIdx.x >= 4) == (half == 0))
				store_two(&w->area[2 * threadIdx.x], message, message);
			let_receiver_poll(w);
		}
}

/* Simple, wrong variant: no barrier between the data and the step, and the other threads store later than thread 0. */
extern "C" __global__ void simple_no_barrier(struct wire *w, struct result *result)
{
	if (blockIdx.x == 1)
		return take_slowly(w, result, SIMPLE, false);
	for (u64 message = 1; message <= 2; message++) {
		if (threadIdx.x == 0) {
			store(&w->area[0], message);
			store_release(&w->step, message);
		}
		let_receiver_poll(w);
		if (threadIdx.x != 0)
			store(&w->area[threadIdx.x], message);
		let_receiver_poll(w);
	}
}

/* The three protocols, used correctly, in slow motion like the wrong variants above. */
extern "C" __global__ void right(struct wire *w, struct result *result, unsigned protocol)
{
	if (blockIdx.x == 1)
		return take_slowly(w, result, protocol, false);
	for (u64 message = 1; message <= 2; message++) {
		send(w, protocol, protocol == LL ? 32 * 4 : protocol == LL128 ? DATA_WORDS * 8 : 32 * 8, message);
		let_receiver_poll(w);
	}
}
