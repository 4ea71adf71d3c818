/* collective.c — the collectives: each launches the kernel that the plan chooses.
 *
 *     gpul_comm_allreduce() ... ── arguments.c ── plan ── kernel of (call, algorithm, protocol) ── gpul_comm_enqueue()
 *     gpul_comm_alltoall(), small ── the same, with the one-shot algorithm
 *     gpul_comm_alltoall(), large ── arguments.c ── list of transfers ── gpul_comm_launch_transfers() */
#include "comm/comm_internal.h"

/* Copy the send buffer to the recv buffer: with only one rank, this is the whole collective. */
static gpul_status copy_own(gpul_comm *c, const struct comm_request *r, CUstream stream, gpul_error *err)
{
	if (r->work.send == r->work.recv)
		return GPUL_OK;
	return gpul_cu(c->drv, err, cuMemcpyDtoDAsync(r->work.recv, r->work.send, r->recv_bytes, stream));
}

static gpul_status launch(gpul_comm *c, struct comm_request *r, CUstream stream, gpul_error *err)
{
	const gpul_comm_call call = (gpul_comm_call)r->work.call;
	gpul_comm_plan plan;
	enum kernel_id kernel;

	if (r->work.count == 0)
		return GPUL_OK;
	if (c->n_ranks == 1)
		return copy_own(c, r, stream, err);
	plan = gpul_comm_plan_for(c, call, r->send_bytes > r->recv_bytes ? r->send_bytes : r->recv_bytes);
	kernel = gpul_comm_kernel_of(call, plan.algo, plan.proto);
	if (kernel == N_KERNELS)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s cannot use algorithm %s with protocol %s: gpuload has no kernel for this combination",
				 gpul_comm_call_name(call), gpul_comm_algo_name(plan.algo), gpul_comm_proto_name(plan.proto));
	r->work.n_blocks = plan.n_blocks;
	return gpul_comm_enqueue(c, kernel, &r->work, plan.n_blocks, plan.n_threads, stream, err);
}

static gpul_status run(gpul_comm *c, const gpul_comm_posting *p, CUstream stream, gpul_error *err)
{
	struct comm_request r;
	const gpul_status st = gpul_comm_request(c, p, &r, err);

	return st ? st : launch(c, &r, stream, err);
}

gpul_status gpul_comm_allreduce(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, gpul_comm_op op,
				CUstream stream, gpul_error *err)
{
	return run(c,
		   &(gpul_comm_posting){
			   .call = GPUL_COMM_ALLREDUCE, .send = send, .recv = recv, .count = count, .dtype = dtype, .op = op },
		   stream, err);
}

gpul_status gpul_comm_reducescatter(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t recv_count, gpul_comm_dtype dtype,
				    gpul_comm_op op, CUstream stream, gpul_error *err)
{
	return run(c,
		   &(gpul_comm_posting){
			   .call = GPUL_COMM_REDUCESCATTER, .send = send, .recv = recv, .count = recv_count, .dtype = dtype, .op = op },
		   stream, err);
}

gpul_status gpul_comm_allgather(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t send_count, gpul_comm_dtype dtype, CUstream stream,
				gpul_error *err)
{
	return run(c, &(gpul_comm_posting){ .call = GPUL_COMM_ALLGATHER, .send = send, .recv = recv, .count = send_count, .dtype = dtype },
		   stream, err);
}

gpul_status gpul_comm_broadcast(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, int root,
				CUstream stream, gpul_error *err)
{
	return run(c,
		   &(gpul_comm_posting){
			   .call = GPUL_COMM_BROADCAST, .send = send, .recv = recv, .count = count, .dtype = dtype, .root = root },
		   stream, err);
}

gpul_status gpul_comm_alltoall(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, CUstream stream,
			       gpul_error *err)
{
	const gpul_comm_posting p = { .call = GPUL_COMM_ALLTOALL, .send = send, .recv = recv, .count = count, .dtype = dtype };
	const int n = c->n_ranks;
	gpul_comm_transfers t = { 0 };
	struct comm_request r;
	size_t part_bytes;
	const gpul_status st = gpul_comm_request(c, &p, &r, err);

	if (st || count == 0)
		return st;
	if (n > 1 && gpul_comm_plan_for(c, GPUL_COMM_ALLTOALL, r.send_bytes).algo == GPUL_COMM_ONE_SHOT)
		return launch(c, &r, stream, err);
	part_bytes = r.send_bytes / (size_t)n;
	/* Send to the rank at distance 1, then 2, and so on along the ring, so that not all ranks send to the same rank first. */
	for (int d = 1; d < n; d++) {
		const int to = (c->rank + d) % n, from = (c->rank + n - d) % n;
		gpul_comm_transfer *sent = &t.items[t.n++], *received = &t.items[t.n++];

		*sent = (gpul_comm_transfer){
			.at = send + (size_t)to * part_bytes, .bytes = part_bytes, .peer = to, .kind = GPUL_COMM_TRANSFER_SEND
		};
		*received = (gpul_comm_transfer){
			.at = recv + (size_t)from * part_bytes, .bytes = part_bytes, .peer = from, .kind = GPUL_COMM_TRANSFER_RECV
		};
		received->window = gpul_comm_window_of(c, received->at, part_bytes, &received->offset);
	}
	t.items[t.n++] = (gpul_comm_transfer){ .at = send + (size_t)c->rank * part_bytes,
					       .bytes = part_bytes,
					       .peer = c->rank,
					       .offset = recv + (size_t)c->rank * part_bytes,
					       .kind = GPUL_COMM_TRANSFER_COPY };
	return gpul_comm_launch_transfers(c, &t, stream, err);
}
