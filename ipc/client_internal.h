/* client_internal.h — the client's struct, for its files: client.c, connect.c, drain.c. */
#ifndef GPULOAD_IPC_CLIENT_INTERNAL_H
#define GPULOAD_IPC_CLIENT_INTERNAL_H

#include "ipc/client.h"
#include "ipc/here_internal.h"
#include "ipc/socket_internal.h"

/* OVER: the owner is gone, or ended the lease; what is mapped stays. */
enum client_state { CLIENT_GREETED, CLIENT_ATTACHED, CLIENT_OVER };

struct gpul_ipc_client {
	const gpul_driver *drv;
	enum client_state state;
	bool owner_died;
	int socket, epoll;
	struct gpul_ipc_identity owner;
	bool by_pid; /* owner.pid is what its OFFER was signed with */
	int slot;
	struct gpul_ipc_here here;
	struct wire_hello hello;
	int devices[GPUL_MEM_MAX_DEVICES];
	unsigned n_devices;
	gpul_mem *mem; /* NULL: nothing is mapped */
	CUevent event;
	gpul_ipc_view view;
	gpul_ipc_client *next_abandoned;
};

/** Connect to the socket of a name, and see that its owner is this user.
 *
 * @name  see gpul_ipc_place()
 * @out   a socket that is not waited for; owned by the caller: close()
 * @who   set to the owner
 * Errors  as gpul_ipc_client_open(); GPUL_ESYS native = EAGAIN the owner cannot be reached now
 * Threads any thread may call
 * Source  Linux unix(7) */
gpul_status gpul_ipc_connect(const char *name, int *out, struct gpul_ipc_identity *who,
			     gpul_error *err);

/** Wait for the work on all of the client's GPUs.
 *
 * @c           attached
 * @timeout_ms  < 0: for ever
 * Errors  GPUL_ESYS native = ETIMEDOUT
 * Threads one at a time
 * Source  CUDA Driver API: cuCtxRecordEvent */
gpul_status gpul_ipc_drain(gpul_ipc_client *c, int timeout_ms, gpul_error *err);

#endif
