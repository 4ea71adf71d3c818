/* test_hostile.c — the plug-in with invalid handles, connections of other programs to a listener's port, and invalid calls. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "nccl/net/handle.h"
#include "tests/nccl/net/plugin_of.h"

enum { N_STRANGERS = 80, LIMIT_MS = 20000 };

static struct plugin plugin;

/* Poll connect(), and accept() if there is a listener, until both have a result. */
static gpul_nccl_result join(const void *handle, void *listener, void **sender, void **receiver)
{
	const uint64_t until = gpul_clock_ns() + LIMIT_MS * UINT64_C(1000000);
	gpul_nccl_result r = GPUL_NCCL_SUCCESS;

	*sender = *receiver = NULL;
	while (!r && (!*sender || (listener && !*receiver))) {
		if (gpul_clock_ns() > until)
			fail_msg("no result within %d ms", LIMIT_MS);
		if (!*sender)
			r = plugin_connect(&plugin, 0, handle, sender);
		if (!r && listener && !*receiver)
			r = PLUGIN_CALL(&plugin, accept)(listener, receiver, NULL);
		usleep(500);
	}
	return r;
}

static void close_both(void *sender, void *receiver)
{
	assert_int_equal(PLUGIN_CALL(&plugin, close_sender)(sender), GPUL_NCCL_SUCCESS);
	assert_int_equal(PLUGIN_CALL(&plugin, close_receiver)(receiver), GPUL_NCCL_SUCCESS);
}

static void a_wrong_handle_gives_an_error(void **state)
{
	unsigned char handle[GPUL_NCCL_HANDLE_BYTES], wrong[GPUL_NCCL_HANDLE_BYTES];
	gpul_net_handle h;
	void *listener, *sender, *receiver;

	(void)state;
	assert_int_equal(plugin_listen(&plugin, 0, handle, &listener), GPUL_NCCL_SUCCESS);
	srand(7);
	for (int i = 0; i < 200; i++) {
		memcpy(wrong, handle, sizeof wrong);
		for (int k = 0; k < 1 + i % 20; k++)
			wrong[rand() % 120] = (unsigned char)rand();
		if (memcmp(wrong, handle, sizeof wrong))
			assert_int_not_equal(join(wrong, NULL, &sender, &receiver), GPUL_NCCL_SUCCESS);
	}
	assert_int_equal(gpul_net_handle_read(handle, &h, NULL), GPUL_OK);
	h.backend = h.backend == GPUL_NET_VERBS ? GPUL_NET_LIBFABRIC : GPUL_NET_VERBS;
	gpul_net_handle_write(&h, wrong);
	assert_int_equal(join(wrong, NULL, &sender, &receiver), GPUL_NCCL_INVALID_USAGE);
	assert_non_null(strstr(plugin_warning(), "set GPULOAD_NET_PROVIDER to the same value on all hosts"));
	assert_int_equal(join(handle, listener, &sender, &receiver), GPUL_NCCL_SUCCESS);
	close_both(sender, receiver);
	assert_int_equal(PLUGIN_CALL(&plugin, close_listener)(listener), GPUL_NCCL_SUCCESS);
}

/* A listener refuses a peer whose handle has a wrong secret, and then accepts a valid peer. */
static void another_secret_is_refused(void **state)
{
	unsigned char handle[GPUL_NCCL_HANDLE_BYTES], wrong[GPUL_NCCL_HANDLE_BYTES];
	void *listener, *sender, *receiver;
	gpul_net_handle h;

	(void)state;
	assert_int_equal(plugin_listen(&plugin, 0, handle, &listener), GPUL_NCCL_SUCCESS);
	assert_int_equal(gpul_net_handle_read(handle, &h, NULL), GPUL_OK);
	h.secret[31] ^= 1;
	gpul_net_handle_write(&h, wrong);
	assert_int_not_equal(join(wrong, listener, &sender, &receiver), GPUL_NCCL_SUCCESS);
	assert_null(receiver);
	assert_non_null(strstr(plugin_warning(), "different secrets"));
	assert_int_equal(join(handle, listener, &sender, &receiver), GPUL_NCCL_SUCCESS);
	close_both(sender, receiver);
	assert_int_equal(PLUGIN_CALL(&plugin, close_listener)(listener), GPUL_NCCL_SUCCESS);
}

