/* trace_internal.h — records what a kernel does, instruction by instruction.
 *
 *     trace_tool.c    hooks of the observer ──> struct trace_event ──> a sink (writer): trace_text.c, trace_json.c, trace_page.c
 *     trace_filter.c   selects the instructions that are recorded
 *     trace_code.c     collects static information about an instruction: text, line, registers that it writes
 *     lanes.c    writes 32 values as text: "7", "0, 4 ... 124", or one by one; number.c: one value; decimals.c: 32 values together
 *     trace_output.c   buffers lines for a file
 *
 * The observer is serial: its hooks run on one worker. Only program_ends() runs on other threads, so trace_code.c has a lock. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_INTERNAL_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_trace_tool;

/* ---- trace_code.c ---------------------------------------------------------------------------------------------------- */

enum { TRACE_MAX_DESTS = 16, TRACE_NO_FILE = -1, COPIED_BYTES = 64 };

struct trace_reg {
	char *name;
	char *label; /* such as "  %r5 = ", padded for gpul_trace_copy() */
	unsigned n_label;
	uint8_t bytes; /* bytes per lane: 2, 4, 8 or 16; 0: a predicate */
	char type;     /* how the values of the register are printed: 'f' float, 's' signed, 'u' unsigned, 'b' bits, 'p' predicate */
};

struct trace_row { /* a PTX instruction */
	char *text;
	char *place; /* such as "k.ptx:20 (k.cu:7)", as in fault messages */
	char *head;  /* " PLACE: TEXT", padded for gpul_trace_copy() */
	unsigned n_head;
	char *json;              /* the members of a JSON event; NULL: not created yet */
	char name[24];           /* opcode with modifiers, such as "add.s32" */
	uint32_t ptx_line, line; /* line in PTX; line in CUDA C++ (0: unknown) */
	int file;                /* index in files[] of the CUDA C++ file, or TRACE_NO_FILE */
	uint16_t opcode;         /* a value of enum gpul_ptx_opcode */
	uint8_t n_dests;
	uint32_t dest[TRACE_MAX_DESTS];   /* flat register numbers of the results */
	uint32_t offset[TRACE_MAX_DESTS]; /* offsets of the results in a frame's registers */
	char type[TRACE_MAX_DESTS];       /* types of this instruction's results, as in trace_reg.type */
	const struct insn *insn;          /* the last interpreter instruction to which the PTX instruction was decoded */
	bool single;                      /* the PTX instruction was decoded to a single interpreter instruction */
};

struct trace_code { /* a function; kept after its program is unloaded, because a sink (writer) may need it when the trace ends */
	struct trace_code *next;
	const struct func_code *key;  /* the interpreter's function; NULL: its program was unloaded */
	const char *function, *image; /* owned */
	unsigned index;               /* number of the function, in the order of first appearance in the trace; the first is 0 */
	bool used;
	uint32_t n_rows, n_regs;
	struct trace_row *rows;
	struct trace_reg *regs;
	struct {
		char *name;
		uint32_t row;
	} *labels;
	uint32_t n_labels;
};

/* a CUDA C++ file, with the path that the PTX gives */
struct trace_file {
	char *path;
};

struct trace_codes {
	struct trace_code *first;
	struct trace_file *files;
	unsigned n_files, n_used;
};

/* Describe a function or return its existing description; NULL: out of memory.  Any thread may call. */
struct trace_code *gpul_trace_code(struct trace_codes *codes, const struct func_code *code);
void gpul_trace_code_forget(struct trace_codes *codes, const gpul_exec_program *p);

/* ---- events ----------------------------------------------------------------------------------------------------- */

struct trace_warp {
	const struct func_code *key; /* the function that contains the warp's last instruction */
	struct trace_code *code;
	char head[COPIED_BYTES * 2]; /* such as " block 0,0,0 warp 3 lanes ", padded for gpul_trace_copy() */
	unsigned n_head;
};

struct trace_block {
	struct block *block;
	unsigned number; /* number of the block, in the order of first appearance in the trace; the first is 0 */
	unsigned launch; /* number of the launch; the first is 0 */
	uint32_t index[3];
	struct trace_warp *warps;
	unsigned n_warps;
	void *sink; /* private data of the sink that writes the HTML page: see trace_record.c */
};

