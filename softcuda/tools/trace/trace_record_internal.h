/* trace_record_internal.h — defines the format of the compact record (the trace data) in the HTML page.
 *
 * The page computes most values itself: the record omits the results of simple instructions, such as an addition or a load from
 * shared memory, if a rule of trace_predict.c computes the same result from values that the page has. page/record.js reads what
 * trace_record.c writes; page/rules.js contains the same rules.
 *
 * An instruction is a byte of flags, and for each flag, in this order:
 *     WARP     varint: the warp's number; otherwise the previous instruction's warp
 *     PLACE    varints: function, call depth, row; otherwise the row after the warp's last one
 *     MASK     4 bytes: active lanes; otherwise those of the warp's last instruction
 *     ON       4 bytes: lanes whose guard is true; otherwise all active lanes
 *     VALUES   for each register that it writes: lanes (see record_lanes()); otherwise the rule gives all of them
 *     ACCESS   varint: number; for each: kind + 4 * space, bytes, 4 bytes: its lanes, lanes: addresses; and if it writes shared memory:
 *              1 if the stored registers are the values, otherwise 0 and lanes: for each word of 4 bytes (or less) its value
 * The flag NOTICE starts an entry that is not an instruction: its kind (enum trace_note) and varints. All numbers are
 * little-endian. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_RECORD_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_RECORD_INTERNAL_H

#include "softcuda/tools/trace/trace_internal.h"

/* clang-format off */
enum record_flag {
	RECORD_WARP = 1, RECORD_PLACE = 2, RECORD_MASK = 4, RECORD_ON = 8, RECORD_VALUES = 16, RECORD_ACCESS = 32, RECORD_NOTICE = 128,
};
/* clang-format on */
enum record_lanes { LANES_SAME, LANES_ROW, LANES_PLANES, LANES_BITS, LANES_PREDICTED };

/* A growing array of bytes.  failed: memory ran out, so that later bytes are lost. */
struct bytes {
	uint8_t *at;
	size_t n, capacity;
	bool failed;
};

/* ---- trace_predict.c ------------------------------------------------------------------------------------------------------ */

enum { MAX_RULE_SOURCES = 4 };

struct trace_source {
	bool is_register;
	uint32_t flat;
	uint64_t value;
};

struct trace_rule {
	const char *name; /* name of the rule in page/rules.js; NULL: there is no rule */
	unsigned n;
	struct trace_source source[MAX_RULE_SOURCES];
	unsigned imm; /* lop3: the truth table (immLut) */
};

/* Find the rule by which the HTML page can compute the result of an instruction with one result. */
void gpul_trace_rule_of(const struct func_code *code, const struct insn *i, struct trace_rule *out);
/* Compute the results of the instruction in all lanes by its rule, before it is executed. */
void gpul_trace_predict(const struct warp_state *s, const struct insn *i, uint64_t out[LANES]);

/* ---- trace_record.c ------------------------------------------------------------------------------------------------------- */

struct record_row { /* what the record stores about an instruction (row) of a function */
	bool executed;
	struct trace_rule rule;
	unsigned n_stored; /* number of registers that a store writes to memory */
	uint32_t stored[4];
};

struct record {
	struct bytes stream;
	unsigned n_warps; /* number of warps that have been numbered so far */
	unsigned last_warp;
	bool predicts; /* no instruction is left out of the record, so the HTML page can compute values from earlier ones */
	/* the functions, indexed by trace_code.index */
	struct {
		const struct trace_code *code;
		struct record_row *rows;
	} *functions;
	unsigned n_functions;
	uint64_t predicted[LANES]; /* results of the current instruction by the HTML page's rule, computed before it is executed */
	bool has_predicted;
};

void gpul_record_prepare(struct record *r, const struct trace_event *e, const struct insn *i);
void gpul_record_event(struct record *r, const struct trace_event *e);
void gpul_record_notice(struct record *r, const struct trace_notice *n);
void gpul_record_block_ends(struct trace_block *b);
void gpul_record_free(struct record *r);

#endif
