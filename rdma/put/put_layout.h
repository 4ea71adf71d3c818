/* put_layout.h — the trigger by which a kernel requests a put, for C, C++, nvcc and NVRTC; it includes no other header.
 *
 *         63    62            32 31             0
 *        ┌─────┬────────────────┬────────────────┐   offsets in units of 16 bytes, of the source in the local region and of
 * word 0 │ lap │ to             │ from           │   the destination in the peer's
 *        ├─────┼──────┬─────────┴┬───────┬───────┤
 * word 1 │ lap │ kind │ route    │ step  │ bytes │   route: which peer; step: which word of the peer's steps is raised by 1
 *        └─────┴──────┴──────────┴───────┴───────┘   behind the data (NO_STEP: none)
 *                62-59  58-49      48-31   30-0 */
#ifndef GPULOAD_RDMA_PUT_PUT_LAYOUT_H
#define GPULOAD_RDMA_PUT_PUT_LAYOUT_H

enum {
	GPUL_RDMA_PUT_UNIT = 16,         /* of offsets */
	GPUL_RDMA_PUT_ROUTES = 1 << 10,
	GPUL_RDMA_PUT_NO_STEP = (1 << 18) - 1,
};

#define GPUL_RDMA_PUT_WORD0(from_bytes, to_bytes) \
	((unsigned long long)(from_bytes) / 16 | (unsigned long long)(to_bytes) / 16 << 32)
#define GPUL_RDMA_PUT_WORD1(kind, route, step, bytes) \
	((unsigned long long)(kind) << 59 | (unsigned long long)(route) << 49 | (unsigned long long)(step) << 31 | \
	 (unsigned long long)(bytes))

#define GPUL_RDMA_PUT_FROM(word0) (((word0) & 0xffffffffull) * 16)
#define GPUL_RDMA_PUT_TO(word0) (((word0) >> 32 & 0x7fffffffull) * 16)
#define GPUL_RDMA_PUT_ROUTE(word1) ((unsigned)((word1) >> 49) & 0x3ff)
#define GPUL_RDMA_PUT_STEP(word1) ((unsigned)((word1) >> 31) & 0x3ffff)
#define GPUL_RDMA_PUT_BYTES(word1) ((word1) & 0x7fffffffull)

#endif
