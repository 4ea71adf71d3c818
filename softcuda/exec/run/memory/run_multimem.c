/* run_multimem.c — handlers of multimem (../../multimem_internal.h): for each lane, they access the copies of all devices. */
#include "softcuda/exec/multimem_internal.h"
#include "softcuda/exec/run/half_internal.h"
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/warp/access_internal.h"

/* ---- operations on two elements -------------------------------------------------------------- */

typedef float binary(float a, float b);

static inline uint32_t add_f32(uint32_t a, uint32_t b)
{
	return bits_of(canonical(float_of(a) + float_of(b)));
}

static inline uint64_t add_f64(uint64_t a, uint64_t b)
{
	const double x = double_of(a) + double_of(b);

	return isnan(x) ? 0xfff8000000000000u : bits_of64(x);
}

/* Add two f16 or bf16: the sum in double is exact, or not near a tie, and rounded to odd, so that the final rounding is correct. */
static inline float sum_of_halves(float a, float b)
{
	return odd_float((double)a + (double)b);
}

static inline uint16_t half_op(uint16_t a, uint16_t b, binary *f)
{
	return f16_from_float(f(f16_to_float(a), f16_to_float(b)));
}

static inline uint16_t brain_op(uint16_t a, uint16_t b, binary *f)
{
	return bf16_from_float(f(bf16_to_float(a), bf16_to_float(b)));
}

static inline uint8_t small_op(uint8_t a, uint8_t b, binary *f, const struct small_format *format)
{
	const float x = f((float)double_from_small(a, format), (float)double_from_small(b, format));

	return (uint8_t)small_from_double((double)x, format, CONVERT_RN, true);
}

/* ---- operations on vectors ------------------------------------------------------------------- */

/* Load a vector by one move instruction, so that no thread reads only a part of what another thread stores.  With ThreadSanitizer,
 * which does not treat a move of 16 bytes as atomic, 16 bytes take two moves. */
static inline void load_vector(uint8_t *to, const uint8_t *from, unsigned bytes)
{
	if (bytes == WHOLE_BYTES) {
		*(vector16 *)(void *)to = *(const volatile vector16 *)(const volatile void *)from;
	} else if (bytes == 4) {
		*(MEMORY_TYPE(uint32_t) *)(void *)to = __atomic_load_n((const MEMORY_TYPE(uint32_t) *)(const void *)from, LOAD_ORDER);
	} else {
		for (unsigned k = 0; k < bytes; k += 8)
			*(MEMORY_TYPE(uint64_t) *)(void *)(to +
							   k) = __atomic_load_n((const MEMORY_TYPE(uint64_t) *)(const void *)(from + k),
										LOAD_ORDER);
	}
}

static inline void store_vector(uint8_t *to, const uint8_t *from, unsigned bytes)
{
	if (bytes == WHOLE_BYTES) {
		*(volatile vector16 *)(volatile void *)to = *(const vector16 *)(const void *)from;
	} else if (bytes == 4) {
		__atomic_store_n((MEMORY_TYPE(uint32_t) *)(void *)to, *(const MEMORY_TYPE(uint32_t) *)(const void *)from, STORE_ORDER);
	} else {
		for (unsigned k = 0; k < bytes; k += 8)
			__atomic_store_n((MEMORY_TYPE(uint64_t) *)(void *)(to + k),
					 *(const MEMORY_TYPE(uint64_t) *)(const void *)(from + k), STORE_ORDER);
	}
}

/* sum = operation(sum, more), for each element of vectors in registers. */
static void combine(unsigned operation, uint8_t *sum, const uint8_t *more, unsigned bytes)
{
	switch (operation) {
#define X(name, type, result) \
	case MULTIMEM_##name: \
		for (unsigned k = 0; k < MULTIMEM_BYTES / sizeof(type) && k < bytes / sizeof(type); k++) { \
			MEMORY_TYPE(type) *const to = (MEMORY_TYPE(type) *)(void *)sum + k; \
			const type a = *to, b = ((const MEMORY_TYPE(type) *)(const void *)more)[k]; \
			*to = (type)(result); \
		} \
		break;
		GPUL_MULTIMEM_OPERATIONS(X)
#undef X
	default:
		break;
	}
}

