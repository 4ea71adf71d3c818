/* trace_code.c — collects static information about an instruction: its text, its source lines, the registers that it writes. */
#include "softcuda/tools/trace/trace_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- registers ---------------------------------------------------------------------------------------------------- */

/* Return the letter that selects how values of a type are printed; 0 if the type does not determine it. */
static char type_letter(unsigned mod)
{
	switch (mod) {
	case GPUL_PTX_MOD_F32:
	case GPUL_PTX_MOD_F64:
		return 'f';
	case GPUL_PTX_MOD_S8:
	case GPUL_PTX_MOD_S16:
	case GPUL_PTX_MOD_S32:
	case GPUL_PTX_MOD_S64:
		return 's';
	case GPUL_PTX_MOD_U8:
	case GPUL_PTX_MOD_U16:
	case GPUL_PTX_MOD_U32:
	case GPUL_PTX_MOD_U64:
		return 'u';
	case GPUL_PTX_MOD_PRED:
		return 'p';
	default:
		return mod >= GPUL_PTX_MOD_B8 && mod < GPUL_PTX_MOD_PRED ? 'b' : 0;
	}
}

/* Return the k-th type among the modifiers; 0 if there is none. */
static unsigned nth_type(const gpul_ptx_inst *in, unsigned k)
{
	for (unsigned m = 0; m < in->n_mods; m++)
		if (type_letter(in->mods[m]) && k-- == 0)
			return in->mods[m];
	return 0;
}

/* Return the type of operand k.  In cvt and other instructions with two types, the second is the type of the sources. */
static unsigned operand_type(const gpul_ptx_inst *in, unsigned k)
{
	const unsigned second = nth_type(in, 1);

	return k && second ? second : nth_type(in, 0);
}

/* Guess the types of registers from the instructions that use them, because nvcc declares all 32-bit registers as .b32. */
static void guess_types(const gpul_ptx_func *f, struct trace_code *c)
{
	for (uint32_t k = 0; k < f->n_insts; k++) {
		const gpul_ptx_inst *in = &f->insts[k];

		for (unsigned n = 0; n < in->n_operands; n++) {
			const gpul_ptx_operand *o = &f->operands[in->first_operand + n];
			const unsigned type = operand_type(in, n);
			const char letter = type_letter(type);
			struct trace_reg *r = o->kind == GPUL_PTX_OP_REG ? &c->regs[o->index] : NULL;

			if (r && r->type == 'b' && letter && letter != 'p' && gpul_ptx_type_bytes(type) == r->bytes)
				r->type = letter;
		}
	}
}

static bool name_registers(const gpul_ptx_module *m, const gpul_ptx_func *f, struct trace_code *c)
{
	for (uint32_t k = 0; k < f->n_regs; k++) {
		const gpul_ptx_regs *row = &f->regs[k];
		const unsigned size = gpul_ptx_type_bytes(row->type);

		for (uint32_t n = 0; n < row->count * row->vector; n++) {
			struct trace_reg *r = &c->regs[row->first + n];
			char number[16] = "", element[3] = "";

			if (row->ranged)
				snprintf(number, sizeof number, "%u", n / row->vector);
			if (row->vector > 1)
				snprintf(element, sizeof element, ".%c", "xyzw"[n % row->vector]);
			r->bytes = (uint8_t)(size == 1 ? 2 : size);
			r->type = type_letter(row->type);
			if (asprintf(&r->name, "%s%s%s", gpul_ptx_name(m, row->name), number, element) < 0)
				return r->name = NULL, false;
			r->label = calloc(1, COPIED_BYTES);
			if (!r->label)
				return false;
			r->n_label = (unsigned)sprintf(r->label, "  %.50s = ", r->name);
		}
	}
	return true;
}

/* ---- instructions ------------------------------------------------------------------------------------------------- */

/* True if the first operand is a source, not a result. */
static bool has_no_result(const gpul_ptx_inst *in)
{
	switch (in->opcode) {
	case GPUL_PTX_BAR:
	case GPUL_PTX_BARRIER:
		return !gpul_ptx_has_mod(in, GPUL_PTX_MOD_RED);
	case GPUL_PTX_ST:
	case GPUL_PTX_RED:
	case GPUL_PTX_BRA:
	case GPUL_PTX_BRX:
	case GPUL_PTX_CALL:
	case GPUL_PTX_RET:
	case GPUL_PTX_EXIT:
	case GPUL_PTX_NANOSLEEP:
	case GPUL_PTX_STACKRESTORE:
	case GPUL_PTX_SETMAXNREG:
	case GPUL_PTX_PREFETCH:
	case GPUL_PTX_PREFETCHU:
	case GPUL_PTX_CP:
	case GPUL_PTX_FENCE:
	case GPUL_PTX_MEMBAR:
	case GPUL_PTX_TRAP:
	case GPUL_PTX_PMEVENT:
	case GPUL_PTX_DISCARD:
		return true;
	default:
		return false;
	}
}

static void add_dest(const gpul_ptx_func *f, const gpul_ptx_inst *in, const struct trace_code *c, const gpul_ptx_operand *o,
		     struct trace_row *row)
{
	if (o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR) {
		for (uint32_t k = 0; k < o->n_children; k++)
			add_dest(f, in, c, &f->operands[o->first_child + k], row);
		return;
	}
	if (o->kind != GPUL_PTX_OP_REG)
		return;
	for (unsigned k = 0; k < (o->selector ? 1 : gpul_ptx_reg_row(f, o->index)->vector) && row->n_dests < TRACE_MAX_DESTS; k++) {
		const struct trace_reg *r = &c->regs[o->index + k];
		const unsigned type = nth_type(in, 0);

		/* Print a register as a float even after a load of type b32, if other instructions use the register as a float. */
		row->type[row->n_dests] = r->bytes && type_letter(type) && type_letter(type) != 'b' && type_letter(type) != 'p' &&
							  gpul_ptx_type_bytes(type) == r->bytes
						  ? type_letter(type)
						  : r->type;
		row->dest[row->n_dests++] = o->index + k;
	}
}

