/* net.h — NCCL's interface for network plug-ins (version 10, for NCCL 2.26 and later), and the declarations of this plug-in.
 *
 *     NCCL ── dlopen(NCCL_NET_PLUGIN) ── dlsym("ncclNetPlugin_v10") ──> a table of functions
 *
 * The order of the functions and the layout of the properties are NCCL's; the names of the fields are not part of the interface. */
#ifndef LESSON_NET_H
#define LESSON_NET_H

#include <stddef.h>
#include <stdint.h>

typedef enum result { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, REMOTE_ERROR = 6 } result;

enum { HOST_MEMORY = 1, GPU_MEMORY = 2 }; /* kinds of memory: bits of `pointers`, and the kind of a registration */
enum { HANDLE_BYTES = 128 };              /* size of a listener's address, which NCCL sends to the peer */

typedef void logger(int level, unsigned long subsystems, const char *file, int line, const char *fmt, ...);

typedef struct properties {
	char *name, *pci_path;
	uint64_t guid;
	int pointers;             /* kinds of memory that can be registered */
	int global_registrations; /* 1: a registration is valid for every connection */
	int force_flush;
	int mbits, port;
	float latency;
	int max_connections;
	int max_receives; /* maximum number of buffers in one irecv() */
	int offload, offload_version;
	int n_devices, devices[4]; /* the physical NICs of a merged NIC; here the device itself */
	size_t max_p2p_bytes, max_collective_bytes;
} properties;

typedef struct net_plugin {
	const char *name;
	result (*init)(logger *log, void *profiler);
	result (*devices)(int *n);
	result (*get_properties)(int device, properties *out);
	result (*listen)(int device, void *handle, void **listener);
	result (*connect)(int device, const void *config, const void *handle, void **sender,
			  void **offload);                                 /* *sender = NULL: call again */
	result (*accept)(void *listener, void **receiver, void **offload); /* *receiver = NULL: call again */
	result (*register_memory)(void *end, void *at, size_t n_bytes, int kind, void **region);
	result (*register_dmabuf)(void *end, void *at, size_t n_bytes, int kind, uint64_t offset, int fd, void **region);
	result (*unregister)(void *end, void *region);
	result (*isend)(void *sender, void *at, size_t n_bytes, int tag, void *region, void *profile,
			void **request); /* *request = NULL: call again */
	result (*irecv)(void *receiver, int n, void **at, size_t *n_bytes, int *tags, void **regions, void **profiles, void **request);
	result (*iflush)(void *receiver, int n, void **at, int *n_bytes, void **regions, void **request);
	result (*test)(void *request, int *done, int *n_bytes);
	result (*close_sender)(void *sender);
	result (*close_receiver)(void *receiver);
	result (*close_listener)(void *listener);
	result (*device_region)(void *end, void *region, void **out);
	result (*consumed)(void *receiver, int n, void *request);
	result (*merge_devices)(int *device, void *devices);
} net_plugin;

extern const net_plugin ncclNetPlugin_v10;

/* ---- the parts of this plug-in --------------------------------------------------------------------------------------- */

enum { MAX_REQUESTS = 32 }; /* NCCL never has more requests in flight on a connection */

struct request {
	struct end *end; /* NULL: this entry is free */
	char *at;
	uint64_t n_bytes; /* size of the message; in a receive, size of the buffer until the header arrives */
	uint64_t n_moved; /* number of bytes of header and data that are sent or received */
	uint64_t header;  /* the first 8 bytes on the wire: the size of the message */
	int is_send;
};

/* One end of a connection: a non-blocking TCP socket.  The requests are a ring; the request at `oldest` is transferred first. */
struct end {
	int fd;
	unsigned oldest, n;
	struct request requests[MAX_REQUESTS];
};

/* Defined in solution.c or exercise.c: start a send or receive, and continue and test it. */
result start_transfer(struct end *e, int is_send, void *at, size_t n_bytes, struct request **out); /* *out = NULL: too many requests */
result test_transfer(struct request *r, int *done, int *n_bytes);

#endif
