/* plan.c — chooses the algorithm, the protocol and the number of blocks of a call. */
#include "comm/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm_internal.h"

/* ---- the built-in table ------------------------------------------------------------------------------------------ */

#define MOST UINT64_MAX

/* Two ranks that communicate through device memory, as `gpuload comm tune` measured on two H200s with NVLink. */
/* clang-format off */
static const struct choice pair_reduction[] = {
	{ 2 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 128 },
	{ 8 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 8, 256 },
	{ 32 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 16, 256 },
	{ 128 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 32, 256 },
	{ 256 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 32, 512 },
	{ 2 << 20, GPUL_COMM_RING, GPUL_COMM_LL128, 32, 288 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 32, 512 },
};
static const struct choice pair_copy[] = {
	{ 2 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 128 },
	{ 32 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 8, 256 },
	{ 64 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 32, 256 },
	{ 256 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 32, 512 },
	{ 2 << 20, GPUL_COMM_RING, GPUL_COMM_LL128, 32, 288 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 32, 512 },
};
static const struct choice pair_broadcast[] = {
	{ 2 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 128 },
	{ 32 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 8, 256 },
	{ 64 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 32, 256 },
	{ 256 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 32, 512 },
	{ 8 << 20, GPUL_COMM_RING, GPUL_COMM_LL128, 32, 512 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 16, 512 },
};
/* clang-format on */
/* More than two ranks that communicate through device memory: one-shot sends each byte n - 1 times, so it is used only for smaller
 * sizes. */
static const struct choice many_reduction[] = {
	{ 2 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 128 },
	{ 64 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 16, 256 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 64, 512 },
};
static const struct choice many_copy[] = {
	{ 2 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 128 },
	{ 128 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 16, 256 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 32, 512 },
};
/* Send and receive through channels in device memory.  LL sends its head as one more pack: 288 threads move the 4 KiB of a block and
 * this pack together. */
/* clang-format off */
static const struct choice channels[] = {
	{ 4 << 10, GPUL_COMM_DIRECT, GPUL_COMM_LL, 1, 288 },
	{ 64 << 10, GPUL_COMM_DIRECT, GPUL_COMM_LL, 8, 288 },
	{ 128 << 10, GPUL_COMM_DIRECT, GPUL_COMM_LL, 16, 512 },
	{ 4 << 20, GPUL_COMM_DIRECT, GPUL_COMM_LL128, 16, 512 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 32, 512 },
};
static const struct choice alltoall[] = {
	{ 4 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 256 },
	{ 64 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 16, 256 },
	{ 128 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 16, 512 },
	{ 512 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 32, 512 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 32, 512 },
};
/* clang-format on */
/* Send and receive through channels in host memory. */
static const struct choice host_channels[] = {
	{ 8 << 10, GPUL_COMM_DIRECT, GPUL_COMM_LL, 1, 256 },
	{ 256 << 10, GPUL_COMM_DIRECT, GPUL_COMM_LL, 4, 512 },
	{ 4 << 20, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 16, 512 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 32, 512 },
};
/* Ranks that communicate through host memory: a step takes longer there, and a tree of 8 ranks has fewer steps than a ring. */
static const struct choice many_host[] = {
	{ 16 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 4, 256 },
	{ 256 << 10, GPUL_COMM_TREE, GPUL_COMM_LL, 4, 512 },
	{ 4 << 20, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 8, 512 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 32, 512 },
};
/* Several hosts: a tree for small sizes, because it needs few trips between hosts; two levels for large sizes, because all ranks of
 * a host then send at the same time. */
static const struct choice hosts_reduction[] = {
	{ 256 << 10, GPUL_COMM_TREE, GPUL_COMM_LL, 4, 512 },
	{ 1 << 20, GPUL_COMM_TREE, GPUL_COMM_SIMPLE, 8, 512 },
	{ MOST, GPUL_COMM_TWO_LEVEL, GPUL_COMM_SIMPLE, 16, 512 },
};
static const struct choice host[] = {
	{ 16 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 4, 256 },
	{ 256 << 10, GPUL_COMM_RING, GPUL_COMM_LL, 4, 512 },
	{ 4 << 20, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 8, 512 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 32, 512 },
};

