/* netqueue_run.c — receives the stream several times, and checks the written bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/comm/netqueue/cli_netqueue.h"

struct run {
	struct netqueue_request *q;
	struct netqueue_stream stream;
	struct netqueue_sender sender;
	struct netqueue_corruptor corruptor;
	gpul_netqueue *queue;
	CUdeviceptr memory;   /* device memory: the destination between two guard areas */
	unsigned char *was;   /* copy of `memory` on the host after a receive; NULL without --check */
	unsigned char *right; /* the expected bytes of the destination */
};

static uint64_t memory_bytes(const struct run *r)
{
	return r->q->bytes + 2 * NETQUEUE_GUARD_BYTES;
}

static gpul_status prepare(struct run *r, struct netqueue_result *out, gpul_error *err)
{
	struct netqueue_request *q = r->q;
	const gpul_driver *drv;
	gpul_status st = netqueue_stream_make(q, &r->stream, err);

	if (!st && q->tcp)
		st = netqueue_sender_start(&r->stream, &r->sender, err);
	st = st ? st : devices_arg_open(&q->devices, err);
	if (st)
		return st;
	drv = q->devices.drv;
	st = gpul_netqueue_create(drv, &q->desc, &r->queue, err);
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&r->memory, memory_bytes(r)));
	st = st ? st : gpul_cu(drv, err, cuDeviceGetName(out->device, sizeof out->device, q->devices.context[0].device));
	if (st)
		return st;
	if (q->check) {
		r->was = malloc(memory_bytes(r));
		r->right = malloc(q->bytes);
		if (!r->was || !r->right)
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to compare %llu bytes", (unsigned long long)q->bytes);
	}
	out->about = *gpul_netqueue_about(r->queue);
	out->driver = drv->name;
	out->interprets = drv->interprets;
	out->n_records = r->stream.n_records;
	out->stream_bytes = r->stream.n_bytes;
	r->corruptor = (struct netqueue_corruptor){
		.probability = q->corrupt,
		.seed = 3,
		.destination_bytes = q->bytes,
		.slot_bytes = out->about.shape.slot_bytes,
		.bounce_bytes = (uint64_t)out->about.shape.n_slots * out->about.shape.slot_bytes,
	};
	return GPUL_OK;
}

/* Count the wrong bytes.  The destination must contain the bytes of the stream, except where a corrupted entry was refused: there,
 * the initial fill must remain. */
static gpul_status compare(struct run *r, uint64_t *n_wrong, gpul_error *err)
{
	const struct netqueue_request *q = r->q;
	gpul_status st = gpul_cu(q->devices.drv, err, cuMemcpyDtoH(r->was, r->memory, memory_bytes(r)));

	for (uint64_t i = 0; !st && i < q->bytes; i++)
		r->right[i] = netqueue_byte(i);
	for (size_t i = 0; !st && i < r->corruptor.n; i++)
		memset(r->right + r->corruptor.entries[i].destination, NETQUEUE_FILL, r->corruptor.entries[i].length);
	*n_wrong = 0;
	for (uint64_t i = 0; !st && i < q->bytes; i++)
		*n_wrong += r->was[NETQUEUE_GUARD_BYTES + i] != r->right[i];
	for (uint64_t i = 0; !st && i < NETQUEUE_GUARD_BYTES; i++) {
		*n_wrong += r->was[i] != NETQUEUE_FILL;
		*n_wrong += r->was[NETQUEUE_GUARD_BYTES + q->bytes + i] != NETQUEUE_FILL;
	}
	return st;
}

static gpul_status receive_once(struct run *r, struct netqueue_row *row, gpul_error *err)
{
	const gpul_driver *drv = r->q->devices.drv;
	gpul_netqueue_memory memory = { .bytes = r->stream.bytes, .n_bytes = r->stream.n_bytes };
	const gpul_netqueue_receiver receiver = {
		.source = r->q->tcp ? gpul_netqueue_from_socket(&r->sender.fd) : gpul_netqueue_from_memory(&memory),
		.alter = r->q->corrupt > 0 ? netqueue_corrupt : NULL,
		.alter_context = &r->corruptor,
	};
	gpul_error why = { 0 };
	gpul_status st = GPUL_OK;

	if (r->q->check) {
		st = gpul_cu(drv, err, cuMemsetD8Async(r->memory, NETQUEUE_FILL, memory_bytes(r), NULL));
		st = st ? st : gpul_cu(drv, err, cuCtxSynchronize());
	}
	r->corruptor.n = 0;
	if (!st && r->q->tcp)
		st = netqueue_sender_go(&r->sender, err);
	if (st)
		return st;
	st = gpul_netqueue_receive(r->queue, r->memory + NETQUEUE_GUARD_BYTES, r->q->bytes, &receiver, &row->got, &why);
	row->n_corrupted = r->corruptor.n;
	if (st && !(r->q->corrupt > 0 && row->got.result.counts.n_refused && st == GPUL_EFORMAT))
		return gpul_fail(err, why.status, why.native, "%s", why.text);
	if (r->corruptor.no_memory)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the list of corrupted entries");
	return r->q->check ? compare(r, &row->n_wrong, err) : GPUL_OK;
}

static void close_run(struct run *r)
{
	netqueue_sender_end(&r->sender);
	gpul_netqueue_destroy(r->queue);
	if (r->memory)
		(void)r->q->devices.drv->cuMemFree(r->memory);
	devices_arg_close(&r->q->devices);
	netqueue_stream_free(&r->stream);
	free(r->corruptor.entries);
	free(r->was);
	free(r->right);
}

gpul_status netqueue_run(struct netqueue_request *q, struct netqueue_result *out, gpul_error *err)
{
	struct run r = { .q = q, .sender = { .fd = -1 } };
	struct netqueue_result result = { .ask = q, .rows = calloc(q->count, sizeof *result.rows), .ok = true };
	gpul_status st = result.rows ? prepare(&r, &result, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u results", q->count);

	for (unsigned i = 0; !st && i < q->count; i++) {
		struct netqueue_row *row = &result.rows[i];

		st = receive_once(&r, row, err);
		result.ok = result.ok && row->n_wrong == 0 && row->got.result.counts.n_refused == row->n_corrupted;
		result.n_rows++;
	}
	close_run(&r);
	if (st)
		netqueue_result_free(&result);
	else
		*out = result;
	return st;
}

void netqueue_result_free(struct netqueue_result *r)
{
	free(r->rows);
	r->rows = NULL;
}
