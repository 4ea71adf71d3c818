/* fifo.pml — a model of the FIFO's protocol, with a memory in which stores can arrive late and out of order.
 *
 *     spin -a fifo.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan        (test_model.py does it for many shapes)
 *
 * Memory is an array of cells.  A store goes into its thread's store buffer (pocket).  Stores move to memory one by
 * one, in any order and at any time, with two rules: stores to one cell keep their order, and no store overtakes a
 * fence.  For the FIFO's accesses this is weaker than any GPU or CPU.  Loads are in program order.  A wait is a
 * guard, so that a wait without end is a state without a successor, which spin reports.
 *
 * Comments name the modelled functions of proxy/fifo_device.cuh (kernels) or proxy/fifo.c (CPU).  WRONG_... are
 * deliberate errors, which the check must find. */

#ifndef PRODUCERS
#define PRODUCERS 2     /* threads that push (or warps: see GROUP) */
#endif
#ifndef LANES
#define LANES 1         /* thread p pushes into lane p mod LANES */
#endif
#ifndef SLOTS
#define SLOTS 2         /* slots of a lane: a power of two */
#endif
#ifndef PUSHES
#define PUSHES 2        /* calls of push in each thread */
#endif
#ifndef GROUP
#define GROUP 1         /* triggers of one call; 2 models warp_push by a warp of two threads */
#endif
#ifndef DEPTH
#define DEPTH 6         /* capacity of a pocket */
#endif
/* OWNED: a lane belongs to one thread at a time; otherwise its threads draw tickets.
 * RELEASE: push_release, after writing a payload.   SYNC: wait after each push.
 * AHEAD: a thread of a shared lane may poll ahead after a push.
 * ABORTS: the CPU may abort at any time.   TIMEOUTS: thread 0 may time out in each of its waits. */

#define TOTAL (PRODUCERS * PUSHES * GROUP)
#define CPU PRODUCERS                       /* index of the CPU's pocket */
#define FENCE 255

/* The numbers of the cells in host memory */
#define WORD0(lane, at) ((lane) * SLOTS + (at) % SLOTS)
#define WORD1(lane, at) (LANES * SLOTS + WORD0(lane, at))
#define TAIL(lane)      (2 * LANES * SLOTS + (lane))
#define ABORT(lane)     (TAIL(LANES) + (lane))
#define PAYLOAD(p)      (ABORT(LANES) + (p))   /* what a thread writes before its push */
#define ANSWER(p)       (PAYLOAD(PRODUCERS) + (p))   /* what the handler of its trigger writes */
#define RAISED          (ANSWER(PRODUCERS))
/* The numbers of the cells in device memory */
#define HEAD(lane)      (RAISED + 1 + (lane))
#define OWNER(lane)     (HEAD(LANES) + (lane))
#define SEEN(lane)      (OWNER(LANES) + (lane))     /* shared_tail: the tail read last, and the poller state */
#define SEEN_STATE(lane) (SEEN(LANES) + (lane))     /* a separate cell only in WRONG_SPLIT_SEEN */
#define CELLS           (SEEN_STATE(LANES))

#define NO_POLLER 0
#define POLLED 1
#define BROKEN 2

#define CODE 1

byte mem[CELLS];

typedef pocket_t { byte n; byte cell[DEPTH]; byte value[DEPTH] };
pocket_t pocket[PRODUCERS + 1];

/* Used only by assertions. */
byte pushed[LANES * (TOTAL + 1)];   /* the trigger that was pushed at each position of each lane */
byte released[LANES];               /* the tail that the CPU wrote, before it arrives */
byte n_taken;
byte quitting;                      /* the FIFO has been aborted */

#ifdef WRONG_NO_FLIP
#define lap_bit(at) 1
#else
#define lap_bit(at) (1 - (((at) / SLOTS) & 1))
#endif
#define of_lap(word, at) (((word) & 1) == lap_bit(at))

inline put(who, a, v)
{
	d_step {
		pocket[who].n < DEPTH;
		pocket[who].cell[pocket[who].n] = a;
		pocket[who].value[pocket[who].n] = v;
		pocket[who].n++
	}
}

inline fence(who)
{
	if
	:: d_step { pocket[who].n > 0 && pocket[who].n < DEPTH ->
		pocket[who].cell[pocket[who].n] = FENCE;
		pocket[who].value[pocket[who].n] = 0;
		pocket[who].n++ }
	:: pocket[who].n == 0
	fi
}

