/* block_shadow.c — keeps the shadows of shared and local memory, which are reset for each block. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/tools/memcheck/parts_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block_shadow *free_shadows;

/* Resize the shadow to this many bytes; its bits are then undefined. The old memory is reused if it is large enough. */
static void resize_shadow(struct shadow *h, uint64_t bytes)
{
	if (h->bits && h->bytes >= bytes) {
		h->bytes = bytes;
	} else {
		gpul_shadow_free(h);
		if (!bytes || !gpul_shadow_create(h, bytes))
			*h = (struct shadow){ 0 };
	}
	h->hole = 0;
	h->n_checks = 0;
	h->complete = !h->bits;
}

static uint64_t shadow_bytes(const struct shadow *h)
{
	return (h->bytes + 63) / 64 * 8;
}

static bool has_local_variables(const struct func_code *code)
{
	for (uint32_t k = 0; k < code->ptx->n_vars; k++)
		if (code->ptx->vars[k].space == GPUL_PTX_MOD_LOCAL)
			return true;
	return false;
}

static bool program_has_local_variables(const gpul_exec_program *p)
{
	for (uint32_t k = 0; k < p->module->n_funcs; k++)
		if (has_local_variables(&p->code[k]) || p->code[k].uses_stack)
			return true;
	return false;
}

/* Mark shared memory as unwritten, except the part at the end that is reserved for the system. */
static void begin_shared(struct shadow *h, const struct block *b)
{
	const gpul_exec_launch *l = b->launch;

	resize_shadow(h, b->shared_bytes);
	if (!h->bits)
		return;
	memset(h->bits, 0, shadow_bytes(h));
	if (h->bytes % 64)
		h->bits[h->bytes / 64] = UINT64_MAX << (h->bytes % 64);
	if (l->reserved_base && l->reserved_base + RESERVED_SMEM_BYTES == h->bytes)
		gpul_shadow_set(h, l->reserved_base, RESERVED_SMEM_BYTES, true);
}

void gpul_check_block_begins(struct observer *o, struct block *b)
{
	const struct func_code *code = b->launch->kernel->code;
	struct block_shadow *x;

	pthread_mutex_lock(&lock);
	x = free_shadows;
	if (x)
		free_shadows = x->next;
	pthread_mutex_unlock(&lock);
	if (!x)
		x = calloc(1, sizeof *x);
	*block_note(b, o) = x;
	if (!x)
		return;
	begin_shared(&x->shared, b);
	x->local_bytes = 0;
	if (b->warps[0].local_bytes && program_has_local_variables(code->program)) {
		x->local_bytes = ((uint64_t)b->warps[0].local_bytes + 63) / 64 * 64;
		resize_shadow(&x->local, x->local_bytes * b->n_warps * LANES);
		if (x->local.bits)
			memset(x->local.bits, 0xff, shadow_bytes(&x->local));
		else
			x->local_bytes = 0;
		for (unsigned k = 0; k < b->n_warps; k++)
			gpul_local_enter(&b->warps[k], b->warps[k].frame ? b->warps[k].frame : b->warps[k].splits[0].frame,
					 b->warps[k].w.live);
	}
}

void gpul_check_block_ends(struct observer *o, struct block *b)
{
	struct block_shadow *x = *block_note(b, o);

	*block_note(b, o) = NULL;
	if (!x)
		return;
	pthread_mutex_lock(&lock);
	x->next = free_shadows;
	free_shadows = x;
	pthread_mutex_unlock(&lock);
}

static void clear_local(struct warp_state *s, uint64_t at, uint64_t bytes, uint32_t lanes)
{
	struct block_shadow *x = shadow_of_block(s->block);

	if (!x->local_bytes || at > x->local_bytes || bytes > x->local_bytes - at)
		return;
	EACH_LANE_OF(l, lanes)
	gpul_shadow_clear(&x->local, (s->index * LANES + l) * x->local_bytes + at, bytes);
}

void gpul_local_enter(struct warp_state *s, const struct frame *f, uint32_t lanes)
{
	const struct func_code *code = f->code;
	struct block_shadow *x = shadow_of_block(s->block);

	if (!x->local_bytes)
		return;
	if (f->local_offset) /* the function's local memory counts as written, because an earlier callee may have written it */
		EACH_LANE_OF(l, lanes)
	gpul_shadow_set(&x->local, (s->index * LANES + l) * x->local_bytes + f->local_offset, code->local_bytes, true);
	for (uint32_t k = 0; k < code->ptx->n_vars; k++)
		if (code->ptx->vars[k].space == GPUL_PTX_MOD_LOCAL)
			clear_local(s, f->local_offset + code->var_offset[k], code->ptx->vars[k].bytes, lanes);
}

void gpul_local_alloca(struct warp_state *s, const struct insn *i, uint32_t lanes)
{
	const struct frame *f = s->frame;
	const uint64_t end = (uint64_t)f->local_offset + f->code->local_bytes + f->alloca_bytes;
	const uint64_t at = i->n == 8 ? U64(&s->w, i->d)[first_lane(lanes)] : U32(&s->w, i->d)[first_lane(lanes)];

	if (at < end)
		clear_local(s, at, end - at, lanes);
}
