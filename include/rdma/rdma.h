/* rdma.h — messages and puts between processes on different machines, over RDMA NICs (verbs) or any network (libfabric).
 *
 *     gpul_rdma            an opened NIC or provider                gpul_rdma_open
 *       gpul_rdma_region   registered memory, CPU or GPU            gpul_rdma_register ...
 *       gpul_rdma_listener waits for connections                    gpul_rdma_listen ─ gpul_rdma_accept
 *       gpul_rdma_conn     a connection to one other process        gpul_rdma_connect
 *
 *     receiver:  irecv ────────> test: not yet ... done, 4096 bytes
 *     sender:           isend ─> test: not yet ... done
 *
 * The receiver decides: a send waits until the receiver has posted a receive, and the data goes directly into its buffer.  The
 * n-th send of one end fills the n-th receive of the other.  A put needs no receive: it writes into memory that the peer has
 * registered, and then raises a step there.
 *
 * Every wait ends: a request can have a deadline, and each connection also has a socket, which immediately reports the death of the
 * peer's process.  The first failure ends all requests of a connection with the same record (gpul_rdma_failure); the
 * connection must then be closed.
 *
 * Transfers make progress only inside gpul_rdma_test(), gpul_rdma_wait() and gpul_rdma_progress(): call one of them often. */
#ifndef GPULOAD_RDMA_RDMA_H
#define GPULOAD_RDMA_RDMA_H

#include "memalloc/mem.h"
#include "rdma/backend/backend.h"
#include "rdma/oob/proof.h"
#include "rdma/protocol/protocol_link.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_rdma gpul_rdma; /* opaque, like the next three; the structs are defined in rdma_internal.h */
typedef struct gpul_rdma_region gpul_rdma_region;
typedef struct gpul_rdma_listener gpul_rdma_listener;
typedef struct gpul_rdma_conn gpul_rdma_conn;

/* How GPU memory is accessed. */
typedef enum gpul_rdma_gpu_direct {
	GPUL_RDMA_GPU_DIRECT_AUTO, /* by the fabric itself, through dma-buf, if possible; else staged */
	GPUL_RDMA_GPU_DIRECT_YES,  /* by the fabric itself; if that is not possible, the registration fails, because there are no
				    * staging buffers.  The software driver's device memory is CPU memory, which every fabric can
				    * access */
	GPUL_RDMA_GPU_DIRECT_NO,   /* through staging buffers */
} gpul_rdma_gpu_direct;

/* 0 or NULL is the default of every field, except device.gpu and device.gid_index, whose default is -1. */
typedef struct gpul_rdma_desc {
	const char *backend; /* "verbs", "libfabric", or NULL: verbs if there is a usable NIC, else libfabric */
	gpul_rdma_device_desc device;
	unsigned n_qps;         /* number of queue pairs of a connection; 0 means 1.  For this and the next four fields, both
					  * sides use the values of the connecting side */
	unsigned depth;         /* operations in flight per queue pair; 0 means 256 */
	uint32_t segment_bytes; /* a longer message is sent in segments of this size; 0 means 1 MiB */
	uint32_t stripe_bytes;  /* a segment is divided only into stripes of at least this size; 0 means 16 KiB */
	gpul_rdma_striping striping;
	int lease_ms;       /* a peer that is silent for this time is considered dead; 0 means 5000 */
	size_t cache_bytes; /* CPU memory that stays registered after gpul_rdma_unregister(), for a later
					  * registration; 0: none.  See gpul_rdma_forget() */
	unsigned n_stages;  /* staging buffers per direction and connection, for GPU memory that the fabric cannot access; 0 means 16 */
	gpul_rdma_gpu_direct gpu_direct;
	const char *secret; /* both ends of a connection must prove that they know it.  NULL or "": no proof, so any program that
			     * can reach the port can connect */
} gpul_rdma_desc;

