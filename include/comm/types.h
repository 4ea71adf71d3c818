/* types.h — element types, operations, algorithms, protocols and transports of comm, and their names. */
#ifndef GPULOAD_COMM_TYPES_H
#define GPULOAD_COMM_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels use the same numbers (device/reduce.cuh). */
/* clang-format off */
typedef enum gpul_comm_dtype {
	GPUL_COMM_F16, GPUL_COMM_BF16, GPUL_COMM_F32, GPUL_COMM_F64, GPUL_COMM_I32, GPUL_COMM_U8, GPUL_COMM_N_DTYPES
} gpul_comm_dtype;
/* clang-format on */

typedef enum gpul_comm_op { GPUL_COMM_SUM, GPUL_COMM_PROD, GPUL_COMM_MIN, GPUL_COMM_MAX, GPUL_COMM_AVG, GPUL_COMM_N_OPS } gpul_comm_op;

typedef enum gpul_comm_call {
#define GPUL_COMM_CALL(id, ...) GPUL_COMM_##id,
#include "comm/calls.def"
	GPUL_COMM_N_CALLS
} gpul_comm_call;

typedef enum gpul_comm_algo {
	GPUL_COMM_ALGO_AUTO,
	GPUL_COMM_RING,      /* data passes from rank to rank through channels */
	GPUL_COMM_ONE_SHOT,  /* all-reduce: each rank sends its data to all others, and reduces all of it */
	GPUL_COMM_DIRECT,    /* each rank reads or writes the other ranks' buffers directly, or uses all channels at the
			       * same time; all-reduce has two phases: each rank reduces its part, then writes it to all others */
	GPUL_COMM_TREE,      /* all-reduce: sums go up a binary tree of channels, and the result comes down */
	GPUL_COMM_TWO_LEVEL, /* all-reduce: rings of channels within the hosts, and rings between hosts */
	GPUL_COMM_N_ALGOS
} gpul_comm_algo;

typedef enum gpul_comm_proto {
	GPUL_COMM_PROTO_AUTO,
	GPUL_COMM_LL,     /* 8-byte words of 4 bytes data and 4 bytes flag: lowest latency, half the rate */
	GPUL_COMM_LL128,  /* 128-byte lines of 120 bytes data and 8 bytes flag */
	GPUL_COMM_SIMPLE, /* data, a fence, a step counter: full rate */
	GPUL_COMM_N_PROTOS
} gpul_comm_proto;

typedef enum gpul_comm_transport {
	GPUL_COMM_TRANSPORT_AUTO,
	GPUL_COMM_DEVICE, /* device memory of the receiving rank's GPU, mapped by the sending rank */
	GPUL_COMM_HOST,   /* host memory of a NUMA node, mapped by both ranks */
	GPUL_COMM_NET,    /* the send path (rdma/): between machines */
	GPUL_COMM_N_TRANSPORTS
} gpul_comm_transport;

/* Size of an element; 0: no such type. */
size_t gpul_comm_dtype_bytes(gpul_comm_dtype dtype);

/* Return the names that the command line uses ("f32", "sum", "allreduce", "ring", "ll128", "device", and "auto" where it
 * exists); "?" for an unknown number.  Any thread may call. */
const char *gpul_comm_dtype_name(gpul_comm_dtype dtype);
const char *gpul_comm_op_name(gpul_comm_op op);
const char *gpul_comm_call_name(gpul_comm_call call);
const char *gpul_comm_algo_name(gpul_comm_algo algo);
const char *gpul_comm_proto_name(gpul_comm_proto proto);
const char *gpul_comm_transport_name(gpul_comm_transport transport);

/* Parse a name that the functions above return; false: the name is unknown. */
bool gpul_comm_dtype_parse(const char *text, gpul_comm_dtype *out);
bool gpul_comm_op_parse(const char *text, gpul_comm_op *out);
bool gpul_comm_call_parse(const char *text, gpul_comm_call *out);
bool gpul_comm_algo_parse(const char *text, gpul_comm_algo *out);
bool gpul_comm_proto_parse(const char *text, gpul_comm_proto *out);
bool gpul_comm_transport_parse(const char *text, gpul_comm_transport *out);

#ifdef __cplusplus
}
#endif

#endif