/* A driver that interprets kernels: the cost is the total number of instructions of all ranks, because they share the CPUs. */
static const struct choice soft_channels[] = {
	{ 512, GPUL_COMM_DIRECT, GPUL_COMM_LL, 1, 96 },
	{ 32 << 10, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 1, 96 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 2, 96 },
};
static const struct choice soft_alltoall[] = {
	{ 64 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 64 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 2, 96 },
};
static const struct choice soft_device[] = {
	{ 2 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 64 },
	{ 32 << 10, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 1, 96 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 2, 96 },
};
static const struct choice soft_host[] = {
	{ 2 << 10, GPUL_COMM_ONE_SHOT, GPUL_COMM_LL, 1, 64 },
	{ 32 << 10, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 1, 96 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 2, 96 },
};

/* Several hosts on which the two-level algorithm is impossible: each host has one rank, or the hosts have different numbers of ranks. */
static const struct choice uneven_reduction[] = {
	{ 256 << 10, GPUL_COMM_TREE, GPUL_COMM_LL, 4, 512 },
	{ 1 << 20, GPUL_COMM_TREE, GPUL_COMM_SIMPLE, 8, 512 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 16, 512 },
};
static const struct choice soft_uneven_reduction[] = {
	{ 32 << 10, GPUL_COMM_TREE, GPUL_COMM_SIMPLE, 1, 96 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 4, 96 },
};
static const struct choice soft_hosts_reduction[] = {
	{ 32 << 10, GPUL_COMM_TREE, GPUL_COMM_SIMPLE, 1, 96 },
	{ 1 << 20, GPUL_COMM_TWO_LEVEL, GPUL_COMM_SIMPLE, 2, 96 },
	{ MOST, GPUL_COMM_TWO_LEVEL, GPUL_COMM_SIMPLE, 4, 96 },
};

/* Send and receive through channels over the network. */
static const struct choice net_channels[] = {
	{ 64 << 10, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 1, 256 },
	{ 1 << 20, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 2, 512 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 4, 512 },
};
static const struct choice net[] = {
	{ 64 << 10, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 1, 256 },
	{ 1 << 20, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 2, 512 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 4, 512 },
};
static const struct choice soft_net_channels[] = {
	{ 64 << 10, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 1, 96 },
	{ 1 << 20, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 2, 96 },
	{ MOST, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE, 4, 96 },
};
static const struct choice soft_net[] = {
	{ 64 << 10, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 1, 96 },
	{ 1 << 20, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 2, 96 },
	{ MOST, GPUL_COMM_RING, GPUL_COMM_SIMPLE, 4, 96 },
};

static const struct choice *built_in(const gpul_comm *c, gpul_comm_call call)
{
	const struct gpul_comm_call_info *info = gpul_comm_call_info(call);

	if (c->has_network && info->transfers)
		return c->interprets ? soft_net_channels : net_channels;
	if (call == GPUL_COMM_SENDRECV)
		return c->interprets ? soft_channels : c->direct ? channels : host_channels;
	if (call == GPUL_COMM_ALLTOALL)
		return c->interprets ? soft_alltoall : alltoall;
	if (call == GPUL_COMM_ALLREDUCE && c->hosts.n > 1 && c->hosts.ranks_per_host > 1)
		return c->interprets ? soft_hosts_reduction : hosts_reduction;
	if (call == GPUL_COMM_ALLREDUCE && c->hosts.n > 1)
		return c->interprets ? soft_uneven_reduction : uneven_reduction;
	if (c->has_network)
		return c->interprets ? soft_net : net;
	if (c->interprets)
		return c->direct ? soft_device : soft_host;
	if (!c->direct)
		return call == GPUL_COMM_ALLREDUCE && c->n_ranks >= 8 ? many_host : host;
	if (c->n_ranks > 2)
		return info->reduces ? many_reduction : many_copy;
	return info->reduces ? pair_reduction : call == GPUL_COMM_BROADCAST ? pair_broadcast : pair_copy;
}

/* ---- a measured table ------------------------------------------------------------------------------------- */

