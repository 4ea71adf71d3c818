/* put_layout.h — the layout of the trigger by which a kernel requests a put; for C, C++, nvcc and NVRTC, so it includes no other header.
 *
 *         63    62            32 31             0
 *        ┌─────┬────────────────┬────────────────┐   offsets in units of 16 bytes, of the source in the local region and of
 * word 0 │ lap │ to             │ from           │   the destination in the peer's
 *        ├─────┼──────┬─────────┴┬───────┬───────┤
 * word 1 │ lap │ kind │ route    │ step  │ bytes │   route: which peer; step: which of the peer's step words is raised by 1
 *        └─────┴──────┴──────────┴───────┴───────┘   after the data (NO_STEP: none)
 *                62-59  58-49      48-31   30-0
 *
 * An offset is a multiple of 16, below 64 GiB - 16 of the source and below 32 GiB - 16 of the destination; a put has less than 2 GiB - 1
 * bytes.  The largest value of each of these three fields means "does not fit": the macros write it if a value is too large for its
 * field, and the CPU refuses the trigger.  So a value is never truncated, and never overflows into another field or the lap bit. */
#ifndef GPULOAD_RDMA_PUT_PUT_LAYOUT_H
#define GPULOAD_RDMA_PUT_PUT_LAYOUT_H

enum {
	GPUL_RDMA_PUT_UNIT = 16, /* offsets are multiples of this many bytes */
	GPUL_RDMA_PUT_KINDS = 1 << 4,
	GPUL_RDMA_PUT_ROUTES = 1 << 10,
	GPUL_RDMA_PUT_NO_STEP = (1 << 18) - 1,
};

/* The smallest offsets and the smallest size that do not fit into their fields. */
#define GPUL_RDMA_PUT_FROM_END  (0xffffffffull * 16)
#define GPUL_RDMA_PUT_TO_END    (0x7fffffffull * 16)
#define GPUL_RDMA_PUT_BYTES_END 0x7fffffffull

/* True if the values fit into a trigger. */
#define GPUL_RDMA_PUT_OFFSETS_FIT(from_bytes, to_bytes) \
	((unsigned long long)(from_bytes) < GPUL_RDMA_PUT_FROM_END && (unsigned long long)(to_bytes) < GPUL_RDMA_PUT_TO_END && \
	 ((unsigned long long)(from_bytes) | (unsigned long long)(to_bytes)) % 16 == 0)
#define GPUL_RDMA_PUT_FIELDS_FIT(kind, route, step, bytes) \
	((unsigned long long)(kind) < GPUL_RDMA_PUT_KINDS && (unsigned long long)(route) < GPUL_RDMA_PUT_ROUTES && \
	 (unsigned long long)(step) <= GPUL_RDMA_PUT_NO_STEP && (unsigned long long)(bytes) < GPUL_RDMA_PUT_BYTES_END)

/* The two words of a trigger; each argument is evaluated more than once. */
#define GPUL_RDMA_PUT_WORD0(from_bytes, to_bytes) \
	(GPUL_RDMA_PUT_OFFSETS_FIT(from_bytes, to_bytes) \
		 ? (unsigned long long)(from_bytes) / 16 | (unsigned long long)(to_bytes) / 16 << 32 \
		 : 0x7fffffffffffffffull)
#define GPUL_RDMA_PUT_WORD1(kind, route, step, bytes) \
	(GPUL_RDMA_PUT_FIELDS_FIT(kind, route, step, bytes) ? (unsigned long long)(kind) << 59 | (unsigned long long)(route) << 49 | \
								      (unsigned long long)(step) << 31 | (unsigned long long)(bytes) \
							    : ((unsigned long long)(kind) & 15) << 59 | GPUL_RDMA_PUT_BYTES_END)

#define GPUL_RDMA_PUT_FROM(word0)  (((word0) & 0xffffffffull) * 16)
#define GPUL_RDMA_PUT_TO(word0)    (((word0) >> 32 & 0x7fffffffull) * 16)
#define GPUL_RDMA_PUT_ROUTE(word1) ((unsigned)((word1) >> 49) & 0x3ff)
#define GPUL_RDMA_PUT_STEP(word1)  ((unsigned)((word1) >> 31) & 0x3ffff)
#define GPUL_RDMA_PUT_BYTES(word1) ((word1) & 0x7fffffffull)

#endif
