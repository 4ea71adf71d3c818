/* site.c — classifies each instruction once: finds what it accesses, and how it synchronises. */
#include "softcuda/exec/multimem_internal.h"
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site *sites;
static uint32_t n_sites;

bool race_by_letter;

static bool has(const gpul_ptx_inst *in, unsigned mod)
{
	return in && gpul_ptx_has_mod(in, mod);
}

/* ---- classes ------------------------------------------------------------------------------------------------------- */

/* Return the class of a cp.async or cp.async.bulk instruction that accesses no data: commit_group, wait_group, mbarrier.arrive. */
static enum site_class class_of_copy(const gpul_ptx_inst *in)
{
	if (has(in, GPUL_PTX_MOD_COMMIT_GROUP))
		return SITE_COMMIT;
	if (has(in, GPUL_PTX_MOD_WAIT_GROUP) || has(in, GPUL_PTX_MOD_WAIT_ALL))
		return has(in, GPUL_PTX_MOD_READ) ? SITE_WAIT_READ : SITE_WAIT;
	return has(in, GPUL_PTX_MOD_MBARRIER) && !has(in, GPUL_PTX_MOD_BULK) ? SITE_COPY_ARRIVE : SITE_OTHER;
}

static enum site_class class_of_fence(const gpul_ptx_inst *in)
{
	if (!has(in, GPUL_PTX_MOD_PROXY))
		return SITE_FENCE;
	return has(in, GPUL_PTX_MOD_ASYNC) && !has(in, GPUL_PTX_MOD_GLOBAL) ? SITE_PROXY_FENCE : SITE_OTHER;
}

static bool is_plain(const struct insn *i)
{
	return (i->op >= OP_LD_U8_16 && i->op <= OP_LDV) || (i->op >= OP_ST_8_16 && i->op <= OP_STV);
}

static enum site_class class_of(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	const unsigned space = i->flags & SPACE_MASK;

	if (!in)
		return SITE_OTHER;
	if (i->op == OP_FENCE || i->op == OP_FENCE_SC)
		return class_of_fence(in);
	if (i->op == OP_BAR_WARP)
		return SITE_WARP_SYNC;
	if (i->op == OP_BAR_ARRIVE)
		return SITE_ARRIVE;
	if (i->op == OP_CALL_BUILTIN && ((const struct call_site *)i->object)->builtin == BUILTIN_MALLOC)
		return SITE_MALLOC;
	if (in->opcode == GPUL_PTX_CP && class_of_copy(in) != SITE_OTHER)
		return class_of_copy(in);
	if (!gpul_insn_accesses_memory(i) || has(in, GPUL_PTX_MOD_CONST))
		return SITE_OTHER;
	if (is_plain(i))
		return space == SPACE_LOCAL || space == SPACE_PARAM ? SITE_OTHER : SITE_PLAIN;
	return SITE_ACCESS;
}

bool race_site_wanted(const struct func_code *code, const struct insn *i)
{
	return class_of(code, i) != SITE_OTHER;
}

/* ---- stores --------------------------------------------------------------------------------------------------------- */

static const uint8_t load_bytes[] = {
#define X(name, memory, reg) sizeof(memory),
	GPUL_LOAD_KINDS(X)
#undef X
};
enum store_kind {
#define X(name, memory, reg) STORES_##name,
	GPUL_STORE_KINDS(X)
#undef X
};

/* Write the value of a register in lane l to `to`, as a store of this kind writes it to memory.  Returns its size in bytes. */
static unsigned copy_element(const struct warp *w, unsigned kind, opref b, unsigned l, uint8_t *to)
{
	switch (kind) {
#define X(name, memory, reg) \
	case STORES_##name: { \
		const memory v = (memory)((const reg *)opptr(w, b))[l]; \
		memcpy(to, &v, sizeof v); \
		return sizeof v; \
	}
		GPUL_STORE_KINDS(X)
#undef X
	}
	return 0;
}

