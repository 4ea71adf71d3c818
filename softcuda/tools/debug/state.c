/* state.c — reads registers, special registers and memory as the program would read them in one lane. */
#include "softcuda/tools/debug/debug_internal.h"

#include <inttypes.h>
#include <math.h>

/* ---- values ---------------------------------------------------------------------------------------------------------- */

const char *gpul_debug_type_name(unsigned type)
{
	return gpul_ptx_mod_text(NULL, type < GPUL_PTX_MOD_EXTRA ? type : GPUL_PTX_MOD_B32);
}

unsigned gpul_debug_type(const char *name)
{
	for (unsigned t = 1; t <= GPUL_PTX_MOD_PRED; t++)
		if (!strcmp(gpul_ptx_mod_text(NULL, t), name))
			return t;
	return 0;
}

static double half_value(uint16_t bits)
{
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	const double sign = bits >> 15 ? -1 : 1;

	if (exponent == 31)
		return fraction ? NAN : sign * INFINITY;
	return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static float float_value(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

struct value gpul_debug_load(const void *at, unsigned type)
{
	const unsigned bytes = gpul_ptx_type_bytes(type);
	struct value v = { .kind = VALUE_UINT, .bytes = bytes > 8 ? 8 : bytes };

	memcpy(&v.u, at, v.bytes);
	switch (type) {
	case GPUL_PTX_MOD_F64:
		memcpy(&v.f, at, sizeof v.f);
		break;
	case GPUL_PTX_MOD_F32:
	case GPUL_PTX_MOD_TF32:
		v.f = float_value((uint32_t)v.u);
		break;
	case GPUL_PTX_MOD_F16:
		v.f = half_value((uint16_t)v.u);
		break;
	case GPUL_PTX_MOD_BF16:
		v.f = float_value((uint32_t)v.u << 16);
		break;
	case GPUL_PTX_MOD_S8:
	case GPUL_PTX_MOD_S16:
	case GPUL_PTX_MOD_S32:
	case GPUL_PTX_MOD_S64:
		v.kind = VALUE_INT;
		v.u <<= 64 - 8 * v.bytes;
		v.i >>= 64 - 8 * v.bytes;
		return v;
	default:
		return v;
	}
	v.kind = VALUE_FLOAT;
	return v;
}

bool gpul_debug_true(const struct value *v)
{
	return v->kind == VALUE_FLOAT ? v->f != 0 : v->u != 0;
}

void gpul_debug_print_value(FILE *out, const struct value *v)
{
	if (v->kind == VALUE_FLOAT)
		fprintf(out, "%.*g", v->bytes == 8 || !v->bytes ? 17 : v->bytes == 4 ? 9 : 5, v->f);
	else if (v->kind == VALUE_INT)
		fprintf(out, "%" PRId64, v->i);
	else if (v->bytes == 8 && v->u >> 32)
		fprintf(out, "0x%" PRIx64, v->u);
	else
		fprintf(out, "%" PRIu64, v->u);
}

uint64_t gpul_debug_block_index(const struct block *b)
{
	const uint32_t *grid = b->launch->grid;

	return b->index[0] + (uint64_t)grid[0] * (b->index[1] + (uint64_t)grid[1] * b->index[2]);
}

/* ---- registers ----------------------------------------------------------------------------------------------------- */

static bool writes(const gpul_ptx_func *f, const gpul_ptx_inst *in, uint32_t flat)
{
	const gpul_ptx_operand *d = &f->operands[in->first_operand];

	return in->n_operands && d->kind == GPUL_PTX_OP_REG && d->index == flat && in->opcode != GPUL_PTX_ST && in->opcode != GPUL_PTX_RED;
}

unsigned gpul_debug_register_type(const struct func_code *code, uint32_t flat)
{
	const unsigned own = gpul_ptx_reg_row(code->ptx, flat)->type;
	const gpul_ptx_func *f = code->ptx;

	if (own > GPUL_PTX_MOD_B128)
		return own;
	for (uint32_t k = 0; k < f->n_insts; k++) {
		if (!writes(f, &f->insts[k], flat))
			continue;
		for (unsigned m = 0; m < f->insts[k].n_mods; m++) {
			const unsigned type = f->insts[k].mods[m];

			if (type > GPUL_PTX_MOD_B128 && type < GPUL_PTX_MOD_PRED && gpul_ptx_type_bytes(type) == gpul_ptx_type_bytes(own))
				return type;
			if (type <= GPUL_PTX_MOD_PRED)
				break;
		}
	}
	return own == GPUL_PTX_MOD_B32 ? GPUL_PTX_MOD_S32 : own == GPUL_PTX_MOD_B16 ? GPUL_PTX_MOD_S16 : own;
}

bool gpul_debug_find_register(const struct func_code *code, const char *name, size_t name_bytes, uint32_t *flat)
{
	static const char parts[] = "xyzw";
	const gpul_ptx_func *f = code->ptx;

	for (uint32_t k = f->n_regs; k-- > 0;) { /* the function's registers come last and hide the module's */
		const gpul_ptx_regs *r = &f->regs[k];
		const char *base = gpul_ptx_name(code->program->module, r->name);
		const size_t n = strlen(base);
		uint64_t number = 0;
		size_t at = n;

		if (n > name_bytes || memcmp(base, name, n) != 0)
			continue;
		for (; r->ranged && at < name_bytes && name[at] >= '0' && name[at] <= '9'; at++)
			number = number * 10 + (uint64_t)(name[at] - '0');
		if (r->ranged && (at == n || number >= r->count))
			continue;
		number *= r->vector;
		if (r->vector > 1 && name_bytes == at + 2 && name[at] == '.' && strchr(parts, name[at + 1])) {
			number += (uint64_t)(strchr(parts, name[at + 1]) - parts);
			at += 2;
		}
		if (at != name_bytes)
			continue;
		*flat = r->first + (uint32_t)number;
		return true;
	}
	return false;
}

bool gpul_debug_register(const struct lane *at, uint32_t flat, struct value *out)
{
	unsigned bytes;
	const uint8_t *lanes = gpul_warp_register(at->warp, at->frame, flat, &bytes);

	if (!lanes)
		return false;
	if (bytes)
		*out = gpul_debug_load(lanes + at->index * (bytes == 16 ? 8 : bytes), gpul_debug_register_type(at->frame->code, flat));
	else
		*out = (struct value){ .kind = VALUE_UINT, .u = *(const uint32_t *)(const void *)lanes >> at->index & 1 };
	return true;
}

/* Compute %tid, %ntid, %ctaid or %nctaid, because the interpreter stores them only if the program reads them. */
static bool own_special(const struct lane *at, const char *name, uint64_t *out)
{
	static const char *const vectors[] = { "%tid", "%ntid", "%ctaid", "%nctaid" };
	const struct block *b = at->warp->block;
	const size_t n = strlen(name);
	uint32_t thread[3];
	const uint32_t *const values[] = { thread, b->launch->block, b->index, b->launch->grid };

	gpul_lane_thread(at->warp, at->index, thread);
	for (unsigned k = 0; k < 4; k++) {
		const size_t bytes = strlen(vectors[k]);

		if (n == bytes + 2 && !memcmp(name, vectors[k], bytes) && name[bytes] == '.' && name[bytes + 1] >= 'x' &&
		    name[bytes + 1] <= 'z') {
			*out = values[k][name[bytes + 1] - 'x'];
			return true;
		}
	}
	*out = !strcmp(name, "%laneid") ? at->index : !strcmp(name, "%warpid") ? at->warp->index : b->n_warps;
	return !strcmp(name, "%laneid") || !strcmp(name, "%warpid") || !strcmp(name, "%nwarpid");
}

bool gpul_debug_special(const struct lane *at, const char *name, size_t name_bytes, struct value *out)
{
	const struct gpul_exec_program *p = at->frame->code->program;
	char text[64];
	uint64_t bits = 0;

	snprintf(text, sizeof text, "%.*s", (int)name_bytes, name);
	if (own_special(at, text, &bits)) {
		*out = (struct value){ .kind = VALUE_UINT, .u = bits };
		return true;
	}
	for (uint32_t k = 0; k < p->n_specials; k++) {
		const struct special_slot *slot = &p->specials[k];

		if (slot->special >= GPUL_PTX_N_SPECIALS || strcmp(gpul_ptx_special_text((gpul_ptx_special)slot->special), text + 1) != 0)
			continue;
		memcpy(&bits, at->warp->w.bank[BANK_SPECIALS] + slot->offset + at->index * slot->bytes, slot->bytes);
		*out = (struct value){ .kind = VALUE_UINT, .u = bits };
		return true;
	}
	return false;
}

/* ---- memory ----------------------------------------------------------------------------------------------------------- */

uint8_t *gpul_debug_writable(const struct lane *at, unsigned space, uint64_t address, uint64_t bytes)
{
	return (uint8_t *)(uintptr_t)gpul_debug_memory(at, space, address, bytes);
}

/* Return the memory at a generic address, in global memory, the block's shared memory, or the lane's local memory. */
static const uint8_t *generic_memory(const struct lane *at, uint64_t address, uint64_t bytes)
{
	gpul_exec_range r;

	if (at->warp)
		return gpul_lane_may_read(at->warp, at->index, address, bytes) ? (const uint8_t *)(uintptr_t)address : NULL;
	if (!gpul_exec_memory_find(at->memory, address, &r) || bytes > r.bytes - (address - r.base))
		return NULL;
	return (const uint8_t *)(uintptr_t)address;
}

const uint8_t *gpul_debug_memory(const struct lane *at, unsigned space, uint64_t address, uint64_t bytes)
{
	const struct warp_state *s = at->warp;
	uint64_t room = 0;

	if (space == SPACE_GLOBAL || space == SPACE_GENERIC)
		return generic_memory(at, address, bytes);
	if (!s)
		return NULL;
	room = space == SPACE_SHARED ? s->shared_bytes : space == SPACE_LOCAL ? s->local_bytes : s->param_bytes;
	if (address > room || bytes > room - address)
		return NULL;
	return gpul_access_host(s, at->index, space, address);
}