/* *to = operation(*to, more) in memory, atomically for each element, but not for the whole vector (PTX ISA 9.0, 9.7.9.14). */
static void update(unsigned operation, uint8_t *to, const uint8_t *more, unsigned bytes)
{
	switch (operation) {
#define X(name, type, result) \
	case MULTIMEM_##name: \
		for (unsigned k = 0; k < MULTIMEM_BYTES / sizeof(type) && k < bytes / sizeof(type); k++) { \
			MEMORY_TYPE(type) *const cell = (MEMORY_TYPE(type) *)(void *)to + k; \
			const type b = ((const MEMORY_TYPE(type) *)(const void *)more)[k]; \
			type a = __atomic_load_n(cell, __ATOMIC_RELAXED); \
			while (!__atomic_compare_exchange_n(cell, &a, (type)(result), true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) \
				; \
		} \
		break;
		GPUL_MULTIMEM_OPERATIONS(X)
#undef X
	default:
		break;
	}
}

/* ---- sums of a wider type: .acc::f32 and .acc::f16 --------------------------------------------- */

/* Add the elements of a vector to sum[]; the first vector is stored instead, so that a -0 is not changed to +0. */
static void add_wide(unsigned operation, float *sum, const uint8_t *more, unsigned bytes, bool first)
{
	const bool small = operation == MULTIMEM_ADD_E4M3 || operation == MULTIMEM_ADD_E5M2;
	const struct small_format *format = operation == MULTIMEM_ADD_E4M3 ? &format_e4m3 : &format_e5m2;

	for (unsigned k = 0; k < MULTIMEM_BYTES && k < (small ? bytes : bytes / 2); k++) {
		const uint16_t half = small ? 0 : ((const MEMORY_TYPE(uint16_t) *)(const void *)more)[k];
		const float x = small                           ? (float)double_from_small(more[k], format)
				: operation == MULTIMEM_ADD_F16 ? f16_to_float(half)
								: bf16_to_float(half);

		if (first)
			sum[k] = x;
		else
			sum[k] = small ? f16_to_float(f16_from_float(sum_of_halves(sum[k], x))) : sum[k] + x;
	}
}

static void narrow_sums(unsigned operation, uint8_t *to, const float *sum, unsigned bytes)
{
	const bool small = operation == MULTIMEM_ADD_E4M3 || operation == MULTIMEM_ADD_E5M2;
	const struct small_format *format = operation == MULTIMEM_ADD_E4M3 ? &format_e4m3 : &format_e5m2;

	for (unsigned k = 0; small && k < MULTIMEM_BYTES && k < bytes; k++)
		to[k] = (uint8_t)small_from_double((double)sum[k], format, CONVERT_RN, true);
	for (unsigned k = 0; !small && k < MULTIMEM_BYTES / 2 && k < bytes / 2; k++)
		((MEMORY_TYPE(uint16_t) *)(void *)to)[k] = operation == MULTIMEM_ADD_F16 ? f16_from_float(sum[k]) : bf16_from_float(sum[k]);
}

/* ---- handlers ---------------------------------------------------------------------------------- */

/* Find the copies of one lane's vector on all devices.  Returns NULL after a fault; the handler must then return *stop. */
static const struct copies_slot *find_copies(struct warp_state *s, const struct insn *i, unsigned lane, bool write, uint64_t *offset,
					     const struct insn **stop)
{
	const struct multimem *m = i->object;
	const uint64_t at = lane_address(s, &m->address, lane);
	const struct copies_slot *k;
	char why[160];

	if (at & (m->bytes - 1u)) {
		*stop = gpul_fault_access(s, i, lane, at, m->bytes, write);
		return NULL;
	}
	k = copies_at(s->cache, i->src, at, m->bytes, write, why, sizeof why);
	if (k && !write && k->copies.n_gone) {
		*stop = gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_ADDRESS, lane, "multimem: 0x%llx is in memory of a process that has ended",
					(unsigned long long)at);
		return NULL;
	}
	if (k)
		*offset = at - k->base;
	else
		*stop = gpul_fault_multimem(s, i, lane, at, m->bytes, write, why);
	return k;
}

