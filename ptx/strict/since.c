/* since.c — checks that .version and .target are new enough for each modifier and special register, whatever the instruction. */
#include "ptx/strict/strict_internal.h"

#include <string.h>

/* ops: opcodes, separated by blanks; NULL: all. mods: groups of modifiers, separated by blanks; the entry applies to instructions
 * that have a modifier of every group. ptx, sm: the oldest .version and .target. */
static const struct since {
	const char *ops, *mods;
	unsigned char ptx, sm;
} modifiers[] = {
	{ NULL, "cluster|shared::cluster|multicast::cluster", 78, 90 },
	{ "ld st atom red isspacep cvta mbarrier fence ldmatrix stmatrix", "shared::cta", 78, 0 },
	{ "cp", "mbarrier shared::cta", 78, 80 },
	{ NULL, "param::entry|param::func", 83, 0 },
	{ NULL, "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate", 74, 70 },
	{ "ld st", "L2::64B|L2::128B", 74, 75 },
	{ "ld st", "weak", 60, 70 },
	{ NULL, "L2::256B", 74, 80 },
	{ NULL, "L2::cache_hint", 74, 80 },
	{ "ld st atom red fence", "relaxed|acquire|release|acq_rel", 60, 70 },
	{ "atom red", "cta|gpu|sys", 50, 60 },
	{ "atom red", "add f64", 50, 60 },
	{ "atom red", "add f32", 20, 20 },
	{ "atom red", "min|max u64|s64", 31, 32 },
	{ "atom red", "and|or|xor b64", 31, 32 },
	{ "atom red", "add noftz f16", 63, 70 },
	{ "atom red", "noftz bf16|bf16x2", 78, 90 },
	{ "isspacep cvta", "const", 31, 20 },
	{ "isspacep cvta", "param|param::entry", 77, 70 },
	{ "bar barrier", "cta", 78, 0 },
	{ "cp", "L2::64B|L2::128B|L2::256B", 74, 80 },
	{ "cp", "bulk global shared::cta mbarrier::complete_tx::bytes", 86, 90 },
	{ "wmma", "and popc", 71, 80 },
	{ "wmma", "aligned", 63, 70 },
	{ "wgmma", "sp", 82, 90 },
	{ "wgmma", "s8 u8", 84, 90 },
	{ "tex", "level|grad", 31, 20 },
	{ "tex", "cube|acube", 30, 20 },
	{ "tex", "grad cube|acube", 43, 20 },
	{ "tex", "2dms|a2dms", 32, 30 },
	{ "tld4", "cube|acube|a2d", 43, 30 },
	{ "txq", "level", 43, 30 },
	{ "txq suq", "array_size|num_mipmap_levels", 41, 20 },
	{ "txq", "num_samples", 41, 30 },
	{ "suq", "memory_layout", 42, 20 },
	{ "suld sust sured", "a1d|a2d|3d", 30, 20 },
	{ "mma", "f16 e4m3|e5m2", 87, 89 },
	{ "tex", "f16|f16x2", 42, 53 },
	{ "sured", "min|max u64|s64", 81, 50 },
	{ "mbarrier", "relaxed", 80, 90 },
	{ "mbarrier", "arrive|arrive_drop|test_wait|try_wait relaxed", 86, 90 },
	{ "mbarrier", "acquire|release", 80, 80 },
	{ "mbarrier", "test_wait parity", 71, 80 },
	{ "mma", "and popc", 71, 80 },
	{ "mma", "sp", 71, 80 },
	{ "mma", "sp::ordered_metadata", 85, 80 },
	{ "mov", "b128", 83, 70 },
	{ "ldmatrix stmatrix movmatrix wgmma mma wmma", "f64 m16n8k4|m16n8k8|m16n8k16", 78, 90 },
};

/* Names of special registers, or prefixes of their names. */
static const struct {
	const char *name;
	unsigned char ptx, sm;
} specials[] = {
	{ "clusterid", 78, 90 },
	{ "nclusterid", 78, 90 },
	{ "cluster_", 78, 90 },
	{ "is_explicit_cluster", 78, 90 },
	{ "aggr_smem_size", 81, 90 },
	{ "total_smem_size", 41, 20 },
	{ "dynamic_smem_size", 41, 20 },
	{ "globaltimer", 31, 30 },
	{ "reserved_smem_offset_", 76, 80 },
	{ "current_graph_exec", 80, 50 },
	{ "pm0_64", 40, 50 },
	{ "pm1_64", 40, 50 },
	{ "pm2_64", 40, 50 },
	{ "pm3_64", 40, 50 },
	{ "pm4_64", 40, 50 },
	{ "pm5_64", 40, 50 },
	{ "pm6_64", 40, 50 },
	{ "pm7_64", 40, 50 },
	{ "pm4", 30, 20 },
	{ "pm5", 30, 20 },
	{ "pm6", 30, 20 },
	{ "pm7", 30, 20 },
	{ "clock_hi", 50, 20 },
	{ "clock64", 20, 20 },
	{ "lanemask_", 20, 20 },
};

