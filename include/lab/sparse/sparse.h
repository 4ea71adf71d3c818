/* sparse.h — all-reduce of sparse data over the send path: only non-zero blocks are sent.
 *
 *     input ── kernel: which blocks are not zero ── how many on all ranks?
 *                                                     │ many: gpul_comm_allreduce()
 *                                                     │ few:
 *     kernel: pack the non-zero blocks ──> messages to the aggregators ── sum on the CPU ──> messages to all ranks ──> kernel: unpack
 *
 * Each rank aggregates an equal share of the blocks (protocol.h).  A block is zero if all its bits are 0, so a block with -0 is sent.  The
 * sums are computed in the order of the ranks: every rank gets the same bits in every run, equal to those of a dense sum in this order.
 *
 * Unlike the collectives of comm.h, a call uses the CPU of the calling thread until the data has been exchanged. */
#ifndef GPULOAD_LAB_SPARSE_SPARSE_H
#define GPULOAD_LAB_SPARSE_SPARSE_H

#include "comm/comm.h"
#include "comm/net/mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_sparse gpul_comm_sparse; /* opaque; the struct is defined in sparse_internal.h */

enum { GPUL_COMM_SPARSE_BLOCK = 256, GPUL_COMM_SPARSE_MAX_BLOCK = 65536, GPUL_COMM_SPARSE_PERCENT = 50 };

/* 0 or NULL is the default of every field. */
typedef struct gpul_comm_sparse_options {
	gpul_comm *comm;                 /* borrowed: used for dense data; NULL: all data is exchanged in blocks */
	uint32_t block;                  /* elements of a block: a multiple of 16; 0: GPUL_COMM_SPARSE_BLOCK */
	uint32_t percent;                /* data is treated as dense if a sparse exchange would send more than this percentage of
					  * the bytes of a dense ring; 0: GPUL_COMM_SPARSE_PERCENT */
	int timeout_ms;                  /* time-out of each wait for another rank; 0 means 60 s; < 0: none */
	gpul_rdma_gpu_direct gpu_direct; /* whether blocks are packed in device memory, from which the NIC sends them: AUTO: if
					  * possible, except with a driver whose device memory is host memory; YES: fail if it is
					  * not possible; NO: in host memory.  Each rank chooses for itself.  AUTO and YES need a
					  * mesh that has been opened with a driver and GPUL_RDMA_GPU_DIRECT_YES */
} gpul_comm_sparse_options;

/** Allocate and register the buffers, and exchange their addresses.  All ranks call it, with the same options.
 *
 * @drv      borrowed; the context of the rank's device is current
 * @device   ordinal of the rank's device
 * @boot     borrowed: the bootstrap of the job
 * @mesh     borrowed: connections between all ranks; no other thread uses them during a call
 * @options  copied; NULL: all defaults
 * @out      owned by the caller: gpul_comm_sparse_destroy(); untouched on failure
 * Errors  GPUL_EINVAL invalid options, or options that differ between ranks; GPUL_EUNSUPPORTED gpu_direct is YES and not possible
 *         (the text gives the reason); GPUL_ENOMEM; GPUL_ECUDA; as gpul_rdma_register_mem() and gpul_boot_allgather()
 * Threads one at a time */
gpul_status gpul_comm_sparse_create(const gpul_driver *drv, int device, gpul_boot *boot, gpul_comm_mesh *mesh,
				    const gpul_comm_sparse_options *options, gpul_comm_sparse **out, gpul_error *err);
/* Free the buffers.  Must be called before the mesh is destroyed.  NULL is fine; cannot fail. */
void gpul_comm_sparse_destroy(gpul_comm_sparse *s);

/* Describe where this rank packs blocks: "GPU-direct", or "staged in host memory: " and the reason.  Valid until the next call on s. */
const char *gpul_comm_sparse_memory(const gpul_comm_sparse *s);

/* The statistics of a call on this rank. */
typedef struct gpul_comm_sparse_report {
	uint32_t n_blocks, n_non_zero; /* blocks of this rank's input, and how many are not zero */
	double density;                /* number of non-zero blocks on all ranks / number of blocks on all ranks */
	bool dense;                    /* the data was dense: gpul_comm_allreduce() was used */
	uint32_t n_summed;             /* number of blocks that are not zero on at least one rank, and were summed; 0: dense */
	uint64_t sent_bytes;           /* bytes sent by this rank to others, with the headers; 0: dense */
} gpul_comm_sparse_report;

/** Sum the ranks' send buffers element by element; every rank gets the whole result.
 *
 * Returns when this rank has exchanged its data; the last kernels may still run on the stream.  After a failure, later calls fail.
 *
 * @s       all ranks make the same calls in the same order
 * @send    device memory of count elements; any alignment that the type allows
 * @recv    device memory of count elements; equal to send, or not overlapping it
 * @count   elements; 0 is fine
 * @dtype   type of an element
 * @op      GPUL_COMM_SUM or GPUL_COMM_AVG
 * @stream  earlier work on it is completed first; later work sees the result
 * @report  NULL: not wanted
 * Errors  GPUL_EINVAL an invalid type, operation or alignment, NULL, overlapping buffers, too many elements; GPUL_ECOMM a rank died or
 *         failed, sent nothing for timeout_ms, or called with other arguments (the text names it); GPUL_ENOMEM; GPUL_ECUDA
 * Threads one at a time; the context of the device is current
 * Source  J. Fei and others, Efficient Sparse Collective Communication and its Application to Accelerate Distributed Deep Learning,
 *         SIGCOMM 2021 */
gpul_status gpul_comm_sparse_allreduce(gpul_comm_sparse *s, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype,
				       gpul_comm_op op, CUstream stream, gpul_comm_sparse_report *report, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
