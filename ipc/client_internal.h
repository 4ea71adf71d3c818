/* client_internal.h — the client's struct and the functions of its files: client.c, connect.c, drain.c. */
#ifndef GPULOAD_IPC_CLIENT_INTERNAL_H
#define GPULOAD_IPC_CLIENT_INTERNAL_H

#include "ipc/client.h"
#include "ipc/here_internal.h"
#include "ipc/socket_internal.h"

/* OVER: the owner's process or the lease has ended; the memory is still mapped. */
enum client_state { CLIENT_GREETED, CLIENT_ATTACHED, CLIENT_OVER };

struct gpul_ipc_client {
	const gpul_driver *drv;
	enum client_state state;
	bool owner_died;
	int socket, epoll;
	struct gpul_ipc_identity owner;
	bool by_pid; /* owner.pid is from the credentials that the owner sent with the OFFER */
	int slot;
	struct gpul_ipc_here here;
	struct wire_hello hello;
	int devices[GPUL_MEM_MAX_DEVICES];
	unsigned n_devices;
	gpul_mem *mem; /* NULL: not mapped yet */
	CUevent event;
	gpul_ipc_view view;
	gpul_ipc_client *next_abandoned;
};

/** Connect to the socket of a name, and check that the owner's process belongs to the same user.
 *
 * @name  see gpul_ipc_place()
 * @out   a non-blocking socket; owned by the caller: close()
 * @who   set to the owner
 * Errors  as gpul_ipc_client_open(); GPUL_ESYS native = EAGAIN: the owner's backlog is full
 * Source  Linux unix(7) */
gpul_status gpul_ipc_connect(const char *name, int *out, struct gpul_ipc_identity *who, gpul_error *err);

/** Wait for all work on the client's GPUs.
 *
 * @c           attached
 * @timeout_ms  < 0: no time-out
 * Errors  GPUL_ESYS native = ETIMEDOUT
 * Threads one at a time
 * Source  CUDA Driver API: cuCtxRecordEvent */
gpul_status gpul_ipc_drain(gpul_ipc_client *c, int timeout_ms, gpul_error *err);

#endif
