/* trace_record.c — writes the compact record for the HTML page of a trace; trace_record_internal.h describes its format. */
#include "softcuda/tools/trace/trace_record_internal.h"

#include <stdlib.h>
#include <string.h>

/* The registers of a frame whose values the HTML page can compute, and the lanes in which it can do so. */
struct known_frame {
	struct known_frame *next;
	const struct trace_code *code;
	uint32_t depth;
	uint32_t lanes[]; /* for each flat register: the lanes whose values the HTML page can compute */
};

/* trace_warp.sink points to this struct */
struct record_warp {
	unsigned number;
	const struct trace_code *code;
	uint32_t depth, row, mask;
	bool started;
	struct known_frame *frames; /* the warp's frames, most recently used first */
};

/* trace_block.sink points to this struct */
struct record_block {
	uint8_t *shadow, *known; /* copy of shared memory in the HTML page; which of its bytes the page can compute */
	uint32_t bytes;
	struct record_warp warps[];
};

/* ---- arrays of bytes ----------------------------------------------------------------------------------------------- */

static uint8_t *reserve(struct bytes *b, size_t n)
{
	if (b->n + n > b->capacity) {
		const size_t capacity = 2 * b->capacity + n + 65536;
		uint8_t *grown = b->failed ? NULL : realloc(b->at, capacity);

		if (!grown) {
			b->failed = true;
			return NULL;
		}
		b->at = grown;
		b->capacity = capacity;
	}
	b->n += n;
	return b->at + b->n - n;
}

static void put_byte(struct bytes *b, unsigned v)
{
	uint8_t *to = reserve(b, 1);

	if (to)
		*to = (uint8_t)v;
}

static void put_u32(struct bytes *b, uint32_t v)
{
	uint8_t *to = reserve(b, 4);

	for (unsigned k = 0; to && k < 4; k++)
		to[k] = (uint8_t)(v >> 8 * k);
}

static void put_varint(struct bytes *b, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		put_byte(b, (unsigned)(v & 127) | 128);
	put_byte(b, (unsigned)v);
}