static inline uint8_t *register_at(const struct warp *w, const struct multimem *m, unsigned element, unsigned lane)
{
	return (uint8_t *)opptr(w, m->data[element]) + lane * m->reg_bytes;
}

static inline void gather_registers(const struct warp *w, const struct multimem *m, unsigned lane, uint8_t *to)
{
	for (unsigned e = 0; e < m->n; e++)
		memcpy(to + e * m->memory_bytes, register_at(w, m, e, lane), m->memory_bytes);
}

HANDLER(MULTIMEM_LOAD)
{
	struct warp_state *s = state_of(w);
	const struct multimem *m = i->object;
	const struct insn *stop;
	uint64_t offset;

	s->block->polls = true;
	EACH_ACTIVE(l, w)
	{
		_Alignas(16) uint8_t sum[MULTIMEM_BYTES], more[MULTIMEM_BYTES];
		const struct copies_slot *k = find_copies(s, i, l, false, &offset, &stop);
		float wide[MULTIMEM_BYTES];

		if (!k)
			return stop;
		load_vector(sum, k->copies.at[0] + offset, m->bytes);
		if (m->widens)
			add_wide(m->operation, wide, sum, m->bytes, true);
		for (unsigned n = 1; n < k->copies.n; n++) {
			load_vector(more, k->copies.at[n] + offset, m->bytes);
			if (m->widens)
				add_wide(m->operation, wide, more, m->bytes, false);
			else
				combine(m->operation, sum, more, m->bytes);
		}
		if (m->widens)
			narrow_sums(m->operation, sum, wide, m->bytes);
		for (unsigned e = 0; e < m->n; e++) {
			memset(register_at(w, m, e, l), 0, m->reg_bytes);
			memcpy(register_at(w, m, e, l), sum + e * m->memory_bytes, m->memory_bytes);
		}
	}
	THREAD_FENCE(memory_order_acquire);
	return i + 1;
}

HANDLER(MULTIMEM_STORE)
{
	struct warp_state *s = state_of(w);
	const struct multimem *m = i->object;
	const struct insn *stop;
	uint64_t offset;

	s->stirs = true;
	THREAD_FENCE(memory_order_release);
	EACH_ACTIVE(l, w)
	{
		_Alignas(16) uint8_t value[MULTIMEM_BYTES];
		const struct copies_slot *k = find_copies(s, i, l, true, &offset, &stop);

		if (!k)
			return stop;
		gather_registers(w, m, l, value);
		for (unsigned n = 0; n < k->copies.n; n++)
			store_vector(k->copies.at[n] + offset, value, m->bytes);
	}
	return i + 1;
}

HANDLER(MULTIMEM_UPDATE)
{
	struct warp_state *s = state_of(w);
	const struct multimem *m = i->object;
	const struct insn *stop;
	uint64_t offset;

	s->stirs = s->block->polls = true;
	THREAD_FENCE(memory_order_release);
	EACH_ACTIVE(l, w)
	{
		_Alignas(16) uint8_t value[MULTIMEM_BYTES];
		const struct copies_slot *k = find_copies(s, i, l, true, &offset, &stop);

		if (!k)
			return stop;
		gather_registers(w, m, l, value);
		for (unsigned n = 0; n < k->copies.n; n++)
			update(m->operation, k->copies.at[n] + offset, value, m->bytes);
	}
	return i + 1;
}
