/* channel.pml — a channel from rank S to rank R: Simple, direct, LL or LL128, with credits and aborts.
 *
 *     spin -a -DSIMPLE channel.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan      (test_model.py does it for many shapes)
 *
 *         S's memory                                R's memory
 *     ┌─────────────────┐    DATA ───────────▶  ┌──────────────────────┐  slot 0 .. SLOTS - 1, then
 *     │ HEAD    credits │    TAIL ───────────▶  │ DATA(place, word)    │  the user's buffer (direct)
 *     │ ENTRY   offers  │  ◀─────────── HEAD    │ TAIL    filled steps │
 *     │ OFFERED         │  ◀── ENTRY, OFFERED   └──────────────────────┘
 *     └─────────────────┘
 *
 * One of SIMPLE, LL, LL128.  DIRECT: each step is direct; MIXED: each second one (both with SIMPLE).  ABORTS: S's user
 * may abort at any time.  TIMEOUTS: R's first wait may time out.  DIES: S's
 * process may be killed at any time.  VARIED: each second lap has messages of one word.  SPLIT, with LL128: all warps have diverged.
 * The data of step n is n + 1.  In LL and LL128
 * each thread of S waits for credits itself, and there is no barrier in a step.  WRONG_... are deliberate errors, which the
 * check must find. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef STEPS
#define STEPS 4
#endif
#ifndef THREADS
#define THREADS 2       /* of each block; thread w writes and reads word w */
#endif
#ifndef DEPTH
#define DEPTH 6
#endif
#ifndef FREE
#define FREE 1          /* LL, LL128: R gives credits every so many steps */
#endif
#if defined(DIRECT) || defined(MIXED)
#define USER SLOTS      /* places in the user's buffer */
#define OFFERS
#else
#define USER 0
#endif

#define S 0
#define R 1
#define BLOCKS 2

#define DATA(place, w)   ((place) * THREADS + (w))
#define ENTRY(slot, f)   (DATA(SLOTS + USER, 0) + (slot) * 2 + (f))   /* two words of {mode, offset, size} */
#if defined(OFFERS)
#define CACHED           (ENTRY(SLOTS, 0))
#elif defined(SIMPLE)
#define CACHED           (DATA(SLOTS, 0))
#else
#define CACHED           0              /* LL and LL128 have no weak loads */
#endif
#define TAIL             (ENTRY(SLOTS, 0))
#define HEAD             (TAIL + 1)
#define OFFERED          (TAIL + 2)
#define ABORT(side)      (TAIL + 3 + (side))
#define FLAG(c)          (TAIL + 5 + (c))     /* LL128: the last 8 bytes of the line in cell c */
#define CELLS            (FLAG(DATA(SLOTS, 0)))
#define owner(c)         ((c) == HEAD || (c) == OFFERED || ((c) >= ENTRY(0, 0) && (c) < TAIL) -> S : R)

bool freed[2];          /* the rank has unmapped and released its memory */
#if defined(LL128) && !defined(WRONG_LINE_IN_PARTS) && !defined(SPLIT)
#define ARRIVE(c, v) assert(!freed[owner(c)]); if :: (c) < DATA(SLOTS, 0) -> mem[FLAG(c)] = (v) / 16; mem[c] = (v) % 16 :: else -> mem[c] = v fi
#else
#define ARRIVE(c, v) assert(!freed[owner(c)]); mem[c] = v   /* no store arrives after the teardown */
#endif
#include "memory.pml"

#if defined(DIRECT)
#define direct(n) true
#elif defined(MIXED)
#define direct(n) ((n) % 2)
#else
#define direct(n) false
#endif
#define place(n)  (direct(n) -> SLOTS + (n) % (USER + !USER) : (n) % SLOTS)

#ifdef VARIED
#define n_words(n) (((n) / SLOTS) % 2 -> 1 : THREADS)
#else
#define n_words(n) THREADS
#endif

