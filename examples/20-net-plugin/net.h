/* net.h — what NCCL expects of a network plug-in (version 10 of the interface, NCCL 2.26 and later), and the parts of this one.
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
enum { HANDLE_BYTES = 128 };              /* of a listener's address, which NCCL carries to the peer */

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
	int max_receives; /* buffers of one irecv() */
	int offload, offload_version;
	int n_devices, devices[4]; /* of a merged NIC: this device alone */
	size_t max_p2p_bytes, max_collective_bytes;
} properties;

typedef struct net_plugin {
	const char *name;
	result (*init)(logger *log, void *profiler);
	result (*devices)(int *n);
	result (*get_properties)(int device, properties *out);
	result (*listen)(int device, void *handle, void **listener);
	result (*connect)(int device, const void *config, const void *handle, void **sender, void **offload); /* *sender = NULL: not yet */
	result (*accept)(void *listener, void **receiver, void **offload); /* *receiver = NULL: not yet */
	result (*register_memory)(void *end, void *at, size_t n_bytes, int kind, void **region);
	result (*register_dmabuf)(void *end, void *at, size_t n_bytes, int kind, uint64_t offset, int fd, void **region);
	result (*unregister)(void *end, void *region);
	result (*isend)(void *sender, void *at, size_t n_bytes, int tag, void *region, void *profile,
			void **request); /* *request = NULL: not yet */
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

enum { MAX_REQUESTS = 32 }; /* NCCL never has more in flight on a connection */

struct request {
	struct end *end; /* NULL: this entry is free */
	char *at;
	uint64_t n_bytes; /* of the message; of a receive, until the header is here: of the buffer */
	uint64_t n_moved; /* of header and data */
	uint64_t header;  /* the first 8 bytes on the wire: the size of the message */
	int is_send;
};

/* One end of a connection: a TCP socket that does not block.  Requests are a ring: `oldest` moves its bytes first. */
struct end {
	int fd;
	unsigned oldest, n;
	struct request requests[MAX_REQUESTS];
};

/* The transfers: solution.c, or your exercise.c. */
result start_transfer(struct end *e, int is_send, void *at, size_t n_bytes, struct request **out); /* *out = NULL: no room */
result test_transfer(struct request *r, int *done, int *n_bytes);

#endif
