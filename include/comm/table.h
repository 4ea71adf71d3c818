/* table.h — the tuning table: a file of measured choices of the algorithm, protocol, blocks and threads of each call, by size.
 *
 *     device,ranks,transport,call,up_to_bytes,algorithm,protocol,blocks,threads,us,host,date
 *     NVIDIA H200,2,device,allreduce,8192,oneshot,ll,8,256,4.6,node7,2026-11-23
 *     NVIDIA H200,2,device,allreduce,1048576,direct,simple,32,512,9.1,node7,2026-11-23
 *
 * One file can describe several devices and numbers of ranks.  A row applies to calls of up to up_to_bytes bytes; the last row
 * of a call also applies to all larger ones. gpuload comm tune writes such files, and users may edit them. */
#ifndef GPULOAD_COMM_TABLE_H
#define GPULOAD_COMM_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "comm/types.h"
#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPUL_COMM_TABLE_HEADER "device,ranks,transport,call,up_to_bytes,algorithm,protocol,blocks,threads,us,host,date"

typedef struct gpul_comm_table_row {
	char device[64]; /* name of the device, from cuDeviceGetName() */
	int n_ranks;
	gpul_comm_transport transport; /* DEVICE: all pairs of ranks use device memory; NET: some use the network; HOST: otherwise */
	gpul_comm_call call;
	uint64_t max_bytes;
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	unsigned n_blocks, n_threads;
	double us;               /* measured time of a call of max_bytes */
	char host[64], date[16]; /* where and when it was measured */
} gpul_comm_table_row;

typedef struct gpul_comm_table {
	gpul_comm_table_row *rows; /* rows of the same device, transport, number of ranks and call are in ascending order of max_bytes */
	size_t n_rows;
} gpul_comm_table;

/** Read a tuning table.
 *
 * @path  path of the file
 * @out   owned by the caller: gpul_comm_table_free(); empty on failure
 * Errors  GPUL_EFORMAT a malformed line (the text gives the file, the line, the column and what is expected there); GPUL_ESYS
 *         the file cannot be read; GPUL_ENOMEM */
gpul_status gpul_comm_table_read(const char *path, gpul_comm_table *out, gpul_error *err);
void gpul_comm_table_free(gpul_comm_table *t); /* an empty table is fine */

#ifdef __cplusplus
}
#endif

#endif
