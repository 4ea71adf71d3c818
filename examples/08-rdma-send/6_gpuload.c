/* 6_gpuload.c — gpuload's send path: messages, puts with a step, and a peer that dies.  Over a NIC, or over TCP without one.
 *
 *     6_gpuload                                  both processes on this machine
 *     6_gpuload --listen                         the receiver
 *     6_gpuload HOST                             the sender, on another machine
 *
 * Read receives_messages() and sends_messages() first: irecv and isend contain everything of
 * steps 2 to 4. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lesson.h"
#include "rdma/rdma.h"

enum { MESSAGES = 4, ITEMS = 8, TIMEOUT_MS = 10000 };

/* Memory of one end; all of it is registered. */
struct memory {
	char text[MESSAGES][64];
	uint64_t items[ITEMS];
	_Atomic uint64_t step;      /* number of items that have arrived */
	gpul_rdma_remote places[2]; /* addresses and keys by which the peer writes the receiver's items and step */
};

struct end {
	gpul_rdma *rdma;
	gpul_rdma_region *region;
	gpul_rdma_conn *conn;
	struct memory *m;
};

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "lesson: %s\n", err->text);
		exit(1);
	}
}

static void open_end(struct end *e, struct memory *m, const struct lesson_peer *peer)
{
	gpul_rdma_desc desc = { .device = { .gpu = -1, .gid_index = -1 } }; /* zeros elsewhere select the defaults */
	gpul_rdma_listener *listener;
	gpul_rdma_device_info info;
	gpul_error err = { 0 };
	char line[256];

	e->m = m;
	need(gpul_rdma_open(&desc, &e->rdma, &err), &err);
	need(gpul_rdma_register(e->rdma, m, sizeof *m, GPUL_RDMA_STEPS, &e->region, &err), &err);
	if (peer->receives) {
		gpul_rdma_about(e->rdma, &info);
		printf("fabric: %s, %s\n", info.backend, info.name);
		snprintf(line, sizeof line, "%s:0", peer->own_host);
		need(gpul_rdma_listen(e->rdma, line, &listener, &err), &err);
		lesson_tell(peer, "%s", gpul_rdma_listener_address(listener));
		need(gpul_rdma_accept(listener, TIMEOUT_MS, &e->conn, &err), &err);
		gpul_rdma_listener_close(listener);
	} else {
		lesson_hear(peer, line);
		need(gpul_rdma_connect(e->rdma, line, TIMEOUT_MS, &e->conn, &err), &err);
	}
}

static void close_end(struct end *e)
{
	gpul_rdma_conn_close(e->conn);
	gpul_rdma_unregister(e->region);
	gpul_rdma_close(e->rdma);
}

static gpul_rdma_buffer buffer_of(const struct end *e, void *at, size_t bytes, uint32_t tag)
{
	return (gpul_rdma_buffer){ .region = e->region, .at = (uint64_t)(uintptr_t)at, .bytes = bytes, .tag = tag };
}

/* ---- messages: the n-th isend fills the n-th irecv ------------------------------------------------------------- */

static void receives_messages(struct end *e)
{
	gpul_rdma_request requests[MESSAGES];
	gpul_error err = { 0 };

	for (uint32_t i = 0; i < MESSAGES; i++) { /* each irecv posts a receive and grants a slot */
		const gpul_rdma_buffer b = buffer_of(e, e->m->text[i], sizeof e->m->text[i], i);

		need(gpul_rdma_irecv(e->conn, &b, 1, TIMEOUT_MS, &requests[i], &err), &err);
	}
	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint64_t bytes;

		need(gpul_rdma_wait(e->conn, requests[i], &bytes, &err), &err);
		printf("receiver: %llu bytes with tag %u: \"%s\"\n", (unsigned long long)bytes, i, e->m->text[i]);
	}
}