/** Open a NIC or provider.
 *
 * The choice and its reason are logged once (info; a notice if there is no NIC and the user has not chosen libfabric).
 *
 * @desc  copied; NULL: all defaults
 * @out   owned by the caller: gpul_rdma_close(); untouched on failure
 * Errors  GPUL_EUNSUPPORTED no such backend or device (the text lists what was tried); GPUL_EINVAL; GPUL_EVERBS, GPUL_ESYS;
 *         GPUL_ENOMEM */
gpul_status gpul_rdma_open(const gpul_rdma_desc *desc, gpul_rdma **out, gpul_error *err);
/* Close the device, after its connections, listeners and regions.  NULL is fine. */
void gpul_rdma_close(gpul_rdma *r);

/* Describe the opened device.  Any thread may call. */
void gpul_rdma_about(const gpul_rdma *r, gpul_rdma_device_info *out);

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* How registered memory is used.  Data may be written in relaxed order, which is faster on some
 * machines; the write of a step must not become visible before the data that was written before it. */
typedef enum gpul_rdma_use {
	GPUL_RDMA_DATA,   /* messages, and the data of puts */
	GPUL_RDMA_STEPS,  /* also the steps of puts */
	GPUL_RDMA_SOURCE, /* only data that this end sends or puts: no peer can write it.  Never cached */
} gpul_rdma_use;

/* A peer that may write a part of a DATA or STEPS region, because of a receive or an offer, knows the region's key: as long as the region
 * is registered, it can write all of it, over any connection of the device.  It cannot read the region.  So use separate regions for
 * peers that do not trust each other.  Keys are random if the fabric lets the user choose them (libfabric's tcp); else the NIC chooses
 * them. */

/** Register CPU memory.
 *
 * With desc.cache_bytes, data is registered through a cache: registering the same pages again takes less than a microsecond.
 *
 * @r      an opened device
 * @at     start; any address
 * @bytes  at least 1
 * @use    what the memory is used for
 * @out    owned by the caller: gpul_rdma_unregister(); untouched on failure
 * Errors  GPUL_EINVAL; GPUL_ENOMEM out of memory, or over RLIMIT_MEMLOCK (the text gives the limit); GPUL_EVERBS
 * Source  ibv_reg_mr(3), fi_mr(3) */
gpul_status gpul_rdma_register(gpul_rdma *r, void *at, size_t bytes, gpul_rdma_use use, gpul_rdma_region **out, gpul_error *err);

/** Register a memory object (memalloc): CPU memory directly, GPU memory by dmabuf, or for staging.
 *
 * Logs (info) whether GPU memory is accessed directly or copied through the host, and why.
 *
 * @r    an opened device; for GPU memory with desc.device.drv
 * @mem  borrowed; must outlive *out
 * @use  what the memory is used for
 * @out  owned by the caller: gpul_rdma_unregister(); untouched on failure
 * Errors  as gpul_rdma_register(); GPUL_EUNSUPPORTED GPU memory without a driver, or, with GPUL_RDMA_GPU_DIRECT_YES, GPU memory
 *         that the fabric cannot access; GPUL_ECUDA
 * Source  cuMemGetHandleForAddressRange(), ibv_reg_dmabuf_mr(3) */
gpul_status gpul_rdma_register_mem(gpul_rdma *r, const gpul_mem *mem, gpul_rdma_use use, gpul_rdma_region **out, gpul_error *err);

/** Register a part of a memory object (memalloc).
 *
 * @r       as in gpul_rdma_register_mem(), like the other parameters
 * @mem     borrowed; must outlive *out
 * @offset  where the part begins
 * @bytes   at least 1; inside mem
 * @use     what the memory is used for
 * @out     owned by the caller: gpul_rdma_unregister(); untouched on failure
 * Errors  as gpul_rdma_register_mem(); GPUL_EINVAL not inside mem */