/* Set row->name to the opcode with its modifiers, without guard and operands. */
static void set_name(struct trace_row *row)
{
	const char *at = row->text;
	size_t n;

	if (*at == '@' && strchr(at, ' '))
		at = strchr(at, ' ') + 1;
	n = strcspn(at, " ;");
	snprintf(row->name, sizeof row->name, "%.*s", (int)n, at);
}

static int find_file(struct trace_codes *codes, const char *path)
{
	struct trace_file *grown;

	for (unsigned k = 0; k < codes->n_files; k++)
		if (!strcmp(codes->files[k].path, path))
			return (int)k;
	grown = realloc(codes->files, (codes->n_files + 1) * sizeof *grown);
	if (!grown)
		return TRACE_NO_FILE;
	codes->files = grown;
	grown[codes->n_files].path = strdup(path);
	return grown[codes->n_files].path ? (int)codes->n_files++ : TRACE_NO_FILE;
}

static bool describe_row(struct trace_codes *codes, struct trace_code *c, const struct func_code *code, const struct insn *i)
{
	struct trace_row *row = &c->rows[i->src];
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	gpul_exec_fault position = { 0 };
	char place[200], text[1024];

	gpul_insn_place(code, i, &position, place, sizeof place);
	gpul_ptx_print_inst(code->program->module, code->ptx, in, text, sizeof text);
	row->text = strdup(text);
	row->place = strdup(place);
	row->ptx_line = in->line;
	row->line = position.source_line;
	row->file = *position.source ? find_file(codes, position.source) : TRACE_NO_FILE;
	row->opcode = in->opcode;
	row->n_head = (unsigned)(strlen(place) + strlen(text) + 3);
	row->head = calloc(1, row->n_head + COPIED_BYTES);
	if (!row->text || !row->place || !row->head)
		return false;
	sprintf(row->head, " %s: %s", place, text);
	set_name(row);
	if (in->n_operands && !has_no_result(in))
		add_dest(code->ptx, in, c, &code->ptx->operands[in->first_operand], row);
	for (unsigned k = 0; k < row->n_dests; k++) {
		row->offset[k] = code->reg_offset[row->dest[k]];
		if (row->offset[k] == UINT32_MAX)
			row->n_dests = 0;
	}
	return true;
}

static bool describe(struct trace_codes *codes, struct trace_code *c, const struct func_code *code)
{
	const gpul_ptx_module *m = code->program->module;
	const gpul_ptx_func *f = code->ptx;

	c->rows = calloc(f->n_insts + 1, sizeof *c->rows);
	c->regs = calloc(f->n_flat_regs + 1, sizeof *c->regs);
	c->labels = calloc(f->n_labels + 1, sizeof *c->labels);
	c->function = strdup(gpul_ptx_name(m, f->name));
	c->image = strdup(code->program->file_name);
	if (!c->rows || !c->regs || !c->labels || !c->function || !c->image || !name_registers(m, f, c))
		return false;
	c->n_rows = f->n_insts;
	c->n_regs = f->n_flat_regs;
	guess_types(f, c);
	for (uint32_t k = 0; k < code->n_insns; k++) {
		const struct insn *i = &code->insns[k];

		if (!gpul_insn_ptx(code, i) || !gpul_insn_ends(code, i))
			continue;
		if (!describe_row(codes, c, code, i))
			return false;
		c->rows[i->src].insn = i;
		c->rows[i->src].single = gpul_insn_begins(code, i);
	}
	for (uint32_t k = 0; k < f->n_labels; k++) {
		if (f->labels[k].kind != GPUL_PTX_LABEL_CODE)
			continue;
		c->labels[c->n_labels].row = f->labels[k].inst;
		c->labels[c->n_labels].name = strdup(gpul_ptx_name(m, f->labels[k].name));
		if (!c->labels[c->n_labels++].name)
			return false;
	}
	return true;
}

static void destroy(struct trace_code *c)
{
	for (uint32_t k = 0; c->rows && k < c->n_rows; k++) {
		free(c->rows[k].text);
		free(c->rows[k].place);
		free(c->rows[k].head);
		free(c->rows[k].json);
	}
	for (uint32_t k = 0; c->regs && k < c->n_regs; k++) {
		free(c->regs[k].name);
		free(c->regs[k].label);
	}
	for (uint32_t k = 0; c->labels && k < c->n_labels; k++)
		free(c->labels[k].name);
	free(c->rows);
	free(c->regs);
	free(c->labels);
	free((char *)(uintptr_t)c->function);
	free((char *)(uintptr_t)c->image);
	free(c);
}

struct trace_code *gpul_trace_code(struct trace_codes *codes, const struct func_code *code)
{
	struct trace_code *c;

	pthread_mutex_lock(&lock);
	for (c = codes->first; c && c->key != code; c = c->next)
		continue;
	if (!c && (c = calloc(1, sizeof *c))) {
		c->key = code;
		if (describe(codes, c, code)) {
			c->next = codes->first;
			codes->first = c;
		} else {
			destroy(c);
			c = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	return c;
}

void gpul_trace_code_forget(struct trace_codes *codes, const gpul_exec_program *p)
{
	pthread_mutex_lock(&lock);
	for (struct trace_code **at = &codes->first, *c; (c = *at);) {
		if (!c->key || c->key->program != p) {
			at = &c->next;
			continue;
		}
		c->key = NULL;
		if (c->used) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		destroy(c);
	}
	pthread_mutex_unlock(&lock);
}