static void copy_multimem(const struct warp *w, const struct multimem *m, unsigned l, uint8_t *to)
{
	for (unsigned e = 0; e < m->n; e++)
		memcpy(to + e * m->memory_bytes, (const uint8_t *)opptr(w, m->data[e]) + l * m->reg_bytes, m->memory_bytes);
}

bool race_store_value(const struct warp_state *s, const struct insn *i, unsigned lane, uint8_t out[64])
{
	unsigned n = 0;

	if (i->op == OP_MULTIMEM_STORE) {
		copy_multimem(&s->w, i->object, lane, out);
		return true;
	}
	if (i->op < OP_ST_8_16 || i->op > OP_STO)
		return false;
	if (i->op < OP_STV)
		return copy_element(&s->w, i->op - OP_ST_8_16, i->b, lane, out);
	if (!i->n)
		return copy_element(&s->w, i->e, i->b, lane, out);
	for (unsigned e = 0; e < i->n; e++)
		n += copy_element(&s->w, i->e, OPLIST(&s->w, i->b)[e], lane, out + n);
	return true;
}

static uint32_t plain_bytes(const struct insn *i)
{
	static const uint8_t store_bytes[] = {
#define X(name, memory, reg) sizeof(memory),
		GPUL_STORE_KINDS(X)
#undef X
	};

	if (i->op == OP_LDV)
		return (uint32_t)load_bytes[i->e] * i->n;
	if (i->op == OP_STV)
		return (uint32_t)store_bytes[i->e] * i->n;
	return i->op < OP_LDV ? load_bytes[i->op - OP_LD_U8_16] : store_bytes[i->op - OP_ST_8_16];
}

/* ---- descriptions of instructions (sites) ----------------------------------------------------------------------------- */

static unsigned scope_of_fence(const gpul_ptx_inst *in)
{
	if (has(in, GPUL_PTX_MOD_CTA))
		return SCOPE_CTA;
	if (has(in, GPUL_PTX_MOD_SYS))
		return SCOPE_SYS;
	return has(in, GPUL_PTX_MOD_CLUSTER) ? SCOPE_CLUSTER : SCOPE_GPU;
}

/* Returns true if the load reads the initial value for a loop with atom.cas, as in the CUDA C++ Programming Guide, "Atomic
 * Functions": a CAS after the load compares with the loaded value, or has the same address. Because the CAS verifies this value, the
 * load counts as relaxed. */
static bool reads_a_guess(const struct func_code *code, const struct insn *load)
{
	enum { NEAR = 64 };
	const struct insn *end = code->insns + code->n_insns;

	for (const struct insn *i = load + 1; i < end && i < load + NEAR; i++)
		if (i->op >= OP_ATOM_CAS_16 && i->op <= OP_ATOM_CAS_64 && (i->b == load->d || (i->a == load->a && i->imm == load->imm)))
			return true;
	return false;
}

/* True if `mov r, LITERAL` is the only instruction that writes the register. */
static bool is_literal(const gpul_ptx_func *f, uint32_t reg)
{
	bool literal = false;

	for (const gpul_ptx_inst *in = f->insts; in < f->insts + f->n_insts; in++) {
		const gpul_ptx_operand *o = &f->operands[in->first_operand];

		if (!in->n_operands || o->kind != GPUL_PTX_OP_REG || o->index != reg || in->opcode == GPUL_PTX_ST)
			continue;
		if (literal || in->opcode != GPUL_PTX_MOV || o[1].kind != GPUL_PTX_OP_INT)
			return false;
		literal = true;
	}
	return literal;
}

/* True if the store writes a literal, as in st [a], 1, so that all threads write the same value. */
static bool writes_literal(const struct func_code *code, const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *o = in->n_operands == 2 ? &code->ptx->operands[in->first_operand + 1] : NULL;

	if (in->opcode != GPUL_PTX_ST || !o)
		return false;
	return o->kind == GPUL_PTX_OP_INT || (o->kind == GPUL_PTX_OP_REG && is_literal(code->ptx, o->index));
}

