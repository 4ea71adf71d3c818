/* case.c — makes a case from a seed and a number. */
#include <stdio.h>

#include "tests/comm/reference.h"
#include "tests/comm/soak/soak.h"

struct random {
	uint64_t seed, n;
};

static uint64_t below(struct random *r, uint64_t limit)
{
	return mix(r->seed, r->n++) % limit;
}

static int choose(struct random *r, int wanted, int first, int end)
{
	const int any = first + (int)below(r, (uint64_t)(end - first));

	return wanted >= 0 ? wanted : any;
}

void make_batch(const struct limits *limits, unsigned long number, struct batch *out)
{
	static const size_t slots[] = { 0, 128, 640, 4096, 16384 };
	struct random r = { mix(limits->seed, 2 * number), 0 };

	*out = (struct batch){ .n_ranks = limits->min_ranks + (int)below(&r, (uint64_t)(limits->max_ranks - limits->min_ranks + 1)) };
	const unsigned n_hosts = 1 + (unsigned)below(&r, 3);

	out->options = (gpul_comm_options){
		.ranks_per_host = n_hosts > 1 ? ((unsigned)out->n_ranks + n_hosts - 1) / n_hosts : 0,
		.device = -1,
		.transport = limits->address ? GPUL_COMM_TRANSPORT_AUTO
					     : (gpul_comm_transport)choose(&r, limits->transport, GPUL_COMM_DEVICE, GPUL_COMM_N_TRANSPORTS),
		.n_blocks = (unsigned)below(&r, 5),
		.slot_bytes = slots[below(&r, sizeof slots / sizeof *slots)],
		.timeout_ms = 20000,
	};
	out->direct = limits->gpu_direct < 0 ? (uint32_t)below(&r, 1u << MAX_SOAK_RANKS) : limits->gpu_direct ? ~0u : 0;
}

/* Choose a count: small, within one element of a multiple of the size of a pack, line or slot, or arbitrary. */
static size_t random_count(struct random *r, size_t element_bytes, size_t max_bytes)
{
	static const size_t borders[] = { 16, 120, 128, 240, 256, 480, 640, 1024, 1920, 2048, 4096, 16384, 32768 };
	const size_t border = borders[below(r, sizeof borders / sizeof *borders)] * (1 + below(r, 3));
	const size_t most = max_bytes / element_bytes;
	size_t count;

	switch (below(r, 4)) {
	case 0:
		count = below(r, 9);
		break;
	case 1:
		count = border / element_bytes + below(r, 3) - (border / element_bytes > 0);
		break;
	case 2:
		count = below(r, 2048);
		break;
	default:
		count = below(r, most + 1);
	}
	return count < most ? count : most;
}

static void make_messages(struct random *r, struct random_case *k, int n_ranks, size_t element_bytes, size_t max_bytes)
{
	size_t sent[MAX_SOAK_RANKS] = { 0 }, received[MAX_SOAK_RANKS] = { 0 };

	k->grouped = below(r, 3) != 0;
	k->n_messages = 1 + (unsigned)below(r, MAX_MESSAGES);
	for (unsigned i = 0; i < k->n_messages; i++) {
		struct message *m = &k->messages[i];

		m->from = (int)below(r, (uint64_t)n_ranks);
		m->to = (m->from + (int)(k->grouped ? below(r, (uint64_t)n_ranks) : 1 + below(r, (uint64_t)n_ranks - 1))) % n_ranks;
		m->count = random_count(r, element_bytes, max_bytes / MAX_MESSAGES);
		m->send_at = sent[m->from];
		m->recv_at = received[m->to];
		sent[m->from] += m->count;
		received[m->to] += m->count;
	}
}

void make_case(const struct limits *limits, const struct batch *b, unsigned long number, struct random_case *out)
{
	struct random r = { mix(limits->seed, 2 * number + 1), 0 };
	const int n = b->n_ranks;
	size_t element_bytes;

	*out = (struct random_case){ .seed = mix(r.seed, 1 << 20), .number = number };
	out->call = (gpul_comm_call)choose(&r, limits->call, 0, GPUL_COMM_N_CALLS);
	out->dtype = (gpul_comm_dtype)below(&r, GPUL_COMM_N_DTYPES);
	out->op = (gpul_comm_op)below(&r, GPUL_COMM_N_OPS);
	out->algo = (gpul_comm_algo)choose(&r, limits->algo, 0, GPUL_COMM_N_ALGOS);
	out->proto = (gpul_comm_proto)choose(&r, limits->proto, 0, GPUL_COMM_N_PROTOS);
	element_bytes = gpul_comm_dtype_bytes(out->dtype);
	out->root = (int)below(&r, (uint64_t)n);
	out->in_place = below(&r, 3) == 0 && out->call != GPUL_COMM_SENDRECV && out->call != GPUL_COMM_ALLTOALL;
	out->again = below(&r, 8) == 0;
	out->n_queued = out->in_place || below(&r, 3) ? 1 : 2 + (unsigned)below(&r, 2);
	out->send_in_window = below(&r, 2) ? (uint32_t)below(&r, 256) : below(&r, 2) ? 255 : 0;
	out->recv_in_window = below(&r, 2) ? (uint32_t)below(&r, 256) : below(&r, 2) ? 255 : 0;
	for (int i = 0; i < n; i++) {
		out->send_shift[i] = below(&r, 2) ? below(&r, MAX_SHIFT) : 0;
		out->recv_shift[i] = below(&r, 2) ? below(&r, MAX_SHIFT) : 0;
	}
	if (out->call == GPUL_COMM_SENDRECV)
		make_messages(&r, out, n, element_bytes, limits->max_bytes);
	else if (out->call == GPUL_COMM_ALLREDUCE || out->call == GPUL_COMM_BROADCAST)
		out->count = random_count(&r, element_bytes, limits->max_bytes);
	else
		out->count = random_count(&r, element_bytes, limits->max_bytes / (size_t)n);
}

size_t send_count(const struct random_case *k, int n_ranks)
{
	size_t count = k->count;

	for (unsigned i = 0; i < k->n_messages; i++)
		count += k->messages[i].count;
	return k->call == GPUL_COMM_REDUCESCATTER || k->call == GPUL_COMM_ALLTOALL ? count * (size_t)n_ranks : count;
}

size_t recv_count(const struct random_case *k, int n_ranks)
{
	size_t count = k->count;

	for (unsigned i = 0; i < k->n_messages; i++)
		count += k->messages[i].count;
	return k->call == GPUL_COMM_ALLGATHER || k->call == GPUL_COMM_ALLTOALL ? count * (size_t)n_ranks : count;
}

void describe_case(const struct random_case *k, const struct batch *b, char *out, size_t out_bytes)
{
	(void)snprintf(out, out_bytes,
		       "%s %s %s, %zu elements, %s %s over %s, %d ranks (%u a host), %u blocks, slots of %zu bytes, GPU-direct %#x%s%s",
		       gpul_comm_call_name(k->call), gpul_comm_dtype_name(k->dtype), gpul_comm_op_name(k->op),
		       k->n_messages ? recv_count(k, b->n_ranks) : k->count, gpul_comm_algo_name(k->algo), gpul_comm_proto_name(k->proto),
		       gpul_comm_transport_name(b->options.transport), b->n_ranks,
		       b->options.ranks_per_host ? b->options.ranks_per_host : (unsigned)b->n_ranks, b->options.n_blocks,
		       b->options.slot_bytes, b->direct, k->in_place ? ", in place" : "", k->grouped ? ", grouped" : "");
}
