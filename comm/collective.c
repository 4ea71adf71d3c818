/* collective.c — the collectives: checks their arguments, and launches the kernel that the plan chooses.
 *
 *     gpul_comm_allreduce() ... ── check ── plan ── kernel of (call, algorithm, protocol) ── gpul_comm_enqueue()
 *     gpul_comm_alltoall()      ── the same in one shot; else ── check ── list of transfers ── gpul_comm_launch_transfers() */
#include "comm/comm_internal.h"

/* The arguments of a call, and what they mean in bytes. */
struct request {
	gpul_comm_work work;
	size_t send_bytes, recv_bytes;  /* of the whole buffers; 0: this rank does not use it */
	CUdeviceptr in_place;           /* the one place of send that may overlap recv; 0: none */
};

static gpul_status check_element(gpul_comm_dtype dtype, gpul_comm_op op, gpul_error *err)
{
	if (gpul_comm_dtype_bytes(dtype) == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "%d is not an element type", (int)dtype);
	if ((unsigned)op >= GPUL_COMM_N_OPS)
		return gpul_fail(err, GPUL_EINVAL, 0, "%d is not an operation of a reduction", (int)op);
	return GPUL_OK;
}

static gpul_status check_buffer(const char *name, CUdeviceptr at, size_t n_bytes, size_t element_bytes, gpul_error *err)
{
	if (n_bytes == 0)
		return GPUL_OK;
	if (at == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "the %s buffer is NULL, but has %zu bytes", name, n_bytes);
	if (at % element_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "the %s buffer at 0x%llx is not aligned to the element's %zu bytes", name,
				 (unsigned long long)at, element_bytes);
	if (at + n_bytes < at)
		return gpul_fail(err, GPUL_EINVAL, 0, "the %s buffer at 0x%llx with %zu bytes exceeds the address space", name,
				 (unsigned long long)at, n_bytes);
	return GPUL_OK;
}

static gpul_status check_buffers(const struct request *r, gpul_error *err)
{
	const gpul_comm_work *w = &r->work;
	gpul_status st = check_buffer("send", w->send, r->send_bytes, w->element_bytes, err);

	st = st ? st : check_buffer("recv", w->recv, r->recv_bytes, w->element_bytes, err);
	if (st || r->send_bytes == 0 || r->recv_bytes == 0 || w->send == r->in_place)
		return st;
	if (w->send < w->recv + r->recv_bytes && w->recv < w->send + r->send_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "the send buffer (0x%llx, %zu bytes) and the recv buffer (0x%llx, %zu bytes) overlap%s",
				 (unsigned long long)w->send, r->send_bytes, (unsigned long long)w->recv, r->recv_bytes,
				 r->in_place ? "; in place, send must be the rank's own part" : "");
	return GPUL_OK;
}

/* Fill what all calls have; n_parts: buffers of up to that many times count elements. */
static gpul_status begin(const gpul_comm *c, struct request *r, gpul_comm_call call, CUdeviceptr send, CUdeviceptr recv,
			 size_t count, gpul_comm_dtype dtype, gpul_comm_op op, gpul_error *err)
{
	const size_t element_bytes = gpul_comm_dtype_bytes(dtype);
	gpul_status st = gpul_comm_usable(c, err);

	st = st ? st : check_element(dtype, op, err);
	if (st)
		return st;
	if (count > SIZE_MAX / 2 / element_bytes / (size_t)c->n_ranks)
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu elements of %zu bytes for %d ranks exceed the address space", count,
				 element_bytes, c->n_ranks);
	*r = (struct request){ .work = { .send = send, .recv = recv, .count = count, .call = call, .dtype = dtype, .op = op,
					 .element_bytes = (uint32_t)element_bytes } };
	r->send_bytes = r->recv_bytes = count * element_bytes;
	return GPUL_OK;
}

/* A communicator of one rank: the result is what it sends. */
static gpul_status copy_own(gpul_comm *c, const struct request *r, CUstream stream, gpul_error *err)
{
	if (r->work.send == r->work.recv)
		return GPUL_OK;
	return gpul_cu(c->drv, err, cuMemcpyDtoDAsync(r->work.recv, r->work.send, r->recv_bytes, stream));
}

static gpul_status launch(gpul_comm *c, struct request *r, CUstream stream, gpul_error *err)
{
	const gpul_comm_call call = (gpul_comm_call)r->work.call;
	gpul_comm_work *w = &r->work;
	gpul_status st = check_buffers(r, err);
	gpul_comm_plan plan;
	enum kernel_id kernel;

	if (st || w->count == 0)
		return st;
	if (c->n_ranks == 1)
		return copy_own(c, r, stream, err);
	plan = gpul_comm_plan_for(c, call, r->send_bytes > r->recv_bytes ? r->send_bytes : r->recv_bytes);
	kernel = gpul_comm_kernel_of(call, plan.algo, plan.proto);
	if (kernel == N_KERNELS)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s has no algorithm %s with protocol %s", gpul_comm_call_name(call),
				 gpul_comm_algo_name(plan.algo), gpul_comm_proto_name(plan.proto));
	w->n_blocks = plan.n_blocks;
	w->send_window = r->send_bytes ? gpul_comm_window_of(c, w->send, r->send_bytes, &w->send_offset) : 0;
	w->recv_window = r->recv_bytes ? gpul_comm_window_of(c, w->recv, r->recv_bytes, &w->recv_offset) : 0;
	return gpul_comm_enqueue(c, kernel, w, plan.n_blocks, plan.n_threads, stream, err);
}

