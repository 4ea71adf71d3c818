/* sparse.c — a sparse all-reduce with gpuload's library.
 *
 *     gpuload comm launch -n 4 -- ./sparse [PERCENT]         PERCENT of the blocks are not zero; default 1 */
#include <stdio.h>
#include <stdlib.h>

#include "comm/bootstrap/boot.h"
#include "lab/sparse/sparse.h"

enum { COUNT = 1000000, BYTES = COUNT * sizeof(float), WAIT_MS = 60 * 1000 };

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "sparse: %s\n", err->text);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static float data[COUNT];
	const double percent = argc > 1 ? atof(argv[1]) : 1;
	const gpul_comm_mesh_desc network = { .rdma = { .backend = "libfabric", .device = { .gpu = -1, .gid_index = -1 } } };
	gpul_comm_sparse_options options = { 0 };
	gpul_comm_sparse_report report;
	gpul_comm_job job;
	const gpul_driver *drv;
	gpul_boot *boot;
	gpul_comm_mesh *mesh;
	gpul_comm_sparse *sparse;
	CUdeviceptr send, recv;
	gpul_error err = { 0 };

	need(gpul_comm_job_find(&job, &err), &err); /* the launcher's variables contain the rank */
	need(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err), &err);
	need(gpul_comm_create(drv, NULL, &options.comm, &err), &err); /* the library uses this communicator if the data is dense */
	need(gpul_boot_open(&job, WAIT_MS, &boot, &err), &err);
	need(gpul_comm_mesh_create(boot, &network, WAIT_MS, &mesh, &err), &err); /* a connection to each other rank */
	need(gpul_comm_sparse_create(drv, gpul_comm_device(options.comm), boot, mesh, &options, &sparse, &err), &err);

	for (int i = 0; i < COUNT; i++) /* blocks of 256 elements; different blocks are non-zero on each rank */
		data[i] = (i / 256 + job.rank * 3) % 1000 < percent * 10 ? (float)(job.rank + 1) : 0;
	need(gpul_cu(drv, &err, cuMemAlloc(&send, BYTES)), &err);
	need(gpul_cu(drv, &err, cuMemAlloc(&recv, BYTES)), &err);
	need(gpul_cu(drv, &err, cuMemcpyHtoD(send, data, BYTES)), &err);
	need(gpul_comm_sparse_allreduce(sparse, send, recv, COUNT, GPUL_COMM_F32, GPUL_COMM_SUM, NULL, &report, &err), &err);
	need(gpul_comm_wait(options.comm, NULL, &err), &err);
	need(gpul_cu(drv, &err, cuMemcpyDtoH(data, recv, BYTES)), &err);

	if (job.rank == 0 && report.dense)
		printf("%d ranks: %.1f %% of the blocks are not zero: dense\n", job.size, 100 * report.density);
	else if (job.rank == 0)
		printf("%d ranks: %.1f %% of the blocks are not zero: rank 0 has sent %llu of %d bytes; element 0 is %g\n", job.size,
		       100 * report.density, (unsigned long long)report.sent_bytes, (int)BYTES, (double)data[0]);
	need(gpul_boot_barrier(boot, WAIT_MS, &err), &err); /* after the barrier, no rank sends */
	gpul_comm_sparse_destroy(sparse);
	gpul_comm_mesh_destroy(mesh);
	gpul_boot_close(boot);
	need(gpul_cu(drv, &err, cuMemFree(send)), &err);
	need(gpul_cu(drv, &err, cuMemFree(recv)), &err);
	gpul_comm_destroy(options.comm);
	return 0;
}
