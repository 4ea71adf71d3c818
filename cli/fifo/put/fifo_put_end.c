/* fifo_put_end.c — opens the device, memory and socket of one of the two processes, and sends and receives on the socket. */
#include "cli/fifo/put/fifo_put_end.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/lib/cli_stop.h"
#include "loader/embedded.h"

GPUL_EMBED(fifo_put_ptx, "cli/kernels/fifo_put.ptx");

/* ---- the socket ------------------------------------------------------------------------------- */

gpul_status fifo_put_send(const struct fifo_put_end *e, const void *bytes, size_t n_bytes, gpul_error *err)
{
	if (send(e->socket, bytes, n_bytes, MSG_NOSIGNAL) == (ssize_t)n_bytes)
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, EPIPE, "the other process of the trace has ended");
}

gpul_status fifo_put_receive(const struct fifo_put_end *e, void *out, size_t n_bytes, gpul_error *err)
{
	const int timeout_ms = (int)(e->ask->timeout_ns / 1000000) + FIFO_PUT_GRACE_MS;
	const gpul_status st = stop_wait(e->socket, timeout_ms, err);
	ssize_t n;

	if (st)
		return st;
	n = recv(e->socket, out, n_bytes, MSG_DONTWAIT);
	if (n == (ssize_t)n_bytes)
		return GPUL_OK;
	if (n < 0 && stop_requested())
		return gpul_fail(err, GPUL_ESYS, EINTR, "ended by %s", stop_requested());
	if (n < 0 && errno == EAGAIN)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the other process of the trace did not answer within %d s", timeout_ms / 1000);
	return gpul_fail(err, GPUL_ESYS, EPIPE, "the other process of the trace has ended");
}

gpul_status fifo_put_say(const struct fifo_put_end *e, char letter, gpul_error *err)
{
	return fifo_put_send(e, &letter, 1, err);
}

gpul_status fifo_put_expect(const struct fifo_put_end *e, char letter, gpul_error *err)
{
	char heard = 0;
	const gpul_status st = fifo_put_receive(e, &heard, 1, err);

	if (!st && heard != letter)
		return gpul_fail(err, GPUL_EFORMAT, heard, "the other process of the trace sent byte 0x%x: expected '%c'", heard, letter);
	return st;
}

/* ---- open ------------------------------------------------------------------------------------- */

static gpul_status allocate_host(const struct fifo_put_end *e, size_t n_bytes, gpul_mem **out, gpul_error *err)
{
	const gpul_mem_desc desc = {
		.kind = e->ask->kind, .bytes = n_bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = e->devices.ordinal, .n_devices = 1
	};
	const gpul_status st = gpul_mem_create(e->drv, &desc, out, err);

	if (!st)
		memset(gpul_mem_cpu(*out), 0, n_bytes);
	return st;
}

static gpul_status allocate_memory(struct fifo_put_end *e, gpul_error *err)
{
	const gpul_driver *drv = e->drv;
	const size_t n_puts = (size_t)e->ask->blocks * e->ask->puts, results = e->ask->blocks * sizeof(uint32_t);
	gpul_status st = allocate_host(e, n_puts * fifo_put_stride(e->ask), &e->data, err);

	st = st ? st : allocate_host(e, (e->ask->blocks + 1) * sizeof(uint64_t), &e->words, err);
	st = st ? st : gpul_cu(drv, err, cuStreamCreate(&e->stream, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&e->stamps, n_puts * e->stamps_bytes));
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&e->results, results));
	st = st ? st : gpul_cu(drv, err, cuMemsetD8Async(e->stamps, 0, n_puts * e->stamps_bytes, e->stream));
	st = st ? st : gpul_cu(drv, err, cuMemsetD8Async(e->results, 0, results, e->stream));
	return st ? st : gpul_cu(drv, err, cuStreamSynchronize(e->stream));
}

static gpul_status open_fabric(struct fifo_put_end *e, gpul_error *err)
{
	const struct fifo_put_request *q = e->ask;
	const gpul_rdma_desc desc = { .backend = q->backend, .device = { .provider = q->provider, .gpu = -1, .gid_index = -1 } };
	gpul_status st = gpul_rdma_open(&desc, &e->rdma, err);

	return st ? st : gpul_rdma_register_mem(e->rdma, e->data, GPUL_RDMA_DATA, &e->region, err);
}

gpul_status fifo_put_end_open(const struct fifo_put_request *ask, int socket, int ordinal, const char *kernel, size_t stamps_bytes,
			      struct fifo_put_end *out, gpul_error *err)
{
	struct fifo_put_end *e = out;
	gpul_status st;

	*e = (struct fifo_put_end){ .ask = ask, .socket = socket, .devices = ask->devices, .stamps_bytes = stamps_bytes };
	e->devices.ordinal[0] = ordinal;
	st = devices_arg_open(&e->devices, err);
	if (st)
		return st;
	e->drv = e->devices.drv;
	st = gpul_module_load_embedded(e->drv, &fifo_put_ptx, &e->module, err);
	st = st ? st : gpul_kernel_find(e->module, kernel, &e->kernel, err);
	st = st ? st : gpul_kernel_prepare(e->kernel, err);
	st = st ? st : allocate_memory(e, err);
	st = st ? st : fifo_clock_create(e->drv, &e->clock, err);
	return st ? st : open_fabric(e, err);
}

void fifo_put_end_close(struct fifo_put_end *e)
{
	gpul_rdma_conn_close(e->conn);
	gpul_rdma_unregister(e->region);
	gpul_rdma_close(e->rdma);
	if (!e->drv)
		return;
	fifo_clock_destroy(e->clock);
	if (e->results)
		e->drv->cuMemFree(e->results);
	if (e->stamps)
		e->drv->cuMemFree(e->stamps);
	if (e->stream)
		e->drv->cuStreamDestroy(e->stream);
	gpul_mem_destroy(e->words);
	gpul_mem_destroy(e->data);
	gpul_module_unload(e->module);
	devices_arg_close(&e->devices);
}
