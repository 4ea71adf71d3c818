/* vocabulary.c — maps the text of a PTX keyword to its number, by hash tables, and the number to the text. */
#include "ptx/vocabulary.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "ptx/module.h"
#include "ptx/vocabulary_internal.h"

#define X(id, text) text,
static const char *const opcode_texts[] = { GPUL_PTX_OPCODES(X) };
static const char *const mod_texts[] = { "", GPUL_PTX_MODS(X) };
static const char *const special_texts[] = { GPUL_PTX_SPECIALS(X) };
#undef X

enum { N_SLOTS = 1024 };
_Static_assert(GPUL_PTX_N_MODS < N_SLOTS / 2, "the hash table must not be full, or a search would not end");

struct table {
	const char *const *texts;
	int16_t slots[N_SLOTS]; /* index in texts plus 1; 0: empty */
};

static struct table opcodes = { .texts = opcode_texts };
static struct table mods = { .texts = mod_texts };
static struct table specials = { .texts = special_texts };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t hash_of(const char *text, uint32_t bytes)
{
	uint32_t h = 2166136261u; /* the hash function FNV-1a */

	for (uint32_t i = 0; i < bytes; i++)
		h = (h ^ (unsigned char)text[i]) * 16777619u;
	return h ^ h >> 15;
}

static void fill_table(struct table *t, int first, int n)
{
	for (int i = first; i < n; i++) {
		uint32_t h = hash_of(t->texts[i], (uint32_t)strlen(t->texts[i]));

		while (t->slots[h % N_SLOTS])
			h++;
		t->slots[h % N_SLOTS] = (int16_t)(i + 1);
	}
}

static void fill_tables(void)
{
	fill_table(&opcodes, 0, GPUL_PTX_N_OPCODES);
	fill_table(&mods, 1, GPUL_PTX_N_MODS);
	fill_table(&specials, 0, GPUL_PTX_N_SPECIALS);
}

void ptx_vocabulary_init(void)
{
	pthread_once(&once, fill_tables);
}

static int find_word(const struct table *t, const char *text, uint32_t bytes)
{
	for (uint32_t h = hash_of(text, bytes);; h++) {
		int row = t->slots[h % N_SLOTS] - 1;

		if (row < 0 || (!strncmp(t->texts[row], text, bytes) && !t->texts[row][bytes]))
			return row;
	}
}

int ptx_find_opcode(const char *text, uint32_t bytes)
{
	return find_word(&opcodes, text, bytes);
}

int ptx_find_mod(const char *text, uint32_t bytes)
{
	return find_word(&mods, text, bytes);
}

int ptx_find_special(const char *text, uint32_t bytes)
{
	return find_word(&specials, text, bytes);
}

const char *ptx_near_opcode(const char *text, uint32_t bytes)
{
	char wanted[24]; /* large enough for each opcode, and for misspelt ones */

	if (bytes >= sizeof wanted)
		return NULL;
	memcpy(wanted, text, bytes);
	wanted[bytes] = 0;
	return gpul_text_nearest(wanted, opcode_texts, GPUL_PTX_N_OPCODES);
}

const char *gpul_ptx_opcode_text(gpul_ptx_opcode op)
{
	return opcode_texts[op];
}

const char *gpul_ptx_special_text(gpul_ptx_special s)
{
	return special_texts[s];
}

const char *gpul_ptx_mod_text(const gpul_ptx_module *m, unsigned mod)
{
	if (mod >= GPUL_PTX_MOD_EXTRA)
		return m->extra_mods[mod - GPUL_PTX_MOD_EXTRA];
	return mod_texts[mod];
}

const char *gpul_ptx_inst_text(const gpul_ptx_module *m, const gpul_ptx_inst *in, char *buf, size_t bytes)
{
	size_t used = (size_t)snprintf(buf, bytes, "%s", gpul_ptx_opcode_text((gpul_ptx_opcode)in->opcode));

	for (unsigned k = 0; k < in->n_mods && used < bytes; k++)
		used += (size_t)snprintf(buf + used, bytes - used, ".%s", gpul_ptx_mod_text(m, in->mods[k]));
	return buf;
}

