/* assume.c — assumes a launch and values of scalars, and computes by interval analysis which buffer sizes this launch needs. */
#include <string.h>

#include "loader/signature/interval/signature_launch_internal.h"

#define ALIGNED_STRIDE 256 /* a row size in bytes that keeps every access aligned */

static bool is_float(gpul_type t)
{
	return t == GPUL_F16 || t == GPUL_BF16 || t == GPUL_F32 || t == GPUL_F64;
}

/* ---- the launch ------------------------------------------------------------------ */

/* Choose the block size that the code declares, or else a common one for the number of dimensions, within the code's limits. */
static void choose_block(const gpul_signature *s, uint32_t block[3])
{
	static const uint32_t usual[4][3] = { [1] = { 256, 1, 1 }, [2] = { 16, 16, 1 }, [3] = { 8, 8, 4 } };
	const uint32_t *declared = s->reqntid[0] ? s->reqntid : s->maxntid;
	uint32_t dims = s->grid_dims >= 1 && s->grid_dims <= 3 ? s->grid_dims : 1;
	uint64_t threads;

	for (int d = 0; d < 3; d++)
		block[d] = declared[0] ? (declared[d] ? declared[d] : 1) : usual[dims][d];
	threads = (uint64_t)block[0] * block[1] * block[2];
	for (int d = 2; d >= 0; d--)
		while (!s->reqntid[0] && block[d] > 1 && (threads > 1024 || (s->shared_threads && threads > s->shared_threads))) {
			threads = threads / block[d] * (block[d] / 2);
			block[d] /= 2;
		}
}

/* Choose the values of scalars: `count` for a COUNT, which limits an index; `stride` for an integer from which
 * an index is computed, such as the pitch of an image; else 1. */
static void choose_values(gpul_inference *i, gpul_assumed_launch *l, int64_t count, int64_t stride)
{
	for (uint32_t k = 0; k < i->p->n_leaves; k++) {
		const gpul_param *param = gpul_leaf_param(i, k);

		if (is_float(param->type))
			i->floats |= (uint64_t)1 << k;
		if (param->role == GPUL_ROLE_COUNT)
			l->value[k] = count;
		else if (param->role == GPUL_ROLE_SCALAR)
			l->value[k] = i->in_index >> k & 1 && param->bytes >= 4 ? stride : 1;
	}
}

static void choose_launch(gpul_inference *i, gpul_assumed_launch *l)
{
	const gpul_signature *s = &i->s->s;

	*l = (gpul_assumed_launch){ 0 };
	choose_block(s, l->block);
	for (uint32_t d = 0; d < 3; d++)
		l->grid[d] = !s->reads_ctaid || d >= s->grid_dims ? 1 : s->grid_dims == 1 ? 4 : 2;
	for (uint32_t k = 0; k < i->p->n_leaves; k++) {
		const gpul_param *param = gpul_leaf_param(i, k);

		if (param->role == GPUL_ROLE_BUFFER && param->loaded && !param->stored && i->read_indexes >> k & 1)
			l->zeros |= (uint64_t)1 << k; /* the buffer is filled with zeros, so an index that is loaded from it is 0 */
	}
}

/* ---- sizes ----------------------------------------------------------------------- */

struct extents {
	uint64_t bytes[DATAFLOW_MAX_LEAVES]; /* for each leaf: bytes that its buffer needs */
};

/* Record how far an access extends into the buffer; false: it is unknown, before the buffer's start, or too far. */
static bool note_extent(const gpul_intervals *v, const gpul_inst_access *a, uint32_t inst, struct extents *e)
{
	gpul_interval address = gpul_interval_of(v, a->address, inst);
	int64_t bytes = (int64_t)gpul_ptx_type_bytes(a->type) * a->vector;

	if (a->space == GPUL_PTX_MOD_PARAM)
		return true;
	if (address.kind == INTERVAL_VARIABLE)
		return address.r.lo >= 0 && address.r.hi <= address.size - bytes;
	if (address.kind != INTERVAL_POINTER || address.r.lo < 0 || (int64_t)1 << address.zeros < bytes ||
	    address.r.hi > GPUL_ASSUMED_BYTES_MAX - bytes)
		return false;
	for (uint64_t set = address.base; set; set &= set - 1) {
		uint64_t *needed = &e->bytes[gpul_first_param(set)];

		if (*needed < (uint64_t)(address.r.hi + bytes))
			*needed = (uint64_t)(address.r.hi + bytes);
	}
	return true;
}

static bool find_extents(const gpul_intervals *v, struct extents *e)
{
	for (uint32_t k = 0; k < v->fn->f->n_insts; k++) {
		gpul_inst_access a = gpul_inst_access_of(v->fn->f, &v->fn->f->insts[k]);

		if (a.address && v->executed[v->cfg.of[k]] && gpul_guard_holds(v, k) != 0 && !note_extent(v, &a, k, e))
			return false;
	}
	return true;
}

static bool try_launch(const gpul_inference *i, const gpul_assumed_launch *l, struct extents *e)
{
	gpul_intervals v;
	bool ok = gpul_intervals_open(i, l, &v);

	memset(e, 0, sizeof *e);
	if (!ok)
		return false;
	ok = find_extents(&v, e);
	gpul_intervals_close(&v);
	return ok;
}

static void keep_launch(gpul_inference *i, const gpul_assumed_launch *l, const struct extents *e)
{
	gpul_signature *s = &i->s->s;

	for (uint32_t k = 0; k < i->p->n_leaves; k++) {
		gpul_param *param = gpul_leaf_param(i, k);
		uint64_t width = gpul_type_bytes(param->type);

		param->value = l->value[k];
		param->zeros = l->zeros >> k & 1;
		if (param->role == GPUL_ROLE_BUFFER)
			param->elements = e->bytes[k] ? (e->bytes[k] + width - 1) / width : 1;
	}
	memcpy(s->grid, l->grid, sizeof s->grid);
	memcpy(s->block, l->block, sizeof s->block);
	s->assumed = s->complete = true;
	s->why_not = NULL;
}

void gpul_assume_launch(gpul_inference *i)
{
	static const int64_t counts[4] = { 1024, 1024, 32, 10 };
	static const struct {
		bool one;       /* value of each COUNT: 1 if true, else the value in counts[] */
		int64_t stride; /* value of each integer from which an index is computed */
	} tries[] = { { false, 1 }, { false, ALIGNED_STRIDE }, { true, 1 }, { true, ALIGNED_STRIDE } };
	const gpul_signature *s = &i->s->s;
	gpul_assumed_launch l;
	struct extents e;

	if (s->complete || i->s->blocked || i->p->n_funcs > 1)
		return;
	choose_launch(i, &l);
	for (unsigned k = 0; k < sizeof tries / sizeof *tries; k++) {
		choose_values(i, &l, tries[k].one ? 1 : counts[s->grid_dims <= 3 ? s->grid_dims : 0], tries[k].stride);
		if (try_launch(i, &l, &e)) {
			keep_launch(i, &l, &e);
			return;
		}
	}
}