/* Moves stores from a pocket to memory. */
proctype bus(byte who)
{
	byte i, j;

end:	do
	:: atomic {
		pocket[who].n > 0 ->
		i = 0;
		do  /* choose any i up to the first fence */
		:: true -> break
		:: i + 1 < pocket[who].n && pocket[who].cell[i + 1] != FENCE -> i++
		od;
		j = 0;
		do
		:: j < i && pocket[who].cell[j] != pocket[who].cell[i] -> j++
		:: else -> break
		od;
		i = j;  /* the oldest store to the cell of store i */
		mem[pocket[who].cell[i]] = pocket[who].value[i];
		do  /* remove store i, and a fence that is now the oldest entry */
		:: i + 1 < pocket[who].n ->
			pocket[who].cell[i] = pocket[who].cell[i + 1];
			pocket[who].value[i] = pocket[who].value[i + 1];
			i++
		:: else ->
			pocket[who].cell[i] = 0;
			pocket[who].value[i] = 0;
			pocket[who].n--;
			if
			:: pocket[who].n > 0 && pocket[who].cell[0] == FENCE -> i = 0
			:: else -> break
			fi
		od;
		i = 0;
		j = 0
	   }
	od
}

/* ---- kernels --------------------------------------------------------------------- */

#ifdef WRONG_OFF_BY_ONE
#define room(at, tail) ((at) - (tail) <= SLOTS)
#else
#define room(at, tail) ((at) - (tail) < SLOTS)
#endif

mtype = { OK, TIMED_OUT, ABORTED };

/* gpul_fifo_publish_tail: the poller writes tail and state for the other threads of its lane, in one word. */
inline publish_tail(t, state)
{
#ifdef WRONG_SPLIT_SEEN
	put(me, SEEN(lane), t);
	put(me, SEEN_STATE(lane), state)
#else
	put(me, SEEN(lane), (t) * 4 + (state))
#endif
}

#ifdef WRONG_SPLIT_SEEN
#define seen_tail(s)      mem[SEEN(lane)]
#define seen_state(s)     mem[SEEN_STATE(lane)]
#else
#define seen_tail(s)      ((s) / 4)
#define seen_state(s)     ((s) % 4)
#endif

/* gpul_fifo_poll_until */
inline poll_until(upto, publishes)
{
	do
	:: mem[TAIL(lane)] >= upto || mem[TAIL(lane)] > tail || mem[ABORT(lane)] ->
		d_step { t = mem[TAIL(lane)]; a = mem[ABORT(lane)] };
		if
		:: t >= upto ->
#ifndef WRONG_STAYS_ELECTED
			if :: publishes -> publish_tail(t, NO_POLLER) :: else fi;
#endif
			result = OK
		:: t < upto && a ->
			if :: publishes -> publish_tail(t, BROKEN) :: else fi;
			result = ABORTED
		:: t < upto && !a ->
#ifndef WRONG_SILENT_POLLER
			if :: publishes -> publish_tail(t, POLLED) :: else fi;
#endif
			result = 0
		fi;
		tail = t;
		if :: result -> break :: else fi
#ifdef TIMEOUTS
	:: me == 0 ->
#ifndef WRONG_LATE_STAYS_ELECTED
		if :: publishes -> publish_tail(tail, NO_POLLER) :: else fi;
#endif
		result = TIMED_OUT;
		break
#endif
	od;
	t = 0; a = 0
}

/* gpul_fifo_await_poller */
inline await_poller(upto)
{
	do
	:: seen_tail(mem[SEEN(lane)]) >= upto || seen_state(mem[SEEN(lane)]) != POLLED ->
		s = mem[SEEN(lane)];
		tail = seen_tail(s);
		if
		:: tail >= upto -> result = OK; break
		:: tail < upto && seen_state(s) == BROKEN -> result = ABORTED; break
		:: tail < upto && seen_state(s) == NO_POLLER ->
			atomic {
#ifdef WRONG_SPLIT_SEEN
				if
				:: mem[SEEN_STATE(lane)] == NO_POLLER -> mem[SEEN_STATE(lane)] = POLLED; t = 1
#else
				if
				:: mem[SEEN(lane)] == s -> mem[SEEN(lane)] = s + POLLED; t = 1
#endif
				:: else
				fi
			};
			if
			:: t -> t = 0; poll_until(upto, true); break
			:: else
			fi
		:: else
		fi
#ifdef TIMEOUTS
	:: me == 0 -> result = TIMED_OUT; break
#endif
	od;
	s = 0
}

