/* allreduce.c — performs the same all-reduce as ring.c, with gpuload's library.
 *
 *     gpuload comm launch -n 4 -- ./allreduce         or: mpirun -n 4 ./allreduce */
#include <stdio.h>
#include <stdlib.h>

#include "comm/comm.h"

enum { COUNT = 1000000, BYTES = COUNT * sizeof(float) };

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "allreduce: %s\n", err->text);
		exit(1);
	}
}

int main(void)
{
	static float data[COUNT];
	const gpul_driver *drv;
	gpul_comm *comm;
	CUdeviceptr buffer;
	gpul_error err = { 0 };

	need(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err), &err);
	need(gpul_comm_create(drv, NULL, &comm, &err), &err);    /* the launcher's variables contain the rank */
	need(gpul_comm_alloc(comm, BYTES, &buffer, &err), &err); /* memory that all ranks map */
	for (int i = 0; i < COUNT; i++)
		data[i] = (float)(gpul_comm_rank(comm) + 1);
	need(gpul_cu(drv, &err, cuMemcpyHtoD(buffer, data, BYTES)), &err);
	need(gpul_comm_allreduce(comm, buffer, buffer, COUNT, GPUL_COMM_F32, GPUL_COMM_SUM, NULL, &err), &err);
	need(gpul_comm_wait(comm, NULL, &err), &err); /* returns an error that names the rank, if a
									 * rank has failed */
	need(gpul_cu(drv, &err, cuMemcpyDtoH(data, buffer, BYTES)), &err);
	if (gpul_comm_rank(comm) == 0)
		printf("%d ranks: each of %d elements is %g\n", gpul_comm_size(comm), COUNT, (double)data[0]);
	gpul_comm_destroy(comm);
	return 0;
}