gpul_status gpul_comm_choices_load(gpul_comm *c, gpul_error *err)
{
	const char *path = c->options.table ? c->options.table : secure_getenv("GPULOAD_COMM_TABLE");

	if (!path || !*path)
		return GPUL_OK;
	(void)snprintf(c->table_path, sizeof c->table_path, "%s", path);
	return gpul_comm_table_read(path, &c->table, err);
}

gpul_comm_transport gpul_comm_transport_of(const gpul_comm *c)
{
	return c->has_network ? GPUL_COMM_NET : c->direct ? GPUL_COMM_DEVICE : GPUL_COMM_HOST;
}

static bool is_for(const gpul_comm *c, const gpul_comm_table_row *row, const char *device)
{
	return row->n_ranks == c->n_ranks && row->transport == gpul_comm_transport_of(c) && !strcmp(row->device, device);
}

gpul_status gpul_comm_choices_select(gpul_comm *c, gpul_error *err)
{
	const char *device = c->infos[0].device_name;
	size_t n = 0;

	for (int call = 0; call < GPUL_COMM_N_CALLS; call++)
		c->choices[call] = built_in(c, (gpul_comm_call)call);
	(void)snprintf(c->built_in_reason, sizeof c->built_in_reason, "the built-in table");
	if (c->table.n_rows == 0 && !*c->table_path)
		return GPUL_OK;
	c->measured = calloc(c->table.n_rows + GPUL_COMM_N_CALLS, sizeof *c->measured);
	if (!c->measured)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a table of %zu rows", c->table.n_rows);
	for (int call = 0; call < GPUL_COMM_N_CALLS; call++) {
		const size_t first = n;

		for (size_t i = 0; i < c->table.n_rows; i++) {
			const gpul_comm_table_row *row = &c->table.rows[i];

			if ((int)row->call != call || !is_for(c, row, device))
				continue;
			c->measured[n++] = (struct choice){ row->max_bytes, row->algo, row->proto, row->n_blocks, row->n_threads };
			(void)snprintf(c->measured_reason, sizeof c->measured_reason, "measured on %s, %s (%.80s)", row->host, row->date,
				       c->table_path);
		}
		if (n == first)
			continue;
		c->measured[n - 1].max_bytes = MOST;
		c->choices[call] = &c->measured[first];
		c->is_measured[call] = true;
	}
	(void)snprintf(c->built_in_reason, sizeof c->built_in_reason, "the built-in table, because %.80s has no row for this call",
		       c->table_path);
	return n ? GPUL_OK
		 : gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			     "%.100s has no row for '%s', %d ranks, transport %s; gpuload comm tune -n %d -o FILE "
			     "measures them",
			     c->table_path, device, c->n_ranks, gpul_comm_transport_name(gpul_comm_transport_of(c)), c->n_ranks);
}

void gpul_comm_choices_free(gpul_comm *c)
{
	gpul_comm_table_free(&c->table);
	free(c->measured);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t gpul_comm_table_hash(const gpul_comm *c)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < c->table.n_rows; i++) {
		const gpul_comm_table_row *row = &c->table.rows[i];
		const uint64_t numbers[] = { (uint64_t)row->n_ranks, row->transport, row->call, row->max_bytes, row->algo, row->proto,
					     row->n_blocks,          row->n_threads };

		hash = hash_bytes(hash, row->device, strlen(row->device));
		hash = hash_bytes(hash, numbers, sizeof numbers);
	}
	return c->table.n_rows ? hash : 0;
}

size_t gpul_comm_slot_data(const gpul_comm *c, gpul_comm_proto proto)
{
	return proto == GPUL_COMM_LL      ? c->sizes.ll_bytes / 2
	       : proto == GPUL_COMM_LL128 ? c->sizes.ll128_bytes / 16 * 15
					  : c->sizes.slot_bytes;
}

/* ---- the plan -------------------------------------------------------------------------------------------------------- */

static bool uses_channels(gpul_comm_call call, gpul_comm_algo algo)
{
	return algo == GPUL_COMM_DIRECT && gpul_comm_call_info(call)->transfers;
}

