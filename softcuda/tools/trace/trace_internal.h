/* trace_internal.h — what a kernel did, instruction by instruction.
 *
 *     trace.c    hooks of the observer ──> struct trace_event ──> a sink: text.c, json.c, page.c
 *     filter.c   which instructions are recorded
 *     code.c     what is known of an instruction before it runs: text, line, registers that it writes
 *     lanes.c    32 values as text: "7", "0, 4 ... 124", or one by one; number.c: one value; decimals.c: 32 at once
 *     output.c   lines on their way to a file
 *
 * The observer is serial: its hooks run on one worker, except program_ends(), for which code.c has a lock. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_INTERNAL_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_trace_tool;

/* ---- code.c ---------------------------------------------------------------------------------------------------- */

enum { TRACE_MAX_DESTS = 16, TRACE_NO_FILE = -1, COPIED_BYTES = 64 };

struct trace_reg {
	char *name;              /* "%r5" */
	char *label;             /* "  %r5 = ", for gpul_trace_copy() */
	unsigned n_label;
	uint8_t bytes;           /* of a lane's value: 2, 4, 8, 16; 0: a predicate */
	char type;               /* what its values mean: 'f' float, 's' signed, 'u' unsigned, 'b' bits, 'p' predicate */
};

struct trace_row {           /* a PTX instruction */
	char *text;              /* "add.s32 %r5, %r2, %r3;" */
	char *place;             /* "k.ptx:20 (k.cu:7)", as in faults */
	char *head;              /* " PLACE: TEXT", for gpul_trace_copy() */
	unsigned n_head;
	char *json;              /* the same for a Chrome trace; NULL: it has not been needed */
	char name[24];           /* "add.s32" */
	uint32_t ptx_line, line; /* line: of CUDA C++; 0: unknown */
	int file;                /* of CUDA C++: row of files[]; TRACE_NO_FILE */
	uint16_t opcode;         /* gpul_ptx_opcode */
	uint8_t n_dests;
	uint32_t dest[TRACE_MAX_DESTS];      /* flat register numbers */
	uint32_t offset[TRACE_MAX_DESTS];    /* of their values in a frame's registers */
	char type[TRACE_MAX_DESTS];          /* of this instruction's result, as in trace_reg */
	const struct insn *insn;             /* the last instruction that it was decoded to */
	bool single;                         /* it is the only one */
};

struct trace_code {          /* a function; it stays when its program is unloaded, because a sink may print it at the end */
	struct trace_code *next;
	const struct func_code *key;         /* NULL: unloaded */
	const char *function, *image;        /* owned names */
	unsigned index;                      /* from 0, in the order of their first instruction in the record */
	bool used;
	uint32_t n_rows, n_regs;
	struct trace_row *rows;
	struct trace_reg *regs;
	struct { char *name; uint32_t row; } *labels;
	uint32_t n_labels;
};

struct trace_file { char *path; };       /* of CUDA C++, as the PTX names it */

struct trace_codes {
	struct trace_code *first;
	struct trace_file *files;
	unsigned n_files, n_used;
};

/* Describe a function, or find its description; NULL: no memory.  Any thread may call. */
struct trace_code *gpul_trace_code(struct trace_codes *codes, const struct func_code *code);
void gpul_trace_code_forget(struct trace_codes *codes, const gpul_exec_program *p);

/* ---- events ----------------------------------------------------------------------------------------------------- */

struct trace_warp {
	const struct func_code *key;     /* of the last instruction */
	struct trace_code *code;
	char head[COPIED_BYTES * 2];     /* " block 0,0,0 warp 3 lanes ", for gpul_trace_copy() */
	unsigned n_head;
};

struct trace_block {
	struct block *block;
	unsigned number;                 /* from 0, in the order of the record */
	unsigned launch;                 /* from 0 */
	uint32_t index[3];
	struct trace_warp *warps;
	unsigned n_warps;
	void *sink;                      /* of the page: see record.c */
};

