/* bench_rdma_protocol.c — measures the CPU time of the send path's state machine: both ends of a connection in one thread,
 * without a fabric.
 *
 *     bench_rdma_protocol [--runs N]
 *
 * Each operation of one end is immediately delivered to the other end as an event; clear-to-send slots are copied, data is
 * not.  A message consists of two requests, a receive and the matching send, each measured from its call to the test that
  * reports its completion.  Times are the best of the runs. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "rdma/protocol/protocol_link.h"

enum { MESSAGES = 2000000, MAX_OPS = 128 };

static gpul_rdma_control controls[2];
static char data[1 << 16];
static const gpul_rdma_area area = { .pieces = { { .bytes = sizeof data } }, .n_pieces = 1 };

static void check_status(gpul_status st, const gpul_error *err)
{
	if (!st)
		return;
	fprintf(stderr, "bench_rdma_protocol: %s\n", err->text);
	exit(1);
}

/* Execute the operations that one end has queued: deliver them to the other end. */
static void exchange(gpul_rdma_link *from, gpul_rdma_link *to, gpul_rdma_control *to_control)
{
	gpul_rdma_op ops[MAX_OPS];
	const unsigned n = gpul_rdma_link_take(from, ops, MAX_OPS);

	for (unsigned i = 0; i < n; i++) {
		const gpul_rdma_op *op = &ops[i];

		if (op->kind == GPUL_RDMA_OP_WRITE)
			memcpy((char *)to_control->slots + op->remote, (const void *)(uintptr_t)op->local, op->bytes);
		else if (op->kind == GPUL_RDMA_OP_WRITE_IMM)
			gpul_rdma_link_event(to, &(gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_ARRIVED, .qp = op->qp, .imm = op->imm });
		if (op->flags & GPUL_RDMA_SIGNALED)
			gpul_rdma_link_event(from, &(gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = op->id });
	}
}

static double measure(unsigned n_qps, uint32_t bytes, unsigned window)
{
	gpul_rdma_link *ends[2];
	gpul_rdma_request sends[256], recvs[256];
	const gpul_rdma_span span = { .bytes = bytes, .area = &area };
	const uint32_t tag = 7;
	gpul_error err = { 0 };
	uint64_t begun;

	memset(controls, 0, sizeof controls);
	for (int i = 0; i < 2; i++)
		check_status(gpul_rdma_link_create(
				     &(gpul_rdma_link_desc){
					     .n_qps = n_qps,
					     .depth = 512,
					     .segment_bytes = 1 << 20,
					     .stripe_bytes = 4096,
					     .inline_bytes = 220,
					     .ordered = true,
					     .completes_in_order = true,
					     .control = &controls[i],
					     .peer_slots = { .bytes = sizeof controls[i].slots },
				     },
				     &ends[i], &err),
			     &err);
	begun = gpul_clock_ns();
	for (unsigned done = 0; done < MESSAGES; done += window) {
		bool ended = false;

		for (unsigned i = 0; i < window; i++)
			check_status(gpul_rdma_link_recv(ends[1], &span, &tag, 1, UINT64_MAX, &recvs[i], &err), &err);
		for (unsigned i = 0; i < window; i++)
			check_status(gpul_rdma_link_send(ends[0], &span, tag, UINT64_MAX, &sends[i], &err), &err);
		for (unsigned i = 0; i < window;) {
			exchange(ends[1], ends[0], &controls[0]);
			exchange(ends[0], ends[1], &controls[1]);
			gpul_rdma_link_tick(ends[0], done);
			gpul_rdma_link_tick(ends[1], done);
			for (ended = true; ended && i < window; i += ended) {
				check_status(gpul_rdma_link_test(ends[1], recvs[i], &ended, NULL, &err), &err);
				if (ended)
					check_status(gpul_rdma_link_test(ends[0], sends[i], &ended, NULL, &err), &err);
			}
		}
	}
	const double ns = (double)(gpul_clock_ns() - begun);

	gpul_rdma_link_destroy(ends[0]);
	gpul_rdma_link_destroy(ends[1]);
	return MESSAGES / ns * 1e3;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "runs", required_argument, NULL, 'r' }, { 0 } };
	static const struct {
		unsigned n_qps;
		uint32_t bytes;
		unsigned window;
	} shapes[] = {
		{ 1, 8, 1 }, { 1, 8, 8 }, { 1, 8, 32 }, { 1, 65536, 32 }, { 4, 65536, 32 }, { 1, 8, 128 },
	};
	int runs = 5;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c != 'r')
			return 2;
		runs = atoi(optarg);
	}
	printf("%6s %8s %8s %14s %14s\n", "QPs", "bytes", "window", "M messages/s", "M requests/s");
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		double best = 0;

		for (int run = 0; run < runs; run++) {
			const double now = measure(shapes[i].n_qps, shapes[i].bytes, shapes[i].window);

			best = now > best ? now : best;
		}
		printf("%6u %8u %8u %14.2f %14.2f\n", shapes[i].n_qps, shapes[i].bytes, shapes[i].window, best, 2 * best);
	}
	return 0;
}