gpul_status gpul_rdma_register_part(gpul_rdma *r, const gpul_mem *mem, uint64_t offset, uint64_t bytes, gpul_rdma_use use,
				    gpul_rdma_region **out, gpul_error *err);

/** Register adjacent pieces of memory as one region, for example an address range with several physical allocations.
 *
 * @r         an opened device
 * @pieces    sorted; each starts where the previous one ends
 * @n_pieces  1 to GPUL_RDMA_MAX_PIECES
 * @on_device true: GPU memory
 * @out       owned by the caller: gpul_rdma_unregister(); untouched on failure
 * Errors  as gpul_rdma_register_mem() */
gpul_status gpul_rdma_register_pieces(gpul_rdma *r, const gpul_rdma_memory *pieces, unsigned n_pieces, bool on_device,
				      gpul_rdma_region **out, gpul_error *err);
/* Unregister a region, which no request may be using.  NULL is fine. */
void gpul_rdma_unregister(gpul_rdma_region *region);

/* With desc.cache_bytes: remove CPU memory from the cache.  Call it before cached memory is unmapped or freed; otherwise new memory
 * at the same address gets the old registration, and the NIC accesses the old pages.  Any thread may call. */
void gpul_rdma_forget(gpul_rdma *r, void *at, size_t bytes);

/* Return the region's pieces and properties; valid as long as the region.  Any thread may call. */
const gpul_rdma_area *gpul_rdma_region_area(const gpul_rdma_region *region);

/** Describe a part of a region for the peer, which may then put data there.
 *
 * @region  not staged
 * @at      start, inside one piece of the region
 * @bytes   inside the same piece
 * @out     plain bytes, for the peer
 * Errors  GPUL_EINVAL not inside the region, or the region is a source; GPUL_EUNSUPPORTED the region is staged */
gpul_status gpul_rdma_offer(const gpul_rdma_region *region, uint64_t at, uint64_t bytes, gpul_rdma_remote *out, gpul_error *err);

/* ---- connections ------------------------------------------------------------------------------------------ */

enum { GPUL_RDMA_PORT = 18515 };

/** Listen for connections on a TCP or Unix socket.
 *
 * @r        borrowed; must outlive *out
 * @address  "[HOST][:PORT]" (default port 18515; 0: any free port), or "unix:PATH"; NULL: all addresses
 * @out      owned by the caller: gpul_rdma_listener_close(); untouched on failure
 * Errors  GPUL_EINVAL; GPUL_ESYS native = errno: EADDRINUSE ...; GPUL_ENOMEM
 * Threads any thread may call; a listener belongs to one thread at a time */
gpul_status gpul_rdma_listen(gpul_rdma *r, const char *address, gpul_rdma_listener **out, gpul_error *err);
void gpul_rdma_listener_close(gpul_rdma_listener *l); /* accepts NULL */

/** Listen for connections that prove a secret of this listener.
 *
 * If a program gives each listener a different secret, and passes the listener's address and secret to one peer, no other process
 * can connect to that listener.
 *
 * @r        as in gpul_rdma_listen()
 * @address  "[HOST][:PORT]", "unix:PATH", or NULL
 * @secret   copied; used instead of desc.secret.  NULL: desc.secret
 * @out      owned by the caller: gpul_rdma_listener_close(); untouched on failure
 * Errors  as gpul_rdma_listen()
 * Threads as gpul_rdma_listen() */
gpul_status gpul_rdma_listen_secret(gpul_rdma *r, const char *address, const char *secret, gpul_rdma_listener **out, gpul_error *err);

/* Return the address for gpul_rdma_connect(), with the port; valid as long as l. */
const char *gpul_rdma_listener_address(const gpul_rdma_listener *l);

