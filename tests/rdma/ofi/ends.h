/* ends.h — two ends of a libfabric path (rdma/ofi/path.c) in one process, each with its own device, over the fake libfabric. */
#ifndef GPULOAD_TESTS_RDMA_OFI_ENDS_H
#define GPULOAD_TESTS_RDMA_OFI_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "rdma/backend/backend.h"
#include "tests/fake/fake_ofi.h"

enum { OFI_END_BYTES = 1 << 16, OFI_END_DEPTH = 64 };

struct ofi_end {
	void *device, *path, *token;
	unsigned char *memory;
	gpul_rdma_piece piece;
};

/* Open a device, register its memory, create a path; returns the status, with everything undone on failure. */
gpul_status ofi_end_open(struct ofi_end *e, const gpul_rdma_device_desc *desc, unsigned n_qps, gpul_error *err);
void ofi_end_close(struct ofi_end *e);
gpul_status ofi_ends_connect(struct ofi_end *a, struct ofi_end *b, gpul_error *err);

/* Open and connect two ends; every step must succeed. */
void ofi_ends_open(struct ofi_end *a, struct ofi_end *b, const char *provider, unsigned n_qps);

/* Post operations; returns how many were accepted.  The post must succeed. */
unsigned ofi_post(struct ofi_end *e, const gpul_rdma_op *ops, unsigned n);
/* Poll once; returns the number of events.  The poll must succeed. */
unsigned ofi_poll(struct ofi_end *e, gpul_rdma_event *events, unsigned max);

/* Make a write from the memory of one end to that of the other. */
gpul_rdma_op ofi_write_op(const struct ofi_end *from, const struct ofi_end *to, gpul_rdma_op_kind kind, uint64_t offset, uint32_t n_bytes,
			  uint64_t id);

#endif
