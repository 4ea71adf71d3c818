/* play.c — one rank runs the cases of a batch, and checks its own results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm_internal.h"
#include "tests/comm/reference.h"
#include "tests/comm/soak/soak.h"

enum { HASHES_MS = 60 * 1000 };

/* A buffer whose data begins at a random shift, with GUARD_BYTES before and after the data. */
struct buffer {
	CUdeviceptr plain, window;   /* two allocations, of which a call uses one */
	CUdeviceptr at;              /* address of the data in plain or window */
	unsigned char *image, *back; /* contents before and after the call, with the guards */
	size_t n_bytes;              /* size of the data */
};

struct player {
	const gpul_driver *drv;
	gpul_comm *comm;
	CUstream stream;
	int rank, n_ranks;
	struct buffer send, recv;
	char what[200]; /* description of the error; "": none */
};

static bool create_buffer(struct player *p, struct buffer *b, size_t max_bytes, gpul_error *err)
{
	const size_t room = max_bytes + 2 * GUARD_BYTES + 8 * MAX_SHIFT;

	b->image = malloc(room);
	b->back = malloc(room);
	if (!b->image || !b->back)
		abort();
	return !gpul_cu(p->drv, err, cuMemAlloc(&b->plain, room)) && !gpul_comm_alloc(p->comm, room, &b->window, err);
}

static void place_buffer(struct buffer *b, bool in_window, size_t shift_bytes, size_t n_bytes)
{
	b->at = (in_window ? b->window : b->plain) + GUARD_BYTES + shift_bytes;
	b->n_bytes = n_bytes;
	memset(b->image, 0xa5, n_bytes + 2 * GUARD_BYTES);
}

static unsigned char *image_data(const struct buffer *b)
{
	return b->image + GUARD_BYTES;
}

static bool upload(struct player *p, const struct buffer *b, gpul_error *err)
{
	/* Synchronize, because a copy of pageable memory may still run when cuMemcpyHtoD returns, and p->stream does not wait for it. */
	return gpul_cu(p->drv, err, cuMemcpyHtoD(b->at - GUARD_BYTES, b->image, b->n_bytes + 2 * GUARD_BYTES)) == GPUL_OK &&
	       gpul_cu(p->drv, err, cuStreamSynchronize(NULL)) == GPUL_OK;
}

static bool download(struct player *p, const struct buffer *b, gpul_error *err)
{
	return gpul_cu(p->drv, err, cuMemcpyDtoH(b->back, b->at - GUARD_BYTES, b->n_bytes + 2 * GUARD_BYTES)) == GPUL_OK;
}

/* Place and fill the buffers of a call.  In an in-place call, the smaller of the two buffers is inside the larger one. */
static bool prepare(struct player *p, const struct random_case *k, gpul_error *err)
{
	const size_t element = gpul_comm_dtype_bytes(k->dtype), me = (size_t)p->rank;
	const size_t n_send = send_count(k, p->n_ranks), n_recv = recv_count(k, p->n_ranks);

	place_buffer(&p->send, k->send_in_window >> me & 1, k->send_shift[me] * element, n_send * element);
	place_buffer(&p->recv, k->recv_in_window >> me & 1, k->recv_shift[me] * element, n_recv * element);
	if (k->call == GPUL_COMM_SENDRECV) {
		for (unsigned i = 0; i < k->n_messages; i++)
			if (k->messages[i].from == p->rank)
				fill_elements(image_data(&p->send) + k->messages[i].send_at * element, k->dtype, mix(k->seed, i), p->rank,
					      0, k->messages[i].count);
	} else {
		fill_elements(image_data(&p->send), k->dtype, k->seed, p->rank, 0, n_send);
	}
	if (!k->in_place)
		return upload(p, &p->send, err) && upload(p, &p->recv, err);
	if (k->call == GPUL_COMM_REDUCESCATTER) {
		p->recv.at = p->send.at + me * k->count * element;
		return upload(p, &p->send, err);
	}
	if (k->call == GPUL_COMM_ALLGATHER) {
		p->send.at = p->recv.at + me * k->count * element;
		memcpy(image_data(&p->recv) + me * k->count * element, image_data(&p->send), p->send.n_bytes);
	} else {
		p->send.at = p->recv.at;
		memcpy(image_data(&p->recv), image_data(&p->send), p->send.n_bytes);
	}
	return upload(p, &p->recv, err);
}