/* LL, LL128: the flag of a step.  WRAP: flags have the values 1 to WRAP - 1, as 32-bit ones have 1 to 2^32 - 1. */
#if defined(WRONG_CONSTANT_FLAG)
#define flag(n) 1
#elif defined(WRONG_LAP_BIT)
#define flag(n) (1 + ((n) / SLOTS) % 2)
#elif defined(WRONG_WRAP_TO_ZERO)
#define flag(n) (((n) + 1) % WRAP)
#elif defined(WRAP)
#define flag(n) ((n) % (WRAP - 1) + 1)
#else
#define flag(n) ((n) + 1)
#endif

/* Used only by assertions: the last value that was written to each place, and the last that was read. */
byte written[DATA(SLOTS + USER, 0)];
byte read[DATA(SLOTS + USER, 0)];

inline write_word(c, n, with_flag)
{
	d_step {
		assert(written[c] == read[c]);  /* not overwritten before it is read */
		written[c] = (n) + 1
	};
#ifdef WRONG_LINE_IN_PARTS
	put(S, FLAG(c), flag(n));
	put(S, c, (n) + 1)
#elif defined(SPLIT)
	put(S, c, (n) + 1);
#ifndef WRONG_NO_FENCE
	fence(S);
#endif
	put(S, FLAG(c), flag(n))
#else
	put(S, c, (with_flag) * 16 + (n) + 1)
#endif
}

inline read_word(c, n, loaded)
{
	d_step {
		assert((loaded) == (n) + 1);  /* not stale */
		read[c] = (n) + 1
	}
}

/* ---- waits: one thread, or each thread of an LL receiver; ok: votes for going on ---- */

#if defined(ABORTS) || defined(TIMEOUTS) || defined(DIES)
#define OR_ABORTED(side) :: mem[ABORT(side)] -> ok = 0
#else
#define OR_ABORTED(side)
#endif
byte raised;            /* R has timed out, so its CPU aborts */
#ifdef TIMEOUTS
#define OR_TIMED_OUT(n) :: (n) == 0 -> ok = 0; raised = 1
#else
#define OR_TIMED_OUT(n)
#endif

#if defined(WRONG_LAP_EARLY)
#define has_credit(n, head) ((n) - (head) <= SLOTS)
#elif defined(WRONG_NO_CREDIT)
#define has_credit(n, head) true
#else
#define has_credit(n, head) ((n) - (head) < SLOTS)
#endif

/* S: wait for the credit of a step, or for the offer of a direct one.  head, offered, tail: as polled last. */
inline await_credit(n)
{
	if
	:: !direct(n) && has_credit(n, head) -> skip
	:: atomic { !direct(n) && !has_credit(n, head) && has_credit(n, mem[HEAD]) -> head = mem[HEAD] }
#ifdef OFFERS
	:: direct(n) && offered > n -> skip
	:: atomic { direct(n) && offered <= n && mem[OFFERED] > n -> offered = mem[OFFERED];
#ifndef WRONG_OFFER_NO_ACQUIRE
		acquire(ENTRY(0, 0), ENTRY(SLOTS, 0))
#endif
	   }
#endif
	OR_ABORTED(S)
	fi
}

inline await_tail(n)
{
	if
	:: tail > n -> skip
	:: atomic { tail <= n && mem[TAIL] > n -> tail = mem[TAIL];
#ifndef WRONG_NO_ACQUIRE
		acquire(0, DATA(SLOTS + USER, 0))
#endif
	   }
	OR_ABORTED(R)
	OR_TIMED_OUT(n)
	fi
}

/* ---- the blocks ---- */

/* Thread 0 has waited (ok: its vote); all threads of the block go on or leave together. */
inline agree(side)
{
	barrier(side, ok, votes);
#ifdef WRONG_LEAVE_ALONE
	ok = !mem[ABORT(side)]  /* each thread polls for itself */
#else
	ok = (votes == THREADS)
#endif
}

