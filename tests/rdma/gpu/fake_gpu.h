/* fake_gpu.h — the failing driver with queues: the test decides when an asynchronous copy is
 * executed; GPU memory consists of segments, whose dma-bufs are memfds. */
#ifndef GPULOAD_TESTS_RDMA_GPU_FAKE_GPU_H
#define GPULOAD_TESTS_RDMA_GPU_FAKE_GPU_H

#include "rdma/gpu/pointer.h"
#include "tests/fake/fake_memory.h"

enum { FAKE_GPU_MAX_SEGMENTS = 16 };

typedef struct fake_segment { /* an allocation */
	uint64_t at, bytes;
	gpul_rdma_pointer_kind kind;
	bool mapped;       /* memory of cuMemCreate */
	bool not_for_nics; /* created without gpuDirectRDMACapable */
} fake_segment;

typedef struct fake_gpu {
	fake_segment segments[FAKE_GPU_MAX_SEGMENTS];
	unsigned n_segments;
	bool held; /* copies and events wait for fake_gpu_run(); otherwise they are done at once */
	int n_event_queries, n_event_records, n_copies, n_exports;
	CUresult export_result;           /* not 0: cuMemGetHandleForAddressRange fails with this
					    * error */
	unsigned long long export_flags;  /* of the last call */
	uint64_t export_at, export_bytes; /* of the last call */
	uint64_t dmabuf_bytes;            /* not 0: the size of every dma-buf */
	int bad_fd;                       /* not 0: the driver returns this descriptor */
} fake_gpu;

/* Reset, like fake_driver_failing(). */
const gpul_driver *fake_gpu_driver(int fail_at, CUresult with);
fake_gpu *fake_gpu_state(void);

/* Execute the next n copies and events of each stream. */
void fake_gpu_run(int n);
/* The number of copies and events that wait, of all streams. */
int fake_gpu_waiting(void);

#endif
