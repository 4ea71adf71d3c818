/* area.c — formats, checks and aborts the FIFO's area in host memory. */
#include "proxy/fifo_internal.h"

#include <string.h>

static_assert(sizeof(struct gpul_trigger) == 16, "as drawn");
static_assert(sizeof(struct gpul_fifo_line) == 64, "a cache line");
static_assert(sizeof(struct gpul_fifo_header) == 128, "two cache lines: the second is written by kernels");
static_assert(offsetof(struct gpul_fifo_header, raised) == 64, "begins the second cache line");
static_assert(sizeof(struct gpul_fifo_lane) == 128, "a cache line of the GPU's L2");
static_assert(offsetof(struct gpul_fifo_lane, shared_tail) == 32, "a separate sector");
static_assert(sizeof(struct gpul_fifo_device) == 40, "fifo.ptx copies it as five 8-byte words");

static bool power_of_two(unsigned n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static bool shape_is_valid(const gpul_fifo_shape *s)
{
	return power_of_two(s->slots) && power_of_two(s->lanes) && s->slots <= GPUL_FIFO_MAX_SLOTS && s->lanes <= GPUL_FIFO_MAX_LANES &&
	       s->lanes <= s->slots;
}

size_t gpul_fifo_slots_offset(unsigned lanes)
{
	size_t end = sizeof(struct gpul_fifo_header) + lanes * sizeof(struct gpul_fifo_line);

	return (end + GPUL_FIFO_AREA_ALIGNMENT - 1) / GPUL_FIFO_AREA_ALIGNMENT * GPUL_FIFO_AREA_ALIGNMENT;
}

size_t gpul_fifo_area_bytes(const gpul_fifo_shape *shape)
{
	if (!shape_is_valid(shape))
		return 0;
	return gpul_fifo_slots_offset(shape->lanes) + shape->slots * sizeof(struct gpul_trigger);
}

unsigned gpul_fifo_shift_of(const gpul_fifo_shape *shape)
{
	return (unsigned)__builtin_ctz(shape->slots / shape->lanes);
}

gpul_status gpul_fifo_area_format(void *area, size_t bytes, const gpul_fifo_shape *shape, gpul_error *err)
{
	const size_t needed = gpul_fifo_area_bytes(shape);
	struct gpul_fifo_header *h = area;

	if (!needed)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a FIFO cannot have %u slots in %u lanes: both must be powers of two, 1 to %d slots, 1 to %d "
				 "lanes, and at least one slot per lane",
				 shape->slots, shape->lanes, GPUL_FIFO_MAX_SLOTS, GPUL_FIFO_MAX_LANES);
	if (!area || (uintptr_t)area % GPUL_FIFO_AREA_ALIGNMENT != 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "the memory at %p for a FIFO is not aligned to %d bytes", area,
				 GPUL_FIFO_AREA_ALIGNMENT);
	if (bytes < needed)
		return gpul_fail(err, GPUL_EINVAL, 0, "a FIFO of %u slots in %u lanes needs %zu bytes, but the memory has %zu bytes",
				 shape->slots, shape->lanes, needed, bytes);
	memset(h, 0, sizeof(*h));
	gpul_fifo_area_empty(area, shape);
	return GPUL_OK;
}

void gpul_fifo_area_empty(void *area, const gpul_fifo_shape *shape)
{
	const size_t needed = gpul_fifo_area_bytes(shape);
	struct gpul_fifo_header *h = area;

	h->magic = 0;
	h->version = GPUL_FIFO_VERSION;
	h->lanes = shape->lanes;
	h->lane_shift = gpul_fifo_shift_of(shape);
	h->bytes = needed;
	h->raised = 0;
	memset(gpul_fifo_lines(area), 0, needed - sizeof(*h));
	__atomic_store_n(&h->magic, GPUL_FIFO_MAGIC, __ATOMIC_RELEASE); /* written last, because it publishes the other fields */
}

gpul_status gpul_fifo_area_check(const void *area, size_t bytes, gpul_fifo_shape *out, gpul_error *err)
{
	gpul_fifo_shape shape;

	if (!area || (uintptr_t)area % GPUL_FIFO_AREA_ALIGNMENT != 0 || bytes < sizeof(struct gpul_fifo_header))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%zu bytes at %p cannot hold a FIFO: expected at least %zu bytes, aligned to %d",
				 bytes, area, sizeof(struct gpul_fifo_header), GPUL_FIFO_AREA_ALIGNMENT);

	/* Copy the header once (volatile), because a peer may change it between a check and a use. */
	const struct gpul_fifo_header h = *(const volatile struct gpul_fifo_header *)area;

	if (h.magic != GPUL_FIFO_MAGIC || h.version != GPUL_FIFO_VERSION)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the memory at %p does not contain a FIFO: its magic number is 0x%08x and its version %u; "
				 "expected 0x%08x and version %d",
				 area, h.magic, h.version, GPUL_FIFO_MAGIC, GPUL_FIFO_VERSION);
	if (h.lane_shift > 24 || !power_of_two(h.lanes) || h.lanes > GPUL_FIFO_MAX_LANES)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the FIFO at %p has an invalid shape: %u lanes of 2^%u slots", area, h.lanes,
				 h.lane_shift);
	shape = (gpul_fifo_shape){ .slots = h.lanes << h.lane_shift, .lanes = h.lanes };
	if (!shape_is_valid(&shape) || gpul_fifo_area_bytes(&shape) != h.bytes || h.bytes > bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the header of the FIFO at %p gives %u lanes of 2^%u slots in %llu bytes: expected %zu bytes, "
				 "and the memory has %zu bytes",
				 area, h.lanes, h.lane_shift, h.bytes, gpul_fifo_area_bytes(&shape), bytes);
	*out = shape;
	return GPUL_OK;
}

/* Read an abort code.  Codes have 32 bits; if a kernel wrote a larger value, return UINT32_MAX. */
static uint32_t load_code(const unsigned long long *word)
{
	const uint64_t code = gpul_fifo_load(word);

	return code < UINT32_MAX ? (uint32_t)code : UINT32_MAX;
}

void gpul_fifo_area_abort(void *area, unsigned lanes, uint32_t code)
{
	struct gpul_fifo_line *lines = gpul_fifo_lines(area);

	/* If two threads abort at the same time, the first to write lane 0 decides: the other thread then writes the same code. */
	for (unsigned i = 0; i < lanes; i++) {
		unsigned long long none = 0;

		if (!__atomic_compare_exchange_n(&lines[i].abort, &none, code, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) && i == 0)
			code = load_code(&lines[0].abort);
	}
}

uint32_t gpul_fifo_area_aborted(void *area, unsigned lanes)
{
	const struct gpul_fifo_header *h = area;
	const struct gpul_fifo_line *lines = gpul_fifo_lines(area);
	const uint32_t raised = load_code(&h->raised);

	if (raised && !load_code(&lines[0].abort))
		gpul_fifo_area_abort(area, lanes, raised);
	return load_code(&lines[0].abort);
}
