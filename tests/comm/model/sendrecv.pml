/* sendrecv.pml — the waits between ranks: send and receive, grouped or not, and a ring.
 *
 * Channels are as channel.pml has shown them to be, so here a channel is two counters, and a step is one event.  The
 * only question is whether each wait ends.
 *
 * All-to-all of RANKS ranks: operation 2 i of rank r sends to rank r + i + 1, operation 2 i + 1 receives from rank
 * r - i - 1.  Ungrouped: one block runs the operations of a rank one after the other.  GROUPED: one block for each.
 * PAIRED: one block alternates between the steps of a send and of a receive.  RESIDENT: the number of blocks of a rank
 * that fit on the GPU at a time.  RING: each rank sends AHEAD steps to the next one before it first receives. */

#ifndef RANKS
#define RANKS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef STEPS
#define STEPS 4         /* of each operation */
#endif

#define N_OPS (2 * (RANKS - 1))
#ifdef RECEIVES_FIRST
#define sends(op) ((op) % 2)
#else
#define sends(op) ((op) % 2 == 0)
#endif
#define peer_of(r, op) (sends(op) -> ((r) + (op) / 2 + 1) % RANKS : ((r) + RANKS - (op) / 2 - 1) % RANKS)

byte tail[RANKS * RANKS], head[RANKS * RANKS];  /* of the channel from rank r to rank q, at r * RANKS + q */

inline send(from, to)
{
	atomic { tail[(from) * RANKS + (to)] - head[(from) * RANKS + (to)] < SLOTS -> tail[(from) * RANKS + (to)]++ }
}

inline receive(from, to)
{
	atomic { tail[(from) * RANKS + (to)] > head[(from) * RANKS + (to)] -> head[(from) * RANKS + (to)]++ }
}

#ifdef RESIDENT
byte resident[RANKS];
#define START(r) atomic { resident[r] < RESIDENT -> resident[r]++ }
#define END(r)   resident[r]--
#else
#define START(r) skip
#define END(r)   skip
#endif

/* Runs the operations op..upto-1. */
proctype block(byte me; byte op; byte upto)
{
	byte step, peer;

	START(me);
	do
	:: op < upto ->
		peer = peer_of(me, op);
		step = 0;
		do
		:: step < STEPS && sends(op) -> send(me, peer); step++
		:: step < STEPS && !sends(op) -> receive(peer, me); step++
		:: else -> break
		od;
		op++
	:: else -> break
	od;
	END(me)
}

proctype paired(byte me)
{
	byte op, step, to, from;

	do
	:: op < N_OPS ->
		to = peer_of(me, op);
		from = peer_of(me, op + 1);
		step = 0;
		do
		:: step < STEPS -> send(me, to); receive(from, me); step++
		:: else -> break
		od;
		op = op + 2
	:: else -> break
	od
}

#ifdef RING
proctype ring(byte me)
{
	byte sent, received;

	do
	:: sent < STEPS && sent < received + AHEAD -> send(me, (me + 1) % RANKS); sent++
	:: received < STEPS && (sent == STEPS || sent == received + AHEAD) -> receive((me + RANKS - 1) % RANKS, me); received++
	:: sent == STEPS && received == STEPS -> break
	od
}
#endif

init
{
	atomic {
		byte r = 0, op = 0;

		do
		:: r < RANKS ->
#if defined(RING)
			run ring(r);
#elif defined(PAIRED)
			run paired(r);
#elif defined(GROUPED)
			op = 0;
			do
			:: op < N_OPS -> run block(r, op, op + 1); op++
			:: else -> break
			od;
#else
			run block(r, 0, N_OPS);
#endif
			r++
		:: else -> break
		od;
		r = 0; op = 0
	}
}
