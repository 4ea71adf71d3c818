/* cu_move.c — executes queued copies and fills. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include "softcuda/api/stream/cu_order_internal.h"
#include "softcuda/exec/guard_internal.h"
#include "softcuda/exec/observer_internal.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS_TEXT_BYTES = 200 };

/* Load some bytes, with one instruction if the address is aligned, because a kernel may increment a counter while it is copied. */
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
 * polls it; a GPU's copy engine does not split words, either.  Returns false if the bytes are not one aligned word. */
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

static void copy_rows(void *copy)
{
	const struct copy *c = copy;

	for (size_t z = 0; z < c->depth; z++) {
		for (size_t y = 0; y < c->height; y++) {
			char *dst = c->dst + z * c->dst_slice + y * c->dst_pitch;
			const char *src = c->src + z * c->src_slice + y * c->src_pitch;

			if (!store_word(dst, src, c->width_bytes))
				memmove(dst, src, c->width_bytes);
		}
	}
}

/* Call work(arg), guarded against faults if can_vanish.  Returns false after an access to unmapped or protected memory, at *address. */
static bool move_bytes(void (*work)(void *arg), void *arg, bool can_vanish, uint64_t *address)
{
	if (!can_vanish) {
		work(arg);
		return true;
	}
	gpul_guard_refresh();
	return gpul_guarded(NULL, work, arg, address);
}

CUresult soft_move_rows(const struct copy *c)
{
	char where[ADDRESS_TEXT_BYTES];
	struct copy copy = *c;
	uint64_t address;

	if (move_bytes(copy_rows, &copy, c->can_vanish, &address))
		return CUDA_SUCCESS;
	soft_describe_address(address, where, sizeof where);
	gpul_memcheck_bad_access("copy", where, true);
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "copy: %zu bytes from %p to %p would access %s", c->width_bytes, (const void *)c->src,
			   (void *)c->dst, where);
}

static void fill_row(const struct fill *f, char *row)
{
	char pattern[4];

	memcpy(pattern, &f->value, sizeof pattern); /* takes the low bytes of the value, because GPUs and this CPU are little-endian */
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

static void fill_rows(void *fill)
{
	const struct fill *f = fill;

	for (size_t y = 0; y < f->height; y++)
		fill_row(f, f->dst + y * f->pitch);
}

/* Report to the tools which bytes are read and written. */
static void tell_copy(const struct copy *c, const struct order *order)
{
	const struct host_move m = { .to = (uintptr_t)c->dst,
				     .from = c->src_known && !c->src_array ? (uintptr_t)c->src : 0,
				     .row_bytes = c->width_bytes,
				     .n_rows = c->height,
				     .n_slices = c->depth,
				     .to_pitch = c->dst_pitch,
				     .to_slice = c->dst_slice,
				     .from_pitch = c->src_pitch,
				     .from_slice = c->src_slice,
				     .order = order ? &order->place : NULL };

	gpul_exec_memory_moved(soft.memory, &m);
}

static void tell_fill(const struct fill *f, const struct order *order)
{
	const struct host_move m = { .to = (uintptr_t)f->dst,
				     .row_bytes = f->width * f->element_bytes,
				     .n_rows = f->height,
				     .n_slices = 1,
				     .to_pitch = f->pitch,
				     .fill = true,
				     .order = order ? &order->place : NULL };

	gpul_exec_memory_moved(soft.memory, &m);
}

void soft_copy_ends(const struct copy *c, struct range_use *dst, struct range_use *src)
{
	*dst = (struct range_use){ "copy", "destination", (uintptr_t)c->dst, c->dst_bytes, c->dst_side, true };
	*src = (struct range_use){ "copy", "source", (uintptr_t)c->src, c->src_bytes, c->src_side, false };
}

/* Check again the memory of an operation that had to wait, because the memory may have been freed or unmapped meanwhile. */
static bool is_allowed(const struct copy *c)
{
	struct range_use dst, src;

	soft_copy_ends(c, &dst, &src);
	return (c->dst_array || soft_range_is_valid(&dst)) && (c->src_array || c->staged || soft_range_is_valid(&src));
}

static void fail_unmapped(struct op *op)
{
	soft_report_fault("a queued copy or fill was dropped: its memory was freed or unmapped before it ran");
	soft_context_fail(op->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
	soft_op_end(op, CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* End an operation that accessed unmapped or protected memory.  If the call that queued it has already returned, the context fails. */
static void fail_access(struct op *op, bool is_waited_for, uint64_t address)
{
	char where[ADDRESS_TEXT_BYTES], text[ADDRESS_TEXT_BYTES + 80];

	soft_describe_address(address, where, sizeof where);
	gpul_memcheck_bad_access("copy or fill", where, !op->deferred || is_waited_for);
	if (!op->deferred || is_waited_for) {
		soft_op_end(op, soft_refuse(CUDA_ERROR_INVALID_VALUE, "copy or fill: it would access %s", where));
		return;
	}
	snprintf(text, sizeof text, "a queued copy or fill accessed %s", where);
	soft_report_fault(text);
	soft_context_fail(op->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
	soft_op_end(op, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void run_copy(struct op *op)
{
	struct copy *c = &CONTAINER(op, struct copy_op, op)->copy;
	struct move m = { .dst = (uintptr_t)c->dst, .dst_bytes = c->dst_bytes, .src = (uintptr_t)c->src, .src_bytes = c->src_bytes };
	uint64_t address;
	bool done;

	if (op->deferred && !is_allowed(c)) {
		fail_unmapped(op);
		return;
	}
	soft_move_begin(&m);
	soft_unlock();
	done = move_bytes(copy_rows, c, c->can_vanish || op->deferred, &address);
	if (done)
		tell_copy(c, op->order);
	soft_lock();
	soft_move_end(&m);
	if (done)
		soft_op_end(op, CUDA_SUCCESS);
	else
		fail_access(op, c->is_waited_for, address);
}

static void release_copy(struct op *op)
{
	struct copy *c = &CONTAINER(op, struct copy_op, op)->copy;

	free(c->staged);
	soft_array_memory_release(c->dst_array);
	soft_array_memory_release(c->src_array);
}

/* Give the copy of an operation its own references to the arrays.  Only graph nodes are copied, and their source is never staged. */
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
	const struct range_use use = { "cuMemset", "memory", (uintptr_t)f->dst, f->bytes, SIDE_DEVICE, true };
	struct move m = { .dst = (uintptr_t)f->dst, .dst_bytes = f->bytes };
	uint64_t address;
	bool done;

	if (op->deferred && !(soft_range_is_valid(&use) && soft_may_fill(op->ctx->device, m.dst, f->bytes))) {
		fail_unmapped(op);
		return;
	}
	soft_move_begin(&m);
	soft_unlock();
	done = move_bytes(fill_rows, f, f->can_vanish || op->deferred, &address);
	if (done)
		tell_fill(f, op->order);
	soft_lock();
	soft_move_end(&m);
	if (done)
		soft_op_end(op, CUDA_SUCCESS);
	else
		fail_access(op, false, address);
}

const struct op_kind soft_fill_kind = {
	.run = run_fill, .is_node = true, .node_type = CU_GRAPH_NODE_TYPE_MEMSET, .bytes = sizeof(struct fill_op)
};
