/* move.c — what a queued copy or fill does when its turn has come (queue.c), and what it
 * touches. */
#include "softcuda/api/api_internal.h"

#include <string.h>

/* One load where the address allows it: a program reads by cuMemcpy what a kernel counts up. */
static uint64_t load_word(const char *src, size_t bytes)
{
	uint64_t word = 0;

	if ((uintptr_t)src & (bytes - 1)) {
		memcpy(&word, src, bytes);
		return word;
	}
	switch (bytes) {
	case 1:
		return __atomic_load_n((const uint8_t *)src, __ATOMIC_ACQUIRE);
	case 2:
		return __atomic_load_n((const uint16_t *)(const void *)src, __ATOMIC_ACQUIRE);
	case 4:
		return __atomic_load_n((const uint32_t *)(const void *)src, __ATOMIC_ACQUIRE);
	default:
		return __atomic_load_n((const uint64_t *)(const void *)src, __ATOMIC_ACQUIRE);
	}
}

/* A word of 1, 2, 4 or 8 bytes goes in one store: programs write a flag by cuMemcpy while a
 * kernel polls it, and a GPU's copy engine never shows it half a word.  False: not such a word.
 */
static bool store_word(char *dst, const char *src, size_t bytes)
{
	uint64_t word;

	if (bytes > 8 || !bytes || bytes & (bytes - 1) || (uintptr_t)dst & (bytes - 1))
		return false;
	word = load_word(src, bytes);
	if (bytes == 1)
		__atomic_store_n((uint8_t *)dst, (uint8_t)word, __ATOMIC_RELEASE);
	else if (bytes == 2)
		__atomic_store_n((uint16_t *)(void *)dst, (uint16_t)word, __ATOMIC_RELEASE);
	else if (bytes == 4)
		__atomic_store_n((uint32_t *)(void *)dst, (uint32_t)word, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)(void *)dst, word, __ATOMIC_RELEASE);
	return true;
}

static void run_copy(const struct copy *c)
{
	for (size_t z = 0; z < c->depth; z++) {
		for (size_t y = 0; y < c->height; y++) {
			char *dst = c->dst + z * c->dst_slice + y * c->dst_pitch;
			const char *src = c->src + z * c->src_slice + y * c->src_pitch;

			if (!store_word(dst, src, c->width_bytes))
				memmove(dst, src, c->width_bytes);
		}
	}
}

static void fill_row(const struct fill *f, char *row)
{
	char pattern[4];

	memcpy(pattern, &f->value,
	       sizeof pattern); /* devices are little-endian, and so are we */
	if (f->width == 1)
		store_word(row, pattern, f->element_bytes);
	else if (f->element_bytes == 1)
		memset(row, pattern[0], f->width);
	else if (f->element_bytes == 2)
		for (size_t i = 0; i < f->width; i++)
			memcpy(row + 2 * i, pattern, 2);
	else
		for (size_t i = 0; i < f->width; i++)
			memcpy(row + 4 * i, pattern, 4);
}

static void run_fill(const struct fill *f)
{
	for (size_t y = 0; y < f->height; y++)
		fill_row(f, f->dst + y * f->pitch);
}

void soft_move(const struct op *op)
{
	if (op->kind == OP_COPY)
		run_copy(&op->copy);
	else
		run_fill(&op->fill);
}

/* What was checked when the operation was queued, once more now that its turn has come. */
bool soft_move_is_allowed(const struct op *op)
{
	const struct copy *c = &op->copy;
	const struct fill *f = &op->fill;
	size_t dst_bytes, src_bytes;

	if (op->kind == OP_FILL)
		return soft_may_fill(op->ctx->device, (uintptr_t)f->dst,
				     (f->height - 1) * f->pitch + f->width * f->element_bytes);
	dst_bytes =
		(c->depth - 1) * c->dst_slice + (c->height - 1) * c->dst_pitch + c->width_bytes;
	src_bytes =
		(c->depth - 1) * c->src_slice + (c->height - 1) * c->src_pitch + c->width_bytes;
	return (!c->dst_known || (soft_is_known((uintptr_t)c->dst, dst_bytes) &&
				  soft_may_copy((uintptr_t)c->dst, dst_bytes, true))) &&
	       (!c->src_known || (soft_is_known((uintptr_t)c->src, src_bytes) &&
				  soft_may_copy((uintptr_t)c->src, src_bytes, false)));
}

static bool copy_touches(const struct copy *c, const char *base, size_t bytes)
{
	size_t slices = c->depth - 1, rows = c->height - 1;
	const char *dst_end =
		c->dst + slices * c->dst_slice + rows * c->dst_pitch + c->width_bytes;
	const char *src_end =
		c->src + slices * c->src_slice + rows * c->src_pitch + c->width_bytes;

	return (c->dst < base + bytes && base < dst_end) ||
	       (c->src < base + bytes && base < src_end);
}

bool soft_move_touches(const struct op *op, const char *base, size_t bytes)
{
	const struct fill *f = &op->fill;

	if (op->kind == OP_COPY)
		return copy_touches(&op->copy, base, bytes);
	return f->dst < base + bytes &&
	       base < f->dst + (f->height - 1) * f->pitch + f->width * f->element_bytes;
}