struct trace_event {                 /* a PTX instruction that was executed */
	uint64_t number;
	struct trace_block *block;
	struct trace_warp *warp;
	struct warp_state *s;
	struct trace_code *code;
	const struct trace_row *row;
	const struct frame *frame;       /* valid if the instruction writes a register */
	bool skipped;                    /* no lane's guard is true, and the instruction was not executed */
	uint32_t depth;                  /* of its frame: 0 in the kernel */
	uint32_t mask, on;               /* active lanes, and those whose guard is true */
	unsigned n_accesses;
	struct lane_accesses access[MAX_INSN_ACCESSES];
};

/* The values that an event wrote: 32 lanes, as gpul_warp_register() describes them. */
static inline const void *trace_dest(const struct trace_event *e, unsigned k, unsigned *bytes)
{
	*bytes = e->code->regs[e->row->dest[k]].bytes;
	return e->frame->regs + e->row->offset[k];
}

enum trace_note { TRACE_LAUNCH, TRACE_LAUNCH_ENDS, TRACE_BLOCK, TRACE_BLOCK_ENDS, TRACE_BARRIER, TRACE_DEADLOCK };

struct trace_notice {                /* something between two instructions */
	enum trace_note kind;
	uint64_t number;                 /* of the next instruction */
	struct trace_block *block;       /* NULL: of a launch */
	unsigned barrier, launch;
	const gpul_exec_launch *of;
	const char *fault;               /* TRACE_LAUNCH_ENDS: NULL: none */
};

/* ---- filter.c --------------------------------------------------------------------------------------------------- */

enum { TRACE_MAX_TERMS = 64 };
enum trace_key { TRACE_BY_KERNEL, TRACE_BY_OP, TRACE_BY_LINE, TRACE_BY_PTX, TRACE_BY_WARP, TRACE_BY_LAUNCH, TRACE_BY_BLOCK, TRACE_N_KEYS };

struct trace_filter {
	unsigned n;
	struct trace_term {
		enum trace_key key;
		char *name;                  /* BY_KERNEL, BY_OP */
		uint64_t first, last;        /* the others */
	} term[TRACE_MAX_TERMS];
	bool by[TRACE_N_KEYS];           /* there is a term of this key */
};

/** Add what an option selects to a filter.
 *
 * @text    "KEY=VALUE[,VALUE]...[,KEY=VALUE...]" with the keys kernel, op, line, ptx, warp, launch, and ranges such as 7-9; or, if
 *          blocks is true, a list of ranges
 * @filter  all keys must match; of each, one of its values
 * Errors   GPUL_EINVAL; GPUL_ENOMEM
 * Threads  one thread */
gpul_status gpul_trace_filter_add(struct trace_filter *filter, const char *text, bool blocks, gpul_error *err);
void gpul_trace_filter_clear(struct trace_filter *filter);
/* True: the filter has no term of this key, or one with the number, or the name. */
bool gpul_trace_selects(const struct trace_filter *filter, enum trace_key key, uint64_t number);
bool gpul_trace_selects_name(const struct trace_filter *filter, enum trace_key key, const char *name);

/* ---- lanes.c ----------------------------------------------------------------------------------------------------- */

enum { TRACE_LANES_BYTES = 32 * 40 + 16 };

/* Widen the values of all lanes to 64 bits, without sign; only of 2, 4 and 8 bytes. */
void gpul_trace_widen(const void *values, unsigned bytes, uint64_t out[LANES]);
/* True: the value of lane l is *first + (l - first lane) * *step, modulo the width; on is not 0. */
bool gpul_trace_row(const uint64_t v[LANES], unsigned bytes, uint32_t on, uint64_t *first, uint64_t *step);
/* Write the values as text; returns the end, which is a NUL.  type: as in trace_reg.  There must be a character before `to`. */
char *gpul_trace_lanes(char *to, const void *values, unsigned bytes, char type, uint32_t on);
/* ---- number.c: 16 bytes behind the end may be overwritten -------------------------------------------------------- */

char *gpul_trace_number(char *to, uint64_t v, unsigned bytes, char type);
char *gpul_trace_decimal(char *to, uint64_t v);
char *gpul_trace_mask(char *to, uint32_t mask);  /* "0000ffff" */

/* ---- decimals.c: compiled for each instruction set ----------------------------------------------------------------- */

