/* plugin.c — the tables that NCCL finds in libnccl-net-gpuload.so, and the few functions that differ between the versions. */
#include <string.h>

#include "nccl/net/report.h"
#include "nccl/net/transfers.h"

static const char plugin_name[] = "gpuload";

/* ---- the plug-in and its devices ------------------------------------------------------------------------------- */

static gpul_nccl_result init(void **context, uint64_t communicator, const gpul_nccl_config *config, gpul_nccl_logger *logger,
			     void *profiler)
{
	const gpul_net_process *process;
	gpul_net_context *c = NULL;
	gpul_error err = { 0 };

	(void)communicator, (void)profiler;
	gpul_net_report_to(logger);
	if (gpul_net_process_get(&process, &err) ||
	    gpul_net_context_create(config ? config->traffic_class : GPUL_NCCL_DEFAULT_CLASS, &c, &err))
		return gpul_net_report("init", &err);
	gpul_net_inform("device 0 of %u: %s at %s (%s)", process->devices.n, process->devices.at[0].name, process->devices.at[0].interface,
			process->devices.why);
	*context = c;
	return GPUL_NCCL_SUCCESS;
}

static gpul_nccl_result finalize(void *context)
{
	gpul_net_connects_abandon(context);
	gpul_net_context_release(context);
	return GPUL_NCCL_SUCCESS;
}

static gpul_nccl_result count_devices(int *n)
{
	const gpul_net_process *process;
	gpul_error err = { 0 };

	if (gpul_net_process_get(&process, &err))
		return gpul_net_report("devices", &err);
	*n = (int)process->devices.n;
	return GPUL_NCCL_SUCCESS;
}

static const gpul_net_device *find_device(int device, gpul_error *err)
{
	const gpul_net_process *process;

	if (gpul_net_process_get(&process, err))
		return NULL;
	if (device >= 0 && (unsigned)device < process->devices.n)
		return &process->devices.at[device];
	gpul_fail(err, GPUL_EINVAL, 0, "network device %d does not exist: there are %u, numbered from 0", device, process->devices.n);
	return NULL;
}

static const size_t most_bytes = (size_t)1 << 30; /* maximum size of one message */

/* Fill in the fields that all versions have; the device is not a merged NIC. */
#define FILL_PROPERTIES(out, device, d) \
	do { \
		memset((out), 0, sizeof *(out)); \
		(out)->name = (char *)(d)->name; \
		(out)->pci_path = (d)->pci_path[0] ? (char *)(d)->pci_path : NULL; \
		(out)->guid = (d)->guid; \
		(out)->pointers = GPUL_NCCL_HOST | ((d)->dmabuf ? GPUL_NCCL_DMABUF : 0); \
		(out)->mbits = (d)->mbits; \
		(out)->port = (d)->port; \
		(out)->max_connections = 1 << 16; \
		(out)->max_recvs = GPUL_NCCL_MAX_RECVS; \
		(out)->n_devices = 1; \
		(out)->devices[0] = (device); \
		(out)->max_p2p_bytes = (out)->max_collective_bytes = most_bytes; \
	} while (0)

static gpul_nccl_result properties_v10(int device, gpul_nccl_properties_v10 *out)
{
	gpul_error err = { 0 };
	const gpul_net_device *d = find_device(device, &err);

	if (!d)
		return gpul_net_report("properties", &err);
	FILL_PROPERTIES(out, device, d);
	return GPUL_NCCL_SUCCESS;
}

static gpul_nccl_result properties_v11(int device, gpul_nccl_properties_v11 *out)
{
	gpul_error err = { 0 };
	const gpul_net_device *d = find_device(device, &err);

	if (!d)
		return gpul_net_report("properties", &err);
	FILL_PROPERTIES(out, device, d);
	out->max_multi_request = 1;
	return GPUL_NCCL_SUCCESS;
}

static gpul_nccl_result properties_v12(int device, gpul_nccl_properties_v12 *out)
{
	gpul_error err = { 0 };
	const gpul_net_device *d = find_device(device, &err);

	if (!d)
		return gpul_net_report("properties", &err);
	FILL_PROPERTIES(out, device, d);
	out->max_multi_request = 1;
	out->rail = out->plane = GPUL_NCCL_NO_RAIL;
	return GPUL_NCCL_SUCCESS;
}