struct trace_event { /* an executed PTX instruction */
	uint64_t number;
	struct trace_block *block;
	struct trace_warp *warp;
	struct warp_state *s;
	struct trace_code *code;
	const struct trace_row *row;
	const struct frame *frame; /* only valid if the instruction writes a register */
	bool skipped;              /* the guard is false in all lanes, so the instruction was not executed */
	uint32_t depth;            /* depth of calls; 0 in the kernel itself */
	uint32_t mask, on;         /* mask: active lanes; on: those of them whose guard is true */
	unsigned n_accesses;
	struct lane_accesses access[MAX_INSN_ACCESSES];
};

/* Return the values of result k: 32 lanes, in the format of gpul_warp_register(). */
static inline const void *trace_dest(const struct trace_event *e, unsigned k, unsigned *bytes)
{
	*bytes = e->code->regs[e->row->dest[k]].bytes;
	return e->frame->regs + e->row->offset[k];
}

enum trace_note { TRACE_LAUNCH, TRACE_LAUNCH_ENDS, TRACE_BLOCK, TRACE_BLOCK_ENDS, TRACE_BARRIER, TRACE_DEADLOCK };

struct trace_notice { /* an event that is not an instruction */
	enum trace_note kind;
	uint64_t number;           /* its position in the trace: the number of the next instruction */
	struct trace_block *block; /* the block to which this happened; NULL: it happened to a launch */
	unsigned barrier, launch;
	const gpul_exec_launch *of;
	const char *fault; /* TRACE_LAUNCH_ENDS: text of the fault; NULL: there was no fault */
};

/* ---- trace_filter.c --------------------------------------------------------------------------------------------------- */

enum { TRACE_MAX_TERMS = 64 };
enum trace_key { TRACE_BY_KERNEL, TRACE_BY_OP, TRACE_BY_LINE, TRACE_BY_PTX, TRACE_BY_WARP, TRACE_BY_LAUNCH, TRACE_BY_BLOCK, TRACE_N_KEYS };

struct trace_filter {
	unsigned n;
	struct trace_term {
		enum trace_key key;
		char *name;           /* for TRACE_BY_KERNEL and TRACE_BY_OP: the name or prefix */
		uint64_t first, last; /* for the other keys: the range of numbers that the term selects */
	} term[TRACE_MAX_TERMS];
	bool by[TRACE_N_KEYS]; /* the filter has a term with this key */
};

/** Add the terms of an option to a filter.
 *
 * @text    "KEY=VALUE[,VALUE]...[,KEY=VALUE...]" with the keys kernel, op, line, ptx, warp, launch, and ranges such as 7-9; or, if
 *          blocks is true, a list of ranges
 * @filter the filter; it selects an instruction that matches one value of every key
 * Errors   GPUL_EINVAL; GPUL_ENOMEM
 * Threads  one thread */
gpul_status gpul_trace_filter_add(struct trace_filter *filter, const char *text, bool blocks, gpul_error *err);
void gpul_trace_filter_clear(struct trace_filter *filter);
/* Returns true if the filter has no term with this key, or if one of its terms matches the number or name. */
bool gpul_trace_selects(const struct trace_filter *filter, enum trace_key key, uint64_t number);
bool gpul_trace_selects_name(const struct trace_filter *filter, enum trace_key key, const char *name);

/* ---- lanes.c ----------------------------------------------------------------------------------------------------- */

enum { TRACE_LANES_BYTES = 32 * 40 + 16 };

/* Zero-extend the values of all lanes to 64 bits; only for 2, 4 and 8 bytes. */
void gpul_trace_widen(const void *values, unsigned bytes, uint64_t out[LANES]);
/* Returns true if the values are an arithmetic sequence, *first + (l - first lane) * *step in lane l, modulo the width. `on` is not 0. */
bool gpul_trace_row(const uint64_t v[LANES], unsigned bytes, uint32_t on, uint64_t *first, uint64_t *step);
/* Write the values as text and a NUL; returns the address of the NUL.  type: as in trace_reg.type.  Overwrites to[-1] and restores it. */
char *gpul_trace_lanes(char *to, const void *values, unsigned bytes, char type, uint32_t on);
/* ---- number.c: these functions may overwrite up to 16 bytes past the end of the text ------------------------------ */