static void put_signed(struct bytes *b, int64_t v)
{
	put_varint(b, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static int64_t sign_extend(uint64_t v, unsigned bytes)
{
	return (int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

/* Encode the values of the lanes in `on`, which is not 0: as one value if all are equal, as an arithmetic sequence, or byte by byte;
 * a byte that is the same in all lanes is stored once. */
static void put_lanes(struct bytes *b, const uint64_t v[LANES], unsigned bytes, uint32_t on)
{
	uint64_t first, step, differ = 0;
	unsigned planes = 0;

	if (gpul_trace_row(v, bytes, on, &first, &step)) {
		put_byte(b, step ? LANES_ROW : LANES_SAME);
		put_varint(b, first);
		if (step)
			put_signed(b, sign_extend(step, bytes));
		return;
	}
	EACH_LANE_OF(l, on)
	differ |= v[l] ^ first;
	for (unsigned k = 0; k < bytes; k++)
		planes |= (differ >> 8 * k & 255) ? 1u << k : 0;
	put_byte(b, LANES_PLANES);
	put_byte(b, planes);
	for (unsigned k = 0; k < bytes; k++) {
		if (!(planes >> k & 1))
			put_byte(b, (unsigned)(first >> 8 * k) & 255);
		else
			EACH_LANE_OF(l, on)
		put_byte(b, (unsigned)(v[l] >> 8 * k) & 255);
	}
}

/* ---- which values the HTML page can compute -------------------------------------------------------------------------- */

static uint32_t *known_lanes(struct record_warp *w, const struct trace_code *code, uint32_t depth)
{
	struct known_frame **at = &w->frames, *f;

	for (; (f = *at); at = &f->next)
		if (f->code == code && f->depth == depth)
			break;
	if (!f) {
		f = calloc(1, sizeof *f + (code->n_regs + 1) * sizeof *f->lanes);
		if (!f)
			return NULL;
		f->code = code;
		f->depth = depth;
	} else {
		*at = f->next;
	}
	f->next = w->frames;
	w->frames = f;
	return f->lanes;
}

static struct record_row *row_of(struct record *r, const struct trace_event *e)
{
	const unsigned index = e->code->index;

	if (index >= r->n_functions) {
		void *grown = realloc(r->functions, (index + 1) * sizeof *r->functions);

		if (!grown)
			return NULL;
		r->functions = grown;
		memset(&r->functions[r->n_functions], 0, (index + 1 - r->n_functions) * sizeof *r->functions);
		r->n_functions = index + 1;
	}
	if (!r->functions[index].rows) {
		r->functions[index].code = e->code;
		r->functions[index].rows = calloc(e->code->n_rows + 1, sizeof *r->functions[index].rows);
	}
	return r->functions[index].rows ? &r->functions[index].rows[e->row - e->code->rows] : NULL;
}

/* Find the registers that a store writes to memory, if each has 4 or 8 bytes. */
static void find_stored(const struct trace_event *e, const struct func_code *code, struct record_row *row)
{
	const gpul_ptx_inst *in = &code->ptx->insts[e->row - e->code->rows];
	const gpul_ptx_operand *o = &code->ptx->operands[in->first_operand + 1];
	const bool list = o->kind == GPUL_PTX_OP_VECTOR;
	const unsigned n = list ? o->n_children : 1;

	if (in->opcode != GPUL_PTX_ST || in->n_operands < 2 || n > 4)
		return;
	for (unsigned k = 0; k < n; k++) {
		const gpul_ptx_operand *part = list ? &code->ptx->operands[o->first_child + k] : o;

		if (part->kind != GPUL_PTX_OP_REG || part->selector || e->code->regs[part->index].bytes < 4 ||
		    e->code->regs[part->index].bytes > 8) {
			row->n_stored = 0;
			return;
		}
		row->stored[row->n_stored++] = part->index;
	}
}

static struct record_warp *warp_of(struct record *r, const struct trace_event *e)
{
	struct record_block *b = e->block->sink;

	(void)r;
	return b ? &b->warps[e->s->index] : NULL;
}

/* Mark registers that the HTML page cannot compute: all when a function starts, and those that receive the results of a call. */
static void forget_registers(struct record_warp *w, const struct trace_event *e)
{
	uint32_t *lanes = known_lanes(w, e->code, e->depth);

	if (!lanes || (e->row->opcode != GPUL_PTX_CALL && (e->row != e->code->rows || !e->depth)))
		return;
	if (e->row->opcode != GPUL_PTX_CALL) {
		for (uint32_t k = 0; k < e->code->n_regs; k++)
			lanes[k] &= ~e->on;
		return;
	}
	for (uint32_t k = 0; k < e->frame->code->ptx->insts[e->row - e->code->rows].n_operands; k++) {
		const gpul_ptx_func *f = e->frame->code->ptx;
		const gpul_ptx_operand *o = &f->operands[f->insts[e->row - e->code->rows].first_operand + k];

		for (uint32_t n = 0; o->kind == GPUL_PTX_OP_LIST && n < o->n_children; n++)
			if (f->operands[o->first_child + n].kind == GPUL_PTX_OP_REG)
				lanes[f->operands[o->first_child + n].index] &= ~e->on;
	}
}

void gpul_record_prepare(struct record *r, const struct trace_event *e, const struct insn *i)
{
	struct record_row *row = row_of(r, e);
	struct record_warp *w = warp_of(r, e);
	const uint32_t *lanes;

	r->has_predicted = false;
	if (!row || !w)
		return;
	if (!row->executed) {
		row->executed = true;
		if (r->predicts && e->row->single && e->row->n_dests == 1 && e->code->regs[e->row->dest[0]].bytes)
			gpul_trace_rule_of(e->frame->code, i, &row->rule);
		find_stored(e, e->frame->code, row);
	}
	forget_registers(w, e);
	if (!row->rule.name || !e->on)
		return;
	lanes = known_lanes(w, e->code, e->depth);
	for (unsigned k = 0; k < row->rule.n; k++)
		if (row->rule.source[k].is_register && (!lanes || e->on & ~lanes[row->rule.source[k].flat]))
			return;
	gpul_trace_predict(e->s, i, r->predicted);
	r->has_predicted = true;
}

/* ---- register values ------------------------------------------------------------------------------------------------ */

static bool is_nan(uint64_t v, unsigned bytes)
{
	return bytes == 4 ? (v & 0x7fffffff) > 0x7f800000 : bytes == 8 && (v & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

static bool prediction_holds(const struct record *r, const uint64_t v[LANES], unsigned bytes, uint32_t on)
{
	const uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
	const uint64_t infinity = bytes == 8 ? UINT64_C(0x7ff0000000000000) : 0x7f800000, sign = mask >> 1;
	uint64_t wrong = 0;

	if (!r->has_predicted)
		return false;
	if (on == ALL_LANES) { /* without branches, so that the compiler can vectorise the loop */
		for (unsigned l = 0; l < LANES; l++)
			wrong |= ((r->predicted[l] & mask) ^ v[l]) | (uint64_t)(bytes > 2 && (v[l] & sign) > infinity);
		return !wrong;
	}
	EACH_LANE_OF(l, on)
	if ((r->predicted[l] & mask) != v[l] || is_nan(v[l], bytes))
		return false;
	return true;
}

/* True if the loaded values equal those in the HTML page's copy of shared memory. */
static bool loads_known_memory(const struct record_block *b, const struct trace_event *e)
{
	const struct lane_accesses *a = &e->access[0];
	const unsigned n = e->row->n_dests;

	if (e->row->opcode != GPUL_PTX_LD || !e->row->single || e->n_accesses != 1 || a->lanes != e->on || !b->shadow)
		return false;
	EACH_LANE_OF(l, e->on)
	{
		if (a->space[l] != SPACE_SHARED || a->at[l] + a->bytes[l] > b->bytes)
			return false;
		for (uint32_t k = 0; k < a->bytes[l]; k++)
			if (!b->known[a->at[l] + k])
				return false;
	}
	for (unsigned k = 0; k < n; k++) {
		unsigned bytes;
		const uint8_t *values = trace_dest(e, k, &bytes);

		EACH_LANE_OF(l, e->on)
		if ((bytes != 4 && bytes != 8) || bytes * n != a->bytes[l] ||
		    memcmp(values + bytes * l, b->shadow + a->at[l] + bytes * k, bytes) != 0)
			return false;
	}
	return true;
}

static void put_register(struct bytes *b, const void *values, unsigned bytes, uint32_t on)
{
	uint64_t v[LANES];

	if (!bytes) {
		put_byte(b, LANES_BITS);
		put_u32(b, *(const uint32_t *)values & on);
	} else if (bytes == 16) {
		for (unsigned half = 0; half < 2; half++)
			put_lanes(b, (const uint64_t *)values + half * LANES, 8, on);
	} else {
		gpul_trace_widen(values, bytes, v);
		put_lanes(b, v, bytes, on);
	}
}

/* Append the values of written registers to `to`, unless the HTML page can compute them.  Returns RECORD_VALUES if values were appended. */
static unsigned put_values(struct record *r, struct record_warp *w, const struct trace_event *e, struct bytes *to)
{
	uint32_t *lanes = e->row->n_dests && e->on ? known_lanes(w, e->code, e->depth) : NULL;
	bool predicted = false;
	unsigned bytes;

	if (!lanes)
		return 0;
	for (unsigned k = 0; k < e->row->n_dests; k++)
		lanes[e->row->dest[k]] |= e->on;
	if (r->predicts && e->row->n_dests == 1) {
		const void *values = trace_dest(e, 0, &bytes);
		uint64_t v[LANES];

		if (bytes && bytes <= 8) {
			gpul_trace_widen(values, bytes, v);
			predicted = prediction_holds(r, v, bytes, e->on);
		}
	}
	if (predicted || (r->predicts && loads_known_memory(e->block->sink, e)))
		return 0;
	for (unsigned k = 0; k < e->row->n_dests; k++) {
		const void *values = trace_dest(e, k, &bytes);

		put_register(to, values, bytes, e->on);
	}
	return RECORD_VALUES;
}

/* ---- accesses -------------------------------------------------------------------------------------------------------- */

/* Return word k of the bytes that a lane has written. */
static uint64_t word_of(const struct record_block *b, const struct lane_accesses *a, unsigned l, unsigned k)
{
	const unsigned n = a->bytes[l] - 4 * k < 4 ? a->bytes[l] - 4 * k : 4;
	uint32_t v = 0;

	memcpy(&v, b->shadow + a->at[l] + 4 * k, n);
	return v;
}

/* Returns true if the stored words equal the source registers, and the HTML page can compute these registers. */
static bool stores_known_registers(struct record *r, struct record_warp *w, const struct trace_event *e, const struct record_row *row,
				   const struct lane_accesses *a)
{
	const uint32_t *lanes = known_lanes(w, e->code, e->depth);
	unsigned at = 0;

	if (!r->predicts || !row || !row->n_stored || !lanes || !e->row->single)
		return false;
	for (unsigned k = 0; k < row->n_stored; k++) {
		unsigned bytes;
		const uint8_t *values = gpul_warp_register(e->s, e->frame, row->stored[k], &bytes);
		const struct record_block *b = e->block->sink;

		if (!values || a->lanes & ~lanes[row->stored[k]])
			return false;
		EACH_LANE_OF(l, a->lanes)
		if (at + bytes > a->bytes[l] || memcmp(b->shadow + a->at[l] + at, values + bytes * l, bytes) != 0)
			return false;
		at += bytes;
	}
	return at == a->bytes[first_lane(a->lanes)];
}

/* Copy what the lanes wrote to the HTML page's copy of shared memory.  Returns false if an address is not in shared memory. */
static bool update_shadow(struct record_block *b, const struct trace_event *e, const struct lane_accesses *a)
{
	const unsigned n = a->bytes[first_lane(a->lanes)];

	if (!b->shadow || n > 64 || e->s->event == EVENT_FAULT)
		return false;
	EACH_LANE_OF(l, a->lanes)
	if (a->space[l] != SPACE_SHARED || a->bytes[l] != n || a->at[l] > b->bytes || a->at[l] + n > b->bytes)
		return false;
	EACH_LANE_OF(l, a->lanes)
	{
		memcpy(b->shadow + a->at[l], e->s->shared + a->at[l], n);
		memset(b->known + a->at[l], 1, n);
	}
	return true;
}

static void put_access(struct record *r, struct record_warp *w, const struct trace_event *e, const struct lane_accesses *a,
		       struct bytes *to)
{
	const unsigned first = first_lane(a->lanes);
	struct record_block *b = e->block->sink;
	bool writes = a->kind != ACCESS_READ && a->space[first] == SPACE_SHARED && update_shadow(b, e, a);

	put_byte(to, (unsigned)a->kind + 4u * a->space[first] + (writes ? 128u : 0));
	put_varint(to, a->bytes[first]);
	put_u32(to, a->lanes);
	put_lanes(to, a->at, 8, a->lanes);
	if (!writes)
		return;
	if (stores_known_registers(r, w, e, row_of(r, e), a)) {
		put_byte(to, 1);
		return;
	}
	put_byte(to, 0);
	for (unsigned k = 0; 4 * k < a->bytes[first]; k++) {
		uint64_t v[LANES];

		EACH_LANE_OF(l, a->lanes)
		v[l] = word_of(b, a, l, k);
		put_lanes(to, v, 4, a->lanes);
	}
}

/* ---- recording events ------------------------------------------------------------------------------------------------ */

void gpul_record_event(struct record *r, const struct trace_event *e)
{
	struct record_warp *w = warp_of(r, e);
	const uint32_t row = (uint32_t)(e->row - e->code->rows);
	unsigned flags = 0, n_accesses = 0;
	size_t at = r->stream.n;
	struct bytes *to = &r->stream;

	if (!w || !row_of(r, e))
		return;
	put_byte(to, 0);
	if (w->number != r->last_warp) {
		flags |= RECORD_WARP;
		put_varint(to, w->number);
		r->last_warp = w->number;
	}
	if (!w->started || w->code != e->code || w->depth != e->depth || w->row + 1 != row) {
		flags |= RECORD_PLACE;
		put_varint(to, e->code->index);
		put_varint(to, e->depth);
		put_varint(to, row);
	}
	if (!w->started || w->mask != e->mask) {
		flags |= RECORD_MASK;
		put_u32(to, e->mask);
	}
	if (e->on != e->mask) {
		flags |= RECORD_ON;
		put_u32(to, e->on);
	}
	*w = (struct record_warp){
		.number = w->number, .code = e->code, .depth = e->depth, .row = row, .mask = e->mask, .started = true, .frames = w->frames
	};
	flags |= put_values(r, w, e, to);
	for (unsigned k = 0; k < e->n_accesses; k++)
		n_accesses += e->access[k].lanes != 0;
	if (n_accesses) {
		flags |= RECORD_ACCESS;
		put_varint(to, n_accesses);
	}
	for (unsigned k = 0; k < e->n_accesses; k++)
		if (e->access[k].lanes)
			put_access(r, w, e, &e->access[k], to);
	if (!to->failed)
		to->at[at] = (uint8_t)flags;
}

static void begin_block(struct record *r, struct trace_block *b)
{
	struct record_block *s = calloc(1, sizeof *s + b->n_warps * sizeof *s->warps);
	const struct block *block = b->block;

	b->sink = s;
	if (!s)
		return;
	s->bytes = block->shared_bytes;
	s->shadow = calloc(2, (size_t)s->bytes + 1);
	s->known = s->shadow ? s->shadow + s->bytes + 1 : NULL;
	for (unsigned k = 0; k < b->n_warps; k++)
		s->warps[k].number = r->n_warps + k;
	put_varint(&r->stream, r->n_warps);
	put_varint(&r->stream, b->n_warps);
	put_varint(&r->stream, b->launch);
	for (unsigned d = 0; d < 3; d++)
		put_varint(&r->stream, b->index[d]);
	put_varint(&r->stream, s->bytes);
	put_varint(&r->stream, block->n_threads);
	r->n_warps += b->n_warps;
}

void gpul_record_notice(struct record *r, const struct trace_notice *n)
{
	put_byte(&r->stream, RECORD_NOTICE);
	put_byte(&r->stream, n->kind);
	put_varint(&r->stream, n->block ? n->block->number : n->launch);
	if (n->kind == TRACE_BLOCK)
		begin_block(r, n->block);
	else if (n->kind == TRACE_BARRIER)
		put_varint(&r->stream, n->barrier);
}

void gpul_record_block_ends(struct trace_block *b)
{
	struct record_block *s = b->sink;

	for (unsigned k = 0; s && k < b->n_warps; k++)
		for (struct known_frame *f = s->warps[k].frames, *next; f; f = next) {
			next = f->next;
			free(f);
		}
	if (s)
		free(s->shadow);
	free(s);
}

void gpul_record_free(struct record *r)
{
	for (unsigned k = 0; k < r->n_functions; k++)
		free(r->functions[k].rows);
	free(r->functions);
	free(r->stream.at);
}
