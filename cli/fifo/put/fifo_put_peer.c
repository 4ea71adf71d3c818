/* fifo_put_peer.c — the child: its CPU thread makes progress, polls the step counters and flushes; its kernel waits for the counters. */
#include "cli/fifo/put/fifo_put_end.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/lib/cli_stop.h"
#include "core/clock.h"
#include "proxy/fifo_layout.h"

enum { IDLE_POLLS = 64, LOOK_NS = 200 * 1000 };

struct peer {
	struct fifo_put_end end;
	struct fifo_put_shared *shared;
	gpul_rdma_region *step_region;
	gpul_rdma_listener *listener;
	unsigned *next; /* per block: number of the next message that the CPU has not seen yet */
};

static gpul_status wait_for_parent(struct peer *p, gpul_error *err)
{
	struct fifo_put_end *e = &p->end;
	char address[FIFO_PUT_ADDRESS_BYTES] = "";
	gpul_rdma_remote offers[2];
	gpul_status st = gpul_rdma_register_mem(e->rdma, e->words, GPUL_RDMA_STEPS, &p->step_region, err);

	st = st ? st : gpul_rdma_listen(e->rdma, "127.0.0.1:0", &p->listener, err);
	if (st)
		return st;
	snprintf(address, sizeof address, "%s", gpul_rdma_listener_address(p->listener));
	st = fifo_put_send(e, address, sizeof address, err);
	st = st ? st : gpul_rdma_accept(p->listener, (int)(e->ask->timeout_ns / 1000000) + FIFO_PUT_GRACE_MS, &e->conn, err);
	st = st ? st
		: gpul_rdma_offer(e->region, (uintptr_t)gpul_mem_cpu(e->data),
				  (uint64_t)e->ask->blocks * e->ask->puts * fifo_put_stride(e->ask), &offers[0], err);
	st = st ? st
		: gpul_rdma_offer(p->step_region, (uintptr_t)gpul_mem_cpu(e->words), e->ask->blocks * sizeof(uint64_t), &offers[1], err);
	return st ? st : fifo_put_send(e, offers, sizeof offers, err);
}

static gpul_status launch_kernel(struct peer *p, gpul_error *err)
{
	struct fifo_put_end *e = &p->end;
	CUdeviceptr data = gpul_mem_gpu(e->data), steps = gpul_mem_gpu(e->words);
	CUdeviceptr abort_word = steps + e->ask->blocks * sizeof(uint64_t);
	uint32_t puts = e->ask->puts, bytes = e->ask->bytes, stride = fifo_put_stride(e->ask);
	uint64_t timeout_ns = e->ask->timeout_ns;
	const gpul_launch_config config = { .grid = { e->ask->blocks, 1, 1 }, .block = { 1, 1, 1 }, .stream = e->stream };
	void *args[] = { &data, &steps, &abort_word, &e->stamps, &e->results, &puts, &bytes, &stride, &timeout_ns };
	const size_t arg_bytes[] = { 8, 8, 8, 8, 8, 4, 4, 4, 8 };

	return gpul_kernel_launch(e->kernel, &config, args, arg_bytes, 9, err);
}

/* The CPU has seen that a message has arrived: make its data visible to running kernels.  Data in CPU memory is visible already. */
static gpul_status note_message(struct peer *p, unsigned message, gpul_error *err)
{
	const struct fifo_put_end *e = &p->end;
	const unsigned stride = fifo_put_stride(e->ask);
	const gpul_rdma_buffer span = { .region = e->region,
					.at = (uintptr_t)gpul_mem_cpu(e->data) + (uint64_t)message * stride,
					.bytes = e->ask->bytes };
	gpul_rdma_request request = 0;
	gpul_status st;

	p->shared->times[message].seen = gpul_clock_ns();
	st = gpul_rdma_iflush(e->conn, &span, (int)(e->ask->timeout_ns / 1000000), &request, err);
	if (!st && request)
		st = gpul_rdma_wait(e->conn, request, NULL, err);
	p->shared->times[message].flushed = gpul_clock_ns();
	return st;
}

/* Poll the step counter of each block, which counts its arrived messages; *found is set if one has increased. */
static gpul_status look_at_steps(struct peer *p, bool *found, gpul_error *err)
{
	const struct fifo_put_request *q = p->end.ask;
	const uint64_t *steps = gpul_mem_cpu(p->end.words);
	gpul_status st = GPUL_OK;

	for (unsigned b = 0; !st && b < q->blocks; b++) {
		const uint64_t value = __atomic_load_n(&steps[b], __ATOMIC_ACQUIRE);

		for (; !st && p->next[b] < value && p->next[b] < q->puts; p->next[b]++, *found = true)
			st = note_message(p, b * q->puts + p->next[b], err);
	}
	return st;
}

