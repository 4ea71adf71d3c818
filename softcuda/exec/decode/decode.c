/* decode.c — decodes a function, instruction by instruction: the table of decoders, guards, branch targets. */
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/warp/observe_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- arithmetic: select the operation, decode the operands ----------------------------------------- */

static bool alu_dest(struct decoder *d, const struct selection *s, struct insn *i)
{
	const gpul_ptx_operand *o = &d->operand[0];

	i->d = i->d2 = OPREF(BANK_SCRATCH, 0);
	if (gpul_operand_is_list(d->f, o))
		return gpul_operand_list(d, o, s->d_type, true, &i->d, &i->n);
	return gpul_operand_pair(d, o, s->d_type, s->d2_type, s->narrow_ok, &i->d, &i->d2);
}

static bool alu_sources(struct decoder *d, const struct selection *s, unsigned first, struct insn *i)
{
	opref *const source[MAX_SOURCES] = { &i->a, &i->b, &i->c, &i->e };

	for (unsigned k = 0, at = first; k < s->n_sources; k++, at++) {
		const gpul_ptx_operand *o;

		while (s->skip >> (at - first) & 1)
			at++;
		if (at >= d->in->n_operands)
			return gpul_decode_fail(d, GPUL_EFORMAT, "operand %u is missing", at + 1);
		o = &d->operand[at];
		if (gpul_operand_is_list(d->f, o)) {
			if (!gpul_operand_list(d, o, s->source_type[k], false, source[k], &i->n))
				return false;
		} else if (!gpul_operand_source(d, o, s->source_type[k], s->narrow_ok, source[k])) {
			return false;
		}
	}
	return true;
}

static bool decode_alu(struct decoder *d)
{
	struct selection s = { 0 };
	struct insn made = { 0 };
	char why[120] = "";

	if (!gpul_select_alu(d->m, d->f, d->in, &s, why, sizeof why))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "%s", why);
	made.imm = s.imm;
	made.n = s.n;
	made.flags = s.flags;
	if (s.d_type && !alu_dest(d, &s, &made))
		return false;
	return alu_sources(d, &s, s.d_type ? 1 : 0, &made) && gpul_emit(d, s.op, &made) && gpul_operand_emit_pending(d);
}

/* ---- decoding one instruction ---------------------------------------------------------------------- */

/* Decode mov, which can also compute the address of a variable. */
static bool decode_mov(struct decoder *d)
{
	if (gpul_vector_mod(d->in) > 1)
		return gpul_decode_mov_vector(d);
	return d->operand[1].kind == GPUL_PTX_OP_SYMBOL ? gpul_decode_mov_symbol(d) : decode_alu(d);
}

