/* decode_registers.c — register allocation: registers that are never live at the same time share a slot of their function's frame.
 *
 * Compilers generate PTX with a new register for nearly every result, as in static single assignment: a kernel of 2,000
 * instructions has as many registers, and a register of 32 lanes has 64 to 512 bytes. The frame of such a kernel is larger than
 * the caches of a CPU, but few of its registers are live at one time.
 *
 *     index  instruction             live after it     slot
 *     10     add.f32 %f7, %f1, %f2   %f7               0
 *     11     mul.f32 %f8, %f7, %f7   %f8               1      not 0: no result shares the slot of a source
 *     12     st.f32  [%rd1], %f8
 *     13     ld.f32  %f9, [%rd2]     %f9               1      %f8 is dead: reuses the slot that was freed last
 *
 * Liveness is computed for one lane: diverged lanes have their own words in a register, and handlers write only those of active lanes.
 *   1. Most registers are accessed in one basic block only, first by a result: they are live from their first access to their last.
 *   2. For the others, backward dataflow over the blocks (Aho et al., Compilers, 2nd ed., 9.2.5) finds the instructions at which they are
 *      live. The range from the first to the last of these instructions counts as live.
 *   3. Slots are assigned in the order of instructions (linear scan: Poletto and Sarkar, 1999), separately for each width and for floats:
 *      handlers compute inactive lanes, too, and an integer in a float's slot would be a subnormal float, which makes CPUs slow.
 *
 * Registers share no slots in small frames, if there are observers (which show registers by name), and if memory runs out. */
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/warp/observe_internal.h"

#include <stdlib.h>

enum {
	SMALL_FRAME_BYTES = 8192, /* a sixth to a quarter of an L1 data cache; in smaller frames, registers share no slots */
	N_KINDS = 8,              /* kinds of slots: sizes of 2, 4, 8 and 16 bytes, each for floats and for other types */
	NO_BLOCK = -1,
	SEVERAL_BLOCKS = -2,
};
static const size_t max_set_words = (size_t)1 << 22; /* limit of the live sets of all blocks together: 32 MiB */

struct basic_block {
	uint32_t first, end;
}; /* first and last + 1 instruction of the block, as indices in f->insts */

struct life {
	uint32_t first, last; /* live range, as indices in f->insts; first > last: the register is not accessed */
	uint32_t number;      /* bit number in the live sets, if the register is accessed in several blocks */
	int32_t home;         /* the block that accesses the register, if only one does; else NO_BLOCK or SEVERAL_BLOCKS */
	uint8_t elements;     /* number of elements if the register is part of a vector register; else 1 */
	bool is_float;        /* an instruction uses the register as f32 or f64, even if it is declared .b32 */
};

struct sharing {
	struct decoder *d;
	const gpul_ptx_func *f;
	bool (*defines)(unsigned opcode);
	struct life *lives; /* live range of each register, indexed by register number, which counts the registers of all declarations */
	struct basic_block *blocks;
	uint32_t *numbered; /* the register number of each bit of the live sets */
	uint32_t *block_at; /* index of the block that contains each instruction of f->insts */
	uint32_t n_blocks, n_numbers;
	size_t n_words;                                /* size of one live set */
	uint64_t *live_in, *live_out, *used, *defined; /* live sets, n_words for each block */
};

/* ---- accesses to registers --------------------------------------------------------------------- */

/* Called for each register that an instruction accesses.  defines: the instruction writes the register in every active lane.  Any
 * other write counts as a read, because it keeps the old value in some lanes, so that the register is live before the instruction. */
typedef void access_fn(struct sharing *s, uint32_t flat, bool defines, uint32_t row);

static void visit_operand(struct sharing *s, const gpul_ptx_operand *o, bool defines, uint32_t row, access_fn *access)
{
	const bool list = o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR;

	if (o->kind == GPUL_PTX_OP_REG)
		for (unsigned e = 0; e < (o->selector ? 1 : s->lives[o->index].elements); e++)
			access(s, o->index + e, defines && o->selector <= GPUL_PTX_SEL_W, row);
	else if (list || o->kind == GPUL_PTX_OP_ADDRESS || o->kind == GPUL_PTX_OP_LIST)
		for (uint32_t k = 0; k < o->n_children; k++)
			visit_operand(s, &s->f->operands[o->first_child + k], defines && list, row, access);
}