/* If no process listens at the address of a handle, connect() must fail within GPULOAD_NET_CONNECT_MS. */
static void a_closed_port_gives_an_error_in_time(void **state)
{
	unsigned char handle[GPUL_NCCL_HANDLE_BYTES];
	const uint64_t since = gpul_clock_ns();
	void *listener, *sender, *receiver;

	(void)state;
	assert_int_equal(plugin_listen(&plugin, 0, handle, &listener), GPUL_NCCL_SUCCESS);
	assert_int_equal(PLUGIN_CALL(&plugin, close_listener)(listener), GPUL_NCCL_SUCCESS);
	assert_int_not_equal(join(handle, NULL, &sender, &receiver), GPUL_NCCL_SUCCESS);
	assert_true(gpul_clock_ns() - since < UINT64_C(10000000000));
}

static int stranger(const char *address)
{
	const char *port = strrchr(address, ':') + 1;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	char host[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(host, sizeof host, "%.*s", (int)(port - 1 - address), address);
	assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

static void strangers_on_the_port_do_not_keep_the_peer_out(void **state)
{
	unsigned char handle[GPUL_NCCL_HANDLE_BYTES], rubbish[4096];
	void *listener, *sender, *receiver;
	int fds[N_STRANGERS];
	gpul_net_handle h;

	(void)state;
	assert_int_equal(plugin_listen(&plugin, 0, handle, &listener), GPUL_NCCL_SUCCESS);
	assert_int_equal(gpul_net_handle_read(handle, &h, NULL), GPUL_OK);
	srand(11);
	for (int i = 0; i < N_STRANGERS; i++) {
		fds[i] = stranger(h.address);
		for (size_t k = 0; k < sizeof rubbish; k++)
			rubbish[k] = (unsigned char)rand();
		(void)!send(fds[i], rubbish, (size_t)(i % 4 * 1000), MSG_NOSIGNAL); /* every fourth sends nothing */
		assert_int_equal(PLUGIN_CALL(&plugin, accept)(listener, &receiver, NULL), GPUL_NCCL_SUCCESS);
		assert_null(receiver);
	}
	assert_int_equal(join(handle, listener, &sender, &receiver), GPUL_NCCL_SUCCESS);
	close_both(sender, receiver);
	for (int i = 0; i < N_STRANGERS; i++)
		close(fds[i]);
	assert_int_equal(PLUGIN_CALL(&plugin, close_listener)(listener), GPUL_NCCL_SUCCESS);
}

/* If NCCL abandons a connect(), finalize() neither waits for the attempt nor leaks it. */
static void an_abandoned_attempt_ends_by_itself(void **state)
{
	unsigned char handle[GPUL_NCCL_HANDLE_BYTES];
	const uint64_t since = gpul_clock_ns();
	void *listener, *sender;

	(void)state;
	assert_int_equal(plugin_listen(&plugin, 0, handle, &listener), GPUL_NCCL_SUCCESS);
	assert_int_equal(plugin_connect(&plugin, 0, handle, &sender), GPUL_NCCL_SUCCESS);
	assert_null(sender);
	plugin_close(&plugin);
	assert_true(gpul_clock_ns() - since < UINT64_C(1000000000));
	assert_int_equal(PLUGIN_CALL(&plugin, close_listener)(listener), GPUL_NCCL_SUCCESS);
	usleep(300000); /* time for the connecting thread to end; a sanitizer reports a leak if it does not */
	assert_int_equal(plugin_open(12, 0, &plugin), GPUL_NCCL_SUCCESS);
}

static void wrong_calls_give_errors(void **state)
{
	unsigned char handle[GPUL_NCCL_HANDLE_BYTES];
	char memory[64] = { 0 };
	void *listener, *sender, *receiver, *from = NULL, *to = NULL, *request, *at[9];
	gpul_nccl_properties_v12 p;
	size_t sizes[9] = { 64 };
	int tags[9] = { 0 };

	(void)state;
	assert_int_equal(plugin_listen(&plugin, 0, handle, &listener), GPUL_NCCL_SUCCESS);
	assert_int_equal(plugin_listen(&plugin, 99, handle, &sender), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(plugin_listen(&plugin, -1, handle, &sender), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(plugin_properties(&plugin, 99, &p), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(PLUGIN_CALL(&plugin, close_listener)(listener), GPUL_NCCL_SUCCESS);
	assert_int_equal(plugin_listen(&plugin, 0, handle, &listener), GPUL_NCCL_SUCCESS);
	assert_int_equal(join(handle, listener, &sender, &receiver), GPUL_NCCL_SUCCESS);
	assert_int_equal(PLUGIN_CALL(&plugin, register_memory)(sender, memory, 64, GPUL_NCCL_CUDA, &from), GPUL_NCCL_INVALID_USAGE);
	assert_int_equal(PLUGIN_CALL(&plugin, register_memory)(sender, memory, 0, GPUL_NCCL_HOST, &from), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(PLUGIN_CALL(&plugin, register_memory)(sender, memory, 64, GPUL_NCCL_HOST, &from), GPUL_NCCL_SUCCESS);
	assert_int_equal(PLUGIN_CALL(&plugin, register_memory)(receiver, memory, 64, GPUL_NCCL_HOST, &to), GPUL_NCCL_SUCCESS);
	at[0] = memory + 1;
	assert_int_equal(PLUGIN_CALL(&plugin, irecv)(receiver, 1, at, sizes, tags, &to, NULL, &request), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(PLUGIN_CALL(&plugin, irecv)(receiver, 0, at, sizes, tags, &to, NULL, &request), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(PLUGIN_CALL(&plugin, irecv)(sender, 1, at, sizes, tags, &from, NULL, &request), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(PLUGIN_CALL(&plugin, isend)(receiver, memory, 64, 0, to, NULL, &request), GPUL_NCCL_INVALID_ARGUMENT);
	assert_int_equal(PLUGIN_CALL(&plugin, isend)(sender, memory, 64, 0, from, NULL, &request), GPUL_NCCL_SUCCESS);
	assert_null(request); /* NULL, because the peer has posted no receive */
	assert_int_equal(PLUGIN_CALL(&plugin, unregister)(sender, from), GPUL_NCCL_SUCCESS);
	assert_int_equal(PLUGIN_CALL(&plugin, unregister)(receiver, to), GPUL_NCCL_SUCCESS);
	close_both(sender, receiver);
	assert_int_equal(PLUGIN_CALL(&plugin, close_listener)(listener), GPUL_NCCL_SUCCESS);
}

static int open_plugin(void **state)
{
	(void)state;
	setenv("GPULOAD_NET_CONNECT_MS", "1000", 1);
	setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
	setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
	return plugin_open(12, 0, &plugin);
}

static int close_plugin(void **state)
{
	(void)state;
	plugin_close(&plugin);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_handle_gives_an_error),        cmocka_unit_test(another_secret_is_refused),
		cmocka_unit_test(a_closed_port_gives_an_error_in_time), cmocka_unit_test(strangers_on_the_port_do_not_keep_the_peer_out),
		cmocka_unit_test(an_abandoned_attempt_ends_by_itself),  cmocka_unit_test(wrong_calls_give_errors),
	};

	return cmocka_run_group_tests(tests, open_plugin, close_plugin);
}
