/* bytes.c — reads little-endian numbers through a bounds-checked cursor. */
#include "core/bytes.h"

gpul_bytes gpul_bytes_of(const void *base, size_t n_bytes)
{
	return (gpul_bytes){ .base = base, .n_bytes = n_bytes };
}

/* Reads byte by byte, which works for every byte order and alignment; compilers turn the loop into a single load. */
static uint64_t read_number(gpul_bytes *b, size_t width)
{
	uint64_t value = 0;

	if (gpul_bytes_left(b) < width) {
		b->overrun = true;
		return 0;
	}
	for (size_t i = 0; i < width; i++)
		value |= (uint64_t)b->base[b->at + i] << (8 * i);
	b->at += width;
	return value;
}

uint8_t gpul_bytes_u8(gpul_bytes *b)
{
	return (uint8_t)read_number(b, 1);
}

uint16_t gpul_bytes_u16(gpul_bytes *b)
{
	return (uint16_t)read_number(b, 2);
}

uint32_t gpul_bytes_u32(gpul_bytes *b)
{
	return (uint32_t)read_number(b, 4);
}

uint64_t gpul_bytes_u64(gpul_bytes *b)
{
	return read_number(b, 8);
}

void gpul_bytes_seek(gpul_bytes *b, uint64_t offset)
{
	if (offset > b->n_bytes)
		b->overrun = true;
	else
		b->at = (size_t)offset;
}

void gpul_bytes_skip(gpul_bytes *b, uint64_t n_bytes)
{
	(void)gpul_bytes_take(b, n_bytes);
}

gpul_bytes gpul_bytes_take(gpul_bytes *b, uint64_t n_bytes)
{
	gpul_bytes part = { .overrun = true };

	if (n_bytes > gpul_bytes_left(b)) {
		b->overrun = true;
		return part;
	}
	part = gpul_bytes_of(b->base + b->at, (size_t)n_bytes);
	b->at += (size_t)n_bytes;
	return part;
}