/* Call access() for the registers of an instruction, sources first, because the instruction may read the register that it writes. */
static void visit_inst(struct sharing *s, uint32_t row, access_fn *access)
{
	const gpul_ptx_inst *in = &s->f->insts[row];
	const gpul_ptx_operand *o = &s->f->operands[in->first_operand];
	const bool defines = in->n_operands && in->guard == GPUL_PTX_NONE && s->defines(in->opcode);

	if (in->guard != GPUL_PTX_NONE)
		access(s, in->guard, false, row);
	for (unsigned k = defines; k < in->n_operands; k++)
		visit_operand(s, &o[k], false, row, access);
	if (defines)
		visit_operand(s, o, true, row, access);
}

static void note_access(struct sharing *s, uint32_t flat, bool defines, uint32_t row)
{
	struct life *life = &s->lives[flat];
	const int32_t block = (int32_t)s->block_at[row];

	if (life->home == NO_BLOCK)
		life->first = row;
	life->last = row;
	if (life->home != block)
		life->home = life->home == NO_BLOCK && defines ? block : SEVERAL_BLOCKS;
}

static void add_to_sets(struct sharing *s, uint32_t flat, bool defines, uint32_t row)
{
	const struct life *life = &s->lives[flat];
	const size_t word = s->block_at[row] * s->n_words + life->number / 64;
	const uint64_t bit = (uint64_t)1 << life->number % 64;

	if (life->home != SEVERAL_BLOCKS)
		return;
	if (defines)
		s->defined[word] |= bit;
	else if (!(s->defined[word] & bit))
		s->used[word] |= bit;
}

static void mark_float(struct sharing *s, uint32_t flat, bool defines, uint32_t row)
{
	(void)defines, (void)row;
	s->lives[flat].is_float = true;
}

static bool is_float(unsigned type)
{
	return type == GPUL_PTX_MOD_F32 || type == GPUL_PTX_MOD_F64;
}

/* Mark the registers that an instruction uses as floats: the first type modifier is that of the result, the last one that of the
 * sources. */
static void find_floats(struct sharing *s, uint32_t row)
{
	const gpul_ptx_inst *in = &s->f->insts[row];
	unsigned first = 0;

	while (first < in->n_mods && in->mods[first] > GPUL_PTX_MOD_S16X2)
		first++;
	for (unsigned k = 0; first < in->n_mods && k < in->n_operands; k++) {
		const gpul_ptx_operand *o = &s->f->operands[in->first_operand + k];

		if (o->kind != GPUL_PTX_OP_ADDRESS && is_float(k ? gpul_type_mod(in) : in->mods[first]))
			visit_operand(s, o, false, row, mark_float);
	}
}

/* ---- basic blocks ------------------------------------------------------------------------------ */

static bool ends_block(const gpul_ptx_inst *in)
{
	return in->opcode == GPUL_PTX_BRA || in->opcode == GPUL_PTX_BRX || in->opcode == GPUL_PTX_RET || in->opcode == GPUL_PTX_EXIT;
}

static void find_blocks(struct sharing *s)
{
	const gpul_ptx_func *f = s->f;

	for (uint32_t k = 0; k < f->n_labels; k++)
		if (f->labels[k].kind == GPUL_PTX_LABEL_CODE)
			s->block_at[f->labels[k].inst] = 1;
	for (uint32_t row = 0; row < f->n_insts; row++)
		if (ends_block(&f->insts[row]))
			s->block_at[row + 1] = 1;
	s->block_at[0] = 1;
	for (uint32_t row = 0; row < f->n_insts; row++) {
		if (s->block_at[row])
			s->blocks[s->n_blocks++].first = row;
		s->blocks[s->n_blocks - 1].end = row + 1;
		s->block_at[row] = s->n_blocks - 1;
	}
	s->block_at[f->n_insts] = s->n_blocks; /* one past the last instruction: the function's end, where nothing is live */
}

/* Add the live-in set of the block that contains instruction `row` to the set `out`.  Returns true if `out` has changed. */
static bool add_live_in(const struct sharing *s, uint64_t *out, uint32_t row)
{
	const uint32_t block = s->block_at[row];
	bool changed = false;

	for (size_t k = 0; block < s->n_blocks && k < s->n_words; k++) {
		const uint64_t more = s->live_in[block * s->n_words + k] & ~out[k];

		out[k] |= more;
		changed |= more != 0;
	}
	return changed;
}

