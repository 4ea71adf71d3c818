/* bytes.h — reads little-endian numbers from untrusted bytes.
 *
 * A read past the end returns 0, does not move the cursor and sets .overrun, so that a parser reads all fields of a
 * structure and then tests once.  Offsets count from the first byte of the cursor. */
#ifndef GPULOAD_CORE_BYTES_H
#define GPULOAD_CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_bytes {
	const unsigned char *base; /* borrowed */
	size_t n_bytes;            /* number of bytes at base */
	size_t at;                 /* offset of the next byte to read; at most n_bytes */
	bool overrun;              /* a read or a seek went past the end; never reset */
} gpul_bytes;

/* Returns a cursor at the first of n_bytes bytes at base; the bytes must outlive the cursor. */
gpul_bytes gpul_bytes_of(const void *base, size_t n_bytes);

/* Read the next number.  If too few bytes are left, return 0 and set .overrun. */
uint8_t gpul_bytes_u8(gpul_bytes *b);
uint16_t gpul_bytes_u16(gpul_bytes *b);
uint32_t gpul_bytes_u32(gpul_bytes *b);
uint64_t gpul_bytes_u64(gpul_bytes *b);

/* Move the cursor to an offset, or forward by n_bytes.  A move past the end is refused and sets .overrun. */
void gpul_bytes_seek(gpul_bytes *b, uint64_t offset);
void gpul_bytes_skip(gpul_bytes *b, uint64_t n_bytes);

/* Skip the next n_bytes and return a cursor over them; if fewer bytes are left, the result is empty, and .overrun is set in it and in b. */
gpul_bytes gpul_bytes_take(gpul_bytes *b, uint64_t n_bytes);

/* Returns the number of unread bytes. */
static inline size_t gpul_bytes_left(const gpul_bytes *b)
{
	return b->n_bytes - b->at;
}

#ifdef __cplusplus
}
#endif

#endif