byte n_ended[2];        /* threads of each kernel that have ended */

#ifdef DIES
bool dead;              /* S's process has been killed */
#define BEGIN_MORTAL {
#define END_MORTAL   } unless { d_step { dead -> step = 0; head = 0; offered = 0; votes = 0; ok = 0; at = 0; turn = 0 } }
#else
#define dead false
#define BEGIN_MORTAL
#define END_MORTAL
#endif

proctype sender(byte me)
{
	byte step, head, offered, votes, ok, at;
	bit turn;

	BEGIN_MORTAL
	do
	:: step < STEPS ->
		ok = 1;
#ifdef SIMPLE
		if
		:: me == 0 -> await_credit(step)
		:: else
		fi;
		agree(S);
#else
		await_credit(step);     /* each thread for itself, and no barrier */
#endif
		if
		:: !ok -> break
		:: else
		fi;
		at = place(step);
#ifdef OFFERS
		if
		:: direct(step) ->
			at = weak(ENTRY(step % SLOTS, 0));
			votes = weak(ENTRY(step % SLOTS, 1));
			assert(at == step + 1 && votes == step + 1);  /* the entry is of this step */
			at = place(at - 1);
			votes = 0
		:: else
		fi;
#endif
#if defined(SIMPLE)
#ifdef WRONG_FLAG_FIRST
		if :: me == 0 -> put(S, TAIL, step + 1) :: else fi;
#endif
		write_word(DATA(at, me), step, 0);
#ifndef WRONG_NO_BARRIER_BEFORE_TAIL
		barrier(S, 1, votes);
#endif
#ifndef WRONG_FLAG_FIRST
		if
		:: me == 0 ->
#ifndef WRONG_NO_FENCE
			fence(S);
#endif
			put(S, TAIL, step + 1)
		:: else
		fi;
#endif
#else
		if
		:: me < n_words(step) -> write_word(DATA(at, me), step, flag(step))
		:: else
		fi;
#endif
		votes = 0;
		at = 0;
		step++
	:: else -> break
	od;
#ifndef SIMPLE
	barrier(S, ok, votes);
#endif
	n_ended[S]++
	END_MORTAL
}

/* R offers places up to SLOTS steps ahead of the step that it awaits. */
#ifdef WRONG_OFFER_LAP_EARLY
#define may_offer(n, step) ((n) <= (step) + SLOTS && (n) < STEPS)
#else
#define may_offer(n, step) ((n) < (step) + SLOTS && (n) < STEPS)
#endif

inline offer()
{
	do
	:: may_offer(offered, step) ->
		if
		:: direct(offered) ->
			put(R, ENTRY(offered % SLOTS, 0), offered + 1);
			put(R, ENTRY(offered % SLOTS, 1), offered + 1);
#ifndef WRONG_OFFER_NO_FENCE
			fence(R);
#endif
			put(R, OFFERED, offered + 1)
		:: else
		fi;
		offered++
	:: else -> break
	od
}

inline give_credit(n)
{
	if
	:: me == 0 -> fence(R); put(R, HEAD, (n) + 1)
	:: else
	fi
}

/* LL, LL128: each thread polls its word until the flag is of this step. */
inline await_word(c, n)
{
	if
#if defined(LL128) && defined(WRONG_READ_IN_PARTS)
	:: loaded = mem[c];
		if
		:: mem[FLAG(c)] == flag(n) -> read_word(c, n, loaded)
		OR_ABORTED(R)
		fi
#elif defined(SPLIT)
	:: mem[FLAG(c)] == flag(n) -> loaded = mem[c]; read_word(c, n, loaded) /* loads again after the flag */
#elif defined(LL128)
	:: atomic { mem[FLAG(c)] == flag(n) -> loaded = mem[c] }; read_word(c, n, loaded)
#else
	:: atomic { mem[c] / 16 == flag(n) -> loaded = mem[c] % 16 }; read_word(c, n, loaded)
#endif
	OR_ABORTED(R)
	fi
}