/** Wait for the next connection.
 *
 * Connections that send invalid data, or nothing for 10 s, are closed and logged; the wait
 * continues.  With desc.secret, connections that do not prove that they know it are closed, too; the text of
 * a time-out describes the last of them by its address and, if it comes from this machine, its user.
 *
 * @l           listener
 * @timeout_ms  < 0: no limit
 * @out         owned by the caller: gpul_rdma_conn_close(); untouched on failure
 * Errors  GPUL_ESYS native = ETIMEDOUT, or a system call failed; GPUL_ENOMEM; GPUL_EVERBS
 * Threads the listener's thread */
gpul_status gpul_rdma_accept(gpul_rdma_listener *l, int timeout_ms, gpul_rdma_conn **out, gpul_error *err);

/** Accept only connections of one identity: a connection that proves another one is refused, and the wait continues.
 *
 * @l           listener of a device with a secret; without one, no identity is known, and any connection is accepted
 * @as          the identity that the other end passes to gpul_rdma_connect_as(); NULL: any identity, see gpul_rdma_conn_about()
 * @timeout_ms  < 0: no limit
 * @out         owned by the caller: gpul_rdma_conn_close(); untouched on failure
 * Errors  as gpul_rdma_accept()
 * Threads the listener's thread */
gpul_status gpul_rdma_accept_as(gpul_rdma_listener *l, const gpul_rdma_identity *as, int timeout_ms, gpul_rdma_conn **out, gpul_error *err);

/** Connect to a listener; tries again until the time-out while no process listens there.
 *
 * @r           borrowed; must outlive *out
 * @address     as gpul_rdma_listener_address()
 * @timeout_ms  at least 1; 0: 10000
 * @out         owned by the caller: gpul_rdma_conn_close(); untouched on failure
 * Errors  GPUL_ESYS native = errno: ECONNREFUSED, ETIMEDOUT ...; GPUL_EUNSUPPORTED the other side has another backend or
 *         version; GPUL_EVERBS (the text gives both addresses) */
gpul_status gpul_rdma_connect(gpul_rdma *r, const char *address, int timeout_ms, gpul_rdma_conn **out, gpul_error *err);

/** Connect with an identity, which this end proves together with the secret.
 *
 * @r           as in gpul_rdma_connect()
 * @address     as gpul_rdma_listener_address()
 * @as          identity of the connection; NULL: all zero
 * @timeout_ms  at least 1; 0: 10000
 * @out         owned by the caller: gpul_rdma_conn_close(); untouched on failure
 * Errors  as gpul_rdma_connect(); GPUL_EUNSUPPORTED native = EACCES: the secrets differ, one side has none, or the other side expects
 *         another identity */
gpul_status gpul_rdma_connect_as(gpul_rdma *r, const char *address, const gpul_rdma_identity *as, int timeout_ms, gpul_rdma_conn **out,
				 gpul_error *err);

/** Connect to a listener that has a secret of its own.
 *
 * @r           as in gpul_rdma_connect_as()
 * @address     as gpul_rdma_listener_address()
 * @secret      the secret of gpul_rdma_listen_secret(); NULL: desc.secret
 * @as          identity of the connection; NULL: all zero
 * @timeout_ms  at least 1; 0: 10000
 * @out         owned by the caller: gpul_rdma_conn_close(); untouched on failure
 * Errors  as gpul_rdma_connect_as() */
gpul_status gpul_rdma_connect_secret(gpul_rdma *r, const char *address, const char *secret, const gpul_rdma_identity *as, int timeout_ms,
				     gpul_rdma_conn **out, gpul_error *err);

/** Close a connection: the peer's requests end with "the peer has closed the connection".
 *
 * An end may close as soon as its last receive or send has ended: the peer's send of a message that was received here ends with success,
 * and a message that was sent here arrives at the peer if a receive waits for it.  This does not hold for puts: before closing, wait for a
 * message from an end that puts.  Requests in flight are dropped; after this call, the peer can no longer change local memory.  NULL is
 * fine. */
void gpul_rdma_conn_close(gpul_rdma_conn *c);