gpul_status gpul_comm_allreduce(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype,
				gpul_comm_op op, CUstream stream, gpul_error *err)
{
	struct request r;
	const gpul_status st = begin(c, &r, GPUL_COMM_ALLREDUCE, send, recv, count, dtype, op, err);

	if (st)
		return st;
	r.in_place = recv;
	return launch(c, &r, stream, err);
}

gpul_status gpul_comm_reducescatter(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t recv_count, gpul_comm_dtype dtype,
				    gpul_comm_op op, CUstream stream, gpul_error *err)
{
	struct request r;
	const gpul_status st = begin(c, &r, GPUL_COMM_REDUCESCATTER, send, recv, recv_count, dtype, op, err);

	if (st)
		return st;
	r.send_bytes *= (size_t)c->n_ranks;
	r.in_place = recv - (size_t)c->rank * r.recv_bytes;
	return launch(c, &r, stream, err);
}

gpul_status gpul_comm_allgather(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t send_count, gpul_comm_dtype dtype,
				CUstream stream, gpul_error *err)
{
	struct request r;
	const gpul_status st = begin(c, &r, GPUL_COMM_ALLGATHER, send, recv, send_count, dtype, GPUL_COMM_SUM, err);

	if (st)
		return st;
	r.recv_bytes *= (size_t)c->n_ranks;
	r.in_place = recv + (size_t)c->rank * r.send_bytes;
	return launch(c, &r, stream, err);
}

gpul_status gpul_comm_broadcast(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype, int root,
				CUstream stream, gpul_error *err)
{
	struct request r;
	const gpul_status st = begin(c, &r, GPUL_COMM_BROADCAST, send, recv, count, dtype, GPUL_COMM_SUM, err);

	if (st)
		return st;
	if (root < 0 || root >= c->n_ranks)
		return gpul_fail(err, GPUL_EINVAL, 0, "root %d does not exist: the communicator has ranks 0 to %d", root,
				 c->n_ranks - 1);
	r.work.root = root;
	r.in_place = recv;
	if (c->rank != root)
		r.send_bytes = 0;
	return launch(c, &r, stream, err);
}

gpul_status gpul_comm_alltoall(gpul_comm *c, CUdeviceptr send, CUdeviceptr recv, size_t count, gpul_comm_dtype dtype,
			       CUstream stream, gpul_error *err)
{
	const int n = c->n_ranks;
	gpul_comm_transfers t = { 0 };
	struct request r;
	size_t part_bytes;
	gpul_status st = begin(c, &r, GPUL_COMM_ALLTOALL, send, recv, count, dtype, GPUL_COMM_SUM, err);

	if (st)
		return st;
	part_bytes = r.send_bytes;
	r.send_bytes = r.recv_bytes = part_bytes * (size_t)n;
	if (n > 1 && gpul_comm_plan_for(c, GPUL_COMM_ALLTOALL, r.send_bytes).algo == GPUL_COMM_ONE_SHOT)
		return launch(c, &r, stream, err);
	st = check_buffers(&r, err);
	if (st || count == 0)
		return st;
	/* At distance 1, 2 ... along the ring of ranks, so that not all ranks send to the same one first. */
	for (int d = 1; d < n; d++) {
		const int to = (c->rank + d) % n, from = (c->rank + n - d) % n;
		gpul_comm_transfer *sent = &t.items[t.n++], *received = &t.items[t.n++];

		*sent = (gpul_comm_transfer){ .at = send + (size_t)to * part_bytes, .bytes = part_bytes, .peer = to,
					      .kind = GPUL_COMM_TRANSFER_SEND };
		*received = (gpul_comm_transfer){ .at = recv + (size_t)from * part_bytes, .bytes = part_bytes, .peer = from,
						  .kind = GPUL_COMM_TRANSFER_RECV };
		received->window = gpul_comm_window_of(c, received->at, part_bytes, &received->offset);
	}
	t.items[t.n++] = (gpul_comm_transfer){ .at = send + (size_t)c->rank * part_bytes, .bytes = part_bytes, .peer = c->rank,
					       .offset = recv + (size_t)c->rank * part_bytes, .kind = GPUL_COMM_TRANSFER_COPY };
	return gpul_comm_launch_transfers(c, &t, stream, err);
}
