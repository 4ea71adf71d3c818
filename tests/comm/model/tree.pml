/* tree.pml — does each wait end in the tree and in the two-level all-reduce?  (comm/kernels/tree_allreduce.cuh, twolevel_allreduce.cuh)
 *
 * Channels are as channel.pml has shown them to be, so here a channel is two counters, and a step is one event, as in sendrecv.pml.
 * A block of each of RANKS ranks runs its steps one after another.
 *
 * Tree: CHUNKS chunks of one step, tree 0 of comm/tree.h with up to 8 places.  A rank at depth d takes chunk i up, then chunk i - LAG d down.
 * LEVELS: HOSTS * LOCAL ranks, ROUNDS rounds, chunks of CHUNK steps.
 * FREE: a receiver gives credits every so many steps, as LL does.  WRONG_...: deliberate errors, which the check must find. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef FREE
#define FREE 1
#endif

#ifdef LEVELS
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef LOCAL
#define LOCAL 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef CHUNK
#define CHUNK 1
#endif
#define RANKS (HOSTS * LOCAL)
#else
#ifndef RANKS
#define RANKS 4
#endif
#ifndef CHUNKS
#define CHUNKS 6
#endif
#ifndef LAG
#define LAG 2
#endif
#endif

#define NONE 255

byte tail[RANKS * RANKS], head[RANKS * RANKS];  /* of the channel from rank r to rank q, at r * RANKS + q */

#define channel(from, to)    ((from) * RANKS + (to))
#define has_credit(from, to) (tail[channel(from, to)] - head[channel(from, to)] / FREE * FREE < SLOTS)
#define has_data(from, to)   (tail[channel(from, to)] > head[channel(from, to)])

inline send(to)
{
	atomic { has_credit(me, to) -> tail[channel(me, to)]++ }
}

inline receive(from)
{
	atomic { has_data(from, me) -> head[channel(from, me)]++ }
}

/* A step that receives and sends waits for both; what it has waited for remains true. */
inline pass(from, to)
{
	atomic { has_credit(me, to) && has_data(from, me) -> tail[channel(me, to)]++; head[channel(from, me)]++ }
}

#ifdef LEVELS

#define rank_of(h, l) (((h) % HOSTS) * LOCAL + (l) % LOCAL)

/* One chunk, step by step. */
inline send_chunk(to)       { step = 0; do :: step < CHUNK -> send(to); step++ :: else -> break od }
inline receive_chunk(from)  { step = 0; do :: step < CHUNK -> receive(from); step++ :: else -> break od }
inline pass_chunk(from, to) { step = 0; do :: step < CHUNK -> pass(from, to); step++ :: else -> break od }

/* A phase on a ring: one chunk sent, passes, one chunk received. */
inline phase(from, to, passes)
{
	send_chunk(to);
	n = 0;
	do
	:: n < (passes) -> pass_chunk(from, to); n++
	:: else -> break
	od;
	receive_chunk(from)
}

proctype block(byte me)
{
	byte step, n, h, round, inside_from, inside_to, across_from, across_to;

	d_step {
		inside_from = rank_of(me / LOCAL, me + LOCAL - 1);
		inside_to = rank_of(me / LOCAL, me + 1);
		across_from = rank_of(me / LOCAL + HOSTS - 1, me);
		across_to = rank_of(me / LOCAL + 1, me)
	};
	do
	:: round < ROUNDS ->
		h = 0;
		do
		:: h < HOSTS -> phase(inside_from, inside_to, LOCAL - 2); h++
		:: else -> break
		od;
		phase(across_from, across_to, 2 * HOSTS - 3);
		h = 0;
		do
		:: h < HOSTS -> phase(inside_from, inside_to, LOCAL - 2); h++
		:: else -> break
		od;
		round++
	:: else -> break
	od
}

#else

#define bit(p)       ((p) & (0 - (p)))
#define reach(p)     (bit(p) / 2)
#define up(p)        (((p) ^ bit(p)) | (bit(p) * 2))
#define parent_of(p) ((p) == 0 -> NONE : (up(p) < RANKS -> up(p) : (p) ^ bit(p)))
#define top          (RANKS > 4 -> 4 : (RANKS > 2 -> 2 : 1))
#define child_0(p)   ((p) == 0 -> top : (reach(p) > 0 -> (p) - reach(p) : NONE))
#define child_1(p)   ((p) == 0 || reach(p) == 0 -> NONE : ((p) + reach(p) < RANKS -> (p) + reach(p) : \
		      (reach(p) > 1 && (p) + reach(p) / 2 < RANKS -> (p) + reach(p) / 2 : NONE)))

proctype block(byte me)
{
	byte i, lag, at, parent, first, second;

	d_step {
		parent = parent_of(me);
		first = child_0(me);
		second = child_1(me);
		at = me;
		do
		:: at != 0 -> at = parent_of(at); lag = lag + LAG
		:: else -> break
		od
#ifdef WRONG_CONSTANT_LAG
		;
		if
		:: me != 0 -> lag = LAG
		:: else
		fi
#endif
	};
	do
	:: i < CHUNKS + lag ->
		if
		:: i < CHUNKS ->
			if :: second != NONE -> receive(second) :: else fi;
			if
			:: me == 0 -> pass(first, first)
			:: me != 0 && first == NONE -> send(parent)
			:: me != 0 && first != NONE -> pass(first, parent)
			fi
		:: else
		fi;
		if
		:: i >= lag && me != 0 ->
			if
			:: first == NONE -> receive(parent)
			:: else -> pass(parent, first)
			fi;
			if :: second != NONE -> send(second) :: else fi
		:: else
		fi;
		i++
	:: else -> break
	od
}

#endif

init
{
	atomic {
		byte r = 0;

		do
		:: r < RANKS -> run block(r); r++
		:: else -> break
		od;
		r = 0
	}
}
