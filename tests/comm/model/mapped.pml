/* mapped.pml — the algorithms without channels: one-shot (oneshot.cuh) and two-shot (direct.cuh), and mixtures.
 *
 * One-shot, call n:                                     Two-shot, call n:
 *     greeting n, words with flag n ──▶ half n % 2          greeting n ──▶ half n % 2 of every other rank
 *         of every other rank                               wait for every rank's greeting
 *     poll the own half until all flags are n               read the peers' input, write the peers' output
 *     wait for every rank's greeting                        goodbye n ──▶ every rank; wait for every rank's
 *
 * Bit k of TWOS: call k is a two-shot.  PULL: a two-shot only reads the peers' input; PUSH: it only writes the peers'
 * output.  Bit k of BROADCASTS: call k is a one-shot in which only rank 0 sends data.  Other calls are one-shots in which
 * every rank sends to every other.  The data of call k is k + 1, and its number too.  Before a two-shot, an earlier kernel
 * of the stream writes the input; after it, a later kernel reads the output.  A rank's kernel has SPAN blocks: block 0
 * greets (NO_GREETINGS: none does, in a one-shot); SHRINKS: from the second call on, block 0 has all words.  WRONG_...
 * are deliberate errors, which the check must find. */

#ifndef RANKS
#define RANKS 2
#endif
#ifndef CALLS
#define CALLS 4
#endif
#ifndef HALVES
#define HALVES 2        /* of the scratch memory */
#endif
#ifndef WORDS
#define WORDS 1         /* from each rank to each other rank */
#endif
#ifndef SPAN
#define SPAN 1
#endif
#ifndef TWOS
#define TWOS 0
#endif
#ifndef BROADCASTS
#define BROADCASTS 0
#endif
#ifndef DEPTH
#define DEPTH 6
#endif
#define THREADS 1
#define BLOCKS (RANKS * SPAN)

#define IN(r, peer)           ((r) * RANKS + (peer))   /* the peer's input, as rank r loads it */
#define CACHED                (RANKS * RANKS)
#define SCRATCH(r, h, peer, w) (CACHED + (((r) * HALVES + (h)) * RANKS + (peer)) * WORDS + (w))
#define OUT(r, peer)          (SCRATCH(RANKS, 0, 0, 0) + (r) * RANKS + (peer))   /* written by the peer */
#define GREETING(r, h, peer)  (OUT(RANKS, 0) + ((r) * GREETING_HALVES + (h)) * RANKS + (peer))
#define GOODBYE(r, peer)      (GREETING(RANKS, 0, 0) + (r) * RANKS + (peer))
#define CELLS                 (GOODBYE(RANKS, 0))
#ifdef WRONG_ONE_GREETING
#define GREETING_HALVES 1
#else
#define GREETING_HALVES 2
#endif

#include "memory.pml"

#define is_two(k)   (((TWOS) >> (k)) & 1)
#define sends(r, k) ((r) == 0 || !(((BROADCASTS) >> (k)) & 1))
#ifdef SHRINKS
#define n_blocks(k) ((k) -> 1 : SPAN)
#else
#define n_blocks(k) SPAN
#endif

/* Used only by assertions: the last value written to, and read from, each word of the scratch memory. */
byte written[SCRATCH(RANKS, 0, 0, 0) - CACHED];
byte read[SCRATCH(RANKS, 0, 0, 0) - CACHED];

byte n_ended[RANKS];    /* blocks of all kernels of a rank that have ended */

inline write_word(c, k)
{
	d_step {
		assert(written[c - CACHED] == read[c - CACHED]);  /* not overwritten before it is read */
		written[c - CACHED] = (k) + 1
	};
	put(bus_of, c, ((k) + 1) * 16 + (k) + 1)
}

inline read_word(c, k)
{
	atomic {
		mem[c] / 16 == (k) + 1;
		assert(mem[c] % 16 == (k) + 1);  /* not stale */
		read[c - CACHED] = (k) + 1
	}
}

#define half(k) (((k) + 1) % HALVES)

inline greet(k)
{
	p = 0;
	do
	:: b == 0 && p < RANKS ->
		if :: p != me -> put(bus_of, GREETING(p, (k) % GREETING_HALVES, me), (k) + 1) :: else fi;
		p++
	:: else -> break
	od;
	p = 0
}