/* ---- connections ----------------------------------------------------------------------------------------------- */

static gpul_nccl_result listen_on(void *context, int device, void *handle, void **listener)
{
	gpul_net_listener *l = NULL;
	gpul_error err = { 0 };

	(void)gpul_net_listen(context, device, handle, &l, &err);
	*listener = l;
	return gpul_net_report("listen", &err);
}

static gpul_nccl_result connect_to(void *context, int device, const void *handle, void **sender, void **offload)
{
	gpul_net_end *e = NULL;
	gpul_error err = { 0 };

	(void)offload;
	(void)gpul_net_connect(context, device, handle, &e, &err);
	*sender = e;
	return gpul_net_report("connect", &err);
}

static gpul_nccl_result accept_from(void *listener, void **receiver, void **offload)
{
	gpul_net_end *e = NULL;
	gpul_error err = { 0 };

	(void)offload;
	(void)gpul_net_accept(listener, &e, &err);
	*receiver = e;
	return gpul_net_report("accept", &err);
}

static gpul_nccl_result close_end(void *end)
{
	gpul_net_end_close(end);
	return GPUL_NCCL_SUCCESS;
}

static gpul_nccl_result close_listener(void *listener)
{
	gpul_net_listener_close(listener);
	return GPUL_NCCL_SUCCESS;
}

/* ---- memory and transfers -------------------------------------------------------------------------------------- */

static gpul_nccl_result register_memory(void *end, void *at, size_t n_bytes, int kind, void **region)
{
	gpul_rdma_region *new_region = NULL;
	gpul_error err = { 0 };

	if (kind == GPUL_NCCL_HOST)
		(void)gpul_net_register(end, at, n_bytes, &new_region, &err);
	else
		gpul_fail(&err, GPUL_EUNSUPPORTED, 0,
			  "memory of type %d cannot be registered: only host memory and GPU memory (by a dma-buf) can", kind);
	*region = new_region;
	return gpul_net_report("registration", &err);
}

static gpul_nccl_result register_dmabuf(void *end, void *at, size_t n_bytes, int kind, uint64_t offset, int fd, void **region)
{
	gpul_rdma_region *new_region = NULL;
	gpul_error err = { 0 };

	(void)kind;
	(void)gpul_net_register_dmabuf(end, at, n_bytes, offset, fd, &new_region, &err);
	*region = new_region;
	return gpul_net_report("registration", &err);
}

static gpul_nccl_result unregister(void *end, void *region)
{
	(void)end;
	gpul_rdma_unregister(region);
	return GPUL_NCCL_SUCCESS;
}

/* Return the result of a call on an end; a failure of the connection is reported as a failure of the peer. */
static gpul_nccl_result result_of(const gpul_net_end *e, const char *where, const gpul_error *err)
{
	gpul_rdma_failure failure;

	if (!err->status)
		return GPUL_NCCL_SUCCESS;
	gpul_rdma_conn_failed(e->conn, &failure);
	return failure.status ? gpul_net_report_peer(where, err) : gpul_net_report(where, err);
}

static gpul_nccl_result isend(void *sender, void *at, size_t n_bytes, int tag, void *region, void *profile, void **request)
{
	const gpul_rdma_buffer from = { .region = region, .at = (uint64_t)(uintptr_t)at, .bytes = n_bytes, .tag = (uint32_t)tag };
	gpul_net_request *r = NULL;
	gpul_error err = { 0 };

	(void)profile;
	(void)gpul_net_isend(sender, &from, &r, &err);
	*request = r;
	return result_of(sender, "isend", &err);
}

