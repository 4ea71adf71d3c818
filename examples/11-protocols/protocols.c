/* protocols.c — LL, LL128 and Simple: the cost and the benefit of a flag, and how each protocol
 * fails when it is used wrongly.
 *
 *     protocols [protocols.ptx]
 *
 * Sender and receiver are two blocks of one kernel.  Read the kernels in protocols.cu; this program starts them and prints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/context.h"
#include "loader/loader.h"
#include "protocols.h"

struct lesson {
	const gpul_driver *drv;
	gpul_context context;
	gpul_module *module;
	CUdeviceptr wires, result; /* wires: an array of two, one for each direction */
};

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "lesson: %s\n", err->text);
		exit(1);
	}
}

/* Run a kernel of two blocks, one warp each, on wires of zeros. */
static struct result run(struct lesson *l, const char *name, void *const *args, const size_t *bytes, size_t n_args)
{
	const gpul_launch_config two_blocks = { .grid = { 2, 1, 1 }, .block = { 32, 1, 1 } };
	const gpul_kernel *kernel;
	struct result result;
	gpul_error err = { 0 };

	need(gpul_cu(l->drv, &err, cuMemsetD8Async(l->wires, 0, 2 * sizeof(struct wire), NULL)), &err);
	need(gpul_cu(l->drv, &err, cuMemsetD8Async(l->result, 0, sizeof result, NULL)), &err);
	need(gpul_kernel_find(l->module, name, &kernel, &err), &err);
	need(gpul_kernel_launch(kernel, &two_blocks, args, bytes, n_args, &err), &err);
	need(gpul_cu(l->drv, &err, cuMemcpyDtoH(&result, l->result, sizeof result)), &err);
	return result;
}

static void show(struct lesson *l, const char *title, const char *kernel, unsigned protocol)
{
	void *args[] = { &l->wires, &l->result, &protocol };
	const struct result r = run(l, kernel, args, (const size_t[]){ 8, 8, 4 }, strcmp(kernel, "right") == 0 ? 3 : 2);

	printf("%s\n", title);
	for (unsigned i = 0; i < r.n_records; i++)
		if (r.records[i].n_wrong)
			printf("  takes message %llu: WRONG, %llu of %llu words are not of this message\n", r.records[i].message,
			       r.records[i].n_wrong, r.records[i].n_words);
		else
			printf("  takes message %llu: all %llu words are right\n", r.records[i].message, r.records[i].n_words);
}

/* Return the number of bytes that cross the wire for a message. */
static unsigned wire_bytes(unsigned protocol, unsigned n_bytes)
{
	const unsigned n_lines = (n_bytes / 8 + DATA_WORDS - 1) / DATA_WORDS;

	return protocol == LL ? 2 * n_bytes : protocol == LL128 ? n_lines * LINE_WORDS * 8 : n_bytes + 8;
}

static int measure(struct lesson *l)
{
	static const char *const names[] = { "LL", "LL128", "Simple" };
	unsigned n_messages = l->drv->interprets ? 100 : 2000;
	CUdeviceptr back = l->wires + sizeof(struct wire);
	u64 n_wrong = 0;

	puts("protocol   bytes   bytes on the wire   us per message   wrong words");
	for (unsigned n_bytes = 8; n_bytes <= MAX_BYTES; n_bytes = n_bytes == 8 ? 1024 : n_bytes * 16)
		for (unsigned protocol = LL; protocol < N_PROTOCOLS; protocol++) {
			void *args[] = { &l->wires, &back, &l->result, &protocol, &n_bytes, &n_messages };
			const struct result r = run(l, "ping_pong", args, (const size_t[]){ 8, 8, 8, 4, 4, 4 }, 6);

			printf("%-8s %7u %19u %16.2f %13llu%s\n", names[protocol], n_bytes, wire_bytes(protocol, n_bytes),
			       (double)r.ns / 2000 / n_messages, r.n_wrong, r.timed_out ? "  timed out" : "");
			n_wrong += r.n_wrong + r.timed_out;
		}
	return n_wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct lesson l = { 0 };
	gpul_error err = { 0 };
	int status;

	need(gpul_driver_open(GPUL_DRIVER_AUTO, &l.drv, &err), &err);
	need(gpul_context_open(l.drv, 0, &l.context, &err), &err);
	need(gpul_module_load_file(l.drv, argc > 1 ? argv[1] : "protocols.ptx", NULL, &l.module, &err), &err);
	need(gpul_cu(l.drv, &err, cuMemAlloc(&l.wires, 2 * sizeof(struct wire))), &err);
	need(gpul_cu(l.drv, &err, cuMemAlloc(&l.result, sizeof(struct result))), &err);
	show(&l, "-- LL, data and flag in two stores", "ll_two_stores", LL);
	show(&l, "-- LL, the flag is always 1", "ll_constant_flag", LL);
	show(&l, "-- LL, one store of 8 bytes, the flag is the message's number", "right", LL);
	show(&l, "-- LL128, the line in two stores", "ll128_two_halves", LL128);
	show(&l, "-- LL128, one store of 128 bytes by 8 lanes", "right", LL128);
	show(&l, "-- Simple, without a barrier before the step", "simple_no_barrier", SIMPLE);
	show(&l, "-- Simple, with it", "right", SIMPLE);
	puts("-- full speed");
	status = measure(&l);
	l.drv->cuMemFree(l.wires);
	l.drv->cuMemFree(l.result);
	gpul_module_unload(l.module);
	gpul_context_close(&l.context);
	return status;
}
