/* channel.cu — a sender and a receiver, each a kernel of one thread in a process of its own.
 *
 *     sender                                        receiver
 *     wait until head == step    <── head ───────   head = step + 1
 *     slot = message             ─── slot ──────>   read the slot
 *     tail = step + 1 (release)  ─── tail ──────>   wait until tail > step (acquire) */
#include "channel.h"

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

static __device__ u64 now_ns()
{
	u64 ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Wait until *p >= at_least; returns false after 10 s. */
static __device__ bool wait_until(const u64 *p, u64 at_least)
{
	const u64 start = now_ns();

	while (load(p) < at_least)
		if (now_ns() - start > 10000000000ull)
			return false;
	return true;
}

/* A full fence: all GPUs and CPUs see the stores before this call before the loads after it are executed. */
static __device__ void fence()
{
	asm volatile("fence.sc.sys;" ::: "memory");
}

/* Slow motion: after a store, wait until the receiver has polled twice, so that it has seen the store.  The sender stores tail or slot and
 * then loads polls; the receiver stores polls and then loads tail and slot.  Without a fence on each side, both may load the old values. */
static __device__ void let_receiver_poll(const struct channel *c, bool slow)
{
	if (slow) {
		fence();
		wait_until(&c->polls, load(&c->polls) + 2);
	}
}

extern "C" __global__ void sender(struct channel *c, u64 n_messages, unsigned protocol, unsigned slow)
{
	for (u64 step = 0; step < n_messages; step++) {
		if (protocol == RIGHT && !wait_until(&c->head, step))
			break;
		if (protocol == TAIL_FIRST) {
			store(&c->tail, step + 1);
			let_receiver_poll(c, slow);
		}
		store(&c->slot[0], step + 1);
		let_receiver_poll(c, slow);
		store(&c->slot[1], step + 1);
		let_receiver_poll(c, slow);
		if (protocol != TAIL_FIRST) {
			store_release(&c->tail, step + 1);
			let_receiver_poll(c, slow);
		}
	}
	store_release(&c->ended, 1);
}

/* Add a line to the log if the poll has found new values. */
static __device__ void keep(struct log *log, const struct record *seen, struct record *last)
{
	if (seen->tail == last->tail && seen->slot[0] == last->slot[0] && seen->slot[1] == last->slot[1] && !seen->taken)
		return;
	if (log->n_records < MAX_RECORDS)
		log->records[log->n_records++] = *seen;
	*last = *seen;
}

/* Receive n messages.  A late receiver reads a message only after the sender has put `late`
 * more messages into the slot, or has ended. */
extern "C" __global__ void receiver(struct channel *c, struct log *log, u64 n_messages, unsigned late)
{
	struct record last = { 0, { 0, 0 }, 0 };
	const u64 start = now_ns();

	for (u64 step = 0, polls = 1; step < n_messages || load(&c->ended) == 0; polls++) {
		const bool ended = load(&c->ended) != 0;
		struct record seen;

		seen.tail = load(&c->tail);
		seen.slot[0] = load(&c->slot[0]);
		seen.slot[1] = load(&c->slot[1]);
		seen.taken = 0;
		if (seen.tail > step && step < n_messages && (seen.tail > step + late || ended)) {
			seen.taken = ++step;
			if (seen.slot[0] == step && seen.slot[1] == step)
				log->n_whole++;
			else
				log->n_wrong++;
			store_release(&c->head, step);
		}
		keep(log, &seen, &last);
		store_release(&c->polls, polls);
		fence(); /* see let_receiver_poll() */
		if (polls % 1024 == 0 && now_ns() - start > 10000000000ull)
			return;
	}
}
