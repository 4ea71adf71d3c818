/* nccl_abi.h — the interface that NCCL expects of a network plug-in, in gpuload's own declarations.
 *
 *     NCCL ── dlopen("libnccl-net-NAME.so") ── dlsym("ncclNetPlugin_v12", else _v11, _v10 ...) ──> a table of functions
 *
 *     version  since NCCL   what is different
 *     10       2.26         init() once in a process; connect() has the settings of the communicator; no finalize()
 *     11       2.28         init() for each communicator, with a context that listen() and connect() get; finalize()
 *     12       2.30         eight devices instead of four in a merged NIC; numbers of the rail and the plane
 *
 * NCCL calls the table of the newest version that it knows.  Numbers and layouts must be those of NCCL; the names of the fields are not
 * part of the interface.  A function returns a gpul_nccl_result. */
#ifndef GPULOAD_NCCL_NET_NCCL_ABI_H
#define GPULOAD_NCCL_NET_NCCL_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gpul_nccl_result {
	GPUL_NCCL_SUCCESS = 0,
	GPUL_NCCL_CUDA_ERROR = 1,
	GPUL_NCCL_SYSTEM_ERROR = 2,
	GPUL_NCCL_INTERNAL_ERROR = 3,
	GPUL_NCCL_INVALID_ARGUMENT = 4,
	GPUL_NCCL_INVALID_USAGE = 5,
	GPUL_NCCL_REMOTE_ERROR = 6,
} gpul_nccl_result;

/* Levels and subsystems of NCCL's log. */
enum { GPUL_NCCL_LOG_WARN = 2, GPUL_NCCL_LOG_INFO = 3 };
enum { GPUL_NCCL_SUBSYSTEM_INIT = 1, GPUL_NCCL_SUBSYSTEM_NET = 16 };

/* NCCL's log function, printf-like; any thread may call it. */
typedef void gpul_nccl_logger(int level, unsigned long subsystems, const char *file, int line, const char *fmt, ...);

enum {
	GPUL_NCCL_HANDLE_BYTES = 128, /* size of a listener's handle, which NCCL carries to the peer */
	GPUL_NCCL_MAX_REQUESTS = 32,  /* limit of the receives in flight of one connection */
	GPUL_NCCL_MAX_RECVS = 8,      /* limit of the buffers of one receive */
	GPUL_NCCL_DEFAULT_CLASS = -1, /* no traffic class was chosen */
	GPUL_NCCL_NO_RAIL = -1,
};

/* Kinds of memory: bits of `pointers`, and the type of a registration. */
enum { GPUL_NCCL_HOST = 1, GPUL_NCCL_CUDA = 2, GPUL_NCCL_DMABUF = 4 };

typedef struct gpul_nccl_config {
	int traffic_class;
} gpul_nccl_config;

/* The properties of a device.  Their first part is the same in every version. */
#define GPUL_NCCL_PROPERTIES \
	char *name;               /* name of the device, for messages */ \
	char *pci_path;           /* path of the PCI device in /sys; NULL: not a PCI device */ \
	uint64_t guid;            /* identifies the NIC's chip */ \
	int pointers;             /* kinds of memory that can be registered: bits GPUL_NCCL_HOST, ... */ \
	int global_registrations; /* 1: a registration is valid for every connection */ \
	int force_flush; \
	int mbits; /* 10^6 bits per second */ \
	int port; \
	float latency; /* in microseconds; 0: NCCL's default */ \
	int max_connections; \
	int max_recvs; \
	int offload, offload_version; /* 0: the CPU drives the device, without offload */

typedef struct gpul_nccl_properties_v10 {
	GPUL_NCCL_PROPERTIES
	int n_devices, devices[4]; /* devices that form a merged NIC; here only the device itself */
	size_t max_p2p_bytes, max_collective_bytes;
} gpul_nccl_properties_v10;

typedef struct gpul_nccl_properties_v11 {
	GPUL_NCCL_PROPERTIES
	int n_devices, devices[4];
	size_t max_p2p_bytes, max_collective_bytes;
	int max_multi_request;
} gpul_nccl_properties_v11;

typedef struct gpul_nccl_properties_v12 {
	GPUL_NCCL_PROPERTIES
	int n_devices, devices[8];
	size_t max_p2p_bytes, max_collective_bytes;
	int max_multi_request;
	int16_t rail, plane;
} gpul_nccl_properties_v12;

