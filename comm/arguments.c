/* arguments.c — checks the arguments of collectives, whether they are launched (collective.c) or posted (persistent.c). */
#include "comm/comm_internal.h"

static gpul_status check_element(gpul_comm_dtype dtype, gpul_comm_op op, gpul_error *err)
{
	if (gpul_comm_dtype_bytes(dtype) == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "element type %d is unknown: expected a value of gpul_comm_dtype", (int)dtype);
	if ((unsigned)op >= GPUL_COMM_N_OPS)
		return gpul_fail(err, GPUL_EINVAL, 0, "reduction operation %d is unknown: expected a value of gpul_comm_op", (int)op);
	return GPUL_OK;
}

gpul_status gpul_comm_check_buffer(const char *name, CUdeviceptr at, size_t n_bytes, size_t element_bytes, gpul_error *err)
{
	if (n_bytes == 0)
		return GPUL_OK;
	if (at == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "the %s buffer is NULL, but has %zu bytes", name, n_bytes);
	if (at % element_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "the %s buffer at 0x%llx is not aligned to %zu bytes, the size of an element", name,
				 (unsigned long long)at, element_bytes);
	if (at + n_bytes < at)
		return gpul_fail(err, GPUL_EINVAL, 0, "the %s buffer at 0x%llx with %zu bytes ends beyond the address space", name,
				 (unsigned long long)at, n_bytes);
	return GPUL_OK;
}

static gpul_status check_buffers(const struct comm_request *r, gpul_error *err)
{
	const gpul_comm_work *w = &r->work;
	gpul_status st = gpul_comm_check_buffer("send", w->send, r->send_bytes, w->element_bytes, err);

	st = st ? st : gpul_comm_check_buffer("recv", w->recv, r->recv_bytes, w->element_bytes, err);
	if (st || r->send_bytes == 0 || r->recv_bytes == 0 || w->send == r->in_place)
		return st;
	if (w->send < w->recv + r->recv_bytes && w->recv < w->send + r->send_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the send buffer (0x%llx, %zu bytes) and the recv buffer (0x%llx, %zu bytes) overlap%s",
				 (unsigned long long)w->send, r->send_bytes, (unsigned long long)w->recv, r->recv_bytes,
				 r->in_place ? "; for an in-place call, send must point to this rank's own part of the larger buffer" : "");
	return GPUL_OK;
}

/* Compute the sizes of the buffers, and the only address at which the send buffer may overlap the recv buffer (an in-place call). */
static void measure(const gpul_comm *c, struct comm_request *r)
{
	const struct gpul_comm_call_info *info = gpul_comm_call_info((gpul_comm_call)r->work.call);
	const size_t n = (size_t)c->n_ranks, part_bytes = r->work.count * r->work.element_bytes, own_part = (size_t)c->rank * part_bytes;

	r->send_bytes = info->has_root && c->rank != r->work.root ? 0 : info->sends_parts ? n * part_bytes : part_bytes;
	r->recv_bytes = info->receives_parts ? n * part_bytes : part_bytes;
	if (info->transfers)
		r->in_place = 0;
	else if (info->sends_parts)
		r->in_place = r->work.recv - own_part;
	else
		r->in_place = info->receives_parts ? r->work.recv + own_part : r->work.recv;
}

gpul_status gpul_comm_request(const gpul_comm *c, const gpul_comm_posting *p, struct comm_request *out, gpul_error *err)
{
	const size_t element_bytes = gpul_comm_dtype_bytes(p->dtype);
	gpul_status st = gpul_comm_usable(c, err);

	st = st ? st : check_element(p->dtype, p->op, err);
	if (st)
		return st;
	if (gpul_comm_call_info(p->call)->has_root && (p->root < 0 || p->root >= c->n_ranks))
		return gpul_fail(err, GPUL_EINVAL, 0, "root %d does not exist: the communicator has ranks 0 to %d", p->root,
				 c->n_ranks - 1);
	if (p->count > SIZE_MAX / 2 / element_bytes / (size_t)c->n_ranks)
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu elements of %zu bytes for %d ranks exceed the address space", p->count,
				 element_bytes, c->n_ranks);
	*out = (struct comm_request){ .work = { .send = p->send,
						.recv = p->recv,
						.count = p->count,
						.call = p->call,
						.dtype = p->dtype,
						.op = p->op,
						.root = p->root,
						.element_bytes = (uint32_t)element_bytes } };
	measure(c, out);
	st = check_buffers(out, err);
	if (st)
		return st;
	if (out->send_bytes)
		out->work.send_window = gpul_comm_window_of(c, p->send, out->send_bytes, &out->work.send_offset);
	if (out->recv_bytes)
		out->work.recv_window = gpul_comm_window_of(c, p->recv, out->recv_bytes, &out->work.recv_offset);
	return GPUL_OK;
}