unsigned gpul_ptx_type_bytes(unsigned mod)
{
	static const unsigned char bytes[GPUL_PTX_N_MODS] = {
		[GPUL_PTX_MOD_B8] = 1,     [GPUL_PTX_MOD_U8] = 1,     [GPUL_PTX_MOD_S8] = 1,         [GPUL_PTX_MOD_E4M3] = 1,
		[GPUL_PTX_MOD_E5M2] = 1,   [GPUL_PTX_MOD_B16] = 2,    [GPUL_PTX_MOD_U16] = 2,        [GPUL_PTX_MOD_S16] = 2,
		[GPUL_PTX_MOD_F16] = 2,    [GPUL_PTX_MOD_BF16] = 2,   [GPUL_PTX_MOD_E4M3X2] = 2,     [GPUL_PTX_MOD_E5M2X2] = 2,
		[GPUL_PTX_MOD_E2M3X2] = 2, [GPUL_PTX_MOD_E3M2X2] = 2, [GPUL_PTX_MOD_UE8M0X2] = 2,    [GPUL_PTX_MOD_E2M1X2] = 1,
		[GPUL_PTX_MOD_E2M1X4] = 2, [GPUL_PTX_MOD_E4M3X4] = 4, [GPUL_PTX_MOD_E5M2X4] = 4,     [GPUL_PTX_MOD_E2M3X4] = 4,
		[GPUL_PTX_MOD_E3M2X4] = 4, [GPUL_PTX_MOD_U8X4] = 4,   [GPUL_PTX_MOD_S8X4] = 4,       [GPUL_PTX_MOD_U16X2] = 4,
		[GPUL_PTX_MOD_S16X2] = 4,  [GPUL_PTX_MOD_B32] = 4,    [GPUL_PTX_MOD_U32] = 4,        [GPUL_PTX_MOD_S32] = 4,
		[GPUL_PTX_MOD_F32] = 4,    [GPUL_PTX_MOD_TF32] = 4,   [GPUL_PTX_MOD_F16X2] = 4,      [GPUL_PTX_MOD_BF16X2] = 4,
		[GPUL_PTX_MOD_B64] = 8,    [GPUL_PTX_MOD_U64] = 8,    [GPUL_PTX_MOD_S64] = 8,        [GPUL_PTX_MOD_F64] = 8,
		[GPUL_PTX_MOD_F32X2] = 8,  [GPUL_PTX_MOD_TEXREF] = 8, [GPUL_PTX_MOD_SAMPLERREF] = 8, [GPUL_PTX_MOD_SURFREF] = 8,
		[GPUL_PTX_MOD_B128] = 16,
	};

	return mod < GPUL_PTX_N_MODS ? bytes[mod] : 0;
}

/* For each root (the first word of an opcode): the smallest and largest number of operands that it may have.  0 and 0: the
 * instruction has no operands, or their number depends on its modifiers; has_variable_operands() distinguishes the two cases. */