/* The decoder of each opcode; opcodes that are not in the table are arithmetic (decode_alu). */
static const struct decoder_row {
	decode_fn *decode;
	uint16_t op;  /* if not 0, the row has no decoder function: the instruction becomes this operation, without operands */
	bool defines; /* the first operand of the instruction is its result */
	bool skips;   /* the instruction changes the active mask or waits, so a guard (@p) is decoded as a branch around it */
} decoders[GPUL_PTX_N_OPCODES] = {
	[GPUL_PTX_MOV] = { .decode = decode_mov, .defines = true },
	[GPUL_PTX_LD] = { .decode = gpul_decode_ld, .defines = true },
	[GPUL_PTX_LDU] = { .decode = gpul_decode_ld, .defines = true },
	[GPUL_PTX_ST] = { .decode = gpul_decode_st },
	[GPUL_PTX_ATOM] = { .decode = gpul_decode_atomic, .defines = true },
	[GPUL_PTX_RED] = { .decode = gpul_decode_atomic },
	[GPUL_PTX_MULTIMEM] = { .decode = gpul_decode_multimem },
	[GPUL_PTX_CVTA] = { .decode = gpul_decode_cvta, .defines = true },
	[GPUL_PTX_ISSPACEP] = { .decode = gpul_decode_isspacep, .defines = true },
	[GPUL_PTX_PREFETCH] = { .op = OP_PREFETCH },
	[GPUL_PTX_PREFETCHU] = { .op = OP_PREFETCH },
	[GPUL_PTX_APPLYPRIORITY] = { .op = OP_PREFETCH },
	[GPUL_PTX_DISCARD] = { .op = OP_PREFETCH },
	[GPUL_PTX_BRA] = { .decode = gpul_decode_bra },
	[GPUL_PTX_BRX] = { .decode = gpul_decode_brx, .skips = true },
	[GPUL_PTX_CALL] = { .decode = gpul_decode_call, .skips = true },
	[GPUL_PTX_RET] = { .op = OP_RET, .skips = true },
	[GPUL_PTX_EXIT] = { .op = OP_EXIT, .skips = true },
	[GPUL_PTX_TRAP] = { .decode = gpul_decode_trap, .skips = true },
	[GPUL_PTX_BRKPT] = { .decode = gpul_decode_trap, .skips = true },
	[GPUL_PTX_BAR] = { .decode = gpul_decode_barrier, .skips = true },
	[GPUL_PTX_BARRIER] = { .decode = gpul_decode_barrier, .skips = true },
	[GPUL_PTX_FENCE] = { .decode = gpul_decode_fence },
	[GPUL_PTX_MEMBAR] = { .decode = gpul_decode_fence },
	[GPUL_PTX_NANOSLEEP] = { .decode = gpul_decode_nanosleep, .skips = true },
	[GPUL_PTX_PMEVENT] = { .op = OP_NOP },
	[GPUL_PTX_GRIDDEPCONTROL] = { .op = OP_NOP },
	[GPUL_PTX_TENSORMAP] = { .decode = gpul_decode_tensormap },
	[GPUL_PTX_SETMAXNREG] = { .op = OP_NOP },
	[GPUL_PTX_SHFL] = { .decode = gpul_decode_shfl, .skips = true, .defines = true },
	[GPUL_PTX_VOTE] = { .decode = gpul_decode_vote, .skips = true, .defines = true },
	[GPUL_PTX_MATCH] = { .decode = gpul_decode_match, .skips = true, .defines = true },
	[GPUL_PTX_REDUX] = { .decode = gpul_decode_redux, .skips = true, .defines = true },
	[GPUL_PTX_ELECT] = { .decode = gpul_decode_elect, .skips = true },
	[GPUL_PTX_MMA] = { .decode = gpul_decode_mma, .skips = true, .defines = true },
	[GPUL_PTX_WMMA] = { .decode = gpul_decode_wmma, .skips = true },
	[GPUL_PTX_WGMMA] = { .decode = gpul_decode_wgmma, .skips = true },
	[GPUL_PTX_LDMATRIX] = { .decode = gpul_decode_ldmatrix, .skips = true, .defines = true },
	[GPUL_PTX_STMATRIX] = { .decode = gpul_decode_stmatrix, .skips = true },
	[GPUL_PTX_MOVMATRIX] = { .decode = gpul_decode_movmatrix, .skips = true },
	[GPUL_PTX_ACTIVEMASK] = { .decode = gpul_decode_activemask, .defines = true },
	[GPUL_PTX_CP] = { .decode = gpul_decode_cp },
	[GPUL_PTX_MBARRIER] = { .decode = gpul_decode_mbarrier, .skips = true },
	[GPUL_PTX_ALLOCA] = { .decode = gpul_decode_alloca },
	[GPUL_PTX_STACKSAVE] = { .decode = gpul_decode_stack },
	[GPUL_PTX_STACKRESTORE] = { .decode = gpul_decode_stack },
	[GPUL_PTX_CREATEPOLICY] = { .decode = gpul_decode_createpolicy },
	[GPUL_PTX_CLUSTERLAUNCHCONTROL] = { .decode = gpul_decode_launch_control },
	[GPUL_PTX_TEX] = { .decode = gpul_decode_tex, .defines = true },
	[GPUL_PTX_TLD4] = { .decode = gpul_decode_tex, .defines = true },
	[GPUL_PTX_TXQ] = { .decode = gpul_decode_texture_query, .defines = true },
	[GPUL_PTX_SUQ] = { .decode = gpul_decode_texture_query, .defines = true },
	[GPUL_PTX_SULD] = { .decode = gpul_decode_surface, .defines = true },
	[GPUL_PTX_SUST] = { .decode = gpul_decode_surface },
	[GPUL_PTX_SURED] = { .decode = gpul_decode_surface },
	[GPUL_PTX_ISTYPEP] = { .decode = gpul_decode_istypep },
	[GPUL_PTX_MAPA] = { .decode = gpul_decode_mapa },
	[GPUL_PTX_GETCTARANK] = { .decode = gpul_decode_getctarank },
};

static bool defines_first_operand(unsigned opcode)
{
	const struct decoder_row *row = &decoders[opcode];

	return row->defines || (!row->decode && !row->op);
}

static gpul_status refuse_function(struct gpul_exec_program *p, struct func_code *code, const char *why, gpul_error *err)
{
	char *copy = gpul_program_alloc(p, strlen(why) + 1, err);

	if (!copy)
		return GPUL_ENOMEM;
	code->refusal = strcpy(copy, why);
	return GPUL_OK;
}

