/* walk.c — calls a plug-in in the order in which NCCL calls it, for two ranks.  NCCL has one thread for each rank; here one does both.
 *
 *     walk PLUGIN     ends with "N messages are right", or says what went wrong */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net.h"

enum { RANKS = 2, IN_FLIGHT = 8, LIMIT_S = 10 };

static const net_plugin *net;
static size_t current_bytes;

struct rank {
	void *listener, *sender, *receiver;
	char handle[HANDLE_BYTES];
	struct {
		unsigned char *from, *to;
		void *send, *receive;
		int sent, received;
	} message[IN_FLIGHT];
};

static void fail(const char *what)
{
	printf("messages of %zu bytes: %s\n", current_bytes, what);
	exit(1);
}

static void need(result r, const char *call)
{
	char text[80];

	snprintf(text, sizeof text, "%s returned %d", call, (int)r);
	if (r != SUCCESS)
		fail(text);
}

static void on_alarm(int signal_number)
{
	char text[120];
	const int n = snprintf(text, sizeof text, "messages of %zu bytes: not done after %d s: a function waits\n", current_bytes, LIMIT_S);

	(void)signal_number;
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(2);
	_exit(1);
}

static void open_connections(struct rank *ranks)
{
	for (int r = 0; r < RANKS; r++)
		need(net->listen(0, ranks[r].handle, &ranks[r].listener), "listen");
	while (!ranks[0].receiver || !ranks[1].receiver)
		for (int r = 0; r < RANKS; r++) {
			if (!ranks[r].sender)
				need(net->connect(0, NULL, ranks[!r].handle, &ranks[r].sender, NULL), "connect");
			if (!ranks[r].receiver)
				need(net->accept(ranks[r].listener, &ranks[r].receiver, NULL), "accept");
		}
}

static unsigned char value(int r, int m, size_t i)
{
	return (unsigned char)(i * 7 + (size_t)m * 31 + (size_t)r * 101 + current_bytes);
}

/* Start the send of message m, or test it; returns 1 when the message has been sent. */
static int step_send(struct rank *sender, int m)
{
	if (!sender->message[m].send && !sender->message[m].sent)
		need(net->isend(sender->sender, sender->message[m].from, current_bytes, 0, NULL, NULL, &sender->message[m].send), "isend");
	if (sender->message[m].send)
		need(net->test(sender->message[m].send, &sender->message[m].sent, NULL), "test of isend");
	if (sender->message[m].sent)
		sender->message[m].send = NULL;
	return sender->message[m].sent;
}

/* Start the receive of message m, or test it; returns 1 when the message has been received. */
static int step_receive(struct rank *receiver, int m)
{
	size_t room = current_bytes + 5; /* a buffer may be longer than its message */
	void *to = receiver->message[m].to, **request = &receiver->message[m].receive;
	int n_bytes = -1;

	if (!*request && !receiver->message[m].received)
		need(net->irecv(receiver->receiver, 1, &to, &room, &(int){ 0 }, &(void *){ NULL }, NULL, request), "irecv");
	if (*request) {
		need(net->test(*request, &receiver->message[m].received, &n_bytes), "test of irecv");
		if (receiver->message[m].received && n_bytes != (int)current_bytes)
			fail("test() gives another size");
		if (receiver->message[m].received)
			*request = NULL;
	}
	return receiver->message[m].received;
}

static int exchange(struct rank *ranks)
{
	int n_done = 0;

	for (int r = 0; r < RANKS; r++)
		for (int m = 0; m < IN_FLIGHT; m++) {
			unsigned char *from = malloc(current_bytes + 5), *to = calloc(1, current_bytes + 5);

			if (!from || !to)
				fail("no memory");
			for (size_t i = 0; i < current_bytes; i++)
				from[i] = value(r, m, i);
			memset(&ranks[r].message[m], 0, sizeof ranks[r].message[m]);
			ranks[r].message[m].from = from;
			ranks[r].message[m].to = to;
		}
	while (n_done < RANKS * IN_FLIGHT) {
		n_done = 0;
		for (int m = 0; m < IN_FLIGHT; m++)
			for (int r = 0; r < RANKS; r++) {
				int sent = step_send(&ranks[r], m), received = 0;

				for (int k = 0; k <= m; k++) /* test the older messages, too */
					received = step_receive(&ranks[!r], k);
				n_done += sent && received;
			}
	}
	for (int r = 0; r < RANKS; r++)
		for (int m = 0; m < IN_FLIGHT; m++) {
			for (size_t i = 0; i < current_bytes; i++)
				if (ranks[!r].message[m].to[i] != value(r, m, i))
					fail("wrong data");
			free(ranks[r].message[m].from);
			free(ranks[!r].message[m].to);
		}
	return n_done;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 8, 0, 1000, 100000, 4 << 20 };
	struct rank ranks[RANKS] = { 0 };
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int n = 0, n_devices = 0;
	properties p;

	net = library ? dlsym(library, "ncclNetPlugin_v10") : NULL;
	if (!net) {
		fprintf(stderr, "usage: walk PLUGIN.so: %s\n", argc == 2 ? dlerror() : "no plug-in");
		return 2;
	}
	need(net->init(NULL, NULL), "init");
	need(net->devices(&n_devices), "devices");
	need(net->get_properties(0, &p), "get_properties");
	open_connections(ranks);
	signal(SIGALRM, on_alarm);
	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		current_bytes = sizes[s];
		alarm(LIMIT_S);
		n += exchange(ranks);
		printf("messages of %zu bytes: right\n", current_bytes);
		fflush(stdout);
	}
	for (int r = 0; r < RANKS; r++) {
		need(net->close_sender(ranks[r].sender), "close_sender");
		need(net->close_receiver(ranks[r].receiver), "close_receiver");
		need(net->close_listener(ranks[r].listener), "close_listener");
	}
	printf("%d messages are right\n", n);
	return 0;
}
