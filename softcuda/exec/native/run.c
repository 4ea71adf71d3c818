/* run.c — compiles a run (a sequence of instructions without control flow) twice: for warps without and with inactive lanes. */
#include <stdlib.h>

#include "softcuda/exec/native/native_internal.h"

/* upper bound for the machine code of one instruction */
enum { ROW_BYTES = 2048 };

unsigned gpul_native_weight(const struct insn *i)
{
	if (i->inner) /* an instruction with a guard (@p) is executed by its handler */
		return 0;
	return gpul_native_computes(i) ? 1 : gpul_native_accesses(i) ? 2 : 0;
}

static void load_banks(struct code *c)
{
	for (opref bank = 0; bank < BANK_SCRATCH; bank++)
		gpul_code_load64(c, gpul_native_bank(bank), RDI, (uint32_t)(offsetof(struct warp, bank) + bank * sizeof(uint8_t *)));
}

static void load_lane_masks(struct code *c)
{
	static const uint8_t lanes[] = { LANES_8, 8, LANES_16, 16, LANES_24, 24 };

	gpul_code_load32(c, R9, RDI, offsetof(struct warp, mask));
	gpul_code_mask_from(c, LANES_0, R9);
	for (unsigned k = 0; k < sizeof lanes; k += 2)
		gpul_code_mask_shift(c, lanes[k], LANES_0, lanes[k + 1]);
}

/* Emit code that sets RSI to the address of instruction `row` of the run, and RAX to its handler. */
static void prepare_handler(struct run_compiler *c, uint32_t row)
{
	op_fn *const handler = c->rows[row].run;
	uint64_t address;

	memcpy(&address, &handler, sizeof address);
	gpul_code_lea(&c->code, RSI, RSI, (uint32_t)(row * sizeof *c->rows));
	gpul_code_vzeroupper(&c->code);
	gpul_code_set64(&c->code, RAX, address);
}

/* Emit a call of the handler of instruction `row`.  If the handler returns anything but the next instruction, the run returns the
 * same.  The handler may overwrite all registers, so they are loaded again. */
static void execute_by_handler(struct run_compiler *c, uint32_t row)
{
	size_t on;

	gpul_code_push(&c->code, RDI);
	gpul_code_push(&c->code, RSI);
	gpul_code_push(&c->code, RSI); /* aligns the stack to 16 bytes */
	prepare_handler(c, row);
	gpul_code_call(&c->code, RAX);
	gpul_code_pop(&c->code, RSI);
	gpul_code_pop(&c->code, RSI);
	gpul_code_pop(&c->code, RDI);
	gpul_code_lea(&c->code, RCX, RSI, (uint32_t)((row + 1) * sizeof *c->rows));
	gpul_code_alu64(&c->code, ALU_CMP, RAX, RCX);
	on = gpul_code_jump(&c->code, JUMP_IF_ZERO);
	gpul_code_return(&c->code);
	gpul_code_jump_here(&c->code, on);
	load_banks(&c->code);
	if (c->partial)
		load_lane_masks(&c->code);
}

static bool note_slow_row(struct run_compiler *c)
{
	if (!c->slow.n_jumps)
		return true;
	if (c->n_slow_rows == c->room) {
		const uint32_t room = c->room ? 2 * c->room : 64;
		struct slow_row *grown = realloc(c->slow_rows, room * sizeof *grown);

		if (!grown)
			return false;
		c->slow_rows = grown;
		c->room = room;
	}
	c->slow.row = c->row;
	c->slow.resume = c->code.n;
	memcpy(c->slow.values, c->values, sizeof c->values);
	c->slow_rows[c->n_slow_rows++] = c->slow;
	return true;
}

static bool compile_row(struct run_compiler *c)
{
	const struct insn *i = &c->rows[c->row];

	if (!gpul_code_reserve(&c->code, ROW_BYTES))
		return false;
	c->slow.n_jumps = 0;
	if (!gpul_native_weight(i)) {
		execute_by_handler(c, c->row);
		gpul_values_forget(c);
	} else if (gpul_native_computes(i)) {
		gpul_native_compute(c, i);
	} else {
		gpul_native_access(c, i);
	}
	return note_slow_row(c);
}

/* Emit the end of a run: the code returns the next instruction, or, if that is a branch, jumps to its handler. */
static void end_run(struct run_compiler *c, uint32_t n)
{
	if (c->ends_with_branch) {
		prepare_handler(c, n);
		gpul_code_go_to(&c->code, RAX);
	} else {
		gpul_code_lea(&c->code, RAX, RSI, (uint32_t)(n * sizeof *c->rows));
		gpul_code_vzeroupper(&c->code);
		gpul_code_return(&c->code);
	}
}

/* Emit the code of all instructions, the end of the run, and then the calls of handlers to which the code of instructions jumps. */
static bool compile_rows(struct run_compiler *c, uint32_t n)
{
	c->n_slow_rows = 0;
	gpul_values_forget(c);
	for (c->row = 0; c->row < n; c->row++)
		if (!compile_row(c))
			return false;
	if (!gpul_code_reserve(&c->code, ROW_BYTES))
		return false;
	end_run(c, n);
	for (uint32_t k = 0; k < c->n_slow_rows; k++) {
		const struct slow_row *s = &c->slow_rows[k];

		if (!gpul_code_reserve(&c->code, ROW_BYTES))
			return false;
		for (unsigned j = 0; j < s->n_jumps; j++)
			gpul_code_jump_here(&c->code, s->jump[j]);
		execute_by_handler(c, s->row);
		gpul_values_reload(c, s->values);
		gpul_code_jump_to(&c->code, JUMP, s->resume);
	}
	return true;
}

bool gpul_native_run(struct run_compiler *c, const struct insn *rows, uint32_t n)
{
	size_t to_partial;

	if (!gpul_code_reserve(&c->code, ROW_BYTES))
		return false;
	c->rows = rows;
	load_banks(&c->code);
	gpul_code_compare_all_ones(&c->code, RDI, offsetof(struct warp, mask));
	to_partial = gpul_code_jump(&c->code, JUMP_IF_NOT_ZERO);
	c->partial = false;
	if (!compile_rows(c, n) || !gpul_code_reserve(&c->code, ROW_BYTES))
		return false;
	gpul_code_jump_here(&c->code, to_partial);
	load_lane_masks(&c->code);
	c->partial = true;
	return compile_rows(c, n);
}