/* Fill in n buffers.  If bytes is NULL, the sizes are in flush_bytes, whose elements are int. */
static void gather_buffers(gpul_rdma_buffer *out, int n, void **at, const size_t *bytes, const int *flush_bytes, const int *tags,
			   void **regions)
{
	for (int i = 0; i < n && i < GPUL_NCCL_MAX_RECVS; i++)
		out[i] = (gpul_rdma_buffer){
			.region = regions[i],
			.at = (uint64_t)(uintptr_t)at[i],
			.bytes = bytes ? bytes[i] : (uint64_t)flush_bytes[i],
			.tag = tags ? (uint32_t)tags[i] : 0,
		};
}

static gpul_nccl_result irecv(void *receiver, int n, void **at, size_t *n_bytes, int *tags, void **regions, void **profiles, void **request)
{
	gpul_rdma_buffer to[GPUL_NCCL_MAX_RECVS];
	gpul_net_request *r = NULL;
	gpul_error err = { 0 };

	(void)profiles;
	gather_buffers(to, n, at, n_bytes, NULL, tags, regions);
	(void)gpul_net_irecv(receiver, to, (unsigned)n, &r, &err);
	*request = r;
	return result_of(receiver, "irecv", &err);
}

static gpul_nccl_result iflush(void *receiver, int n, void **at, int *n_bytes, void **regions, void **request)
{
	gpul_rdma_buffer to[GPUL_NCCL_MAX_RECVS];
	gpul_net_request *r = NULL;
	gpul_error err = { 0 };

	gather_buffers(to, n, at, NULL, n_bytes, NULL, regions);
	(void)gpul_net_iflush(receiver, to, (unsigned)n, &r, &err);
	*request = r;
	return result_of(receiver, "iflush", &err);
}

static gpul_nccl_result test(void *request, int *done, int *n_bytes)
{
	gpul_net_request *r = request;
	const gpul_net_end *e = r->end;
	bool ended = false;
	gpul_error err = { 0 };

	(void)gpul_net_test(r, &ended, &err);
	*done = ended;
	for (unsigned i = 0; ended && n_bytes && i < r->n; i++)
		n_bytes[i] = (int)r->bytes[i];
	return result_of(e, "test", &err);
}

/* ---- version 10 ------------------------------------------------------------------------------------------------ */

static void *only_context; /* the context of version 10, which has no finalize(), and whose init() NCCL calls once */

static gpul_nccl_result init_v10(gpul_nccl_logger *logger, void *profiler)
{
	return only_context ? GPUL_NCCL_SUCCESS : init(&only_context, 0, NULL, logger, profiler);
}

static gpul_nccl_result listen_v10(int device, void *handle, void **listener)
{
	return listen_on(only_context, device, handle, listener);
}

static gpul_nccl_result connect_v10(int device, const gpul_nccl_config *config, const void *handle, void **sender, void **offload)
{
	(void)config;
	return connect_to(only_context, device, handle, sender, offload);
}

/* ---- the exported tables of functions -------------------------------------------------------------------------- */

/* The plug-in sets these functions to NULL: they are for devices that perform the transfers themselves, and for merged NICs. */
#define TRANSFERS \
	.accept = accept_from, .register_memory = register_memory, .register_dmabuf = register_dmabuf, .unregister = unregister, \
	.isend = isend, .irecv = irecv, .iflush = iflush, .test = test, .close_sender = close_end, .close_receiver = close_end, \
	.close_listener = close_listener

__attribute__((visibility("default"))) const gpul_nccl_net_v10 ncclNetPlugin_v10 = {
	.name = plugin_name,
	.init = init_v10,
	.devices = count_devices,
	.properties = properties_v10,
	.listen = listen_v10,
	.connect = connect_v10,
	TRANSFERS,
};
__attribute__((visibility("default"))) const gpul_nccl_net_v11 ncclNetPlugin_v11 = {
	.name = plugin_name,
	.init = init,
	.devices = count_devices,
	.properties = properties_v11,
	.listen = listen_on,
	.connect = connect_to,
	TRANSFERS,
	.finalize = finalize,
};
__attribute__((visibility("default"))) const gpul_nccl_net_v12 ncclNetPlugin_v12 = {
	.name = plugin_name,
	.init = init,
	.devices = count_devices,
	.properties = properties_v12,
	.listen = listen_on,
	.connect = connect_to,
	TRANSFERS,
	.finalize = finalize,
};
