/* observer_internal.h — the hooks by which a tool (softcuda/tools) observes and controls running kernels.
 *
 *     cuInit ── gpul_exec_memory_observe() ──> the observers of the process, before the first module is decoded
 *     decode ── wants() ──> an instruction that some observer wants gets gpul_observed() as its handler; all others, and all
 *                           instructions of a process without observers, run exactly the code that they run without this file
 *     run    ── before() ── the handler ── after()
 *
 * Hooks see the interpreter's instructions (struct insn). A PTX instruction may be decoded to several of them, with the same src,
 * because decoding inserts conversions, and a branch around guarded instructions that wait: see gpul_insn_begins().
 *
 * Hooks run on worker threads, in the middle of a turn: several at once, unless the observer is serial.  They may take
 * locks of their own, but must not call gpul_exec_* functions that wait for kernels.  All pointers are borrowed. */
#ifndef GPULOAD_SOFTCUDA_EXEC_OBSERVER_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_OBSERVER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "softcuda/exec/exec.h"

struct warp;
struct warp_state;
struct block;
struct insn;
struct func_code;
struct observer;

enum { MAX_OBSERVERS = 8 };

/* What gpul_observed() does with the instruction.  If observers return different values, the one that comes last in this list wins. */
enum observed {
	OBSERVED_RUN,
	OBSERVED_SKIP,  /* do not run it; it writes no register; the warp continues after it */
	OBSERVED_YIELD, /* the split ends its turn here; before() is called again when it has the next one */
	OBSERVED_FAULT, /* the observer has called gpul_fault_text() */
};

/* Like an instruction's handler (op_fn): executes it and returns the next one. */
typedef const struct insn *observed_fn(struct warp *w, const struct insn *i);

/* A copy or fill: n_slices times n_rows rows of row_bytes. */
struct host_move {
	uint64_t to, from; /* from == 0: values from outside the table, such as a fill */
	uint64_t row_bytes, n_rows, n_slices;
	uint64_t to_pitch, to_slice, from_pitch, from_slice; /* distance from one row, or slice, to the next */
	bool fill;
	const gpul_exec_order *order; /* its place among the work of all streams; NULL: not work of a stream */
};

/* A hook that is NULL is not called. */
struct observer {
	const char *name;
	/* One worker runs all blocks, in an order that depends only on the kernels and their data, as long as they do not
	 * read clocks, and the program waits for each launch. */
	bool serial;
	/* before() may return OBSERVED_YIELD.  This observer's before() is called first; if it yields, the others are not called,
	 * so that they see each instruction once. */
	bool yields;
	/* Module variables and blocks' shared memory end at their last byte, so that an access past it faults.  Otherwise they
	 * are padded, as on a GPU. */
	bool exact_bounds;
	/* The hooks read functions that no kernel has called so far, so all functions of a program must be decoded when it is created. */
	bool whole_programs;

	/* Returns true if before() and after() must be called for this instruction.  Called once, when its function has been
	 * decoded. */
	bool (*wants)(struct observer *o, const struct func_code *code, const struct insn *i);
	/* on: the lanes that execute it: the active lanes whose guard is true; may be 0.  Registers have their old values. */
	enum observed (*before)(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on);
	/* waits: it was not executed, because lanes of its *.sync are missing; before() will be called again.  After an exit,
	 * return or call, s->frame is not the frame in which i was executed and may be freed. */
	void (*after)(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits);
	/* For a tool that must be fast: a handler that is called instead of before() and after(), if no other observer wants the
	 * instruction; NULL: none.  It calls the instruction's own handler, code->observed[i - code->insns].run. */
	observed_fn *(*handler)(struct observer *o, const struct func_code *code, const struct insn *i);

	/* All threads of barrier `id` have arrived and none has continued: warps[k].arrived[id] has the lanes. */
	void (*barrier_completes)(struct observer *o, struct block *b, unsigned id);
	/* No warp of the block can run again.  Called before the driver's own report, which ends the launch. */
	void (*deadlock)(struct observer *o, struct block *b);
	void (*block_begins)(struct observer *o, struct block *b);
	/* The block has ended its turn; other blocks run now.  The hook may end the launch by gpul_launch_fault(). */
	void (*block_yields)(struct observer *o, struct block *b);
	void (*block_ends)(struct observer *o, struct block *b); /* called also after a fault */
	/* Called by the thread that starts the launch, before its first block; and by the worker that ends its last block,
	 * before any later launch of its stream begins.  *fault: kind is GPUL_EXEC_OK if there was none. */
	void (*launch_begins)(struct observer *o, gpul_exec_launch *l);
	void (*launch_ends)(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault);

	/* A program is about to be destroyed: its code and all pointers to it become invalid.  Called by the destroying
	 * thread. */
	void (*program_ends)(struct observer *o, const gpul_exec_program *p);

	/* Memory: called by the thread that changes the table, after the change. */
	void (*range_added)(struct observer *o, const gpul_exec_range *r);
	void (*range_removed)(struct observer *o, const gpul_exec_range *r);
	/* The driver has copied or filled memory for a call from the program. */
	void (*host_moves)(struct observer *o, const struct host_move *m);

	/* Device malloc leaves this many unused bytes after each allocation, and reuses freed memory only when no other is left;
	 * 0: as without observers. */
	uint32_t heap_red_zone_bytes;

	struct observer *next; /* next observer of the process */
	unsigned bit;          /* 1 << its number; set by gpul_exec_memory_observe() */
};

/* Run a launch again from its first block: for hooks of a serial observer.  From launch_ends this happens at once; from other
 * hooks at the end of the turn, which before() should end by OBSERVED_YIELD, and the running blocks are abandoned.  The hooks see
 * block_ends, launch_ends (with GPUL_EXEC_ABORTED) and launch_begins.  Memory contents and printed output are not undone. */
void gpul_launch_again(gpul_exec_launch *l);
/* The operations of a graph run in one stream but are only partly ordered: operation k, counted from 1, has the stream's number
 * plus k. Work that is ordered after the stream's number is ordered after all of them. */
enum { ORDER_NODE_BITS = 24 };

static inline bool gpul_order_is_after(const gpul_exec_order *o, const gpul_exec_order *earlier)
{
	const uint64_t all = earlier->stream >> ORDER_NODE_BITS << ORDER_NODE_BITS;

	for (size_t k = 0; k < o->n; k++)
		if ((o->after[k].stream == earlier->stream || o->after[k].stream == all) && o->after[k].number >= earlier->number)
			return true;
	return false;
}

/** Add an observer of all programs and machines of this table.
 *
 * @m  no program has been created with it
 * @o  borrowed until the table is destroyed
 * Errors  GPUL_EINVAL more than MAX_OBSERVERS
 * Threads one thread, before any other uses the table */
gpul_status gpul_exec_memory_observe(gpul_exec_memory *m, struct observer *o, gpul_error *err);
struct observer *gpul_exec_memory_observers(const gpul_exec_memory *m); /* the first of the list; NULL: none */
/** Tell observers that the driver has copied or filled memory for the program.  Call it after writing the bytes. */
void gpul_exec_memory_moved(gpul_exec_memory *m, const struct host_move *move);
/** Like gpul_exec_memory_moved(), for bytes that the driver has written outside any stream. */
void gpul_exec_memory_written(gpul_exec_memory *m, uint64_t to, uint64_t from, uint64_t bytes);

#endif