proctype receiver(byte me)
{
	byte step, tail, offered, votes, ok, loaded;
	bit turn, left;

	do
	:: step < STEPS ->
		ok = 1;
#ifdef SIMPLE
		if
		:: me == 0 ->
#ifdef OFFERS
			offer();
#endif
			await_tail(step)
		:: else
		fi;
		agree(R);
		if
		:: !ok -> break
		:: else
		fi;
#ifdef WRONG_CREDIT_TOO_SOON
		give_credit(step);
#endif
		loaded = weak(DATA(place(step), me));
		read_word(DATA(place(step), me), step, loaded);
#else
#ifdef WRONG_CREDIT_TOO_SOON
		give_credit(step);
#endif
		if
		:: me < n_words(step) && !left -> await_word(DATA(place(step), me), step)
		:: else
		fi;
		left = left || !ok;     /* continues to the next barrier, where all threads read it */
		ok = !left;
#endif
		loaded = 0;
		if
		:: (step + 1) % FREE == 0 ->
#if !defined(WRONG_NO_BARRIER_BEFORE_HEAD)
			agree(R);
			if
			:: !ok -> break
			:: else
			fi;
#endif
#ifndef WRONG_CREDIT_TOO_SOON
			give_credit(step)
#endif
		:: else
		fi;
		votes = 0;
		step++
	:: else -> break
	od;
#ifndef SIMPLE
	barrier(R, ok, votes);
#endif
	n_ended[R]++
}

/* ---- the CPUs: abort and teardown ---- */

bool told[2];           /* the other rank's CPU has reported an abort */
bool gone[2];           /* the kernel of the rank has ended */

#ifdef WRONG_ABORT_ONE_SIDE
#define TELL(side) skip
#else
#define TELL(side) told[1 - (side)] = true
#endif

#ifdef WRONG_TIMEOUT_UNREPORTED
#define NOT_UNREPORTED
#else
#define NOT_UNREPORTED && (!raised || side == S || mem[ABORT(R)])
#endif

#if defined(WRONG_FREE_ALONE)
#define both_gone(side) true
#elif defined(WRONG_AWAITS_DEAD)
#define both_gone(side) gone[1 - (side)]
#else
#define both_gone(side) (gone[1 - (side)] || ((side) == R && dead))  /* a barrier of the CPUs; the dead count as arrived */
#endif

proctype cpu(byte side)
{
	do
	:: n_ended[side] == THREADS && drained(side) NOT_UNREPORTED -> break  /* the kernel ends only after its stores have
									       * arrived */
	:: !mem[ABORT(side)] && told[side] -> mem[ABORT(side)] = 1
	:: !mem[ABORT(side)] && raised && side == R -> mem[ABORT(side)] = 1; TELL(side)
#ifdef ABORTS
	:: !mem[ABORT(side)] && side == S -> mem[ABORT(side)] = 1; TELL(side)
#endif
	:: side == S && dead -> goto out
	od;
	gone[side] = true;
	if
	:: both_gone(side) -> freed[side] = true
	:: side == S && dead
	fi;
out:	skip
}

#ifdef DIES
/* S's process is killed at any time: its kernel ends, its stores on their way arrive or not, and R's CPU sees the
 * connection closed. */
proctype killer()
{
	d_step {
		dead = true;
		told[R] = true;
		do
		:: pocket[S].n > 0 ->
			pocket[S].n--;
			pocket[S].cell[pocket[S].n] = 0;
			pocket[S].value[pocket[S].n] = 0
		:: else -> break
		od
	}
}
#endif

init
{
	atomic {
		byte w = 0;

		do
		:: w < THREADS -> run sender(w); run receiver(w); w++
		:: else -> break
		od;
		run bus(S);
		run bus(R);
		run cpu(S);
		run cpu(R);
#ifdef DIES
		run killer();
#endif
		w = 0
	}
}
