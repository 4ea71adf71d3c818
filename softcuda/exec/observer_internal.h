/* observer_internal.h — the hooks by which a tool (softcuda/tools) observes and controls running kernels.
 *
 *     cuInit ── gpul_exec_memory_observe() ──> the observers of the process, before the first module is decoded
 *     decode ── wants() ──> an instruction that some observer wants gets gpul_observed() as its handler; all others, and all
 *                           instructions of a process without observers, run exactly the code that they run without this file
 *     run    ── before() ── the handler ── after()
 *
 * Hooks get the interpreter's instructions (struct insn). One PTX instruction may be decoded to several of these, with equal src, because
 * decoding inserts conversions, and branches around guarded instructions that may wait: see gpul_insn_begins().
 *
 * Hooks run on worker threads, several at the same time unless the observer is serial, while a block is executing.  They may take locks of
 * their own, but must not call gpul_exec_* functions that wait for kernels.  All pointers are borrowed. */
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

/* The result of before(): what happens to the instruction.  If observers return different values, the last in this list is used. */
enum observed {
	OBSERVED_RUN,
	OBSERVED_SKIP,  /* the instruction is not executed; the warp continues after it */
	OBSERVED_YIELD, /* the lanes stop, so that others can run; before() is called again when they continue */
	OBSERVED_FAULT, /* the kernel fails: the observer has called gpul_fault_text() */
};

/* Like an instruction's handler (op_fn): executes instruction i, and returns the next instruction. */
typedef const struct insn *observed_fn(struct warp *w, const struct insn *i);

/* A copy or fill by the host: n_slices slices of n_rows rows of row_bytes bytes. */
struct host_move {
	uint64_t to, from; /* device addresses; from == 0: the source is not device memory, or this is a fill */
	uint64_t row_bytes, n_rows, n_slices;
	uint64_t to_pitch, to_slice, from_pitch, from_slice; /* bytes from one row (pitch) or slice to the next */
	bool fill;
	const gpul_exec_order *order; /* position in the order of all streams; NULL: the move is not an operation of a stream */
};

/* The hooks and properties of a tool.  A hook that is NULL is not called. */
struct observer {
	const char *name;
	/* One worker runs all blocks, in an order that depends only on data, if kernels read no clocks and the program waits for each. */
	bool serial;
	/* before() may return OBSERVED_YIELD.  It is called before the hooks of other observers, which are not called if it yields,
	 * so that they get each instruction only once. */
	bool yields;
	/* An access past the last byte of a module variable or of shared memory faults.  Otherwise such memory is padded, as on a GPU. */
	bool exact_bounds;
	/* The hooks read whole programs, so all functions of a program are decoded when it is created, not when they are first called. */
	bool whole_programs;

	/* Returns true if before() and after() must be called for this instruction.  Called once, after its function has been decoded. */
	bool (*wants)(struct observer *o, const struct func_code *code, const struct insn *i);
	/* Called before the instruction is executed.  on: mask of the lanes that will execute it (their guard is true); may be 0. */
	enum observed (*before)(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on);
	/* Called after the instruction.  waits: the instruction is a *.sync and was not executed, because lanes of its member mask are
	 * missing; before() will be called again.  After an exit, return or call, s->frame has changed, and the frame of i may be freed. */
	void (*after)(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits);
	/* For a tool that must be fast: a handler that is called instead of before() and after(), if no other observer wants the
	 * instruction; NULL: there is none.  This handler calls the instruction's own handler, code->observed[i - code->insns].run. */
	observed_fn *(*handler)(struct observer *o, const struct func_code *code, const struct insn *i);

	/* All threads of barrier `id` have arrived, and none has continued.  warps[k].arrived[id]: lanes of warp k that arrived. */
	void (*barrier_completes)(struct observer *o, struct block *b, unsigned id);
	/* No warp of the block can continue.  Called before the driver reports the deadlock, which ends the launch. */
	void (*deadlock)(struct observer *o, struct block *b);
	void (*block_begins)(struct observer *o, struct block *b);
	/* The block's time slice has ended, and other blocks run next.  The hook may end the launch by gpul_launch_fault(). */
	void (*block_yields)(struct observer *o, struct block *b);
	void (*block_ends)(struct observer *o, struct block *b); /* also called after a fault */
	/* launch_begins is called by the thread that starts the launch, before its first block; launch_ends by the worker that ends the
	 * last block, before a later launch of the stream begins.  fault->kind is GPUL_EXEC_OK if there was no fault. */
	void (*launch_begins)(struct observer *o, gpul_exec_launch *l);
	void (*launch_ends)(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault);

	/* The calling thread will destroy the program, so its code and all pointers to it become invalid. */
	void (*program_ends)(struct observer *o, const gpul_exec_program *p);

	/* Called after a change of the memory table, by the thread that made it. */
	void (*range_added)(struct observer *o, const gpul_exec_range *r);
	void (*range_removed)(struct observer *o, const gpul_exec_range *r);
	/* Called after a copy or fill by a cu* call of the program, such as cuMemcpyHtoD. */
	void (*host_moves)(struct observer *o, const struct host_move *m);

	/* Not 0: device malloc leaves this many unused bytes after each allocation, and reuses freed memory as late as possible. */
	uint32_t heap_red_zone_bytes;

	struct observer *next; /* next observer of the process */
	unsigned bit;          /* 1 << the observer's number; set by gpul_exec_memory_observe() */
};

/* Run a launch again from its first block; hooks of a serial observer may call this.  launch_ends restarts the launch immediately.
 * If another hook calls this, the launch restarts at the end of the block's time slice, which before() should end by OBSERVED_YIELD;
 * then the running blocks are abandoned, and block_ends, launch_ends (with GPUL_EXEC_ABORTED) and launch_begins are called.  Memory
 * contents and printed output are not restored. */
void gpul_launch_again(gpul_exec_launch *l);
/* The low bits of a stream number.  The operations of a CUDA graph are launched in one stream but only partly ordered, so each
 * operation gets its own stream number: operation k, counted from 1, has the stream's number + k.  Work that is ordered after the
 * stream itself is after all operations of the graph. */
enum { ORDER_NODE_BITS = 24 };

static inline bool gpul_order_is_after(const gpul_exec_order *o, const gpul_exec_order *earlier)
{
	const uint64_t all = earlier->stream >> ORDER_NODE_BITS << ORDER_NODE_BITS;

	for (size_t k = 0; k < o->n; k++)
		if ((o->after[k].stream == earlier->stream || o->after[k].stream == all) && o->after[k].number >= earlier->number)
			return true;
	return false;
}

/** Add an observer of all kernels that run with this memory table.
 *
 * @m  the memory table, before a program has been created with it
 * @o  borrowed until the table is destroyed
 * Errors  GPUL_EINVAL more than MAX_OBSERVERS
 * Threads one thread, before any other uses the table */
gpul_status gpul_exec_memory_observe(gpul_exec_memory *m, struct observer *o, gpul_error *err);
struct observer *gpul_exec_memory_observers(const gpul_exec_memory *m); /* the first observer of the list; NULL: none */
/** Tell observers that the driver has copied or filled memory for the program.  Call it after writing the bytes. */
void gpul_exec_memory_moved(gpul_exec_memory *m, const struct host_move *move);
/** Like gpul_exec_memory_moved(), for bytes that the driver has written outside any stream. */
void gpul_exec_memory_written(gpul_exec_memory *m, uint64_t to, uint64_t from, uint64_t bytes);

#endif