typedef struct gpul_rdma_conn_info {
	char peer[64];               /* address, or path, of the peer */
	char peer_host[64];          /* name of the peer's host, as the peer reports it */
	int peer_pid;                /* process id of the peer, as the peer reports it */
	gpul_rdma_identity identity; /* with a secret: the identity of the connection, which both ends have proved; else all 0 */
	unsigned n_qps, depth;
	uint32_t segment_bytes;
	uint64_t notice_ns;        /* a dead or unreachable peer causes an error within this time, with or without requests */
	uint64_t fabric_notice_ns; /* if only the fabric's path breaks, and not the socket, there is an error within this time
				   * while requests are in flight; 0: only at their deadlines */
	bool staged;               /* true: the connection has staging buffers */
} gpul_rdma_conn_info;

/* Describe the connection: the peer and the negotiated values.  Any thread may call. */
void gpul_rdma_conn_about(const gpul_rdma_conn *c, gpul_rdma_conn_info *out);

/* The failure of a connection; status GPUL_OK: none.  Any thread may call: a background thread
 * detects the death of a peer even if no thread calls progress. */
void gpul_rdma_conn_failed(gpul_rdma_conn *c, gpul_rdma_failure *out);
/* A descriptor that is readable once the connection has failed; for poll(), not for read().  Valid as long as c. */
int gpul_rdma_conn_fd(const gpul_rdma_conn *c);

/* ---- what a reliable connection does --------------------------------------------------------------------------
 *
 * With reliable-udp, which sends lost datagrams again.  The connection's thread calls these functions, from connect or accept until
 * gpul_rdma_conn_close(), also after a failure. */

/* Get the counters of the connection, and describe its first `max` paths (NULL with max 0).  Returns the number of paths of
 * the connection; 0: its backend has no counters, and nothing was written.  It takes about a microsecond for each path. */
unsigned gpul_rdma_conn_stats(const gpul_rdma_conn *c, gpul_rel_counters *out, gpul_rel_path_info *paths, unsigned max);

/* Record what happens to the chunks of messages and puts whose data begins in trace->local to trace->local + trace->bytes, an address of
 * this process as in gpul_rdma_buffer.  The caller sets n to 0, and reads the steps after it has stopped the record: with trace NULL, or with
 * another trace.  *trace is borrowed until then.  GPU memory that is staged is not recorded.  Returns false if the backend cannot. */
bool gpul_rdma_conn_record(gpul_rdma_conn *c, gpul_rel_trace *trace);

/* ---- requests -------------------------------------------------------------------------------------------------
 *
 * A connection belongs to one thread at a time.  Each call starts a request and sets *out to it.  GPUL_OK with *out = 0: too
 * many requests are in flight; test some of them, and call again.  timeout_ms: if the request has not ended after this time,
 * it fails, and the connection with it; 0: no limit. */

typedef struct gpul_rdma_buffer {
	const gpul_rdma_region *region; /* borrowed until the request has ended */
	uint64_t at, bytes;             /* address inside the region (a GPU address for GPU memory), and size */
	uint32_t tag;
} gpul_rdma_buffer;

/** Send a message; the buffer must not change until the request has ended.
 *
 * The NIC, or a stream of the send path, reads GPU memory, so the kernels and copies that write the message must have ended
 * (synchronize their stream or context).  This includes cuMemcpyHtoD() of a few bytes, which may return before its data has arrived.
 *
 * @c           connection
 * @buffer      message and tag
 * @timeout_ms  0: no limit
 * @out         request; 0: try again later
 * @err         explains a failure
 * Errors  GPUL_EINVAL not inside the region; the connection's failure
 * Threads the connection's thread */
gpul_status gpul_rdma_isend(gpul_rdma_conn *c, const gpul_rdma_buffer *buffer, int timeout_ms, gpul_rdma_request *out, gpul_error *err);

