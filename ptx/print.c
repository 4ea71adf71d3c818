/* print.c — prints a module as PTX text, in the order of its items. */
#include <stdlib.h>

#include "ptx/print_internal.h"

static void put_name(ptx_out *o, gpul_ptx_str name)
{
	ptx_put(o, gpul_ptx_name(o->m, name));
}

static void put_unified(ptx_out *o, const uint64_t unified[2])
{
	ptx_put_hex(o, ".unified(0x", unified[0], 16);
	ptx_put_hex(o, ", 0x", unified[1], 16);
	ptx_put(o, ")");
}

/* ---- initializers ------------------------------------------------------------------------ */

/* Print an address in an initializer, such as 0xFF00(generic(name)+8). */
static void put_init_symbol(ptx_out *o, const gpul_ptx_init *i)
{
	gpul_ptx_str name = i->ref_kind == GPUL_PTX_REF_FUNC ? o->m->funcs[i->index].name : o->m->vars[i->index].name;
	if (i->mask_byte) {
		ptx_put_hex(o, "0x", UINT64_C(0xFF) << 8 * (i->mask_byte - 1), 2 * i->mask_byte);
		ptx_put(o, "(");
	}
	ptx_put(o, i->generic ? "generic(" : "");
	put_name(o, name);
	ptx_put(o, i->generic ? ")" : "");
	ptx_put_offset(o, i->i);
	if (i->mask_byte)
		ptx_put(o, ")");
}

static void put_init(ptx_out *o, const gpul_ptx_init *i)
{
	switch (i->kind) {
	case GPUL_PTX_INIT_INT:
		ptx_put_int(o, i->i);
		break;
	case GPUL_PTX_INIT_F32:
		ptx_put_hex(o, "0f", (uint64_t)i->i, 8);
		break;
	case GPUL_PTX_INIT_F64:
		ptx_put_hex(o, "0d", (uint64_t)i->i, 16);
		break;
	case GPUL_PTX_INIT_SYMBOL:
		put_init_symbol(o, i);
		break;
	case GPUL_PTX_INIT_OPEN:
		ptx_put(o, "{");
		break;
	case GPUL_PTX_INIT_CLOSE:
		ptx_put(o, "}");
		break;
	case GPUL_PTX_INIT_PROPERTY:
		put_name(o, i->index);
		ptx_put(o, " = ");
		if (i->property_word)
			put_name(o, i->property_word);
		else
			ptx_put_int(o, i->i);
		break;
	}
}

static void put_initializer(ptx_out *o, const gpul_ptx_var *v)
{
	const gpul_ptx_init *rows = o->m->inits + v->first_init;

	ptx_put(o, " = ");
	for (uint32_t i = 0; i < v->n_inits; i++) {
		if (i && rows[i].kind != GPUL_PTX_INIT_CLOSE && rows[i - 1].kind != GPUL_PTX_INIT_OPEN)
			ptx_put(o, ", ");
		put_init(o, &rows[i]);
	}
}

/* ---- variables --------------------------------------------------------------------------- */

static void put_linkage(ptx_out *o, unsigned linkage)
{
	static const char *const texts[] = {
		[GPUL_PTX_STATIC] = "",     [GPUL_PTX_VISIBLE] = ".visible ", [GPUL_PTX_EXTERN] = ".extern ",
		[GPUL_PTX_WEAK] = ".weak ", [GPUL_PTX_COMMON] = ".common ",
	};

	ptx_put(o, texts[linkage]);
}

static void put_align(ptx_out *o, uint32_t align)
{
	if (!align)
		return;
	ptx_put(o, " .align ");
	ptx_put_unsigned(o, align);
}

static void put_vector(ptx_out *o, unsigned vector)
{
	if (vector == 1)
		return;
	ptx_put(o, " .v");
	ptx_put_unsigned(o, vector);
}

static void put_attributes(ptx_out *o, const gpul_ptx_var *v)
{
	if (!v->attributes)
		return;
	ptx_put(o, " .attribute(");
	if (v->attributes & GPUL_PTX_ATTRIBUTE_MANAGED)
		ptx_put(o, v->attributes & GPUL_PTX_ATTRIBUTE_UNIFIED ? ".managed, " : ".managed");
	if (v->attributes & GPUL_PTX_ATTRIBUTE_UNIFIED)
		put_unified(o, v->unified);
	ptx_put(o, ")");
}