static_assert(sizeof(gpul_nccl_properties_v10) == 104 && offsetof(gpul_nccl_properties_v10, max_p2p_bytes) == 88, "as in NCCL 2.26");
static_assert(sizeof(gpul_nccl_properties_v11) == 112, "as in NCCL 2.28");
static_assert(sizeof(gpul_nccl_properties_v12) == 128 && offsetof(gpul_nccl_properties_v12, max_multi_request) == 120, "as in NCCL 2.30");

typedef gpul_nccl_result gpul_nccl_init(void **context, uint64_t communicator, const gpul_nccl_config *config, gpul_nccl_logger *logger,
					void *profiler);

/* The functions of a connection, which are the same in versions 10, 11 and 12 of NCCL's interface. */
#define GPUL_NCCL_TRANSFERS \
	gpul_nccl_result (*accept)(void *listener, void **receiver, void **offload); \
	gpul_nccl_result (*register_memory)(void *end, void *at, size_t n_bytes, int kind, void **region); \
	gpul_nccl_result (*register_dmabuf)(void *end, void *at, size_t n_bytes, int kind, uint64_t offset, int fd, void **region); \
	gpul_nccl_result (*unregister)(void *end, void *region); \
	gpul_nccl_result (*isend)(void *sender, void *at, size_t n_bytes, int tag, void *region, void *profile, void **request); \
	gpul_nccl_result (*irecv)(void *receiver, int n, void **at, size_t *n_bytes, int *tags, void **regions, void **profiles, \
				  void **request); \
	gpul_nccl_result (*iflush)(void *receiver, int n, void **at, int *n_bytes, void **regions, void **request); \
	gpul_nccl_result (*test)(void *request, int *done, int *n_bytes); \
	gpul_nccl_result (*close_sender)(void *sender); \
	gpul_nccl_result (*close_receiver)(void *receiver); \
	gpul_nccl_result (*close_listener)(void *listener); \
	gpul_nccl_result (*device_region)(void *end, void *region, void **out); \
	gpul_nccl_result (*consumed)(void *receiver, int n, void *request); \
	gpul_nccl_result (*merge_devices)(int *device, void *devices);

typedef struct gpul_nccl_net_v10 {
	const char *name;
	gpul_nccl_result (*init)(gpul_nccl_logger *logger, void *profiler);
	gpul_nccl_result (*devices)(int *n);
	gpul_nccl_result (*properties)(int device, gpul_nccl_properties_v10 *out);
	gpul_nccl_result (*listen)(int device, void *handle, void **listener);
	gpul_nccl_result (*connect)(int device, const gpul_nccl_config *config, const void *handle, void **sender, void **offload);
	GPUL_NCCL_TRANSFERS
} gpul_nccl_net_v10;

/* Versions 11 and 12 differ only in the properties. */
#define GPUL_NCCL_NET(version) \
	typedef struct gpul_nccl_net_v##version { \
		const char *name; \
		gpul_nccl_init *init; \
		gpul_nccl_result (*devices)(int *n); \
		gpul_nccl_result (*properties)(int device, gpul_nccl_properties_v##version *out); \
		gpul_nccl_result (*listen)(void *context, int device, void *handle, void **listener); \
		gpul_nccl_result (*connect)(void *context, int device, const void *handle, void **sender, void **offload); \
		GPUL_NCCL_TRANSFERS \
		gpul_nccl_result (*finalize)(void *context); \
		gpul_nccl_result (*set_attributes)(void *context, const void *attributes); \
	} gpul_nccl_net_v##version
GPUL_NCCL_NET(11);
GPUL_NCCL_NET(12);

static_assert(sizeof(gpul_nccl_net_v10) == 20 * sizeof(void *) && sizeof(gpul_nccl_net_v12) == 22 * sizeof(void *), "one pointer each");

/* The tables that the plug-in exports, by the names that NCCL looks up. */
extern const gpul_nccl_net_v10 ncclNetPlugin_v10;
extern const gpul_nccl_net_v11 ncclNetPlugin_v11;
extern const gpul_nccl_net_v12 ncclNetPlugin_v12;

#endif