static bool add_live_out(const struct sharing *s, uint32_t block)
{
	const gpul_ptx_func *f = s->f;
	const gpul_ptx_inst *in = &f->insts[s->blocks[block].end - 1];
	const gpul_ptx_operand *o = &f->operands[in->first_operand];
	uint64_t *out = &s->live_out[block * s->n_words];
	bool changed = false;

	if (in->opcode == GPUL_PTX_BRA && in->n_operands && o->kind == GPUL_PTX_OP_LABEL) {
		changed |= add_live_in(s, out, f->labels[o->index].inst);
	} else if (in->opcode == GPUL_PTX_BRX && in->n_operands > 1 && o[1].kind == GPUL_PTX_OP_LABEL) {
		const gpul_ptx_label *list = &f->labels[o[1].index];

		for (uint32_t k = 0; list->kind == GPUL_PTX_LABEL_BRANCHTARGETS && k < list->n_targets; k++)
			if (f->operands[list->first_target + k].kind == GPUL_PTX_OP_LABEL)
				changed |= add_live_in(s, out, f->labels[f->operands[list->first_target + k].index].inst);
	}
	if (!ends_block(in) || in->guard != GPUL_PTX_NONE)
		changed |= add_live_in(s, out, s->blocks[block].end);
	return changed;
}

static void solve(struct sharing *s)
{
	bool changed = true;

	memcpy(s->live_in, s->used, s->n_blocks * s->n_words * sizeof *s->used);
	while (changed) {
		changed = false;
		for (uint32_t b = s->n_blocks; b-- > 0;) {
			if (!add_live_out(s, b))
				continue;
			changed = true;
			for (size_t k = b * s->n_words; k < (b + 1) * s->n_words; k++)
				s->live_in[k] |= s->live_out[k] & ~s->defined[k];
		}
	}
}

/* ---- live ranges -------------------------------------------------------------------------------- */

/* Extend the live ranges of all registers in a set to include the instruction at index `row`. */
static void include_all(struct sharing *s, const uint64_t *set, uint32_t row)
{
	for (size_t k = 0; k < s->n_words; k++)
		for (uint64_t bits = set[k]; bits; bits &= bits - 1) {
			struct life *life = &s->lives[s->numbered[64 * k + (unsigned)__builtin_ctzll(bits)]];

			life->first = row < life->first ? row : life->first;
			life->last = row > life->last ? row : life->last;
		}
}

/* For each register that several blocks access, extend its live range to all instructions where it is live.  Returns false if memory
 * runs out, or there are too many registers. */
static bool extend_lives(struct sharing *s)
{
	bool done;

	for (uint32_t r = 0; r < s->f->n_flat_regs; r++)
		if (s->lives[r].home == SEVERAL_BLOCKS)
			s->numbered[s->lives[r].number = s->n_numbers++] = r;
	s->n_words = (s->n_numbers + 63) / 64;
	if (s->n_blocks * s->n_words > max_set_words)
		return false;
	s->live_in = calloc(4 * s->n_blocks * s->n_words + 1, sizeof *s->live_in);
	done = s->live_in;
	if (done) {
		s->live_out = s->live_in + s->n_blocks * s->n_words;
		s->used = s->live_out + s->n_blocks * s->n_words;
		s->defined = s->used + s->n_blocks * s->n_words;
		for (uint32_t row = 0; row < s->f->n_insts; row++)
			visit_inst(s, row, add_to_sets);
		solve(s);
		for (uint32_t b = 0; b < s->n_blocks; b++) {
			include_all(s, &s->live_in[b * s->n_words], s->blocks[b].first);
			include_all(s, &s->live_out[b * s->n_words], s->blocks[b].end - 1);
		}
	}
	free(s->live_in);
	return done;
}

static void live_everywhere(struct sharing *s, uint32_t flat, bool defines, uint32_t row)
{
	(void)defines, (void)row;
	s->lives[flat].first = 0;
	s->lives[flat].last = s->f->n_insts;
}

/* Mark registers as live in the whole function if they are read outside of its instructions: parameters and results in registers, and
 * results of loads that may poll, because the handler of these loads (LDO) compares the new value with the one from the previous poll. */
static void keep_places(struct sharing *s)
{
	const gpul_ptx_func *f = s->f;

	for (uint32_t k = 0; k < f->n_params; k++)
		if (f->params[k].space == GPUL_PTX_MOD_REG)
			live_everywhere(s, f->params[k].reg, false, 0);
	for (uint32_t k = 0; k < f->n_rets; k++)
		if (f->rets[k].space == GPUL_PTX_MOD_REG)
			live_everywhere(s, f->rets[k].reg, false, 0);
	for (uint32_t row = 0; row < f->n_insts; row++)
		if (f->insts[row].opcode == GPUL_PTX_LD && f->insts[row].n_operands && gpul_is_ordered(&f->insts[row]))
			visit_operand(s, &f->operands[f->insts[row].first_operand], true, row, live_everywhere);
}

/* ---- slots of the frame ------------------------------------------------------------------------- */