/* Write a blank before each number, or " -" for a lane that is not on; return the end.  16 bytes behind it may be overwritten. */
typedef char *trace_floats_fn(char *to, const uint32_t bits[LANES], uint32_t on);
/* All values, also of lanes that are not on, are below 10^8. */
typedef char *trace_integers_fn(char *to, const uint64_t values[LANES], uint32_t on);
trace_floats_fn gpul_trace_floats_base;
trace_integers_fn gpul_trace_integers_base;
#if defined(__x86_64__)
trace_floats_fn gpul_trace_floats_v3, gpul_trace_floats_v4;
trace_integers_fn gpul_trace_integers_v3, gpul_trace_integers_v4;
#endif

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

struct trace;

struct trace_output {            /* a file that is written; one of each kind at most */
	const struct trace_sink *sink;
	struct trace *trace;
	FILE *to;
	char *file;                      /* "-": stdout */
	char *lines;                     /* that are not written yet; NULL: the sink writes to the file directly */
	size_t n_bytes;
	void *data;                      /* the sink's own */
};

struct trace_sink {
	const char *suffix;              /* of its files */
	/* Write the beginning of the file. */
	gpul_status (*open)(struct trace_output *o, gpul_error *err);
	/* The instruction is about to be executed; NULL: the sink need not know. */
	void (*prepare)(struct trace_output *o, const struct trace_event *e, const struct insn *i);
	void (*event)(struct trace_output *o, const struct trace_event *e);
	void (*notice)(struct trace_output *o, const struct trace_notice *n);
	void (*block_ends)(struct trace_block *b);  /* free trace_block.sink; NULL: it is not used */
	void (*close)(struct trace_output *o);
};

/* ---- output.c ---------------------------------------------------------------------------------------------------- */

enum { TRACE_LINE_BYTES = 16384 + TRACE_MAX_DESTS * (TRACE_LANES_BYTES + 64) + MAX_INSN_ACCESSES * (TRACE_LANES_BYTES + 64) };

gpul_status gpul_trace_open_lines(struct trace_output *o, gpul_error *err);
/* Where the next line is to be written, with room for TRACE_LINE_BYTES; then report its end. */
char *gpul_trace_line(struct trace_output *o);
void gpul_trace_written(struct trace_output *o, const char *end);
/* Hand all lines to the file: before something is written to it directly. */
void gpul_trace_flush(struct trace_output *o);
void gpul_trace_close_lines(struct trace_output *o);

/* Copy n bytes, and the rest of their last COPIED_BYTES: faster than a call of memcpy(). */
static inline char *gpul_trace_copy(char *to, const char *text, unsigned n)
{
	for (unsigned k = 0; k < n; k += COPIED_BYTES)
		memcpy(to + k, text + k, COPIED_BYTES);
	return to + n;
}

static inline char *gpul_trace_put(char *to, const char *text)
{
	const size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

extern const struct trace_sink gpul_trace_text, gpul_trace_json, gpul_trace_page;

enum { TRACE_ACTIVE = 64, TRACE_MAX_OUTPUTS = 3 };

struct trace {
	struct observer observer;        /* first member */
	struct trace_output output[TRACE_MAX_OUTPUTS];
	unsigned n_outputs;
	struct trace_filter filter;
	uint64_t from, limit;            /* numbers of instructions: the first recorded, and how many at most */
	uint64_t n, n_recorded;          /* instructions that the filter has selected; that were recorded */
	unsigned n_blocks, n_launches;   /* so far */
	bool exceeded;                   /* the limit is reached */
	bool limit_is_given;             /* otherwise a page may also set one, by its size */
	atomic_bool ended, ended_is_seen;    /* finish() was called; a hook has seen it, so that none records any more */
	bool still_running;              /* the trace has ended while a kernel runs */
	struct { const gpul_exec_launch *launch; unsigned number; } active[TRACE_ACTIVE];  /* launches with blocks that have begun */
	unsigned n_active;
	struct trace_codes codes;
	struct trace_event event;        /* the instruction that is being executed */
	const struct warp_state *pending;    /* whose it is; NULL: none */
};

#endif