inline hear(k)
{
	do
	:: p < RANKS ->
		if
		:: p != me ->
			atomic { mem[GREETING(me, (k) % GREETING_HALVES, p)] == (k) + 1;
#ifndef WRONG_NO_ACQUIRE
				acquire(IN(me, p), IN(me, p) + 1)
#endif
			}
		:: else
		fi;
		p++
	:: else -> break
	od;
	p = 0
}

inline one_shot(k)
{
#ifndef NO_GREETINGS
	greet(k);
#endif
	do
	:: p < RANKS ->
		w = b;
		do
		:: p != me && sends(me, k) && w < WORDS && b < n_blocks(k) -> write_word(SCRATCH(p, half(k), me, w), k); w = w + n_blocks(k)
		:: else -> break
		od;
		p++
	:: else -> break
	od;
	p = 0;
	do
	:: p < RANKS ->
		w = b;
		do
		:: p != me && sends(p, k) && w < WORDS && b < n_blocks(k) -> read_word(SCRATCH(me, half(k), p, w), k); w = w + n_blocks(k)
		:: else -> break
		od;
		p++
	:: else -> break
	od;
	p = 0; w = 0;
#ifndef NO_GREETINGS
	if :: b == 0 -> hear(k) :: else fi
#endif
}

inline part(k)
{
#ifndef WRONG_NO_FENCE
	fence(bus_of);
#endif
	do
	:: p < RANKS ->
		if :: p != me -> put(bus_of, GOODBYE(p, me), (k) + 1) :: else fi;
		p++
	:: else -> break
	od;
	p = 0;
	do
	:: p < RANKS ->
		if :: p != me -> mem[GOODBYE(me, p)] >= (k) + 1 :: else fi;
		p++
	:: else -> break
	od;
	p = 0
}

inline two_shot(k)
{
	fence(bus_of);  /* the input was written before the greeting */
	greet(k);
#ifndef WRONG_NO_START
	hear(k);
#endif
	do
	:: p < RANKS ->
		if
		:: p != me ->
#ifndef PUSH
			d_step {
				assert(weak(IN(me, p)) >= (k) + 1);  /* input not stale */
				assert(weak(IN(me, p)) <= (k) + 1)   /* input not overwritten before it is read */
			};
#endif
#ifndef PULL
			put(bus_of, OUT(p, me), (k) + 1)
#endif
		:: else
		fi;
		p++
	:: else -> break
	od;
	p = 0;
#ifndef WRONG_NO_END
	part(k)
#endif
}

/* The kernels of the stream before and after the call; block 0 stands for them. */
inline write_input(k)
{
	p = 0;
	do
	:: p < RANKS ->
		if :: p != me -> put(bus_of, IN(p, me), (k) + 1) :: else fi;
		p++
	:: else -> break
	od;
	p = 0;
	atomic { drained(bus_of); acquire(IN(me, 0), IN(me, RANKS)) }
}

inline read_output(k)
{
	d_step {
		p = 0;
		do
		:: p < RANKS ->
			if
			:: p != me -> assert(mem[OUT(me, p)] >= (k) + 1);  /* output not stale */
				assert(mem[OUT(me, p)] <= (k) + 1)         /* output not overwritten before it is read */
			:: else
			fi;
			p++
		:: else -> break
		od;
		p = 0
	}
}

proctype kernel(byte me; byte b)
{
	byte k, p, w, bus_of = me * SPAN + b;

	do
	:: k < CALLS ->
		if :: is_two(k) -> write_input(k) :: else fi;
		if
		:: is_two(k) -> two_shot(k)
		:: else -> one_shot(k)
		fi;
		drained(bus_of);
		n_ended[me]++;
#ifndef WRONG_RUNS_AHEAD
		n_ended[me] >= (k + 1) * SPAN;   /* the next kernel starts after all blocks of this one have ended */
#endif
#ifndef PULL
		if :: is_two(k) -> read_output(k) :: else fi;
#endif
		k++
	:: else -> break
	od
}

init
{
	atomic {
		byte r = 0, s = 0;

		do
		:: r < RANKS ->
			s = 0;
			do
			:: s < SPAN -> run kernel(r, s); run bus(r * SPAN + s); s++
			:: else -> break
			od;
			r++
		:: else -> break
		od;
		r = 0; s = 0
	}
}