/* gpul_fifo_poll_ahead */
inline poll_ahead()
{
	s = mem[SEEN(lane)];
	if
	:: seen_state(s) == NO_POLLER ->
		atomic {
			if
			:: mem[SEEN(lane)] == s -> mem[SEEN(lane)] = s + POLLED; t = 1
			:: else
			fi
		};
		if
		:: t -> t = 0; tail = mem[TAIL(lane)]; publish_tail(tail, (mem[ABORT(lane)] -> BROKEN : NO_POLLER))
		:: else
		fi
	:: else
	fi;
	s = 0
}

/* gpul_fifo_sync, gpul_fifo_wait */
inline sync(upto)
{
	if
	:: tail >= upto -> result = OK
	:: else ->
#ifdef OWNED
		poll_until(upto, false)
#else
		await_poller(upto)
#endif
	fi
}

/* gpul_fifo_own and gpul_fifo_draw_tickets */
inline own()
{
#ifdef OWNED
	atomic { mem[OWNER(lane)] == 0 -> mem[OWNER(lane)] = 1 };
	next = mem[HEAD(lane)];
	tail = 0
#else
	skip
#endif
}

inline disown()
{
#ifdef OWNED
	put(me, HEAD(lane), next);
#ifndef WRONG_DISOWN
	fence(me);
#endif
	put(me, OWNER(lane), 0)
#else
	skip
#endif
}

inline draw()
{
#ifdef OWNED
	at = next;
#else
	d_step { at = mem[HEAD(lane)]; mem[HEAD(lane)] = at + GROUP };
#endif
}

/* A trigger's words: its number, from 1, in the upper bits, and the lap bit in bit 0. */
#ifdef WRONG_ONE_LAP_BIT
#define lap_bit1(at) 0
#else
#define lap_bit1(at) lap_bit(at)
#endif

inline store_slot(at, what)
{
	assert((at) - released[lane] < SLOTS);  /* the slot has been released */
	put(me, WORD0(lane, at), (what) * 2 + lap_bit(at));
	put(me, WORD1(lane, at), (what) * 2 + lap_bit1(at))
}

/* gpul_fifo_push; with GROUP 2 gpul_fifo_warp_push, STEP triggers at a time, as many as fit into the ring */
#define STEP (SLOTS < GROUP -> SLOTS : GROUP)

inline push()
{
#ifdef RELEASE
	put(me, PAYLOAD(me), i + 1);
#endif
	draw();
#ifdef RELEASE
#ifndef WRONG_NO_FENCE
	fence(me);
#endif
#endif
	g = 0;
	do
	:: g < GROUP ->
		if
		:: room(at + g + STEP - 1, tail) -> result = OK
		:: else -> sync(at + g + STEP - SLOTS)
		fi;
		if
		:: result != OK -> break
		:: else
		fi;
		k = 0;
		do
		:: k < STEP ->
			pushed[lane * (TOTAL + 1) + at + g + k] = (me * PUSHES + i) * GROUP + g + k + 1;
			store_slot(at + g + k, (me * PUSHES + i) * GROUP + g + k + 1);
			k++
		:: else -> break
		od;
		g = g + STEP;
		next = at + g
	:: else -> break
	od;
	k = 0; g = 0
}

/* gpul_fifo_raise */
inline give_up()
{
	quitting = true;
#ifndef WRONG_TICKET_DROPPED
	put(me, RAISED, CODE)
#endif
}

#ifdef WRONG_EARLY_ANSWER
byte early;             /* the answer, loaded too early: before the tail (no acquire) */
#define answer early
#else
#define answer mem[ANSWER(me)]
#endif

proctype producer(byte me)
{
	byte lane = me % LANES, i, at, next, tail, t, a, s, g, k;
	mtype result;

	own();
	do
	:: i < PUSHES ->
		push();
#ifdef SYNC
		if
		:: result == OK ->
#ifdef WRONG_EARLY_ANSWER
			early = mem[ANSWER(me)];
#endif
			sync(next);
#ifdef RELEASE
			assert(result != OK || answer == i + 1);  /* the handler's answer is visible */
#endif
			if
			:: result == TIMED_OUT -> result = OK  /* the push succeeded: the thread continues */
			:: else
			fi
		:: else
		fi;
#endif
#ifdef AHEAD
		if
		:: result == OK -> poll_ahead()
		:: true
		fi;
#endif
		if
		:: result == OK -> i++
		:: result == ABORTED -> assert(quitting); goto out
		:: result == TIMED_OUT ->
#if defined(OWNED) && GROUP == 1
			if
			:: true -> skip  /* an owner has not pushed, and may try again */
			:: give_up(); goto out
			fi
#else
			give_up();  /* the slot of its ticket stays empty */
			goto out
#endif
		fi
	:: else -> break
	od;
out:	disown()
}

