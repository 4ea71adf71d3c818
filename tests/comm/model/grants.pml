/* grants.pml — does each wait end when a receiver grants slots to its senders?  (comm/net/grants.h, proxy.c)
 *
 * Senders 0 and 1, a channel each, one receiver.  The network is a store between the two sides:
 * a slot is in flight between `sent` and `tail`, a word between the writer's variable and the
 * reader's.  The channel itself is as channel.pml has shown it to be.
 *
 *     kernel of s ─ posted ─> proxy of s ═ sent ═> network ═ tail ═> kernel of the receiver ─ head ─> kernel of s
 *                             asked ═════════════> asks ─> admission of the receiver
 *                             grants <════════════ granted ┘
 *
 * The receiver's kernel reads all steps of sender 0 before it reads any of sender 1: the order in which a slot waits longest.  DEPENDS:
 * sender 1 posts nothing before the receiver has read all of sender 0, as in a tree.  WINDOW: slots that may be granted; FREE: slots of
 * each sender that need no grant.  DIES: sender 1 may be killed.  WRONG_...: deliberate errors, which the check must find. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef STEPS
#define STEPS 3
#endif
#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef FREE
#define FREE 0
#endif

#define N 2

byte posted[N], sent[N], tail[N], head[N];    /* steps of the channel: each counter has one writer */
byte asked[N], asks[N], granted[N], grants[N];
byte free_slots[N];                           /* in flight without a grant */
bool is_free[N * SLOTS];                      /* of a slot: it is one of them */
bool go, dead;

#ifdef WRONG_FREED_WHEN_READ
#define freed(s) (head[s])
#else
#define freed(s) (tail[s])
#endif
#ifdef WRONG_DEAD_HOLDS
#define alive(s) true
#else
#define alive(s) ((s) == 0 || !dead)
#endif
#define held(s)  (alive(s) && granted[s] > freed(s) -> granted[s] - freed(s) : 0)
#define on_way(s) (alive(s) -> sent[s] - tail[s] : 0)   /* slots of a dead sender may arrive
							 * late */

proctype kernel(byte s)
{
	if
	:: s == 1 ->
#ifdef DEPENDS
		go;
#endif
		skip
	:: else
	fi;
	do
	:: posted[s] < STEPS -> if :: posted[s] - head[s] < SLOTS -> posted[s]++ :: s == 1 && dead -> break fi
	:: else -> break
	od
}

proctype proxy(byte s)
{
end:	do
	:: atomic { !(s == 1 && dead) && sent[s] < posted[s] && sent[s] < grants[s] -> is_free[s * SLOTS + sent[s] % SLOTS] = false; sent[s]++;
			assert(on_way(0) + on_way(1) <= WINDOW + N * FREE) }
	:: atomic { !(s == 1 && dead) && sent[s] < posted[s] && sent[s] >= grants[s] && free_slots[s] < FREE ->
			is_free[s * SLOTS + sent[s] % SLOTS] = true; free_slots[s]++; sent[s]++;
			assert(on_way(0) + on_way(1) <= WINDOW + N * FREE) }
	:: atomic { !(s == 1 && dead) && sent[s] < posted[s] && sent[s] >= grants[s] && free_slots[s] == FREE && asked[s] < posted[s] ->
			asked[s] = posted[s] }
	od
}

/* Slots and words in flight arrive at any time. */
proctype network(byte s)
{
end:	do
	:: atomic { tail[s] < sent[s] ->
			if :: is_free[s * SLOTS + tail[s] % SLOTS] -> free_slots[s]-- :: else fi;
			tail[s]++ }
	:: atomic { asks[s] < asked[s] -> asks[s] = asked[s] }
	:: atomic { grants[s] < granted[s] -> grants[s] = granted[s] }
	od
}

/* The admission, for one sender; it is fair, which does not matter here.  Steps that have arrived need no grant. */
proctype admission(byte s)
{
end:	do
#ifdef WRONG_GRANTED_IN_ADVANCE
	:: atomic { alive(s) && granted[s] < STEPS && held(0) + held(1) < WINDOW -> granted[s]++ }
#else
	:: atomic { alive(s) && granted[s] < asks[s] && granted[s] < tail[s] -> granted[s]++ }
	:: atomic { alive(s) && granted[s] < asks[s] && granted[s] >= tail[s] && held(0) + held(1) < WINDOW -> granted[s]++;
			assert(granted[s] <= posted[s]) }
#endif
	od
}

proctype reader()
{
	do
	:: head[0] < STEPS -> tail[0] > head[0]; head[0]++
	:: else -> break
	od;
	go = true;
	do
	:: head[1] < STEPS -> if :: tail[1] > head[1] -> head[1]++ :: dead -> break fi
	:: else -> break
	od
}

#ifdef DIES
proctype killer()
{
	dead = true
}
#endif

init
{
	atomic {
		run kernel(0); run proxy(0); run network(0); run admission(0);
		run kernel(1); run proxy(1); run network(1); run admission(1);
		run reader();
#ifdef DIES
		run killer();
#endif
	}
}