/* Check whether the kernel or the parent has ended. */
static gpul_status check_surroundings(const struct peer *p, bool *over, gpul_error *err)
{
	const struct fifo_put_end *e = &p->end;
	const CUresult r = e->drv->cuStreamQuery(e->stream);
	char byte;

	*over = r == CUDA_SUCCESS;
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
		return gpul_cu_status(e->drv, err, r, "cuStreamQuery(stream)");
	if (recv(e->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
		return gpul_fail(err, GPUL_ESYS, EPIPE, "the other process of the trace has ended");
	return GPUL_OK;
}

static gpul_status receive_messages(struct peer *p, gpul_error *err)
{
	uint64_t looked = gpul_clock_ns();
	bool over = false, found;
	gpul_status st = GPUL_OK;

	for (unsigned idle = 0; !st && !over; idle++) {
		found = false;
		st = gpul_rdma_progress(p->end.conn, NULL, err);
		st = st ? st : look_at_steps(p, &found, err);
		if (found)
			idle = 0;
		if (st || idle % IDLE_POLLS)
			continue;
		sched_yield(); /* the software driver may need this CPU to run the kernel */
		if (gpul_clock_ns() - looked < LOOK_NS)
			continue;
		looked = gpul_clock_ns();
		st = check_surroundings(p, &over, err);
	}
	/* If the kernel succeeded, all messages have arrived, some perhaps after the last poll: poll once more. */
	return st ? st : look_at_steps(p, &found, err);
}

static gpul_status check_results(const struct peer *p, gpul_error *err)
{
	const struct fifo_put_end *e = &p->end;
	uint32_t *results = calloc(e->ask->blocks, sizeof *results);
	gpul_status st;

	if (!results)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results of %u blocks", e->ask->blocks);
	st = gpul_cu(e->drv, err, cuMemcpyDtoH(results, e->results, e->ask->blocks * sizeof *results));
	for (unsigned b = 0; !st && b < e->ask->blocks; b++)
		if (results[b] == 100)
			st = gpul_fail(err, GPUL_EFORMAT, (int)b, "the receiver's block %u found wrong data after its step was raised", b);
		else if (results[b])
			st = gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the receiver's block %u timed out while it waited for its step", b);
	free(results);
	return st;
}

static gpul_status convert_times(struct peer *p, gpul_error *err)
{
	struct fifo_put_end *e = &p->end;
	const unsigned n = e->ask->blocks * e->ask->puts;
	uint64_t *seen = calloc(n, sizeof *seen);
	gpul_status st;

	if (!seen)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the times of %u messages", n);
	st = fifo_clock_fit(e->clock, &p->shared->relation, err);
	st = st ? st : gpul_cu(e->drv, err, cuMemcpyDtoH(seen, e->stamps, n * sizeof *seen));
	for (unsigned i = 0; !st && i < n; i++)
		p->shared->times[i].kernel_seen = fifo_clock_cpu_ns(&p->shared->relation, seen[i]);
	free(seen);
	return st;
}

static gpul_status run_peer(struct peer *p, gpul_error *err)
{
	struct fifo_put_end *e = &p->end;
	gpul_status st = wait_for_parent(p, err);

	st = st ? st : fifo_clock_take(e->clock, e->stream, err);
	st = st ? st : fifo_put_say(e, 'c', err);
	st = st ? st : fifo_put_expect(e, 'g', err);
	st = st ? st : launch_kernel(p, err);
	if (st)
		return st;
	st = fifo_put_say(e, 'l', err);
	st = st ? st : receive_messages(p, err);
	if (st) /* let the kernel stop waiting */
		__atomic_store_n((uint64_t *)gpul_mem_cpu(e->words) + e->ask->blocks, 1, __ATOMIC_RELEASE);
	(void)e->drv->cuStreamSynchronize(e->stream);
	st = st ? st : check_results(p, err);
	st = st ? st : fifo_put_say(e, 'r', err);
	st = st ? st : fifo_put_expect(e, 'c', err);
	st = st ? st : fifo_clock_take(e->clock, e->stream, err);
	st = st ? st : convert_times(p, err);
	return st ? st : fifo_put_say(e, 'd', err);
}

int fifo_put_serve(const struct fifo_put_request *ask, int socket, struct fifo_put_shared *shared)
{
	struct peer p = { .shared = shared };
	gpul_error err = { 0 };
	CUdevice device;
	gpul_status st;

	p.next = calloc(ask->blocks, sizeof *p.next);
	st = p.next ? stop_begin(&err) : gpul_fail(&err, GPUL_ENOMEM, 0, "no memory for %u blocks", ask->blocks);
	/* Ignore Ctrl-C, which also reaches the parent: when the parent ends, this process ends, too. */
	signal(SIGINT, SIG_IGN);
	st = st ? st : fifo_put_end_open(ask, socket, ask->peer_device, "put_receive", sizeof(uint64_t), &p.end, &err);
	st = st ? st : gpul_cu(p.end.drv, &err, cuCtxGetDevice(&device));
	st = st ? st : gpul_cu(p.end.drv, &err, cuDeviceGetName(shared->device, sizeof shared->device, device));
	st = st ? st : run_peer(&p, &err);
	if (st && err.native != EPIPE)
		shared->err = err;
	gpul_rdma_conn_close(p.end.conn);
	p.end.conn = NULL;
	gpul_rdma_listener_close(p.listener);
	gpul_rdma_unregister(p.step_region);
	fifo_put_end_close(&p.end);
	free(p.next);
	return st ? 1 : 0;
}
