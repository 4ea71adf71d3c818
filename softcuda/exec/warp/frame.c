/* frame.c — allocates frames (the registers of one call); freed frames are kept in lists by size, and reused by later calls. */
#include <stdlib.h>

#include "softcuda/exec/warp/warp_internal.h"

enum { MIN_CLASS = 8 };

static unsigned size_class_of(uint32_t bytes)
{
	unsigned c = MIN_CLASS;

	while (bytes > 1u << c)
		c++;
	return c;
}

struct frame *gpul_frame_create(struct worker *k, const struct func_code *code)
{
	unsigned size_class = size_class_of(code->frame_bytes);
	struct frame *f = k->free_frames[size_class];
	size_t header = (sizeof *f + 63) & ~(size_t)63;

	if (f) {
		k->free_frames[size_class] = f->parent;
	} else {
		f = aligned_alloc(64, header + (1u << size_class));
		if (!f)
			return NULL;
		memset(f, 0, header + (1u << size_class));
		f->regs = (uint8_t *)f + header;
		f->size_class = size_class;
	}
	f->parent = NULL;
	f->code = code;
	f->site = NULL;
	f->return_to = NULL;
	f->lanes = 0;
	f->local_offset = 0;
	f->alloca_bytes = 0;
	f->depth = 0;
	return f;
}

void gpul_frame_free(struct worker *k, struct frame *f)
{
	f->parent = k->free_frames[f->size_class];
	k->free_frames[f->size_class] = f;
}

void gpul_frame_leave(struct worker *k, struct frame *f, uint32_t lanes)
{
	while (f) {
		struct frame *parent = f->parent;

		f->lanes &= ~lanes;
		if (!f->lanes)
			gpul_frame_free(k, f);
		f = parent;
	}
}