/* Return the number of bytes that each rank writes into the scratch of each other rank in a one-shot call. */
static size_t shot_bytes(const gpul_comm *c, gpul_comm_call call, size_t bytes)
{
	return gpul_comm_call_info(call)->has_parts ? bytes / (size_t)c->n_ranks : bytes;
}

/* Return the reason why the two-level algorithm is impossible; NULL: it is possible. */
static const char *level_obstacle(const gpul_comm *c)
{
	if (c->hosts.n < 2)
		return "algorithm twolevel needs ranks on several hosts";
	if (c->hosts.ranks_per_host == 0)
		return "algorithm twolevel needs the same number of ranks on each host";
	return c->hosts.ranks_per_host == 1 ? "algorithm twolevel needs several ranks on each host" : NULL;
}

static const char no_kernel[] = "gpuload has no kernel for this call with this algorithm and protocol";

const char *gpul_comm_plan_obstacle(const gpul_comm *c, gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto, size_t bytes)
{
	if (!gpul_comm_plan_exists(call, algo, proto))
		return no_kernel;
	if (proto != GPUL_COMM_SIMPLE && c->has_network)
		return "only protocol simple works over the network";
	if (algo == GPUL_COMM_ONE_SHOT && c->has_network)
		return "algorithm oneshot needs memory that all ranks share";
	if (algo == GPUL_COMM_DIRECT && !uses_channels(call, algo) && !c->direct)
		return "algorithm direct needs device memory that all ranks can access";
	if (proto == GPUL_COMM_LL128 && !c->direct)
		return "protocol ll128 needs device memory that all ranks can access";
	if (algo == GPUL_COMM_ONE_SHOT && shot_bytes(c, call, bytes) > c->sizes.scratch_bytes / 2)
		return "the data is larger than the buffer of algorithm oneshot";
	return algo == GPUL_COMM_TWO_LEVEL ? level_obstacle(c) : NULL;
}

/* Replace an impossible combination of algorithm and protocol by a possible one: with the same algorithm, else with the same
 * protocol, else any.  A ring replaces a tree or two levels, because it also uses channels. */
static void replace(const gpul_comm *c, gpul_comm_call call, size_t bytes, gpul_comm_plan *plan)
{
	static const gpul_comm_proto protos[] = { GPUL_COMM_SIMPLE, GPUL_COMM_LL128, GPUL_COMM_LL };
	static const gpul_comm_algo by_speed[] = { GPUL_COMM_DIRECT, GPUL_COMM_RING, GPUL_COMM_ONE_SHOT, GPUL_COMM_TREE,
						   GPUL_COMM_TWO_LEVEL };
	static const gpul_comm_algo on_channels[] = { GPUL_COMM_RING, GPUL_COMM_DIRECT, GPUL_COMM_ONE_SHOT, GPUL_COMM_TREE,
						      GPUL_COMM_TWO_LEVEL };
	const gpul_comm_algo *algos = plan->algo == GPUL_COMM_TREE || plan->algo == GPUL_COMM_TWO_LEVEL ? on_channels : by_speed;
	const bool algo_first = c->options.algo != GPUL_COMM_ALGO_AUTO || c->options.proto == GPUL_COMM_PROTO_AUTO;

	for (int step = 0; step < 3; step++)
		for (unsigned i = 0; i < 3 * sizeof by_speed / sizeof *by_speed; i++) {
			const gpul_comm_algo algo = algos[i / 3];
			const gpul_comm_proto proto = protos[i % 3];

			if (step == 2 || ((step == 0) == algo_first ? algo == plan->algo : proto == plan->proto)) {
				if (gpul_comm_plan_obstacle(c, call, algo, proto, bytes))
					continue;
				plan->algo = algo;
				plan->proto = proto;
				return;
			}
		}
}

/* Return the reason why the options cannot be used for a call; NULL: they can. */
static const char *explain_options(const gpul_comm *c, gpul_comm_call call, size_t bytes)
{
	const gpul_comm_options *o = &c->options;

	for (int i = 0; i < GPUL_COMM_N_ALGOS * GPUL_COMM_N_PROTOS; i++) {
		const gpul_comm_algo algo = (gpul_comm_algo)(i % GPUL_COMM_N_ALGOS);
		const gpul_comm_proto proto = (gpul_comm_proto)(i / GPUL_COMM_N_ALGOS);

		if ((o->algo == GPUL_COMM_ALGO_AUTO || o->algo == algo) && (o->proto == GPUL_COMM_PROTO_AUTO || o->proto == proto) &&
		    gpul_comm_plan_exists(call, algo, proto))
			return gpul_comm_plan_obstacle(c, call, algo, proto, bytes);
	}
	return no_kernel;
}