/* True for a 64-bit special register, which must be read with mov.u64. */
static bool is_wide(const char *name)
{
	return !strcmp(name, "clock64") || !strcmp(name, "globaltimer") || !strcmp(name, "gridid") || !strcmp(name, "current_graph_exec") ||
	       strstr(name, "_64");
}

static bool has_one_of(const struct strict *s, const gpul_ptx_inst *in, const char *names, size_t n_bytes)
{
	for (unsigned i = 0; i < in->n_mods; i++) {
		const char *text = gpul_ptx_mod_text(s->m, in->mods[i]);
		size_t n = strlen(text);

		for (const char *at = names; at + n <= names + n_bytes; at++)
			if ((at == names || at[-1] == '|') && !memcmp(at, text, n) && (at + n == names + n_bytes || at[n] == '|'))
				return true;
	}
	return false;
}

static bool has_opcode(const char *ops, const char *op)
{
	size_t n = strlen(op);
	const char *at = ops;

	while (at && (at = strstr(at, op)) && !((at == ops || at[-1] == ' ') && (!at[n] || at[n] == ' ')))
		at++;
	return !ops || at;
}

static gpul_status check_since(struct strict *s, const gpul_ptx_inst *in, const char *what, unsigned ptx, unsigned sm)
{
	if (s->sm < sm)
		return strict_fail_inst(s, in, "%s needs .target sm_%u or higher; this module has sm_%u", what, sm, s->sm);
	if (s->version < ptx)
		return strict_fail_inst(s, in, "%s needs .version %u.%u or higher; this module has %u.%u", what, ptx / 10, ptx % 10,
					s->version / 10, s->version % 10);
	return GPUL_OK;
}

gpul_status strict_check_since(struct strict *s, const gpul_ptx_inst *in)
{
	gpul_status st = GPUL_OK;
	char name[128];

	for (size_t i = 0; !st && i < sizeof modifiers / sizeof *modifiers; i++) {
		const struct since *row = &modifiers[i];
		bool all = has_opcode(row->ops, gpul_ptx_opcode_text(in->opcode));

		if (s->version >= row->ptx && s->sm >= row->sm)
			continue;
		for (const char *at = row->mods; all && *at; at += strspn(at, " ")) {
			size_t n_bytes = strcspn(at, " ");

			all = has_one_of(s, in, at, n_bytes);
			at += n_bytes;
		}
		if (all)
			st = check_since(s, in, gpul_ptx_inst_text(s->m, in, name, sizeof name), row->ptx, row->sm);
	}
	return st;
}

static gpul_status check_special(struct strict *s, const gpul_ptx_inst *in, const char *name)
{
	unsigned type = strict_type(s, in, 0);
	char what[64] = "%";

	strncat(what, name, sizeof what - 2);
	if (in->opcode != GPUL_PTX_MOV && in->opcode != GPUL_PTX_CVT)
		return strict_fail_inst(s, in, "%s cannot read the special register %s: only mov and cvt can",
					gpul_ptx_opcode_text(in->opcode), what);
	if (in->opcode == GPUL_PTX_CVT && (type == GPUL_PTX_MOD_F16 || type == GPUL_PTX_MOD_F32 || type == GPUL_PTX_MOD_F64))
		return strict_fail_inst(s, in, "cvt.%s cannot read the special register %s: only conversions of integers can",
					gpul_ptx_mod_text(s->m, type), what);
	if (in->opcode == GPUL_PTX_MOV &&
	    (type == GPUL_PTX_MOD_F32 || type == GPUL_PTX_MOD_F64 || (gpul_ptx_type_bytes(type) == 8 && !is_wide(name))))
		return strict_fail_inst(s, in, "mov.%s cannot read the special register %s, which has the type .u32",
					gpul_ptx_mod_text(s->m, type), what);
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
		if (!strncmp(name, specials[i].name, strlen(specials[i].name)))
			return check_since(s, in, what, specials[i].ptx, specials[i].sm);
	return GPUL_OK;
}

gpul_status strict_check_specials(struct strict *s, const gpul_ptx_inst *in)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < in->n_operands; i++) {
		const gpul_ptx_operand *o = &s->f->operands[in->first_operand + i];

		if (o->kind == GPUL_PTX_OP_SPECIAL)
			st = check_special(s, in, gpul_ptx_special_text(o->index));
	}
	return st;
}