static void describe_wait(const struct func_code *code, const gpul_ptx_inst *in, struct site *site)
{
	site->all_groups = has(in, GPUL_PTX_MOD_WAIT_ALL);
	if (!site->all_groups && in->n_operands)
		site->n_groups = (uint32_t)code->ptx->operands[in->first_operand].value.i;
}

struct site *race_site_new(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	struct site *site = calloc(1, sizeof *site);

	if (!site)
		return NULL;
	site->code = code;
	site->insn = i;
	site->program = code->program->id;
	site->class = (uint8_t)class_of(code, i);
	site->space = i->flags & SPACE_MASK;
	site->scope = SCOPE_GPU;
	site->bulk = i->op == OP_CP_BULK || i->op == OP_CP_REDUCE;
	if (site->class == SITE_FENCE)
		site->scope = (uint8_t)(in->opcode == GPUL_PTX_BARRIER ? SCOPE_CLUSTER : scope_of_fence(in));
	if (site->class == SITE_PLAIN) {
		site->bytes = plain_bytes(i);
		site->how = i->op > OP_LDV           ? HOW_WRITES
			    : reads_a_guess(code, i) ? HOW_READS | HOW_STRONG | SCOPE_GPU << HOW_SCOPE_AT
						     : HOW_READS;
	}
	if (site->class == SITE_ACCESS) {
		site->is_volatile = !race_by_letter && has(in, GPUL_PTX_MOD_VOLATILE);
		site->writes_literal = site->is_volatile && writes_literal(code, in);
		site->polls = !race_by_letter && race_site_polls(code, in, site->space == SPACE_SHARED);
	}
	if (site->class == SITE_WAIT || site->class == SITE_WAIT_READ)
		describe_wait(code, in, site);
	pthread_mutex_lock(&lock);
	site->number = n_sites++;
	site->next = sites;
	sites = site;
	pthread_mutex_unlock(&lock);
	return site;
}

/* Write the position of an instruction in the source.  The caller holds the lock. */
static void write_place(const struct site *site, char *buf, size_t bytes)
{
	if (site->code)
		gpul_insn_place(site->code, site->insn, NULL, buf, bytes);
	else
		snprintf(buf, bytes, "%s", site->place ? site->place : "?");
}

void race_site_place(const struct site *site, char *buf, size_t bytes)
{
	pthread_mutex_lock(&lock);
	write_place(site, buf, bytes);
	pthread_mutex_unlock(&lock);
}

/* Return the source line of an instruction.  The caller holds the lock. */
static const char *line_of(struct site *site)
{
	char place[512], *source;

	if (site->line || !site->code)
		return site->line;
	gpul_insn_place(site->code, site->insn, NULL, place, sizeof place);
	source = strstr(place, " ("); /* the text in parentheses, after the position in the PTX, is the position in CUDA C++ */
	if (!source)
		return site->line = strdup(place);
	source[strlen(source) - 1] = '\0';
	return site->line = strdup(source + strlen(" ("));
}

const char *race_site_line(const struct site *site)
{
	const char *line;

	pthread_mutex_lock(&lock);
	line = line_of((struct site *)(uintptr_t)site);
	pthread_mutex_unlock(&lock);
	return line ? line : "?";
}

void race_sites_end(const struct gpul_exec_program *p)
{
	char place[512];

	pthread_mutex_lock(&lock);
	for (struct site *site = sites; site; site = site->next) {
		if (!site->code || site->code->program != p)
			continue;
		write_place(site, place, sizeof place);
		site->place = strdup(place);
		(void)line_of(site);
		site->code = NULL;
		site->insn = NULL;
	}
	pthread_mutex_unlock(&lock);
}
