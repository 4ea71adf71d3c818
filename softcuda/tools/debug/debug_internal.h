/* debug_internal.h — defines the debugger's state, and declares the functions that its files share.
 *
 *     worker: before() ── stop.c: stop here? ──yes──> event "stopped"; the worker sleeps until a command lets it continue
 *     client ══ lines of text over a socket ══> debug_server.c ── command.c ──> breakpoint.c, state.c, memory.c, expression.c
 *     back:   stop.c abandons the launch (gpul_launch_again()), snapshot.c restores memory, and the same instructions run again
 *
 * The lock in struct debug protects all of the struct. The server thread reads the state of warps while the worker sleeps in
 * stop.c. There is only one worker (observer.serial), and it holds the lock whenever it is in a hook. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_DEBUG_DEBUG_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_DEBUG_DEBUG_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "core/array.h"
#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

enum { TEXT_BYTES = 256, MAX_WORDS = 8 };

/* ---- source positions (debug_source.c) --------------------------------------------------------------------------------- */

struct place {
	const struct func_code *code;
	const char *function, *file; /* file: the CUDA C++ file that .loc names; NULL: no .loc applies to this instruction */
	uint32_t line, ptx_line;
};

struct place gpul_debug_place(const struct func_code *code, const struct insn *i);
/* Write the name of a module's PTX file to buf. If the module's name is that of a CUDA C++ file, ".ptx" is appended. */
void gpul_debug_ptx_name(const struct gpul_exec_program *p, char *buf, size_t bytes);
/* True if both paths refer to the same file. If a path does not exist on this system, only the last components are compared. */
bool gpul_debug_same_file(const char *a, const char *b);
/* Print the module as PTX, so that every statement is on the line that it had in the text that was parsed. */
void gpul_debug_listing(FILE *out, const struct gpul_exec_program *p);

/* ---- expressions (expression.c) ----------------------------------------------------------------------------------- */

struct value {
	enum { VALUE_INT, VALUE_UINT, VALUE_FLOAT } kind;
	unsigned bytes; /* size in bytes (1 to 8) of the register or memory from which the value was read; 0: it was computed */
	union {
		int64_t i;
		uint64_t u;
		double f;
	};
};

struct lane { /* the lane in which an expression is evaluated */
	const gpul_exec_memory *memory;
	struct warp_state *warp; /* NULL: no kernel is running, and registers cannot be read */
	const struct frame *frame;
	unsigned index;
};

/** Evaluate an expression: C's operators on numbers, %registers, %specials, lane, warp, block, names of variables, and memory as
 * [address], [address]:f32, shared[offset]:u8, local[offset].
 *
 * @at    the lane in which the expression is evaluated
 * @text  the expression
 * @out   untouched on failure
 * Errors  GPUL_EINVAL the position and what is wrong there
 * Threads the worker, or any thread while the worker sleeps in a hook */
gpul_status gpul_debug_evaluate(const struct lane *at, const char *text, struct value *out, gpul_error *err);
bool gpul_debug_true(const struct value *v);
/* Print a value such as "-1", "0x10" or "0.5"; 8-byte integers that look like addresses are printed in hexadecimal. */
void gpul_debug_print_value(FILE *out, const struct value *v);
/* Read a value of a type such as GPUL_PTX_MOD_F32; .u and .b types give unsigned integers. */
struct value gpul_debug_load(const void *at, unsigned type);
unsigned gpul_debug_type(const char *name); /* returns the type with a name such as "f32"; 0: there is no such type */
const char *gpul_debug_type_name(unsigned type);

/* ---- registers and memory (state.c, memory.c) ------------------------------------------------------------------- */

uint64_t gpul_debug_block_index(const struct block *b); /* linear index of the block in its grid */
/* Return the type with which a register is printed: for a register declared .b, the type of the instructions that write it. */
unsigned gpul_debug_register_type(const struct func_code *code, uint32_t flat);
/* Find the number of a register such as "%r5", or "%v.x" (an element of a vector); false: the function has no such register. */
bool gpul_debug_find_register(const struct func_code *code, const char *name, size_t name_bytes, uint32_t *flat);
bool gpul_debug_register(const struct lane *at, uint32_t flat, struct value *out); /* false: no instruction uses the register */
bool gpul_debug_special(const struct lane *at, const char *name, size_t name_bytes, struct value *out);
/* Return the host address of `bytes` bytes of memory; NULL: they cannot be read. */
const uint8_t *gpul_debug_memory(const struct lane *at, unsigned space, uint64_t address, uint64_t bytes);
uint8_t *gpul_debug_writable(const struct lane *at, unsigned space, uint64_t address, uint64_t bytes);

/* ---- breakpoints (breakpoint.c) --------------------------------------------------------------------------------- */

struct breakpoint {
	unsigned id;
	enum { BREAK_LINE, BREAK_KERNEL, BREAK_LABEL, BREAK_WATCH } kind;
	char *where;               /* owned; file, or name of a kernel or label; BREAK_WATCH: expression for the address */
	char *condition;           /* owned; NULL: none */
	uint32_t line, found_line; /* found_line: the line with code that was found for `line`; 0: none found yet */
	uint64_t address, bytes;   /* BREAK_WATCH: the watched memory, an address in `space` */
	unsigned space, on;        /* on: 1 for reads, 2 for writes, 3 for both */
	unsigned hits, ignored;    /* ignored: number of hits before the kernel stops */
	GPUL_ARRAY(const struct insn *) at;
};