static const struct choice *find_choice(const struct choice *choice, size_t bytes)
{
	while (choice->max_bytes < bytes)
		choice++;
	return choice;
}

/* Apply the options that force an algorithm or a protocol, if they are possible for this call. */
static void apply_options(const gpul_comm *c, gpul_comm_call call, size_t bytes, gpul_comm_plan *plan)
{
	const bool algo = c->options.algo != GPUL_COMM_ALGO_AUTO, proto = c->options.proto != GPUL_COMM_PROTO_AUTO;
	const char *obstacle;

	plan->algo = algo ? c->options.algo : plan->algo;
	plan->proto = proto ? c->options.proto : plan->proto;
	obstacle = gpul_comm_plan_obstacle(c, call, plan->algo, plan->proto, bytes);
	if (obstacle)
		replace(c, call, bytes, plan);
	if ((algo && plan->algo != c->options.algo) || (proto && plan->proto != c->options.proto))
		plan->reason = explain_options(c, call, bytes);
	else if (obstacle && !algo && !proto)
		plan->reason = obstacle;
	else if ((algo || proto) && !c->is_forced)
		plan->reason = algo && proto ? "the caller's options select the algorithm and the protocol"
			       : algo        ? "the caller's options select the algorithm"
					     : "the caller's options select the protocol";
}

/* Return the reason for a choice: the table or option from which it was taken. */
static const char *reason_of(const gpul_comm *c, gpul_comm_call call, const struct choice *choice)
{
	if (c->is_measured[call])
		return c->measured_reason;
	if (*c->table_path)
		return c->built_in_reason; /* the built-in reason applies, because the tuning table has no entry for this call */
	if (choice->algo == GPUL_COMM_TREE)
		return "the built-in table: a tree needs fewer successive messages than a ring";
	if (choice->algo == GPUL_COMM_TWO_LEVEL)
		return "the built-in table: all ranks of a host send to other hosts at the same time";
	return c->built_in_reason;
}

gpul_comm_plan gpul_comm_plan_for(const gpul_comm *c, gpul_comm_call call, size_t bytes)
{
	const struct choice *choice = find_choice(c->choices[call], bytes);
	gpul_comm_plan plan = { .algo = choice->algo,
				.proto = choice->proto,
				.n_blocks = choice->n_blocks,
				.n_threads = choice->n_threads,
				.reason = reason_of(c, call, choice) };

	if (c->is_forced) {
		plan = c->forced;
		plan.reason = "forced";
	}
	apply_options(c, call, bytes, &plan);
	/* an all-to-all consists of sends and receives, each with its own plan */
	if (call == GPUL_COMM_ALLTOALL && plan.algo == GPUL_COMM_DIRECT) {
		const gpul_comm_plan each = gpul_comm_plan_for(c, GPUL_COMM_SENDRECV, bytes / (size_t)c->n_ranks);

		plan.proto = each.proto;
		plan.n_blocks = each.n_blocks;
		plan.n_threads = each.n_threads;
	}
	if (plan.n_blocks > c->sizes.n_blocks)
		plan.n_blocks = c->sizes.n_blocks;
	/* a direct kernel falls back to a ring if some rank's buffer is in no window, so it has enough threads for a ring */
	if (plan.algo != GPUL_COMM_ONE_SHOT && plan.n_threads < GPUL_COMM_MIN_THREADS)
		plan.n_threads = GPUL_COMM_MIN_THREADS;
	if (plan.n_threads > GPUL_COMM_MAX_THREADS)
		plan.n_threads = GPUL_COMM_MAX_THREADS;
	return plan;
}

void gpul_comm_plan_force(gpul_comm *c, const gpul_comm_plan *plan)
{
	c->is_forced = plan != NULL;
	if (plan)
		c->forced = *plan;
}