struct places {
	uint32_t *starts, *ends;         /* for each instruction: lists of the live ranges that start there, or ended just before it */
	uint32_t *next_start, *next_end; /* for each register: the next one in the list */
	uint32_t *free[N_KINDS], n_free[N_KINDS];
};

static unsigned kind_of(const struct sharing *s, uint32_t r)
{
	const unsigned bytes = s->d->reg_bytes[r];

	return (bytes == 2 ? 0u : bytes == 4 ? 1u : bytes == 8 ? 2u : 3u) + (s->lives[r].is_float ? N_KINDS / 2u : 0u);
}

static void push(uint32_t *list, uint32_t *next, uint32_t r)
{
	*next = *list;
	*list = r;
}

/* Assign slots to registers in the order in which their live ranges start.  The slot freed last is used first: it is in the L1 cache. */
static void give_places(struct sharing *s, struct places *p)
{
	for (uint32_t row = 0; row <= s->f->n_insts; row++) {
		for (uint32_t r = p->ends[row]; r != GPUL_PTX_NONE; r = p->next_end[r]) {
			const unsigned kind = kind_of(s, r);

			p->free[kind][p->n_free[kind]++] = s->d->reg_offset[r];
		}
		for (uint32_t r = p->starts[row]; r != GPUL_PTX_NONE; r = p->next_start[r]) {
			const unsigned kind = kind_of(s, r);

			s->d->reg_offset[r] = p->n_free[kind] ? p->free[kind][--p->n_free[kind]]
							      : gpul_reserve_register(s->d, s->d->reg_bytes[r]);
		}
	}
}

static void share_places(struct sharing *s)
{
	const uint32_t n_rows = s->f->n_insts + 2, n_regs = s->f->n_flat_regs;
	uint32_t *room = malloc((2 * (size_t)n_rows + (2 + N_KINDS) * (size_t)n_regs) * sizeof *room);
	struct places p = { .starts = room };

	if (!room)
		return;
	memset(room, 0xff, 2 * (size_t)n_rows * sizeof *room); /* fills both arrays of lists with GPUL_PTX_NONE, the empty list */
	p.ends = p.starts + n_rows;
	p.next_start = p.ends + n_rows;
	p.next_end = p.next_start + n_regs;
	for (unsigned k = 0; k < N_KINDS; k++)
		p.free[k] = p.next_end + n_regs + k * (size_t)n_regs;
	for (uint32_t r = n_regs; r-- > s->f->n_module_regs;) {
		const struct life *life = &s->lives[r];

		if (life->first > life->last || !s->d->reg_bytes[r]) /* predicates are small, so they share no slots */
			continue;
		push(&p.starts[life->first], &p.next_start[r], r);
		push(&p.ends[life->last + 1], &p.next_end[r], r);
	}
	give_places(s, &p);
	free(room);
}

static void init_lives(struct sharing *s)
{
	const gpul_ptx_func *f = s->f;

	for (uint32_t k = 0; k < f->n_regs; k++)
		for (uint32_t n = 0; n < f->regs[k].count * f->regs[k].vector; n++)
			s->lives[f->regs[k].first + n] = (struct life){ .first = 1, .home = NO_BLOCK, .elements = f->regs[k].vector };
}

void gpul_share_registers(struct decoder *d, bool (*defines)(unsigned opcode))
{
	struct sharing s = { .d = d, .f = d->f, .defines = defines };
	const gpul_ptx_func *f = d->f;
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < f->n_regs; k++)
		bytes += (uint64_t)f->regs[k].count * f->regs[k].vector * gpul_container_bytes(f->regs[k].type) * LANES;
	if (bytes <= SMALL_FRAME_BYTES || !f->n_insts || gpul_exec_memory_observers(d->p->memory))
		return;
	s.lives = malloc((f->n_flat_regs + 1) * sizeof *s.lives);
	s.blocks = malloc((f->n_insts + 1) * sizeof *s.blocks);
	s.numbered = malloc((f->n_flat_regs + 1) * sizeof *s.numbered);
	s.block_at = calloc(f->n_insts + 1, sizeof *s.block_at);
	if (s.lives && s.blocks && s.numbered && s.block_at) {
		init_lives(&s);
		find_blocks(&s);
		for (uint32_t row = 0; row < f->n_insts; row++) {
			visit_inst(&s, row, note_access);
			find_floats(&s, row);
		}
		if (extend_lives(&s)) {
			keep_places(&s);
			share_places(&s);
		}
	}
	free(s.lives);
	free(s.blocks);
	free(s.numbered);
	free(s.block_at);
}