/* ---- continuing, stepping, stepping back ------------------------------------------------------------------------- */

/* clang-format off */
enum go {
	GO_FREE, GO_INSN, GO_LINE, GO_OVER, GO_OUT, GO_WARP, GO_BLOCK, GO_BARRIER, GO_DIVERGE, GO_PAUSE,
	BACK_INSN, BACK_LINE, BACK_FREE, BACK_START, BACK_TO, N_GO
};
/* clang-format on */

struct warp_name { /* identifies a warp, even after it has ended */
	const gpul_exec_launch *launch;
	uint64_t block; /* linear index in the grid */
	unsigned warp;
};

struct origin { /* where a step began: warp, lane, and position */
	struct warp_name warp;
	int lane; /* the lane to step; -1: the whole warp */
	struct place place;
	uint32_t depth;
	uint64_t count;
};

struct stop {
	const char *reason; /* as in the Debug Adapter Protocol: "step", "breakpoint" ...; NULL: not stopped */
	char text[TEXT_BYTES * 2];
	struct warp_state *warp; /* NULL: the worker has stopped at the end of a launch */
	const struct insn *insn;
	unsigned lane;
	unsigned breakpoint; /* id of the breakpoint; 0: none */
	bool after;          /* the worker stopped after the instruction or launch, so the first step back goes to it */
};

struct search { /* how a step back finds its target: a replay searches for it among the instructions before number `end` */
	enum { SEARCH_OFF, SEARCH_LAST, SEARCH_GO } phase;
	enum go how;
	uint64_t end, found; /* instruction numbers; in phase SEARCH_GO, the replay stops at `found` */
	struct origin from;
	struct place line; /* source position of the previous instruction of the warp */
};

struct saved_range {
	uint64_t base, bytes;
	uint8_t *copy;
};

struct debug {
	struct observer o;
	gpul_exec_memory *memory;
	pthread_mutex_t lock;
	pthread_cond_t resumed;
	bool configured; /* the client has allowed kernels to run */
	bool waits;      /* the first launch does not start before `configured` is set */
	bool stops_at_entry, stops_at_end;

	GPUL_ARRAY(const struct func_code *) code;
	GPUL_ARRAY(struct breakpoint) breakpoints;
	unsigned last_id;
	bool unresolved; /* functions were decoded after the breakpoints were resolved */

	GPUL_ARRAY(struct block *) resident;
	unsigned n_launches;      /* number of launches that are running */
	gpul_exec_launch *launch; /* the launch that began last */
	bool alone;               /* no other launch has run at the same time */
	uint64_t count;           /* instructions that the interpreter has executed since the launch began */

	enum go go;
	struct origin from;
	struct stop stop, next; /* if next.reason is set, stop at the next instruction of next.warp (NULL: of any warp) */
	unsigned splits_before;
	struct search search;
	uint64_t back_bytes; /* maximum size of snapshots */
	GPUL_ARRAY(struct saved_range) saved;
	struct heap_marks heap;      /* state of the device malloc heap at the snapshot; 0: the heap had not been used */
	bool has_snapshot, restores; /* restores: memory must be restored, and the launch restarted */
	void (*print)(void *user, const char *text,
		      size_t text_bytes); /* the machine's print callback, saved during a replay, which prints nothing */

	int client, listener; /* sockets; -1: none */
	pthread_t server;
	char *listens; /* owned; path of the socket, removed at the end; NULL: none */
};

/* Functions of breakpoint.c. */
struct breakpoint *gpul_debug_add_breakpoint(struct debug *d, const struct breakpoint *b);
void gpul_debug_remove_breakpoint(struct debug *d, size_t k);
void gpul_debug_resolve(struct debug *d);
/* Find the breakpoint at this instruction whose condition is true for a lane of mask; sets *lane to that lane. NULL: there is none. */
struct breakpoint *gpul_debug_hit(struct debug *d, struct warp_state *s, const struct insn *i, uint32_t mask, unsigned *lane);
/* Find the watchpoint on memory that the lanes in `on` are about to access. */
struct breakpoint *gpul_debug_watch_hit(struct debug *d, struct warp_state *s, const struct insn *i, uint32_t on, unsigned *lane,
					char *text, size_t bytes);

/* stop.c: set the hooks of the observer */
void gpul_debug_hooks(struct observer *o);
/* Let the worker continue. GPUL_EINVAL: the worker is not stopped, or cannot go back. */
gpul_status gpul_debug_go(struct debug *d, enum go how, const struct origin *from, uint64_t to, gpul_error *err);

/* Functions of snapshot.c. */
void gpul_debug_save(struct debug *d);
void gpul_debug_restore(struct debug *d);
void gpul_debug_drop_snapshot(struct debug *d);

/* command.c: execute one command line and write the answer to `out`. */
void gpul_debug_command(struct debug *d, char *line, FILE *out);

/* Functions of event.c. */
void gpul_debug_send(struct debug *d, const char *text, size_t bytes);
void gpul_debug_event(struct debug *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Functions of debug_server.c. */
gpul_status gpul_debug_serve(struct debug *d, const char *listen, int fd, gpul_error *err);
void gpul_debug_close(struct debug *d);

#endif
