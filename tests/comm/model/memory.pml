/* memory.pml — a weak memory and blocks of threads; included by the models of this folder.
 *
 * Memory is an array of cells; one store writes a whole cell.  Two things make it weak:
 *
 *     threads of a block ── put ──▶ pocket: stores on their way ── bus: any order, any time ──▶ mem[]
 *     threads of a block ◀── weak ── old[]: what an early load or a line in the L1 holds ◀────── mem[]
 *
 * Stores: two stores to one cell keep their order, and no store overtakes a fence.  A block has one pocket, because a
 * fence of one thread also orders the stores that it saw through a barrier of the block.  (A store that no barrier
 * orders before the fence may also be issued after it: that is another order of events.)
 * Loads: when a store arrives, the cell's old value may stay visible to weak loads until an acquire.
 * Polls read mem[].
 *
 * A model defines CELLS, BLOCKS (pockets), THREADS (of a block), CACHED (cells 0 to CACHED - 1 are loaded weakly, each
 * by one block) and DEPTH (of a pocket), and may define ARRIVE(cell, value), what the arrival of a store does. */

#define FENCE 255

hidden byte at_;    /* of one d_step: not a part of the state */

byte mem[CELLS];
byte old[CACHED + 1];   /* an old value that a weak load returns, plus 1; 0: none */

#define weak(c) (old[c] -> old[c] - 1 : mem[c])

/* The acquire part of ld.acquire.sys: weak loads of these cells return nothing older than memory has now. */
inline acquire(from, upto)
{
	d_step {
		at_ = from;
		do
		:: at_ < upto -> old[at_] = 0; at_++
		:: else -> break
		od;
		at_ = 0
	}
}

typedef pocket_t { byte n; byte cell[DEPTH]; byte value[DEPTH] };
pocket_t pocket[BLOCKS];

#ifndef ARRIVE
#define ARRIVE(c, v) mem[c] = v
#endif

/* A store.  Stores between two fences are sorted by cell, so that one set of stores is one state. */
inline put(b, c, v)
{
	d_step {
		pocket[b].n < DEPTH;
		at_ = pocket[b].n;
		do
		:: at_ > 0 && pocket[b].cell[at_ - 1] != FENCE && pocket[b].cell[at_ - 1] > (c) ->
			pocket[b].cell[at_] = pocket[b].cell[at_ - 1];
			pocket[b].value[at_] = pocket[b].value[at_ - 1];
			at_--
		:: else -> break
		od;
		pocket[b].cell[at_] = c;
		pocket[b].value[at_] = v;
		pocket[b].n++;
		at_ = 0
	}
}

/* fence.acq_rel.sys, or the release part of st.release.sys */
inline fence(b)
{
	if
	:: d_step { pocket[b].n > 0 && pocket[b].n < DEPTH ->
		pocket[b].cell[pocket[b].n] = FENCE;
		pocket[b].n++ }
	:: pocket[b].n == 0
	fi
}

/* Moves stores from a pocket to memory. */
proctype bus(byte b)
{
	byte i;
	bit keep;

end:	do
	:: atomic {
		pocket[b].n > 0 ->
		do  /* choose any i before the first fence */
		:: true -> break
		:: i + 1 < pocket[b].n && pocket[b].cell[i + 1] != FENCE -> i++
		od;
		if
		:: keep = 0
		:: CACHED > 0 -> keep = 1   /* the old value stays in a cache */
		fi;
		d_step {
			do  /* the oldest store to this cell */
			:: i > 0 && pocket[b].cell[i - 1] == pocket[b].cell[i] -> i--
			:: else -> break
			od;
			if
			:: keep && pocket[b].cell[i] < CACHED && old[pocket[b].cell[i]] == 0 ->
				old[pocket[b].cell[i]] = mem[pocket[b].cell[i]] + 1
			:: else
			fi;
			ARRIVE(pocket[b].cell[i], pocket[b].value[i]);
			do  /* remove store i, and a fence that is now the oldest entry */
			:: i + 1 < pocket[b].n ->
				pocket[b].cell[i] = pocket[b].cell[i + 1];
				pocket[b].value[i] = pocket[b].value[i + 1];
				i++
			:: else ->
				pocket[b].cell[i] = 0;
				pocket[b].value[i] = 0;
				pocket[b].n--;
				if
				:: pocket[b].n > 0 && pocket[b].cell[0] == FENCE -> i = 0
				:: else -> break
				fi
			od;
			i = 0;
			keep = 0
		}
	   }
	od
}

#define drained(b) (pocket[b].n == 0)

/* bar.red.popc: all threads of the block arrive with a vote, and all get the number of votes.  `turn` is a bit of the
 * calling thread.  A thread that has left never arrives. */
typedef block_t { byte arrived; byte yes; byte agreed; bit sense };
block_t block[BLOCKS];

inline barrier(b, vote, n_yes)
{
	d_step {
		block[b].arrived++;
		block[b].yes = block[b].yes + (vote);
		turn = 1 - turn;
		if
		:: block[b].arrived == THREADS ->
			block[b].agreed = block[b].yes;
			block[b].arrived = 0;
			block[b].yes = 0;
			block[b].sense = turn
		:: else
		fi
	};
	atomic { block[b].sense == turn -> n_yes = block[b].agreed }
}