static void put_ptr(ptx_out *o, const gpul_ptx_var *v)
{
	if (!v->ptr_space)
		return;
	ptx_put(o, " .ptr");
	if (v->ptr_space != GPUL_PTX_MOD_GENERIC) {
		ptx_put(o, " ");
		ptx_put_mod(o, v->ptr_space);
	}
	put_align(o, v->ptr_align);
}

/* Print what declarations of variables and parameters have in common: all except the linkage, the initializer and the ';'. */
static void put_declaration(ptx_out *o, const gpul_ptx_var *v)
{
	ptx_put_mod(o, v->space);
	put_attributes(o, v);
	put_align(o, v->align);
	put_vector(o, v->vector);
	ptx_put(o, " ");
	ptx_put_mod(o, v->type);
	put_ptr(o, v);
	ptx_put(o, " ");
	put_name(o, v->name);
	for (uint32_t i = 0; i < v->n_dims; i++) {
		uint64_t dim = o->m->dims[v->first_dim + i];

		ptx_put(o, "[");
		if (dim)
			ptx_put_unsigned(o, dim);
		ptx_put(o, "]");
	}
}

void ptx_put_var(ptx_out *o, const gpul_ptx_var *v)
{
	put_linkage(o, v->linkage);
	put_declaration(o, v);
	if (v->n_inits)
		put_initializer(o, v);
	ptx_put(o, ";\n");
}

static void put_regs(ptx_out *o, const gpul_ptx_regs *r)
{
	ptx_put(o, ".reg");
	put_vector(o, r->vector);
	ptx_put(o, " ");
	ptx_put_mod(o, r->type);
	ptx_put(o, " ");
	put_name(o, r->name);
	if (r->ranged) {
		ptx_put(o, "<");
		ptx_put_unsigned(o, r->count);
		ptx_put(o, ">");
	}
	ptx_put(o, ";\n");
}

/* ---- function heads ---------------------------------------------------------------------- */

static void put_params(ptx_out *o, const gpul_ptx_var *params, uint32_t n)
{
	ptx_put(o, "(");
	for (uint32_t i = 0; i < n; i++) {
		ptx_put(o, i ? ", " : "");
		put_declaration(o, &params[i]);
	}
	ptx_put(o, ")");
}

static void put_triple(ptx_out *o, const char *word, const int64_t triple[3])
{
	if (triple[0] < 0)
		return;
	ptx_put(o, word);
	for (int i = 0; i < 3; i++) {
		ptx_put(o, i ? ", " : " ");
		ptx_put_int(o, triple[i]);
	}
	ptx_put(o, "\n");
}

static void put_count(ptx_out *o, const char *word, int64_t count)
{
	if (count < 0)
		return;
	ptx_put(o, word);
	ptx_put(o, " ");
	ptx_put_int(o, count);
	ptx_put(o, "\n");
}

void ptx_put_pragma(ptx_out *o, uint32_t row)
{
	ptx_put(o, ".pragma \"");
	put_name(o, o->m->pragmas[row]);
	ptx_put(o, "\";\n");
}

static void put_tuning(ptx_out *o, const gpul_ptx_tuning *t)
{
	put_triple(o, ".maxntid", t->maxntid);
	put_triple(o, ".reqntid", t->reqntid);
	put_count(o, ".minnctapersm", t->minnctapersm);
	put_count(o, ".maxnctapersm", t->maxnctapersm);
	put_count(o, ".maxnreg", t->maxnreg);
	ptx_put(o, t->explicitcluster ? ".explicitcluster\n" : "");
	put_triple(o, ".reqnctapercluster", t->reqnctapercluster);
	put_count(o, ".maxclusterrank", t->maxclusterrank);
	ptx_put(o, t->blocksareclusters ? ".blocksareclusters\n" : "");
	ptx_put(o, t->noreturn ? ".noreturn\n" : "");
	put_count(o, ".abi_preserve", t->abi_preserve);
	put_count(o, ".abi_preserve_control", t->abi_preserve_control);
	for (uint32_t i = 0; i < t->n_pragmas; i++)
		ptx_put_pragma(o, t->first_pragma + i);
}

