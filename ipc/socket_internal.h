/* socket_internal.h — sends and receives messages with at most one descriptor over a non-blocking socket, and identifies the other end. */
#ifndef GPULOAD_IPC_SOCKET_INTERNAL_H
#define GPULOAD_IPC_SOCKET_INTERNAL_H

#include "ipc/wire_internal.h"

/* Results of gpul_ipc_receive(). */
typedef enum gpul_ipc_got {
	GOT_MESSAGE,
	GOT_NOTHING, /* no message has arrived */
	GOT_END,     /* the other side closed the connection */
	GOT_BAD,     /* an invalid message, which err explains; the connection must be dropped */
} gpul_ipc_got;

/* The process at the other end of a connection. */
struct gpul_ipc_identity {
	pid_t pid; /* 0: in another pid namespace, or unknown */
	uid_t uid;
	int pidfd; /* owned; becomes readable when the process ends; -1: not available */
};

/* Send one message; fd -1: without a descriptor.  Never blocks; fails if the peer does not read its messages. */
gpul_status gpul_ipc_send(int socket, const void *message, size_t n_bytes, int fd, gpul_error *err);

/* Send a message with this process' credentials.  Used for the first message on a socketpair, because SO_PEERCRED
 * of such a socket identifies the process that created the pair instead of the sender. */
gpul_status gpul_ipc_send_signed(int socket, const void *message, size_t n_bytes, gpul_error *err);

/* Receive one message.  *fd is set to its descriptor (owned by the caller) or -1; only an OFFER of memory with a descriptor has one.
 * Any other descriptor is closed, and the result is GOT_BAD.  who: NULL, or filled (pid and uid) if the sender sent credentials. */
gpul_ipc_got gpul_ipc_receive(int socket, gpul_ipc_message *out, int *fd, struct gpul_ipc_identity *who, gpul_error *err);

/* Identify the process at the other end: pid and uid; pidfd is -1.  uid is -1 if the system call failed. */
struct gpul_ipc_identity gpul_ipc_identify(int socket);
/** Prepare a socket that the caller provides: set close-on-exec, and make messages carry their sender's credentials.
 *
 * @socket  borrowed
 * Errors  GPUL_EINVAL not a Unix socket of type SEQPACKET; GPUL_ESYS
 * Source  Linux unix(7): SO_PASSCRED */
gpul_status gpul_ipc_adopt(int socket, gpul_error *err);

/* Set who->pidfd to the pidfd of the process at the other end of the socket, or, with by_pid, of the process who->pid. */
void gpul_ipc_watch(struct gpul_ipc_identity *who, int socket, bool by_pid);

/* Return how much of timeout_ms is left since begun_ns, for poll() and epoll_wait(); a timeout_ms <= 0 is returned unchanged. */
int gpul_ipc_left_ms(uint64_t begun_ns, int timeout_ms);

#endif
