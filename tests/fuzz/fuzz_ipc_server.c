/* fuzz_ipc_server.c — libFuzzer target: a server that shares memory, and connections that send any messages in any order.
 *
 * An input is a list of operations of two bytes (operation, connection), some followed by bytes that replace parts of a
 * valid message.  Whatever the connections send, every event must have a reason, the number of attached peers must match
 * the events, and no descriptor may remain open after all connections have closed. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver/context.h"
#include "ipc/here_internal.h"
#include "ipc/server.h"
#include "tests/fake/fake_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { N_CONNECTIONS = 4, MOST_PEERS = 2, MOST_ACTS = 64, MOST_CHANGES = 3 };

static gpul_ipc_server *server;
static struct wire_hello hello; /* a valid message */
static int connections[N_CONNECTIONS];
static size_t n_attached;

static void require(int truth)
{
	if (!truth)
		abort();
}

static int lowest_free(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	close(fd);
	return fd;
}

static void start_owner(void)
{
	static gpul_context context;
	static gpul_mem *mem;
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);
	int device = 0;
	gpul_mem_desc desc = { .kind = GPUL_MEM_MEMFD, .bytes = 65536, .devices = &device, .n_devices = 1, .exportable = true };
	gpul_ipc_server_options options = { .control = true, .max_peers = MOST_PEERS };
	struct gpul_ipc_here here;

	require(gpul_context_open(drv, 0, &context, NULL) == GPUL_OK);
	require(gpul_mem_create(drv, &desc, &mem, NULL) == GPUL_OK);
	require(gpul_ipc_server_create(drv, mem, &options, &server, NULL) == GPUL_OK);
	require(gpul_ipc_here_get(drv, &here, NULL) == GPUL_OK);
	hello = (struct wire_hello){
		.head = gpul_ipc_wire_head(WIRE_HELLO), .intent = WIRE_ATTACH, .can = here.can, .n_gpus = here.n_gpus
	};
	memcpy(hello.boot_id, here.boot_id, sizeof hello.boot_id);
	memcpy(hello.driver, here.driver, sizeof hello.driver);
	memcpy(hello.gpu, here.gpu, sizeof hello.gpu);
	for (int i = 0; i < N_CONNECTIONS; i++)
		connections[i] = -1;
}

static void serve_events(void)
{
	gpul_ipc_event event;

	do {
		require(gpul_ipc_server_next(server, 0, &event, NULL) == GPUL_OK);
		if (event.kind == GPUL_IPC_ATTACHED)
			n_attached++;
		if (event.kind == GPUL_IPC_DETACHED || event.kind == GPUL_IPC_PEER_DIED)
			n_attached--;
		if (event.kind == GPUL_IPC_REFUSED || event.kind == GPUL_IPC_PEER_DIED)
			require(event.why.text[0] != '\0' && event.why.status != GPUL_OK);
		require(n_attached <= MOST_PEERS);
	} while (event.kind != GPUL_IPC_NONE);
	require(gpul_ipc_server_peers(server, NULL, 0) == n_attached);
}

static void open_connection(int *connection)
{
	int pair[2];

	if (*connection >= 0)
		return;
	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	if (gpul_ipc_server_add(server, pair[1], NULL))
		close(pair[0]); /* the server already has its maximum number of connections */
	else
		*connection = pair[0];
}

static void close_connection(int *connection)
{
	if (*connection >= 0)
		close(*connection);
	*connection = -1;
}

/* Read one message, close its descriptor, and discard it. */
static void receive_message(int connection)
{
	char bytes[8192], control[CMSG_SPACE(4 * sizeof(int))];
	struct iovec part = { .iov_base = bytes, .iov_len = sizeof bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c;
	int fd;

	if (recvmsg(connection, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
		close(fd);
	}
}

static void send_message(int connection, const void *bytes, size_t n_bytes, unsigned n_fds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n_fds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memset(CMSG_DATA(c), 0, n_fds * sizeof(int)); /* the message carries descriptor 0, several times */
	}
	(void)sendmsg(connection, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Write a valid message of this type, then change some bytes as the input says.  Returns the message's size. */
static size_t compose_message(unsigned type, unsigned n_changes, const uint8_t **data, const uint8_t *end, gpul_ipc_message *m)
{
	size_t n = gpul_ipc_wire_bytes(type);

	memset(m, 0, sizeof *m);
	m->head = gpul_ipc_wire_head((enum wire_type)type);
	if (type == WIRE_HELLO)
		m->hello = hello;
	if (type == WIRE_REFUSED)
		m->refused.status = GPUL_ECUDA;
	for (unsigned i = 0; i < n_changes && end - *data >= 3; i++, *data += 3)
		((uint8_t *)m)[((size_t)(*data)[0] | (size_t)(*data)[1] << 8) % n] = (*data)[2];
	return n;
}

/* what: 0 open, 1 close, 2 serve, 3 receive, 4 shut down one direction; from 5 on: send a message with 0 to 3 changed
 * bytes, with descriptors or cut short. */
static void run_operation(uint8_t what, uint8_t which, const uint8_t **data, const uint8_t *end)
{
	int *connection = &connections[which % N_CONNECTIONS];
	gpul_ipc_message m;
	size_t n;

	if (what % 16 == 0) {
		open_connection(connection);
	} else if (what % 16 == 1) {
		close_connection(connection);
	} else if (what % 16 == 2) {
		serve_events();
	} else if (*connection >= 0 && what % 16 == 3) {
		receive_message(*connection);
	} else if (*connection >= 0 && what % 16 == 4) {
		shutdown(*connection, which & 0x80 ? SHUT_RD : SHUT_WR);
	} else if (*connection >= 0) {
		n = compose_message((what % 16 - 5u) % WIRE_BYE + 1, what >> 4 & MOST_CHANGES, data, end, &m);
		send_message(*connection, &m, what & 0x40 ? n * (which >> 4) / 16 : n, what & 0x80 ? which >> 2 & 3 : 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	const uint8_t *end = data + n_bytes;

	int free_before;

	if (!server)
		start_owner();
	free_before = lowest_free();
	for (int acts = 0; acts < MOST_ACTS && end - data >= 2; acts++) {
		uint8_t what = data[0], which = data[1];

		data += 2;
		run_operation(what, which, &data, end);
	}
	for (int i = 0; i < N_CONNECTIONS; i++)
		close_connection(&connections[i]);
	serve_events();
	require(n_attached == 0 && lowest_free() == free_before);
	return 0;
}