static bool pass_messages(struct player *p, const struct random_case *k, gpul_error *err)
{
	const size_t element = gpul_comm_dtype_bytes(k->dtype);

	if (k->grouped && gpul_comm_group_begin(p->comm, err))
		return false;
	for (unsigned i = 0; i < k->n_messages; i++) {
		const struct message *m = &k->messages[i];

		if (m->from == p->rank &&
		    gpul_comm_send(p->comm, p->send.at + m->send_at * element, m->count, k->dtype, m->to, p->stream, err))
			return false;
		if (m->to == p->rank &&
		    gpul_comm_recv(p->comm, p->recv.at + m->recv_at * element, m->count, k->dtype, m->from, p->stream, err))
			return false;
	}
	return !k->grouped || !gpul_comm_group_end(p->comm, err);
}

static bool call_once(struct player *p, const struct random_case *k, gpul_error *err)
{
	const CUdeviceptr send = p->send.at, recv = p->recv.at;

	switch (k->call) {
	case GPUL_COMM_ALLREDUCE:
		return !gpul_comm_allreduce(p->comm, send, recv, k->count, k->dtype, k->op, p->stream, err);
	case GPUL_COMM_REDUCESCATTER:
		return !gpul_comm_reducescatter(p->comm, send, recv, k->count, k->dtype, k->op, p->stream, err);
	case GPUL_COMM_ALLGATHER:
		return !gpul_comm_allgather(p->comm, send, recv, k->count, k->dtype, p->stream, err);
	case GPUL_COMM_BROADCAST:
		return !gpul_comm_broadcast(p->comm, send, recv, k->count, k->dtype, k->root, p->stream, err);
	case GPUL_COMM_ALLTOALL:
		return !gpul_comm_alltoall(p->comm, send, recv, k->count, k->dtype, p->stream, err);
	default:
		return pass_messages(p, k, err);
	}
}

/* Return the index of the first wrong element of the result; SIZE_MAX: none. */
static size_t find_wrong(const struct player *p, const struct random_case *k)
{
	const unsigned char *got = p->recv.back + GUARD_BYTES;
	const size_t element = gpul_comm_dtype_bytes(k->dtype), n = k->count, me = (size_t)p->rank;
	size_t i = n;

	if (k->call == GPUL_COMM_ALLREDUCE)
		i = find_wrong_result(got, k->dtype, k->op, k->seed, p->n_ranks, 0, n);
	else if (k->call == GPUL_COMM_REDUCESCATTER)
		i = find_wrong_result(got, k->dtype, k->op, k->seed, p->n_ranks, me * n, n);
	else if (k->call == GPUL_COMM_BROADCAST)
		i = find_other_element(got, k->dtype, k->seed, k->root, 0, n);
	if (i < n)
		return i;
	for (unsigned m = 0; m < k->n_messages; m++) {
		const struct message *x = &k->messages[m];

		if (x->to != p->rank)
			continue;
		i = find_other_element(got + x->recv_at * element, k->dtype, mix(k->seed, m), x->from, 0, x->count);
		if (i < x->count)
			return x->recv_at + i;
	}
	for (int r = 0; r < p->n_ranks && (k->call == GPUL_COMM_ALLGATHER || k->call == GPUL_COMM_ALLTOALL); r++) {
		i = find_other_element(got + (size_t)r * n * element, k->dtype, k->seed, r, k->call == GPUL_COMM_ALLTOALL ? me * n : 0, n);
		if (i < n)
			return (size_t)r * n + i;
	}
	return SIZE_MAX;
}

/* Check that nothing outside of the result has changed: the guards, the send buffer. */
static bool rest_is_unchanged(struct player *p, const struct random_case *k, gpul_error *err)
{
	const struct buffer *recv = &p->recv, *send = &p->send;
	size_t received = recv->n_bytes;

	if (k->call == GPUL_COMM_SENDRECV) { /* this rank receives only some of the messages, so the end of its buffer is not written */
		received = 0;
		for (unsigned i = 0; i < k->n_messages; i++)
			if (k->messages[i].to == p->rank)
				received += k->messages[i].count * gpul_comm_dtype_bytes(k->dtype);
	}
	if (!(k->in_place && k->call == GPUL_COMM_REDUCESCATTER)) {
		const size_t after = GUARD_BYTES + received;

		if (memcmp(recv->back, recv->image, GUARD_BYTES) != 0 ||
		    memcmp(recv->back + after, recv->image + after, recv->n_bytes + 2 * GUARD_BYTES - after) != 0) {
			(void)snprintf(p->what, sizeof p->what, "bytes outside of the recv buffer have changed");
			return false;
		}
	}
	if (k->in_place)
		return true;
	if (!download(p, send, err))
		return false;
	if (memcmp(send->back, send->image, send->n_bytes + 2 * GUARD_BYTES) == 0)
		return true;
	(void)snprintf(p->what, sizeof p->what, "the send buffer has changed");
	return false;
}

