/* bytes.h — read little-endian numbers out of bytes that nobody has checked.
 *
 * A read beyond the end gives 0, moves nothing and sets .overrun, so that a reader takes all
 * fields of a structure first and asks once.  An offset counts from the start of the cursor. */
#ifndef GPULOAD_CORE_BYTES_H
#define GPULOAD_CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_bytes {
	const unsigned char *base;  /* borrowed */
	size_t n_bytes;             /* at base */
	size_t at;                  /* next byte to read; never above n_bytes */
	bool overrun;               /* a read or a seek went beyond the end; stays */
} gpul_bytes;

/* A cursor at the start of n_bytes at base, which must outlive it. */
gpul_bytes gpul_bytes_of(const void *base, size_t n_bytes);

/* The next number, and step over it; 0 with .overrun when it is not all there. */
uint8_t gpul_bytes_u8(gpul_bytes *b);
uint16_t gpul_bytes_u16(gpul_bytes *b);
uint32_t gpul_bytes_u32(gpul_bytes *b);
uint64_t gpul_bytes_u64(gpul_bytes *b);

/* Go to an offset, or on by so many bytes; beyond the end: stay, with .overrun. */
void gpul_bytes_seek(gpul_bytes *b, uint64_t offset);
void gpul_bytes_skip(gpul_bytes *b, uint64_t n_bytes);

/* The next n_bytes as a cursor of their own, and step over them; an empty one with .overrun when
 * they are not all there (b's is set too). */
gpul_bytes gpul_bytes_take(gpul_bytes *b, uint64_t n_bytes);

/* How many bytes are still to be read. */
static inline size_t gpul_bytes_left(const gpul_bytes *b)
{
	return b->n_bytes - b->at;
}

#ifdef __cplusplus
}
#endif

#endif
