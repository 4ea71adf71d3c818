/* move.c — the work of queued copies and fills. */
#include "softcuda/api/memory/memory_internal.h"

#include "softcuda/api/stream/order_internal.h"
#include "softcuda/exec/observer_internal.h"

#include <stdlib.h>
#include <string.h>

/* Use one load if the address is aligned, because a program can copy a counter while a kernel increments it. */
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

/* Store a word of 1, 2, 4 or 8 bytes in one instruction, because programs write a flag with cuMemcpy while a kernel
 * polls it; a GPU's copy engine does not split words, either.  False: the bytes are not one aligned word. */
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

static void copy_rows(const struct copy *c)
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

	memcpy(pattern, &f->value, sizeof pattern);  /* GPUs are little-endian, and so is this CPU */
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

/* Tell tools which bytes were read and written. */
static void tell_copy(const struct copy *c, const struct order *order)
{
	const struct host_move m = { .to = (uintptr_t)c->dst, .from = c->src_known && !c->src_array ? (uintptr_t)c->src : 0, .row_bytes = c->width_bytes,
				     .n_rows = c->height, .n_slices = c->depth, .to_pitch = c->dst_pitch, .to_slice = c->dst_slice,
				     .from_pitch = c->src_pitch, .from_slice = c->src_slice, .order = order ? &order->place : NULL };

	gpul_exec_memory_moved(soft.memory, &m);
}

static void tell_fill(const struct fill *f, const struct order *order)
{
	const struct host_move m = { .to = (uintptr_t)f->dst, .row_bytes = f->width * f->element_bytes, .n_rows = f->height, .n_slices = 1,
				     .to_pitch = f->pitch, .fill = true, .order = order ? &order->place : NULL };

	gpul_exec_memory_moved(soft.memory, &m);
}

/* Check the memory of an operation again after it waited, because the memory may have been unmapped meanwhile. */
static bool is_allowed(const struct copy *c)
{
	return (!c->dst_known || c->dst_array || (soft_is_known((uintptr_t)c->dst, c->dst_bytes) &&
				  soft_may_copy((uintptr_t)c->dst, c->dst_bytes, true))) &&
	       (!c->src_known || c->src_array || (soft_is_known((uintptr_t)c->src, c->src_bytes) &&
				  soft_may_copy((uintptr_t)c->src, c->src_bytes, false)));
}

static void fail_unmapped(struct op *op)
{
	soft_report_fault("a queued copy or fill was dropped: its memory was unmapped before it ran");
	soft_context_fail(op->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
	soft_op_end(op, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void run_copy(struct op *op)
{
	struct copy *c = &CONTAINER(op, struct copy_op, op)->copy;
	struct move m = { .dst = (uintptr_t)c->dst, .dst_bytes = c->dst_bytes,
			  .src = (uintptr_t)c->src, .src_bytes = c->src_bytes };

	if (op->deferred && !is_allowed(c)) {
		fail_unmapped(op);
		return;
	}
	soft_move_begin(&m);
	soft_unlock();
	copy_rows(c);
	tell_copy(c, op->order);
	soft_lock();
	soft_move_end(&m);
	soft_op_end(op, CUDA_SUCCESS);
}

static void release_copy(struct op *op)
{
	struct copy *c = &CONTAINER(op, struct copy_op, op)->copy;

	free(c->staged);
	soft_array_memory_release(c->dst_array);
	soft_array_memory_release(c->src_array);
}

/* A copy of the operation has no staged source, because only queued copies have. */
static bool share_arrays(struct op *op)
{
	struct copy *c = &CONTAINER(op, struct copy_op, op)->copy;

	if (c->dst_array)
		c->dst_array->refs++;
	if (c->src_array)
		c->src_array->refs++;
	return true;
}

const struct op_kind soft_copy_kind = {
	.run = run_copy,
	.release = release_copy,
	.copy = share_arrays,
	.is_node = true,
	.node_type = CU_GRAPH_NODE_TYPE_MEMCPY,
	.bytes = sizeof(struct copy_op),
};

static void run_fill(struct op *op)
{
	struct fill *f = &CONTAINER(op, struct fill_op, op)->fill;
	struct move m = { .dst = (uintptr_t)f->dst, .dst_bytes = f->bytes };

	if (op->deferred && !soft_may_fill(op->ctx->device, m.dst, f->bytes)) {
		fail_unmapped(op);
		return;
	}
	soft_move_begin(&m);
	soft_unlock();
	for (size_t y = 0; y < f->height; y++)
		fill_row(f, f->dst + y * f->pitch);
	tell_fill(f, op->order);
	soft_lock();
	soft_move_end(&m);
	soft_op_end(op, CUDA_SUCCESS);
}

const struct op_kind soft_fill_kind = { .run = run_fill, .is_node = true,
					.node_type = CU_GRAPH_NODE_TYPE_MEMSET, .bytes = sizeof(struct fill_op) };