/* Called when decoding of an instruction has failed.  If the interpreter does not implement the instruction, replace what was emitted
 * for it by OP_REFUSED, which ends the kernel with a message.  Only functions that are called through a pointer execute OP_REFUSED:
 * gpul_spread_refusals() refuses the kernels that call the function by its name. */
static bool emit_refused(struct decoder *d, uint32_t start, uint32_t n_patches)
{
	const int place_bytes = snprintf(NULL, 0, "%s:%u: ", d->p->file_name, d->in->line);
	struct insn made = { 0 };
	gpul_error why = *d->err;
	char *text;

	if (why.status != GPUL_EUNSUPPORTED)
		return false;
	*d->err = (gpul_error){ 0 };
	text = gpul_program_alloc(d->p, sizeof why.text, d->err);
	if (!text || (!d->code->refusal && refuse_function(d->p, d->code, why.text, d->err)))
		return false;
	made.object = strcpy(text, why.text + ((size_t)place_bytes < strlen(why.text) ? place_bytes : 0));
	d->n = start;
	d->n_patches = n_patches;
	return gpul_emit(d, OP_REFUSED, &made);
}

static bool decode_unguarded(struct decoder *d)
{
	const struct decoder_row *row = &decoders[d->in->opcode];
	const uint32_t start = d->n, n_patches = d->n_patches;

	if (row->op)
		return gpul_emit(d, row->op, NULL);
	if (d->in->n_operands > MAX_OPERANDS)
		gpul_decode_fail(d, GPUL_EUNSUPPORTED, "%u operands are given; at most %d are supported", d->in->n_operands, MAX_OPERANDS);
	else if (row->decode ? row->decode(d) : decode_alu(d))
		return true;
	return emit_refused(d, start, n_patches);
}

/* Decode a guarded instruction (@p): emit a branch around it, or OP_GUARD, which executes it only for lanes whose p is true. */
static bool decode_guarded(struct decoder *d)
{
	const uint32_t start = d->n;
	unsigned bytes;
	const struct insn branch = { .guard = gpul_reg_ref(d, d->in->guard, &bytes) };
	const bool skips = decoders[d->in->opcode].skips;

	if (bytes)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the guard is not a predicate") || emit_refused(d, start, d->n_patches);
	if (skips && !gpul_emit(d, d->in->guard_negated ? OP_BRA_IF : OP_BRA_IFNOT, &branch))
		return false;
	if (!decode_unguarded(d))
		return false;
	if (skips) {
		d->insns[start].imm = d->n; /* this field holds an index of d->insns until resolve_branches() replaces it with an address */
		return true;
	}
	for (uint32_t k = start; k < d->n; k++) {
		struct insn *i = &d->insns[k];

		i->guard = branch.guard;
		i->inner = i->run;
		i->run = gpul_handler(d->in->guard_negated ? OP_GUARD_NOT : OP_GUARD);
	}
	return true;
}

static bool decode_inst(struct decoder *d, uint32_t row)
{
	d->in = &d->f->insts[row];
	for (unsigned k = 0; k < MAX_OPERANDS; k++)
		d->operand[k] = k < d->in->n_operands ? d->f->operands[d->in->first_operand + k]
						      : (gpul_ptx_operand){ .kind = OPERAND_MISSING };
	d->src = row;
	d->first_insn[row] = d->n;
	d->n_pending = 0;
	for (unsigned k = 0; k < d->n_temps; k++)
		d->temps[k].used = false;
	if (d->in->guard == GPUL_PTX_NONE || d->in->opcode == GPUL_PTX_BRA)
		return decode_unguarded(d);
	return decode_guarded(d);
}

/* ---- decoding a function ----------------------------------------------------------------------------- */

/* Replace the indices and labels in branches with addresses.  Called after the last instruction was appended, so addresses are final. */
static void resolve_branches(struct decoder *d)
{
	for (uint32_t k = 0; k < d->n; k++)
		if (d->insns[k].op == OP_BRA_IF || d->insns[k].op == OP_BRA_IFNOT)
			d->insns[k].target = &d->insns[d->insns[k].imm];
	for (uint32_t k = 0; k < d->n_patches; k++) {
		const gpul_ptx_label *label = &d->f->labels[d->patches[k].label];
		struct insn *i = &d->insns[d->patches[k].insn];

		if (i->op == OP_BRX) {
			struct branch_table *t = (struct branch_table *)(uintptr_t)i->object;

			for (uint32_t n = 0; n < t->n_targets; n++) {
				const gpul_ptx_operand *o = &d->f->operands[label->first_target + n];

				t->targets[n] = &d->insns[d->first_insn[d->f->labels[o->index].inst]];
			}
		} else {
			i->target = &d->insns[d->first_insn[label->inst]];
		}
	}
	d->code->insns = d->insns;
	d->code->n_insns = d->n;
	d->code->frame_bytes = (d->frame_bytes + 63) & ~63u;
}

