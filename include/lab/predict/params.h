/* params.h — the parameters of the model: the built-in ones, those of a named link, or those in a file that gpuload comm
 * plan --measure wrote.
 *
 *     device,transport,protocol,cores,overhead_us,latency_us,gap_us,gb_per_s,reduce_gb_per_s,step_bytes,host,date
 *     NVIDIA H200,device,simple,0,3.1,2.8,0.9,341,3000,8388608,node7,2026-11-23
 *
 * There is one row for each transport and protocol.  cores: number of processors that the ranks of a host share; 0: each
 * rank has its own. */
#ifndef GPULOAD_LAB_PREDICT_PARAMS_H
#define GPULOAD_LAB_PREDICT_PARAMS_H

#include "lab/predict/predict.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPUL_COMM_PARAMS_HEADER \
	"device,transport,protocol,cores,overhead_us,latency_us,gap_us,gb_per_s,reduce_gb_per_s,step_bytes,host,date"

enum { GPUL_COMM_MAX_PARAMS = 64 };

typedef struct gpul_comm_params_row {
	char device[64];
	gpul_comm_transport transport;
	gpul_comm_proto proto;
	unsigned cores;
	gpul_comm_costs costs;
	char host[64], date[16];
} gpul_comm_params_row;

typedef struct gpul_comm_params {
	gpul_comm_params_row rows[GPUL_COMM_MAX_PARAMS];
	unsigned n_rows;
} gpul_comm_params;

/** Read a file of parameters.
 *
 * @path  path of the file
 * @out   filled; empty on failure
 * Errors  GPUL_EFORMAT a malformed line (the text gives the file, the line, the column and what is expected there), two rows for
 *         one transport and protocol, or no rows; GPUL_ESYS the file cannot be read */
gpul_status gpul_comm_params_read(const char *path, gpul_comm_params *out, gpul_error *err);

/* Return the parameters that are used without a file: two H200s with NVLink, set by hand to agree with docs/measured.md. */
const gpul_comm_params *gpul_comm_params_built_in(void);

/* Set m's costs of links inside hosts, and its cores, from the rows of a transport; false: p has no such rows. */
bool gpul_comm_params_apply(const gpul_comm_params *p, gpul_comm_transport transport, gpul_comm_machine *m);

/* A link, described by its latency and bandwidth. */
typedef struct gpul_comm_link {
	const char *name;            /* "": the user gave LATENCY:BANDWIDTH instead of a name */
	double latency_us, gb_per_s; /* of the hardware: latency in one direction, bandwidth of each direction */
	bool memory;                 /* true: a link between GPUs, for all protocols; false: a network, for the protocol Simple only */
} gpul_comm_link;

/** Find a link by its name ("ndr"), or parse "2.5:45": microseconds, GB/s.
 *
 * @text    name, or LATENCY:BANDWIDTH
 * @memory  for LATENCY:BANDWIDTH: whether it is a link between GPUs
 * @out     set
 * Errors  GPUL_EINVAL neither a name nor two positive numbers; the text lists the names */
gpul_status gpul_comm_link_parse(const char *text, bool memory, gpul_comm_link *out, gpul_error *err);

/* Compute the costs of the protocols over a link; overhead, gap and step size are copied from `like`, which may be the same array. */
void gpul_comm_link_costs(const gpul_comm_link *link, const gpul_comm_costs like[GPUL_COMM_N_PROTOS],
			  gpul_comm_costs out[GPUL_COMM_N_PROTOS]);

#ifdef __cplusplus
}
#endif

#endif
