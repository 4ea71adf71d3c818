/* netqueue.c — packets arrive in bounce memory, and a kernel copies them to their destinations.
 *
 *     netqueue [netqueue.ptx]
 *
 * This program plays the network and the CPU: it puts packets of a message into slots and
 * writes the ring's entries.  The kernels are in netqueue.cu. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/context.h"
#include "loader/loader.h"
#include "memalloc/mem.h"
#include "netqueue.h"

static const char message[] = "Packets have any length, and neither their place in a slot nor that in the message need be aligned.";
static const char neighbour[] = "These bytes belong to somebody else.";
enum { MESSAGE_BYTES = sizeof message - 1, NEIGHBOUR_BYTES = sizeof neighbour - 1 };

/* The packets, in the order in which they arrive. */
static const struct packet {
	unsigned begin, length, place;
} packets[] = {
	{ 40, 21, 3 }, { 0, 13, 1 }, { 61, 1, 9 }, { 13, 27, 30 }, { 95, 4, 60 }, { 62, 33, 7 },
};
enum { N_PACKETS = sizeof packets / sizeof *packets, WRONG = 3 };

struct lesson {
	const gpul_driver *drv;
	gpul_context context;
	gpul_module *module;
	gpul_mem *memory;
	struct queue *queue;     /* in host memory that the GPU maps */
	CUdeviceptr destination; /* the message, followed by another program's bytes */
};

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "lesson: %s\n", err->text);
		exit(1);
	}
}

/* Wait for a credit: a slot and an entry of the ring are free when the kernel has finished the
 * packet that used them before. */
static void wait_for_credit(const struct queue *q, u64 n)
{
	while (n - __atomic_load_n(&q->done, __ATOMIC_ACQUIRE) == SLOTS && !__atomic_load_n(&q->timed_out, __ATOMIC_RELAXED))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* Packet n arrives, in slot n % SLOTS. */
static void receive_packet(struct queue *q, u64 n, bool wrong)
{
	const struct packet *p = &packets[n];
	const u64 lap = n / ENTRIES + 1, source = n % SLOTS * SLOT_BYTES + p->place % (SLOT_BYTES - p->length + 1);
	const u64 destination = wrong ? MESSAGE_BYTES + 2 : p->begin;

	wait_for_credit(q, n);
	memcpy(q->bounce + source, message + p->begin, p->length);
	__atomic_store_n(&q->ring[n % ENTRIES].word[0], lap << 56 | (u64)p->length << 36 | source, __ATOMIC_RELEASE);
	__atomic_store_n(&q->ring[n % ENTRIES].word[1], lap << 56 | destination, __ATOMIC_RELEASE);
	printf("  entry %llu: %2u bytes at %3llu go to %3llu%s\n", n, p->length, source, destination,
	       wrong ? ", which is behind the message" : "");
}

/* Print the result of the kernel. */
static void show(struct lesson *l)
{
	char was[MESSAGE_BYTES + NEIGHBOUR_BYTES];
	unsigned n_right = 0;
	gpul_error err = { 0 };

	need(gpul_cu(l->drv, &err, cuMemcpyDtoH(was, l->destination, sizeof was)), &err);
	for (unsigned i = 0; i < MESSAGE_BYTES; i++)
		n_right += was[i] == message[i];
	for (u64 i = 0; i < l->queue->n_refused && i < MOST_REFUSALS; i++)
		printf("  entry %llu is refused: it ends at byte %llu of %llu\n", l->queue->refusals[i].entry, l->queue->refusals[i].end,
		       l->queue->refusals[i].limit);
	printf("  message:   %.*s\n", MESSAGE_BYTES, was);
	printf("  neighbour: %.*s\n", NEIGHBOUR_BYTES, was + MESSAGE_BYTES);
	printf("  %u of %u bytes of the message are right; the neighbour is %s%s\n", n_right, MESSAGE_BYTES,
	       memcmp(was + MESSAGE_BYTES, neighbour, NEIGHBOUR_BYTES) ? "OVERWRITTEN" : "untouched",
	       l->queue->timed_out ? "; the kernel has timed out" : "");
}

static void run(struct lesson *l, const char *title, const char *name, bool wrong)
{
	const gpul_launch_config one_warp = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	CUdeviceptr queue = gpul_mem_gpu(l->memory);
	u64 message_bytes = MESSAGE_BYTES, n_entries = N_PACKETS;
	void *args[] = { &queue, &l->destination, &message_bytes, &n_entries };
	const gpul_kernel *kernel;
	char start[MESSAGE_BYTES + NEIGHBOUR_BYTES];
	gpul_error err = { 0 };

	printf("-- %s\n", title);
	memset(l->queue, 0, sizeof *l->queue);
	memset(start, '.', MESSAGE_BYTES);
	memcpy(start + MESSAGE_BYTES, neighbour, NEIGHBOUR_BYTES);
	need(gpul_cu(l->drv, &err, cuMemcpyHtoD(l->destination, start, sizeof start)), &err);
	need(gpul_kernel_find(l->module, name, &kernel, &err), &err);
	need(gpul_kernel_launch(kernel, &one_warp, args, (const size_t[]){ 8, 8, 8, 8 }, 4, &err), &err);
	for (u64 n = 0; n < N_PACKETS; n++)
		receive_packet(l->queue, n, wrong && n == WRONG);
	need(gpul_cu(l->drv, &err, cuCtxSynchronize()), &err);
	show(l);
}

int main(int argc, char **argv)
{
	static const int device = 0;
	struct lesson l = { 0 };
	gpul_error err = { 0 };

	need(gpul_driver_open(GPUL_DRIVER_AUTO, &l.drv, &err), &err);
	need(gpul_context_open(l.drv, 0, &l.context, &err), &err);
	need(gpul_module_load_file(l.drv, argc > 1 ? argv[1] : "netqueue.ptx", NULL, &l.module, &err), &err);
	need(gpul_mem_create(l.drv,
			     &(gpul_mem_desc){
				     .bytes = sizeof(struct queue), .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1 },
			     &l.memory, &err),
	     &err);
	l.queue = gpul_mem_cpu(l.memory);
	need(gpul_cu(l.drv, &err, cuMemAlloc(&l.destination, MESSAGE_BYTES + NEIGHBOUR_BYTES)), &err);
	run(&l, "six packets, a kernel that trusts the entries", "trusting", false);
	run(&l, "entry 3 is wrong, a kernel that trusts the entries", "trusting", true);
	run(&l, "entry 3 is wrong, a kernel that checks them", "checking", true);
	l.drv->cuMemFree(l.destination);
	gpul_mem_destroy(l.memory);
	gpul_module_unload(l.module);
	gpul_context_close(&l.context);
	return 0;
}