static const struct {
	uint8_t least, most;
} operand_limits[GPUL_PTX_N_OPCODES] = {
	[GPUL_PTX_ABS] = { 2, 2 },       [GPUL_PTX_ACTIVEMASK] = { 1, 1 }, [GPUL_PTX_ADD] = { 3, 3 },      [GPUL_PTX_ADDC] = { 3, 3 },
	[GPUL_PTX_AND] = { 3, 3 },       [GPUL_PTX_BFE] = { 4, 4 },        [GPUL_PTX_BFI] = { 5, 5 },      [GPUL_PTX_BFIND] = { 2, 2 },
	[GPUL_PTX_BMSK] = { 3, 3 },      [GPUL_PTX_BRA] = { 1, 1 },        [GPUL_PTX_BREV] = { 2, 2 },     [GPUL_PTX_BRKPT] = { 0, 0 },
	[GPUL_PTX_BRX] = { 2, 2 },       [GPUL_PTX_CALL] = { 1, 4 },       [GPUL_PTX_CLZ] = { 2, 2 },      [GPUL_PTX_CNOT] = { 2, 2 },
	[GPUL_PTX_COPYSIGN] = { 3, 3 },  [GPUL_PTX_COS] = { 2, 2 },        [GPUL_PTX_CVTA] = { 2, 2 },     [GPUL_PTX_DIV] = { 3, 3 },
	[GPUL_PTX_DP2A] = { 4, 4 },      [GPUL_PTX_DP4A] = { 4, 4 },       [GPUL_PTX_EX2] = { 2, 2 },      [GPUL_PTX_EXIT] = { 0, 0 },
	[GPUL_PTX_FMA] = { 4, 4 },       [GPUL_PTX_FNS] = { 4, 4 },        [GPUL_PTX_ISSPACEP] = { 2, 2 }, [GPUL_PTX_LD] = { 2, 3 },
	[GPUL_PTX_LG2] = { 2, 2 },       [GPUL_PTX_LOP3] = { 5, 6 },       [GPUL_PTX_MAD] = { 4, 4 },      [GPUL_PTX_MAD24] = { 4, 4 },
	[GPUL_PTX_MADC] = { 4, 4 },      [GPUL_PTX_MATCH] = { 3, 3 },      [GPUL_PTX_MAX] = { 3, 4 },      [GPUL_PTX_MEMBAR] = { 0, 0 },
	[GPUL_PTX_MIN] = { 3, 4 },       [GPUL_PTX_MOV] = { 2, 2 },        [GPUL_PTX_MUL] = { 3, 3 },      [GPUL_PTX_MUL24] = { 3, 3 },
	[GPUL_PTX_NANOSLEEP] = { 1, 1 }, [GPUL_PTX_NEG] = { 2, 2 },        [GPUL_PTX_NOT] = { 2, 2 },      [GPUL_PTX_OR] = { 3, 3 },
	[GPUL_PTX_POPC] = { 2, 2 },      [GPUL_PTX_PRMT] = { 4, 4 },       [GPUL_PTX_RCP] = { 2, 2 },      [GPUL_PTX_REDUX] = { 3, 3 },
	[GPUL_PTX_REM] = { 3, 3 },       [GPUL_PTX_RET] = { 0, 0 },        [GPUL_PTX_RSQRT] = { 2, 2 },    [GPUL_PTX_SAD] = { 4, 4 },
	[GPUL_PTX_SELP] = { 4, 4 },      [GPUL_PTX_SET] = { 3, 4 },        [GPUL_PTX_SETP] = { 3, 4 },     [GPUL_PTX_SHF] = { 4, 4 },
	[GPUL_PTX_SHFL] = { 4, 5 },      [GPUL_PTX_SHL] = { 3, 3 },        [GPUL_PTX_SHR] = { 3, 3 },      [GPUL_PTX_SIN] = { 2, 2 },
	[GPUL_PTX_SLCT] = { 4, 4 },      [GPUL_PTX_SQRT] = { 2, 2 },       [GPUL_PTX_SUB] = { 3, 3 },      [GPUL_PTX_SUBC] = { 3, 3 },
	[GPUL_PTX_SZEXT] = { 3, 3 },     [GPUL_PTX_TANH] = { 2, 2 },       [GPUL_PTX_TESTP] = { 2, 2 },    [GPUL_PTX_TRAP] = { 0, 0 },
	[GPUL_PTX_XOR] = { 3, 3 },
};

/* True for a root whose number of operands depends on its modifiers, for which the table above contains zeros. */
static bool has_variable_operands(unsigned opcode)
{
	return !operand_limits[opcode].most && opcode != GPUL_PTX_BRKPT && opcode != GPUL_PTX_EXIT && opcode != GPUL_PTX_MEMBAR &&
	       opcode != GPUL_PTX_RET && opcode != GPUL_PTX_TRAP;
}

void ptx_operand_limits(unsigned opcode, unsigned *least, unsigned *most)
{
	*least = operand_limits[opcode].least;
	*most = has_variable_operands(opcode) ? UINT8_MAX : operand_limits[opcode].most;
}
