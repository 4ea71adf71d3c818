/* fake_gpu.h — tests/fake's failing driver with queues: the test decides when an asynchronous copy is executed; GPU memory consists of
 * segments, whose dma-bufs are memfds. */
#ifndef GPULOAD_TESTS_RDMA_GPU_FAKE_GPU_H
#define GPULOAD_TESTS_RDMA_GPU_FAKE_GPU_H

#include "rdma/gpu/pointer.h"
#include "tests/fake/fake_memory.h"

enum { FAKE_GPU_MAX_SEGMENTS = 16 };

typedef struct fake_segment { /* an allocation */
	uint64_t at, bytes;
	gpul_rdma_pointer_kind kind;
	bool mapped;       /* created by cuMemCreate */
	bool not_for_nics; /* created without gpuDirectRDMACapable */
} fake_segment;

typedef struct fake_gpu {
	fake_segment segments[FAKE_GPU_MAX_SEGMENTS];
	unsigned n_segments;
	bool held; /* true: copies and events wait for fake_gpu_run(); false: they are executed immediately */
	int n_event_queries, n_event_records, n_copies, n_exports;
	CUresult export_result;           /* not 0: the error of cuMemGetHandleForAddressRange */
	unsigned long long export_flags;  /* flags of the last export */
	uint64_t export_at, export_bytes; /* range of the last export */
	uint64_t dmabuf_bytes;            /* not 0: the size of every dma-buf */
	int bad_fd;                       /* not 0: the driver returns this descriptor */
} fake_gpu;

/* Return the fake driver after a reset; call number fail_at fails, as with fake_driver_failing(). */
const gpul_driver *fake_gpu_driver(int fail_at, CUresult with);
fake_gpu *fake_gpu_state(void);

/* Execute the next n copies and events of each stream. */
void fake_gpu_run(int n);
/* Return the number of waiting copies and events in all streams. */
int fake_gpu_waiting(void);

#endif