char *gpul_trace_number(char *to, uint64_t v, unsigned bytes, char type);
char *gpul_trace_decimal(char *to, uint64_t v);
char *gpul_trace_mask(char *to, uint32_t mask); /* writes a mask as "0000ffff" */

/* ---- decimals.c: compiled for each instruction set ----------------------------------------------------------------- */

/* Write a blank and a number for each lane, " -" for lanes not in `on`.  Returns the end; may overwrite 16 bytes after it. */
typedef char *trace_floats_fn(char *to, const uint32_t bits[LANES], uint32_t on);
/* All values must be below 10^8, including those of lanes that are not in `on`. */
typedef char *trace_integers_fn(char *to, const uint64_t values[LANES], uint32_t on);
trace_floats_fn gpul_trace_floats_base;
trace_integers_fn gpul_trace_integers_base;
#if defined(__x86_64__)
trace_floats_fn gpul_trace_floats_v3, gpul_trace_floats_v4;
trace_integers_fn gpul_trace_integers_v3, gpul_trace_integers_v4;
#endif

/* ---- sinks: the writers of the output formats ---------------------------------------------------------------------- */

struct trace;

struct trace_output { /* an output file; a trace has at most one for each sink (format) */
	const struct trace_sink *sink;
	struct trace *trace;
	FILE *to;
	char *file;  /* name of the file; "-": stdout */
	char *lines; /* buffer for lines that are not written yet; NULL: the sink (writer) writes to the file directly */
	size_t n_bytes;
	void *data; /* private data of the sink (writer) */
};

struct trace_sink {
	const char *suffix; /* the sink writes files whose names have this suffix */
	/* Write the start of the file. */
	gpul_status (*open)(struct trace_output *o, gpul_error *err);
	/* Called before the instruction is executed; NULL: not needed. */
	void (*prepare)(struct trace_output *o, const struct trace_event *e, const struct insn *i);
	void (*event)(struct trace_output *o, const struct trace_event *e);
	void (*notice)(struct trace_output *o, const struct trace_notice *n);
	void (*block_ends)(struct trace_block *b); /* frees trace_block.sink; NULL: the sink does not use this member */
	void (*close)(struct trace_output *o);
};

/* ---- trace_output.c ---------------------------------------------------------------------------------------------------- */

enum { TRACE_LINE_BYTES = 16384 + TRACE_MAX_DESTS * (TRACE_LANES_BYTES + 64) + MAX_INSN_ACCESSES * (TRACE_LANES_BYTES + 64) };

gpul_status gpul_trace_open_lines(struct trace_output *o, gpul_error *err);
/* Return where to write the next line, of at most TRACE_LINE_BYTES.  The caller then passes the line's end to gpul_trace_written(). */
char *gpul_trace_line(struct trace_output *o);
void gpul_trace_written(struct trace_output *o, const char *end);
/* Write all buffered lines to the file.  Call this before writing to the file directly. */
void gpul_trace_flush(struct trace_output *o);
void gpul_trace_close_lines(struct trace_output *o);

/* Copy n bytes, rounded up to a multiple of COPIED_BYTES: with a constant size, this is faster than calling memcpy(). */
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
	struct observer observer; /* must be the first member */
	struct trace_output output[TRACE_MAX_OUTPUTS];
	unsigned n_outputs;
	struct trace_filter filter;
	uint64_t from, limit;             /* from: the first instruction to record; limit: the maximum number to record */
	uint64_t n, n_recorded;           /* n: number of instructions that the filter selected; n_recorded: number that were recorded */
	unsigned n_blocks, n_launches;    /* number of blocks and launches so far */
	bool exceeded;                    /* the limit was reached, so that later instructions are not recorded */
	bool limit_is_given;              /* the limit comes from the user; without it, an HTML page also ends at its maximum size */
	atomic_bool ended, ended_is_seen; /* finish() was called; a hook has read `ended`, so recording has stopped */
	bool still_running;               /* the trace has ended while a kernel was running */
	/* the launches that have started blocks */
	struct {
		const gpul_exec_launch *launch;
		unsigned number;
	} active[TRACE_ACTIVE];
	unsigned n_active;
	struct trace_codes codes;
	struct trace_event event;         /* the current instruction */
	const struct warp_state *pending; /* the warp that executes the current instruction; NULL: none */
};

#endif
