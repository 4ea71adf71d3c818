/* arrivals.pml — a channel over a network: mirror, proxies, NIC; the slots of the receiver in device memory, or in host memory.
 *
 *     rank S: kernel ── MDATA, MTAIL ──▶ proxy ─ put ─▶ NIC ── DATA ──────▶ device memory ──────────────▶ kernel of rank R
 *                                                          ── ANNOUNCED ──▶ host memory ─▶ proxy ─ TAIL ──▶
 *     kernel ◀── HEAD ──────────────────────────────────── NIC ◀─ put ─ proxy ◀── MHEAD ────────────────────
 *
 * The NIC's writes to device memory (pocket TO_DATA) and to host memory (TO_HOST) take
 * different paths, in any order.  A flush is a read after the writes to device memory: FLUSHED,
 * which arrives after all of them. STAGED: DATA and TAIL are in host memory, and the NIC writes
 * both, in this order.  The data of step n is n + 1.  WRONG_... are deliberate errors, which
 * the check must find. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef STEPS
#define STEPS 4
#endif
#ifndef DEPTH
#define DEPTH 4
#endif
#define THREADS 1       /* the kernels' barriers are those of channel.pml */

#define S       0       /* stores of the kernel of S, */
#define R       1       /* of that of R, */
#define TO_DATA 2       /* of the NIC of S to slots, */
#define TO_HOST 3       /* to counters of R, */
#define BACK    4       /* and of the NIC of R to those of S */
#define BLOCKS  5

#define DATA(slot)  (slot)
#define CACHED      SLOTS
#define MDATA(slot) (SLOTS + (slot))
#define MTAIL       (2 * SLOTS)
#define MHEAD       (MTAIL + 1)
#define HEAD        (MTAIL + 2)
#define TAIL        (MTAIL + 3)
#define ANNOUNCED   (MTAIL + 4)
#define FLUSHED     (MTAIL + 5)
#define CELLS       (MTAIL + 6)
#include "memory.pml"

/* Used only by assertions: the last value that was written to each slot, and the last that was read. */
byte written[SLOTS];
byte read[SLOTS];

#ifdef WRONG_NO_CREDIT
#define has_credit(n) true
#else
#define has_credit(n) ((n) - mem[HEAD] < SLOTS)
#endif

proctype sender()
{
	byte step;

	do
	:: step < STEPS ->
		has_credit(step);
		put(S, MDATA(step % SLOTS), step + 1);
#ifndef WRONG_NO_FENCE
		fence(S);
#endif
		put(S, MTAIL, step + 1);
		step++
	:: else -> break
	od
}

/* The NIC reads the mirror some time after the proxy has posted the put. */
chan posted = [SLOTS + 1] of { byte };

proctype sender_proxy()
{
	byte sent;

end:	do
	:: sent < mem[MTAIL] -> posted!sent; sent++
	od
}

proctype nic()
{
	byte n, v;

end:	do
	:: posted?n ->
		v = mem[MDATA(n % SLOTS)];
		d_step {
			assert(written[n % SLOTS] == read[n % SLOTS]);  /* not overwritten before it is read */
			written[n % SLOTS] = n + 1
		};
		put(TO_DATA, DATA(n % SLOTS), v);
#if defined(STAGED)
#ifndef WRONG_STEP_BEFORE_DATA
		fence(TO_DATA);
#endif
		put(TO_DATA, TAIL, n + 1);
#elif defined(WRONG_STEP_TO_TAIL)
		put(TO_HOST, TAIL, n + 1);
#else
		put(TO_HOST, ANNOUNCED, n + 1);
#endif
		n = 0;
		v = 0
	od
}

proctype receiver_proxy()
{
	byte seen, flushes, credited;

end:	do
	:: atomic { mem[ANNOUNCED] > seen -> seen = mem[ANNOUNCED] };
#ifndef WRONG_NO_FLUSH
		flushes++;
		fence(TO_DATA);
		put(TO_DATA, FLUSHED, flushes);
#ifndef WRONG_TAIL_BEFORE_END
		mem[FLUSHED] == flushes;
#endif
#endif
#ifdef WRONG_COVERS_LATER
		seen = mem[ANNOUNCED];
#endif
		mem[TAIL] = seen
	:: atomic { mem[MHEAD] > credited -> credited = mem[MHEAD] };
		put(BACK, HEAD, credited)
	od
}

proctype receiver()
{
	byte step, loaded;

	do
	:: step < STEPS ->
		atomic { mem[TAIL] > step ->
#ifndef WRONG_NO_ACQUIRE
			acquire(0, SLOTS)
#endif
		};
		loaded = weak(DATA(step % SLOTS));
		d_step {
			assert(loaded == step + 1);  /* not stale */
			read[step % SLOTS] = step + 1
		};
		loaded = 0;
		fence(R);
		put(R, MHEAD, step + 1);
		step++
	:: else -> break
	od
}

init
{
	atomic {
		run sender();
		run sender_proxy();
		run nic();
		run receiver_proxy();
		run receiver();
		run bus(S);
		run bus(R);
		run bus(TO_DATA);
		run bus(TO_HOST);
		run bus(BACK)
	}
}