static void put_prototype(ptx_out *o, const gpul_ptx_func *f)
{
	ptx_put(o, " .callprototype ");
	if (f->n_rets) {
		put_params(o, f->rets, f->n_rets);
		ptx_put(o, " ");
	}
	put_name(o, f->name);
	ptx_put(o, " ");
	put_params(o, f->params, f->n_params);
	ptx_put(o, " ");
	put_tuning(o, &f->tuning);
	ptx_put(o, ";");
}

/* ---- bodies ------------------------------------------------------------------------------ */

static void put_label(ptx_out *o, const gpul_ptx_label *l)
{
	put_name(o, l->name);
	ptx_put(o, ":");
	if (l->kind == GPUL_PTX_LABEL_CALLPROTOTYPE)
		put_prototype(o, &o->m->funcs[l->prototype]);
	if (l->kind == GPUL_PTX_LABEL_BRANCHTARGETS || l->kind == GPUL_PTX_LABEL_CALLTARGETS) {
		ptx_put(o, l->kind == GPUL_PTX_LABEL_CALLTARGETS ? " .calltargets " : " .branchtargets ");
		for (uint32_t i = 0; i < l->n_targets; i++) {
			ptx_put(o, i ? ", " : "");
			ptx_put_operand(o, &o->f->operands[l->first_target + i]);
		}
		ptx_put(o, ";");
	}
	ptx_put(o, "\n");
}

static void put_loc(ptx_out *o, const gpul_ptx_loc *l)
{
	ptx_put(o, ".loc ");
	ptx_put_unsigned(o, l->file);
	ptx_put(o, " ");
	ptx_put_unsigned(o, l->line);
	ptx_put(o, " ");
	ptx_put_unsigned(o, l->column);
	if (l->function_label) {
		ptx_put(o, ", function_name ");
		put_name(o, l->function_label);
		ptx_put_offset(o, l->function_offset);
	}
	if (l->at_file || l->at_line || l->at_column) {
		ptx_put(o, ", inlined_at ");
		ptx_put_unsigned(o, l->at_file);
		ptx_put(o, " ");
		ptx_put_unsigned(o, l->at_line);
		ptx_put(o, " ");
		ptx_put_unsigned(o, l->at_column);
	}
	ptx_put(o, "\n");
}

static void put_body(ptx_out *o, const gpul_ptx_func *f)
{
	unsigned depth = 1;

	ptx_put(o, "{\n");
	for (uint32_t i = 0; i < f->n_items; i++) {
		uint32_t row = f->items[i].index;

		depth -= f->items[i].kind == GPUL_PTX_ITEM_CLOSE;
		for (unsigned k = 0; k < depth && f->items[i].kind != GPUL_PTX_ITEM_LABEL; k++)
			ptx_put(o, "\t");
		depth += f->items[i].kind == GPUL_PTX_ITEM_OPEN;
		switch (f->items[i].kind) {
		case GPUL_PTX_ITEM_INST:
			ptx_put_inst(o, &f->insts[row]);
			ptx_put(o, "\n");
			break;
		case GPUL_PTX_ITEM_LABEL:
			put_label(o, &f->labels[row]);
			break;
		case GPUL_PTX_ITEM_REGS:
			put_regs(o, &f->regs[row]);
			break;
		case GPUL_PTX_ITEM_VAR:
			ptx_put_var(o, &f->vars[row]);
			break;
		case GPUL_PTX_ITEM_LOC:
			put_loc(o, &o->m->locs[row]);
			break;
		case GPUL_PTX_ITEM_PRAGMA:
			ptx_put_pragma(o, row);
			break;
		default:
			ptx_put(o, f->items[i].kind == GPUL_PTX_ITEM_OPEN ? "{\n" : "}\n");
		}
	}
	ptx_put(o, "}\n");
}

/* ---- module level ------------------------------------------------------------------------ */

/* Print the head of a function: .visible .func (.param .b32 r) name(.param .b32 a) */
static void put_func_head(ptx_out *o, const gpul_ptx_func *f)
{
	o->f = f;
	ptx_put(o, "\n");
	put_linkage(o, f->linkage);
	ptx_put(o, f->kind == GPUL_PTX_FUNC_ENTRY ? ".entry " : ".func ");
	if (f->has_unified) {
		ptx_put(o, ".attribute(");
		put_unified(o, f->unified);
		ptx_put(o, ") ");
	}
	if (f->n_rets) {
		put_params(o, f->rets, f->n_rets);
		ptx_put(o, " ");
	}
	put_name(o, f->name);
	put_params(o, f->params, f->n_params);
	ptx_put(o, "\n");
}

