/* predict.h — predicts the time of a collective for any number of ranks, with a model similar to LogGP.
 *
 *     rank A    │ o │ g │ x G │                       o  overhead of a call: launch, greeting, end
 *                              ╲ L                    g  gap: time for which a step keeps a rank busy, without its bytes
 *     rank B    │ o │           │ g │ x G │           G  time for a byte of data: 1 / bandwidth
 *                                                     L  latency: from the end of a step on one rank to its start on the next one
 *
 * A step transfers at most S bytes: a slot of each block.  A step that adds the received data to the rank's own data takes C longer
 * per byte.  Links inside a host and between hosts have costs of their own, for each protocol.  If the ranks of a host share
 * `cores` processors (the software driver), their busy times are longer. docs/comm-plan.md derives the formulas. */
#ifndef GPULOAD_LAB_PREDICT_PREDICT_H
#define GPULOAD_LAB_PREDICT_PREDICT_H

#include <stdint.h>

#include "comm/types.h"
#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	GPUL_COMM_PREDICT_MAX_RANKS = 1 << 16,
	GPUL_COMM_PREDICT_LEVELS = 18, /* a path in a tree of 65,536 places has at most 16 edges */
	GPUL_COMM_PREDICT_PATH_WORDS = GPUL_COMM_PREDICT_LEVELS * GPUL_COMM_PREDICT_LEVELS * GPUL_COMM_PREDICT_LEVELS *
					       GPUL_COMM_PREDICT_LEVELS / 64 +
				       1,
};

/* The costs of a protocol over a kind of link; step_bytes 0: the protocol is not possible there. */
typedef struct gpul_comm_costs {
	double overhead_us;        /* o: overhead of a call */
	double latency_us;         /* L: time from the end of a step on one rank to its start on the next one */
	double gap_us;             /* g: time for which a step keeps a rank busy, without its bytes */
	double us_per_byte;        /* G: time for a byte of data */
	double reduce_us_per_byte; /* C: additional time per byte of a step that adds */
	double step_bytes;         /* S: maximum size of a step */
} gpul_comm_costs;

/* A modelled system: ranks, their hosts and their links. */
typedef struct gpul_comm_machine {
	uint32_t n_ranks;        /* number of ranks, 2 to GPUL_COMM_PREDICT_MAX_RANKS */
	uint32_t ranks_per_host; /* the last host may have fewer */
	double cores;            /* processors that the ranks of a host share; 0: each rank has its own (a GPU) */
	gpul_comm_costs inside[GPUL_COMM_N_PROTOS], across[GPUL_COMM_N_PROTOS];
	uint64_t paths[GPUL_COMM_PREDICT_PATH_WORDS]; /* set by gpul_comm_machine_prepare() */
} gpul_comm_machine;

/** Compute the paths of the trees.  Call it once, after setting n_ranks and ranks_per_host.
 *
 * @m  n_ranks and ranks_per_host are used, paths is set
 * Errors  GPUL_EINVAL a number of ranks out of range, or no ranks per host */
gpul_status gpul_comm_machine_prepare(gpul_comm_machine *m, gpul_error *err);

/** Compute the time of a call.
 *
 * @m      prepared
 * @call   collective, or GPUL_COMM_SENDRECV: each rank sends to the next one
 * @algo   algorithm
 * @proto  protocol
 * @bytes  size of the larger buffer of a rank
 * Errors  none: the result is in microseconds; negative if there is no such algorithm for this call and machine
 * Source  Alexandrov et al., LogGP, SPAA 1995; Sanders, Speck and Traeff, Two-tree algorithms, 2009 */
double gpul_comm_predict(const gpul_comm_machine *m, gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto, double bytes);

/** Find the fastest algorithm and protocol for a size.
 *
 * @m      prepared
 * @call   collective
 * @bytes  size of the larger buffer of a rank
 * @algo   set
 * @proto  set
 * Errors  none: the result is the time; negative, with nothing set, if no algorithm is possible */
double gpul_comm_predict_best(const gpul_comm_machine *m, gpul_comm_call call, double bytes, gpul_comm_algo *algo, gpul_comm_proto *proto);

/* A measured call. */
typedef struct gpul_comm_point {
	gpul_comm_call call;
	gpul_comm_algo algo;
	double bytes, us;
} gpul_comm_point;

/** Find a protocol's costs inside a host that fit measured calls best: least squares of the logarithm of (predicted time
 * / measured time).  A parameter that the calls do not determine stays near the first guess.
 *
 * @m       prepared, of one host; inside[proto] holds the first guess, with its step_bytes, and is replaced
 * @proto   protocol of all points
 * @points  measured calls
 * @n       their number, at least 5
 * Errors  GPUL_EINVAL fewer points, or a point without time or without prediction
 * Source  Nelder and Mead, A simplex method for function minimization, 1965 */
gpul_status gpul_comm_fit(gpul_comm_machine *m, gpul_comm_proto proto, const gpul_comm_point *points, unsigned n, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