static void bind_register_params(struct decoder *d, const gpul_ptx_var *vars, uint32_t n, struct vector_regs *regs)
{
	unsigned bytes;

	for (uint32_t k = 0; k < n; k++) {
		regs[k].n = vars[k].space == GPUL_PTX_MOD_REG ? vars[k].vector : 0;
		for (unsigned e = 0; e < regs[k].n; e++)
			regs[k].at[e] = gpul_reg_ref(d, vars[k].reg + e, &bytes);
	}
}

static bool decode_body(struct decoder *d)
{
	const gpul_ptx_func *f = d->f;

	if (f->kind == GPUL_PTX_FUNC_DEVICE) {
		bind_register_params(d, f->params, f->n_params, d->code->param_regs);
		bind_register_params(d, f->rets, f->n_rets, d->code->ret_regs);
	}
	for (uint32_t row = 0; row < f->n_insts; row++)
		if (!decode_inst(d, row))
			return false;
	d->first_insn[f->n_insts] = d->n;
	d->src = f->n_insts;
	return gpul_emit(d, OP_RET, NULL); /* an implicit return, so that execution cannot run past the end */
}

/* Choose the handler of an observed instruction: that of its only observer, if this one has a handler, else gpul_observed(). */
static op_fn *handler_of_observers(struct observer *first, uint32_t wanted, const struct func_code *code, const struct insn *i)
{
	for (struct observer *o = first; o; o = o->next) {
		op_fn *own = wanted == o->bit && o->handler ? o->handler(o, code, i) : NULL;

		if (own)
			return own;
	}
	return gpul_observed;
}

/* Replace the handler of each instruction that an observer wants with a handler that calls the observers. */
static bool observe(struct decoder *d)
{
	struct observer *first = gpul_exec_memory_observers(d->p->memory);
	struct observed_insn *row;

	if (!first)
		return true;
	row = gpul_program_alloc(d->p, d->n * sizeof *row, d->err);
	d->code->observed = row;
	d->code->reg_offset = gpul_program_alloc(d->p, (d->f->n_flat_regs + 1) * sizeof *d->code->reg_offset, d->err);
	if (!d->code->reg_offset)
		return false;
	memcpy(d->code->reg_offset, d->reg_offset, d->f->n_flat_regs * sizeof *d->reg_offset);
	for (uint32_t k = 0; row && k < d->n; k++) {
		struct insn *i = &d->insns[k];

		for (struct observer *o = first; o; o = o->next)
			row[k].observers |= !o->wants || o->wants(o, d->code, i) ? o->bit : 0;
		row[k].run = i->run;
		if (row[k].observers)
			i->run = handler_of_observers(first, row[k].observers, d->code, i);
	}
	return row;
}

/* Decode the function into d->code. */
static gpul_status decode_into(struct decoder *d)
{
	const gpul_ptx_func *f = d->f;
	const char *name = gpul_ptx_name(d->m, f->name);
	gpul_status st = GPUL_OK;

	d->reg_bytes = malloc(f->n_flat_regs + 1);
	d->reg_offset = malloc((f->n_flat_regs + 1) * sizeof *d->reg_offset);
	d->first_insn = calloc(f->n_insts + 1, sizeof *d->first_insn);
	if (!d->reg_bytes || !d->reg_offset || !d->first_insn) {
		st = gpul_fail(d->err, GPUL_ENOMEM, 0, "no memory to decode %s", name);
		goto done;
	}
	for (uint32_t k = 0; k < f->n_regs; k++)
		memset(d->reg_bytes + f->regs[k].first, (int)gpul_container_bytes(f->regs[k].type),
		       (size_t)f->regs[k].count * f->regs[k].vector);
	memset(d->reg_offset, 0xff, (f->n_flat_regs + 1) * sizeof *d->reg_offset);
	gpul_share_registers(d, defines_first_operand);
	if (decode_body(d)) {
		resolve_branches(d);
		st = observe(d) ? GPUL_OK : GPUL_ENOMEM;
	} else {
		free(d->insns);
		st = d->err->status;
	}
done:
	free(d->reg_bytes);
	free(d->reg_offset);
	free(d->first_insn);
	free(d->patches);
	return st;
}

gpul_status gpul_decode_function(struct gpul_exec_program *p, struct func_code *code, gpul_error *err)
{
	gpul_error why = { 0 };
	struct decoder d = { .p = p, .code = code, .m = p->module, .f = code->ptx, .err = &why };
	const gpul_status st = decode_into(&d);

	return st ? gpul_fail(err, st, why.native, "%s", why.text) : GPUL_OK;
}