static bool play_once(struct player *p, const struct random_case *k, uint64_t *hash, gpul_error *err)
{
	size_t wrong;

	p->what[0] = 0;
	/* Set algorithm and protocol for each case, so that the channels of one communicator are used by all of them. */
	p->comm->options.algo = k->algo;
	p->comm->options.proto = k->proto;
	if (!prepare(p, k, err))
		return false;
	for (unsigned i = 0; i < k->n_queued; i++)
		if (!call_once(p, k, err))
			return false;
	if (gpul_comm_wait(p->comm, p->stream, err) || !download(p, &p->recv, err))
		return false;
	wrong = find_wrong(p, k);
	if (wrong != SIZE_MAX) {
		(void)snprintf(p->what, sizeof p->what, "element %zu of the result is wrong", wrong);
		return false;
	}
	*hash = hash_bits(p->recv.back + GUARD_BYTES, p->recv.n_bytes);
	return rest_is_unchanged(p, k, err);
}

static bool play_case(struct player *p, const struct random_case *k, uint64_t *shared, gpul_error *err)
{
	uint64_t first = 0, second = 0;

	if (!play_once(p, k, &first, err) || (k->again && !play_once(p, k, &second, err)))
		return false;
	if (k->again && first != second) {
		(void)snprintf(p->what, sizeof p->what, "the second run has other bits");
		return false;
	}
	*shared = k->call == GPUL_COMM_ALLREDUCE ? first : 1;
	return true;
}

static bool create_player(struct player *p, const struct limits *limits, const struct batch *b, const gpul_comm_job *job, gpul_error *err)
{
	gpul_rdma_desc net = { .device = { .gpu = -1, .gid_index = -1 } };
	gpul_comm_options options = b->options;

	if (limits->nics) {
		net.backend = "libfabric";
		net.device.device = limits->nics;
	}
	options.job = job;
	options.net = &net;
	if (gpul_driver_open(GPUL_DRIVER_AUTO, &p->drv, err))
		return false;
	if (!(b->direct >> job->rank & 1))
		net.gpu_direct = GPUL_RDMA_GPU_DIRECT_NO;
	else if (p->drv->interprets || limits->gpu_direct > 0) /* with a real GPU, require GPUDirect only if the option says so */
		net.gpu_direct = GPUL_RDMA_GPU_DIRECT_YES;
	return !gpul_comm_create(p->drv, &options, &p->comm, err) &&
	       !gpul_cu(p->drv, err, cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING)) &&
	       create_buffer(p, &p->send, limits->max_bytes, err) && create_buffer(p, &p->recv, limits->max_bytes, err);
}

/* Check that the results of all ranks have the same hashes; prints the first case in which they differ. */
static bool hashes_agree(struct player *p, const uint64_t *mine, unsigned long first, unsigned n, gpul_error *err)
{
	uint64_t all[MAX_SOAK_RANKS * BATCH_CASES];

	if (gpul_boot_allgather(p->comm->boot, mine, n * sizeof *mine, all, HASHES_MS, err)) {
		(void)fprintf(stderr, "rank %d: %s\n", p->rank, err->text);
		return false;
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned r = 1; r < (unsigned)p->n_ranks; r++)
			if (all[r * n + i] != all[i]) {
				if (p->rank == 0)
					(void)fprintf(stderr, "case %lu: ranks 0 and %u have other bits\n", first + i, r);
				return false;
			}
	return true;
}

static void destroy_player(struct player *p)
{
	struct buffer *const buffers[] = { &p->send, &p->recv };

	for (size_t i = 0; i < 2; i++) {
		(void)p->drv->cuMemFree(buffers[i]->plain);
		free(buffers[i]->image);
		free(buffers[i]->back);
	}
	(void)p->drv->cuStreamDestroy(p->stream);
	gpul_comm_destroy(p->comm); /* called last, because it may destroy the context */
}

int play_batch(const struct limits *limits, const struct batch *b, const gpul_comm_job *job, unsigned long first, unsigned n)
{
	struct player p = { .rank = job->rank, .n_ranks = b->n_ranks };
	uint64_t hashes[BATCH_CASES];
	bool good;
	gpul_error err = { 0 };

	if (!create_player(&p, limits, b, job, &err)) {
		(void)fprintf(stderr, "rank %d: %s\n", p.rank, err.text);
		return 1;
	}
	for (unsigned i = 0; i < n; i++) {
		struct random_case k;
		char about[256];

		make_case(limits, b, first + i, &k);
		if (play_case(&p, &k, &hashes[i], &err))
			continue;
		describe_case(&k, b, about, sizeof about);
		(void)fprintf(stderr, "case %lu, rank %d: %s: %s\n", k.number, p.rank, about, p.what[0] ? p.what : err.text);
		gpul_comm_abort(p.comm);
		return 1;
	}
	good = hashes_agree(&p, hashes, first, n, &err);
	destroy_player(&p);
	return good ? 0 : 1;
}