/* ---- the CPU --------------------------------------------------------------------- */

#ifdef WRONG_ONE_LAP_BIT
#define IGNORES_WORD1
#endif
#ifdef WRONG_IGNORES_WORD1
#define IGNORES_WORD1
#endif

#define there0(lane) of_lap(mem[WORD0(lane, taken[lane])], taken[lane])
#ifdef IGNORES_WORD1
#define there1(lane) true
#else
#define there1(lane) of_lap(mem[WORD1(lane, taken[lane])], taken[lane])
#endif

byte taken[LANES];
byte seq[PRODUCERS];  /* triggers of each thread that the CPU has taken out */

#ifdef WRONG_EARLY_PAYLOAD
byte early;             /* the payload, loaded too early: before the words (no acquire) */
#define payload early
#else
#define payload mem[PAYLOAD(who)]
#endif

/* Check that the trigger that was taken out is the expected one. */
inline check()
{
	d_step {
		assert(w0 / 2 == w1 / 2);                                   /* both words belong to one trigger */
		assert(w0 / 2 == pushed[lane * (TOTAL + 1) + taken[lane]]);  /* pushed at this position */
		who = (w0 / 2 - 1) / (PUSHES * GROUP);
		i = (w0 / 2 - 1) % (PUSHES * GROUP);
		assert(i == seq[who]);                                      /* in the push order of its thread */
		i = i / GROUP + 1;
		seq[who]++;
		taken[lane]++;
		n_taken++;
		w0 = 0; w1 = 0
	};
#ifdef RELEASE
#ifdef SYNC
	assert(payload == i);
	put(CPU, ANSWER(who), i);
#else
	assert(payload >= i);  /* greater if the thread has begun its next push */
#endif
#endif
	who = 0; i = 0
}

/* gpul_fifo_poll, one trigger.  The words are read in any order; a word whose lap bit is right keeps it until the
 * release. */
inline poll(l)
{
	lane = l;
#ifdef WRONG_EARLY_TAIL
	there0(lane) && there1(lane);
	released[lane] = taken[lane] + 1;
	put(CPU, TAIL(lane), taken[lane] + 1);
#endif
	if
	:: there0(lane) -> w0 = mem[WORD0(lane, taken[lane])]; there1(lane); w1 = mem[WORD1(lane, taken[lane])]
	:: there1(lane) -> w1 = mem[WORD1(lane, taken[lane])]; there0(lane); w0 = mem[WORD0(lane, taken[lane])]
	fi;
	check()
}

/* gpul_fifo_release_lane: at any time after the handler, for all triggers that were taken until then */
inline release(l)
{
	released[l] = taken[l];
#ifndef WRONG_TAIL_RELAXED
	fence(CPU);
#endif
	put(CPU, TAIL(l), taken[l])
}

/* gpul_fifo_abort */
inline abort_all()
{
	put(CPU, ABORT(0), CODE);
#if LANES > 1 && !defined(WRONG_ABORTS_ONE_LANE)
	put(CPU, ABORT(1), CODE)
#endif
}

#define can_poll(l)    (taken[l] - released[l] < SLOTS && (there0(l) || there1(l)))
#define can_release(l) (taken[l] > released[l])

proctype cpu()
{
	byte lane, w0, w1, who, i;

	do
	:: can_poll(0) -> poll(0)
	:: can_release(0) -> release(0)
#if LANES > 1
	:: can_poll(1) -> poll(1)
	:: can_release(1) -> release(1)
	:: n_taken == TOTAL && !can_release(0) && !can_release(1) -> break
#else
	:: n_taken == TOTAL && !can_release(0) -> break
#endif
#ifdef WRONG_EARLY_PAYLOAD
	:: early = mem[PAYLOAD(0)]
#endif
	:: mem[RAISED] -> abort_all(); break  /* gpul_fifo_aborted */
#ifdef ABORTS
	:: quitting = true; abort_all(); break
#endif
	od
}

init
{
	atomic {
		byte p = 0;

		do
		:: p < PRODUCERS -> run producer(p); run bus(p); p++
		:: else -> break
		od;
		run cpu();
		run bus(CPU);
		p = 0
	}
}