static void sends_messages(struct end *e)
{
	gpul_rdma_request requests[MESSAGES];
	gpul_error err = { 0 };

	for (uint32_t i = 0; i < MESSAGES; i++) {
		const int n = snprintf(e->m->text[i], sizeof e->m->text[i], "message %u of the sender", i) + 1;
		const gpul_rdma_buffer b = buffer_of(e, e->m->text[i], (size_t)n, i);

		need(gpul_rdma_isend(e->conn, &b, TIMEOUT_MS, &requests[i], &err), &err); /* returns without waiting for the slot */
	}
	for (uint32_t i = 0; i < MESSAGES; i++)
		need(gpul_rdma_wait(e->conn, requests[i], NULL, &err), &err);
}

/* ---- puts: they need no receive and no slot; a step counter tells how many have arrived -------------------------- */

static void receives_puts(struct end *e)
{
	struct memory *m = e->m;
	gpul_rdma_request request;
	gpul_error err = { 0 };
	gpul_rdma_buffer b;
	uint64_t sum = 0;

	need(gpul_rdma_offer(e->region, (uintptr_t)m->items, sizeof m->items, &m->places[0], &err), &err);
	need(gpul_rdma_offer(e->region, (uintptr_t)&m->step, sizeof m->step, &m->places[1], &err), &err);
	b = buffer_of(e, m->places, sizeof m->places, 0);
	need(gpul_rdma_isend(e->conn, &b, TIMEOUT_MS, &request, &err), &err);
	for (uint64_t i = 0, since = 0; i < ITEMS; i++) {
		while (atomic_load_explicit(&m->step, memory_order_acquire) <= i) { /* instead of the CPU, a kernel could poll the step */
			const gpul_status st = gpul_rdma_progress(e->conn, NULL, &err);

			if (atomic_load_explicit(&m->step, memory_order_acquire) > i)
				break; /* ignore st: if the sender has ended by now, its data is in memory */
			need(st, &err);
			lesson_wait(&since, "a step");
		}
		sum += m->items[i];
	}
	printf("receiver: %d puts, the sum is %llu\n", ITEMS, (unsigned long long)sum);
}

static void sends_puts(struct end *e)
{
	struct memory *m = e->m;
	gpul_rdma_request request;
	gpul_error err = { 0 };
	gpul_rdma_buffer b = buffer_of(e, m->places, sizeof m->places, 0);

	need(gpul_rdma_irecv(e->conn, &b, 1, TIMEOUT_MS, &request, &err), &err);
	need(gpul_rdma_wait(e->conn, request, NULL, &err), &err);
	for (uint64_t i = 0; i < ITEMS; i++) {
		gpul_rdma_put_desc put = {
			.from = { (uintptr_t)&m->items[i], sizeof m->items[i], gpul_rdma_region_area(e->region) },
			.to = { m->places[0].address + i * sizeof m->items[i], m->places[0].key, sizeof m->items[i] },
			.signal = m->places[1],
			.signal_value = i + 1, /* the step, written after the data */
		};

		m->items[i] = 1000 + i;
		need(gpul_rdma_put(e->conn, &put, TIMEOUT_MS, &request, &err), &err);
		need(gpul_rdma_wait(e->conn, request, NULL, &err), &err);
	}
}

/* ---- the sender's process dies while the receiver waits ------------------------------------------------------------- */

static void waits_for_a_dead_peer(struct end *e)
{
	const gpul_rdma_buffer b = buffer_of(e, e->m->text[0], sizeof e->m->text[0], 0);
	gpul_rdma_request request;
	gpul_error err = { 0 };

	/* Without a time limit, the first call after the death of the peer fails; the timing decides which of the two calls that is. */
	if (!gpul_rdma_irecv(e->conn, &b, 1, 0, &request, &err) && !gpul_rdma_wait(e->conn, request, NULL, &err))
		puts("receiver: a message came, but none was sent");
	else
		printf("receiver: %s\n", err.text);
}

int main(int argc, char **argv)
{
	static struct memory m;
	struct lesson_peer peer;
	struct end e;

	lesson_two_processes(argc, argv, &peer);
	open_end(&e, &m, &peer);
	if (!peer.receives) {
		sends_messages(&e);
		sends_puts(&e);
		_exit(0); /* ends like a crash, without closing the connection */
	}
	receives_messages(&e);
	receives_puts(&e);
	waits_for_a_dead_peer(&e);
	close_end(&e);
	return lesson_end(&peer);
}
