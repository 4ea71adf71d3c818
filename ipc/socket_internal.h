/* socket_internal.h — one message with at most one descriptor, over a socket that never blocks;
 * and who is at its other end. */
#ifndef GPULOAD_IPC_SOCKET_INTERNAL_H
#define GPULOAD_IPC_SOCKET_INTERNAL_H

#include "ipc/wire_internal.h"

/* What came of receiving. */
typedef enum gpul_ipc_got {
	GOT_MESSAGE,
	GOT_NOTHING, /* nothing there now */
	GOT_END,     /* the other side has closed it */
	GOT_BAD,     /* something that is no message: err says what; drop the connection */
} gpul_ipc_got;

/* Somebody at the other end of a connection. */
struct gpul_ipc_identity {
	pid_t pid; /* 0: of another pid namespace, or not known */
	uid_t uid;
	int pidfd; /* owned: becomes readable when that process ends; -1: not to be had */
};

/* Send one message; fd -1: without a descriptor.  Never waits: a peer that does not read is an
 * error. */
gpul_status gpul_ipc_send(int socket, const void *message, size_t n_bytes, int fd,
			  gpul_error *err);

/* The same with this process' credentials, for the first message through a socket that was not
 * connected by name: there SO_PEERCRED tells who made the pair, not who is speaking. */
gpul_status gpul_ipc_send_signed(int socket, const void *message, size_t n_bytes,
				 gpul_error *err);

/* Receive one message.  *fd is set to its descriptor (owned by the caller) or -1; an OFFER's
 * comes with it where its text says so, and with nothing else.  Every other descriptor is
 * closed, and makes it GOT_BAD.  who: NULL, or filled (pid and uid) when the sender signed. */
gpul_ipc_got gpul_ipc_receive(int socket, gpul_ipc_message *out, int *fd,
			      struct gpul_ipc_identity *who, gpul_error *err);

/* Who connected, or who listens: pid and uid; pidfd -1.  A failed call is uid -1, who is
 * nobody. */
struct gpul_ipc_identity gpul_ipc_identify(int socket);
/** Make a socket that was handed over one of ours: closed on exec, told who signs what comes.
 *
 * @socket  borrowed
 * Errors  GPUL_EINVAL not a Unix socket of type SEQPACKET; GPUL_ESYS
 * Threads any thread may call
 * Source  Linux unix(7): SO_PASSCRED */
gpul_status gpul_ipc_adopt(int socket, gpul_error *err);

/* Get who->pidfd of the process that connected or listens (by_pid: of process who->pid). */
void gpul_ipc_watch(struct gpul_ipc_identity *who, int socket, bool by_pid);

/* What is left of timeout_ms since begun_ns, for poll() and epoll_wait(): 0 and less than 0
 * stay. */
int gpul_ipc_left_ms(uint64_t begun_ns, int timeout_ms);

#endif