void ptx_put_func(ptx_out *o, const gpul_ptx_func *f)
{
	put_func_head(o, f);
	put_tuning(o, &f->tuning);
	if (f->has_body)
		put_body(o, f);
	else
		ptx_put(o, ";\n");
}

/* Print a declaration of a function without its body.  The tuning directives of a kernel are omitted, because they belong to its
 * body; the tuning directives of a function are part of its calling convention. */
void ptx_put_func_declaration(ptx_out *o, const gpul_ptx_func *f)
{
	put_func_head(o, f);
	if (f->kind != GPUL_PTX_FUNC_ENTRY)
		put_tuning(o, &f->tuning);
	ptx_put(o, ";\n");
}

void ptx_put_file(ptx_out *o, const gpul_ptx_file *f, const char *path)
{
	ptx_put(o, ".file ");
	ptx_put_unsigned(o, f->number);
	ptx_put(o, " \"");
	ptx_put(o, path);
	ptx_put(o, "\"");
	if (f->timestamp || f->bytes) {
		ptx_put(o, ", ");
		ptx_put_unsigned(o, f->timestamp);
		ptx_put(o, ", ");
		ptx_put_unsigned(o, f->bytes);
	}
	ptx_put(o, "\n");
}

static void put_section(ptx_out *o, const gpul_ptx_section *s)
{
	ptx_put(o, ".section ");
	put_name(o, s->name);
	ptx_put(o, "\n{");
	put_name(o, s->text);
	ptx_put(o, "}\n");
}

void ptx_put_alias(ptx_out *o, const gpul_ptx_alias *a)
{
	ptx_put(o, ".alias ");
	put_name(o, o->m->funcs[a->alias].name);
	ptx_put(o, ", ");
	put_name(o, o->m->funcs[a->aliasee].name);
	ptx_put(o, ";\n");
}

static void put_item(ptx_out *o, const gpul_ptx_item *i)
{
	switch (i->kind) {
	case GPUL_PTX_ITEM_FUNC:
		ptx_put_func(o, &o->m->funcs[i->index]);
		break;
	case GPUL_PTX_ITEM_VAR:
		ptx_put_var(o, &o->m->vars[i->index]);
		break;
	case GPUL_PTX_ITEM_REGS:
		put_regs(o, &o->m->regs[i->index]);
		break;
	case GPUL_PTX_ITEM_FILE:
		ptx_put_file(o, &o->m->files[i->index], gpul_ptx_name(o->m, o->m->files[i->index].path));
		break;
	case GPUL_PTX_ITEM_SECTION:
		put_section(o, &o->m->sections[i->index]);
		break;
	case GPUL_PTX_ITEM_ALIAS:
		ptx_put_alias(o, &o->m->aliases[i->index]);
		break;
	default:
		ptx_put_pragma(o, i->index);
	}
}

void ptx_put_head(ptx_out *o, uint32_t major, uint32_t minor, const char *target, uint32_t address_size)
{
	ptx_put(o, ".version ");
	ptx_put_unsigned(o, major);
	ptx_put(o, ".");
	ptx_put_unsigned(o, minor);
	ptx_put(o, "\n.target ");
	ptx_put(o, target);
	ptx_put(o, "\n.address_size ");
	ptx_put_unsigned(o, address_size);
	ptx_put(o, "\n\n");
}

gpul_status gpul_ptx_print(const gpul_ptx_module *m, char **out_text, size_t *out_bytes, gpul_error *err)
{
	ptx_out o = { .m = m };

	ptx_put_head(&o, m->version_major, m->version_minor, gpul_ptx_name(m, m->target), m->address_size);
	for (uint32_t i = 0; i < m->n_items; i++)
		put_item(&o, &m->items[i]);
	ptx_put_bytes(&o, "", 1); /* append the NUL byte */
	if (o.failed) {
		free(o.text);
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory while printing PTX");
	}
	*out_text = o.text;
	if (out_bytes)
		*out_bytes = o.n - 1;
	return GPUL_OK;
}