/* True if a send with this tag gets a slot immediately: no earlier send of this end waits for slots, and the peer's next receive, or a free
 * buffer of its next multi-receive, has this tag.  It does not make progress: slots arrive in gpul_rdma_progress().  False
 * after a failure.  The connection's thread. */
bool gpul_rdma_may_send(gpul_rdma_conn *c, uint32_t tag);

/** Receive a message, or, if n > 1, n messages with different tags, in any order.
 *
 * @c           connection
 * @buffers     n buffers; with n > 1 of at most one segment each
 * @n           1 to GPUL_RDMA_MAX_PARTS
 * @timeout_ms  0: no limit
 * @out         request; 0: try again later
 * @err         explains a failure
 * Errors  GPUL_EINVAL; the connection's failure
 * Threads the connection's thread */
gpul_status gpul_rdma_irecv(gpul_rdma_conn *c, const gpul_rdma_buffer *buffers, unsigned n, int timeout_ms, gpul_rdma_request *out,
			    gpul_error *err);

/** Write into the peer's memory, then increment a counter (a step) there; gpul_rdma_put_desc in protocol_link.h describes both.
 *
 * @c           connection
 * @put         the structure is copied, the data is not; put->from.area is a result of gpul_rdma_region_area()
 * @timeout_ms  0: no limit
 * @out         request; 0: try again later
 * @err         explains a failure
 * Errors  GPUL_EINVAL; GPUL_EUNSUPPORTED a staged region; the connection's failure
 * Threads the connection's thread */
gpul_status gpul_rdma_put(gpul_rdma_conn *c, const gpul_rdma_put_desc *put, int timeout_ms, gpul_rdma_request *out, gpul_error *err);

/** Make received data in GPU memory visible to kernels that are already running.
 *
 * Kernels that are launched later see it without a flush.  For CPU memory and staged memory, the request ends immediately.
 *
 * @c           connection
 * @buffer      the received data, or any part of it
 * @timeout_ms  0: no limit
 * @out         request; 0: try again later
 * @err         explains a failure
 * Errors  GPUL_EINVAL; the connection's failure
 * Threads the connection's thread
 * Source  CUDA Driver API: cuFlushGPUDirectRDMAWrites() */
gpul_status gpul_rdma_iflush(gpul_rdma_conn *c, const gpul_rdma_buffer *buffer, int timeout_ms, gpul_rdma_request *out, gpul_error *err);

/** Make progress, and test whether a request has ended; if so, it is freed.
 *
 * @c        connection
 * @request  a request of this connection
 * @done     true: it has ended
 * @bytes    the bytes of each message, when *done; an array of n for a multi-receive; NULL: not wanted
 * @err      explains a failure
 * Errors  GPUL_EINVAL no such request; the connection's failure (gpul_rdma_conn_failed() gives the record)
 * Threads the connection's thread */
gpul_status gpul_rdma_test(gpul_rdma_conn *c, gpul_rdma_request request, bool *done, uint64_t *bytes, gpul_error *err);

/** Make progress until a request has ended; the thread spins.
 *
 * @c        connection
 * @request  a request of this connection
 * @bytes    as in gpul_rdma_test()
 * @err      explains a failure
 * Errors  as gpul_rdma_test()
 * Threads the connection's thread */
gpul_status gpul_rdma_wait(gpul_rdma_conn *c, gpul_rdma_request request, uint64_t *bytes, gpul_error *err);

/** Make progress: post what can be posted, read completions, check deadlines.
 *
 * If the peer's process ends, everything that it has sent is received before the failure is reported: its messages complete the
 * receives, and its puts are in memory.  So after a failure, read that memory once more.
 *
 * @c     connection
 * @busy  true: requests or operations are in flight; NULL: not wanted
 * @err   explains a failure
 * Errors  the connection's failure
 * Threads the connection's thread */
gpul_status gpul_rdma_progress(gpul_rdma_conn *c, bool *busy, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
