/* queue.pml — the work queue of a persistent kernel: the CPU posts items, and all blocks of the kernel run each one.
 *
 *     CPU: wait for a free slot ─ write item n ─ fence ─ POSTED = n + 1
 *     leader of each block: POSTED > n, or abort ─ bar.red.popc: all threads go on or leave ─ run ─ barrier ─ fence ─ DONE = n + 1
 *     CPU: a slot is free when DONE of every block has passed it
 *
 * The last item is END.  TOGETHER: to run an item, the blocks wait for one another.  ABORTS: the CPU may abort at any
 * time.  Item n has the value n + 1.  WRONG_... are deliberate errors, which the check must find. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef ITEMS
#define ITEMS 3
#endif
#ifndef SPAN
#define SPAN 2          /* blocks of the kernel */
#endif
#ifndef THREADS
#define THREADS 2       /* of each block; thread 0 is the leader */
#endif
#ifndef DEPTH
#define DEPTH 6
#endif
#define CPU SPAN        /* index of the CPU's pocket */
#define BLOCKS (SPAN + 1)

#define ITEM(b, slot)   ((b) * SLOTS + (slot))       /* as block b loads it */
#define CACHED          (SPAN * SLOTS)
#define POSTED          (CACHED)
#define STOP            (CACHED + 1)
#define ABORT           (CACHED + 2)
#define DONE(b)         (CACHED + 3 + (b))
#define MET(b)          (DONE(SPAN) + (b))
#define RESULT(b, w)    (MET(SPAN) + (b) * THREADS + (w))
#define CELLS           (RESULT(SPAN, 0))
#define END             15

#include "memory.pml"

/* Used only by assertions. */
byte n_read[ITEMS + 1]; /* threads that have read the item */
byte n_run;             /* items, counted once for each thread */
byte n_ended;           /* threads of the kernel that have ended */

#if defined(ABORTS)
#define OR_ABORTED :: mem[ABORT] -> ok = 0
#else
#define OR_ABORTED
#endif
#if defined(WRONG_STOP_WORD)
#define OR_STOPPED :: mem[STOP] -> ok = 0
#else
#define OR_STOPPED
#endif

inline await_item(n)
{
	if
	:: atomic { mem[POSTED] > n;
#ifndef WRONG_NO_ACQUIRE
		acquire(ITEM(b, 0), ITEM(b, SLOTS))
#endif
	   }
	OR_ABORTED
	OR_STOPPED
	fi
}

/* The leader's vote (ok) decides for all threads. */
inline agree()
{
	barrier(b, ok, votes);
#ifdef WRONG_LEAVE_ALONE
	ok = !mem[ABORT]        /* each thread polls for itself */
#else
	ok = (votes == THREADS)
#endif
}

inline meet_blocks(n)
{
	if
	:: me == 0 ->
		put(b, MET(b), (n) + 1);
		if
		:: mem[MET((b + 1) % SPAN)] > n
#ifndef WRONG_MEETS_WITHOUT_ABORT
		OR_ABORTED
#endif
		fi
	:: else
	fi
}

inline raise_done(n)
{
	if
	:: me == 0 ->
#ifndef WRONG_DONE_NO_FENCE
		fence(b);
#endif
		put(b, DONE(b), (n) + 1)
	:: else
	fi
}

proctype thread(byte b; byte me)
{
	byte n, ok, votes, item;
	bit turn;

	do
	:: ok = 1;
		if
		:: me == 0 -> await_item(n)
		:: else
		fi;
		agree();
		if
		:: !ok -> break
		:: else
		fi;
#ifdef WRONG_DONE_TOO_SOON
		raise_done(n);
#endif
		d_step {
			item = weak(ITEM(b, n % SLOTS));
			assert(item == (n < ITEMS -> n + 1 : END));  /* not stale */
			n_read[n]++
		};
		if
		:: item == END -> break
		:: else
		fi;
#ifdef TOGETHER
		meet_blocks(n);
		agree();
		if
		:: !ok -> break
		:: else
		fi;
#endif
		put(b, RESULT(b, me), n + 1);
		n_run++;
		barrier(b, 1, votes);
#ifndef WRONG_DONE_TOO_SOON
		raise_done(n);
#endif
		item = 0; votes = 0;
		n++
	od;
	n_ended++
}

#if defined(WRONG_REUSED_BEFORE_DONE)
#define free_slots(d) true
#elif defined(WRONG_DONE_OF_ONE_BLOCK)
#define free_slots(d) (posted - mem[DONE(0)] < SLOTS)
#elif SPAN > 1
#define free_slots(d) (posted - mem[DONE(0)] < SLOTS && posted - mem[DONE(1)] < SLOTS)
#else
#define free_slots(d) (posted - mem[DONE(0)] < SLOTS)
#endif

/* The results of a block are visible when its DONE is. */
inline check_results()
{
	d_step {
		t = 0;
		do
		:: t < SPAN * THREADS -> assert(mem[RESULT(0, t)] >= mem[DONE(t / THREADS)]); t++
		:: else -> break
		od;
		t = 0
	}
}

inline write_item(v)
{
	assert(posted < SLOTS || n_read[posted - SLOTS] == SPAN * THREADS);  /* not overwritten before it is read */
	t = 0;
	do
	:: t < SPAN -> put(CPU, ITEM(t, posted % SLOTS), v); t++
	:: else -> break
	od;
	t = 0
}

inline post(v)
{
#ifdef WRONG_POSTED_FIRST
	put(CPU, POSTED, posted + 1);
	write_item(v);
#else
	write_item(v);
#ifndef WRONG_NO_FENCE
	fence(CPU);
#endif
	put(CPU, POSTED, posted + 1);
#endif
	posted++
}

proctype cpu()
{
	byte posted, t;
	bool aborted;

	do
	:: posted < ITEMS && free_slots(posted) -> check_results(); post(posted + 1)
#ifdef WRONG_STOP_WORD
	:: posted == ITEMS -> fence(CPU); put(CPU, STOP, 1); break
#else
	:: posted == ITEMS && free_slots(posted) -> check_results(); post(END)
	:: posted > ITEMS -> break
#endif
#ifdef ABORTS
	:: mem[ABORT] = 1; aborted = true; break
#endif
	od;
	n_ended == SPAN * THREADS;
	assert(aborted || n_run == ITEMS * SPAN * THREADS);  /* no item is lost */
	drained(0);  /* the kernel ends only after its stores have arrived */
#if SPAN > 1
	drained(1);
#endif
	check_results()
}

init
{
	atomic {
		byte k = 0, w = 0;

		do
		:: k < SPAN ->
			w = 0;
			do
			:: w < THREADS -> run thread(k, w); w++
			:: else -> break
			od;
			run bus(k);
			k++
		:: else -> break
		od;
		run bus(CPU);
		run cpu();
		k = 0; w = 0
	}
}
