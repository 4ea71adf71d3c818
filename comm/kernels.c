/* kernels.c — the kernels of comm/kernels, embedded as PTX, each file loaded when its first kernel is used. */
#include <unistd.h>

#include "comm/comm_internal.h"

/* The assembler embeds a PTX file; the path is relative to the folder in which the compiler runs. */
#define EMBED(name)                                                             \
	__asm__(".pushsection .rodata\n"                                        \
		".global gpul_comm_ptx_" #name ", gpul_comm_ptx_" #name "_end\n" \
		"gpul_comm_ptx_" #name ": .incbin \"comm/kernels/" #name ".ptx\"\n" \
		"gpul_comm_ptx_" #name "_end: .byte 0\n"                        \
		".popsection");                                                 \
	extern const char gpul_comm_ptx_##name[], gpul_comm_ptx_##name##_end[]

EMBED(sendrecv);
EMBED(sendrecv_few);
EMBED(oneshot_alltoall);
EMBED(oneshot_allreduce);
EMBED(oneshot_reducescatter);
EMBED(oneshot_allgather);
EMBED(oneshot_broadcast);
EMBED(direct_allreduce);
EMBED(direct_reducescatter);
EMBED(direct_allgather);
EMBED(direct_broadcast);
EMBED(ring_allreduce);
EMBED(ring_reducescatter);
EMBED(ring_allgather);
EMBED(ring_broadcast);
EMBED(tree_allreduce);
EMBED(twolevel_allreduce);
EMBED(persistent);

#define FILE_OF(name) { #name ".ptx", gpul_comm_ptx_##name, gpul_comm_ptx_##name##_end }

enum {
	FILE_SENDRECV,
	FILE_SENDRECV_FEW,
	FILE_ONESHOT_ALLTOALL,
	FILE_ONESHOT_ALLREDUCE,
	FILE_ONESHOT_REDUCESCATTER,
	FILE_ONESHOT_ALLGATHER,
	FILE_ONESHOT_BROADCAST,
	FILE_DIRECT_ALLREDUCE,
	FILE_DIRECT_REDUCESCATTER,
	FILE_DIRECT_ALLGATHER,
	FILE_DIRECT_BROADCAST,
	FILE_RING_ALLREDUCE,
	FILE_RING_REDUCESCATTER,
	FILE_RING_ALLGATHER,
	FILE_RING_BROADCAST,
	FILE_TREE_ALLREDUCE,
	FILE_TWO_LEVEL_ALLREDUCE,
	FILE_PERSISTENT,
};
static const struct ptx_file {
	const char *name, *begin, *end;
} files[] = {
	[FILE_SENDRECV] = FILE_OF(sendrecv),
	[FILE_SENDRECV_FEW] = FILE_OF(sendrecv_few),
	[FILE_ONESHOT_ALLTOALL] = FILE_OF(oneshot_alltoall),
	[FILE_ONESHOT_ALLREDUCE] = FILE_OF(oneshot_allreduce),
	[FILE_ONESHOT_REDUCESCATTER] = FILE_OF(oneshot_reducescatter),
	[FILE_ONESHOT_ALLGATHER] = FILE_OF(oneshot_allgather),
	[FILE_ONESHOT_BROADCAST] = FILE_OF(oneshot_broadcast),
	[FILE_DIRECT_ALLREDUCE] = FILE_OF(direct_allreduce),
	[FILE_DIRECT_REDUCESCATTER] = FILE_OF(direct_reducescatter),
	[FILE_DIRECT_ALLGATHER] = FILE_OF(direct_allgather),
	[FILE_DIRECT_BROADCAST] = FILE_OF(direct_broadcast),
	[FILE_RING_ALLREDUCE] = FILE_OF(ring_allreduce),
	[FILE_RING_REDUCESCATTER] = FILE_OF(ring_reducescatter),
	[FILE_RING_ALLGATHER] = FILE_OF(ring_allgather),
	[FILE_RING_BROADCAST] = FILE_OF(ring_broadcast),
	[FILE_TREE_ALLREDUCE] = FILE_OF(tree_allreduce),
	[FILE_TWO_LEVEL_ALLREDUCE] = FILE_OF(twolevel_allreduce),
	[FILE_PERSISTENT] = FILE_OF(persistent),
};
_Static_assert(sizeof files / sizeof *files <= GPUL_COMM_MAX_FILES, "room in struct gpul_comm");

/* The kernels of an algorithm on channels. */
#define EACH_PROTO(id, file, name, call, algo)                             \
	[id] = { file, name "_ll", call, algo, GPUL_COMM_LL },             \
	[id + 1] = { file, name "_ll128", call, algo, GPUL_COMM_LL128 },   \
	[id + 2] = { file, name "_simple", call, algo, GPUL_COMM_SIMPLE }

static const struct kernel_source {
	int file;
	const char *name;
	gpul_comm_call call;
	gpul_comm_algo algo;      /* AUTO: not a collective */
	gpul_comm_proto proto;
} kernels[N_KERNELS] = {
	[KERNEL_SENDRECV] = { FILE_SENDRECV, "gpul_comm_sendrecv", GPUL_COMM_SENDRECV, GPUL_COMM_ALGO_AUTO, GPUL_COMM_SIMPLE },
	[KERNEL_SENDRECV_FEW] = { FILE_SENDRECV_FEW, "gpul_comm_sendrecv_few", GPUL_COMM_SENDRECV, GPUL_COMM_ALGO_AUTO, GPUL_COMM_SIMPLE },
	[KERNEL_ONESHOT_ALLTOALL_LL] = { FILE_ONESHOT_ALLTOALL, "gpul_comm_oneshot_alltoall_ll", GPUL_COMM_ALLTOALL, GPUL_COMM_ONE_SHOT,
		GPUL_COMM_LL },
	[KERNEL_ONESHOT_ALLREDUCE_LL] = { FILE_ONESHOT_ALLREDUCE, "gpul_comm_oneshot_allreduce_ll", GPUL_COMM_ALLREDUCE, GPUL_COMM_ONE_SHOT,
		GPUL_COMM_LL },
	[KERNEL_ONESHOT_REDUCESCATTER_LL] = { FILE_ONESHOT_REDUCESCATTER, "gpul_comm_oneshot_reducescatter_ll", GPUL_COMM_REDUCESCATTER, GPUL_COMM_ONE_SHOT,
		GPUL_COMM_LL },
	[KERNEL_ONESHOT_ALLGATHER_LL] = { FILE_ONESHOT_ALLGATHER, "gpul_comm_oneshot_allgather_ll", GPUL_COMM_ALLGATHER, GPUL_COMM_ONE_SHOT,
		GPUL_COMM_LL },
	[KERNEL_ONESHOT_BROADCAST_LL] = { FILE_ONESHOT_BROADCAST, "gpul_comm_oneshot_broadcast_ll", GPUL_COMM_BROADCAST, GPUL_COMM_ONE_SHOT,
		GPUL_COMM_LL },
	[KERNEL_DIRECT_ALLREDUCE] = { FILE_DIRECT_ALLREDUCE, "gpul_comm_direct_allreduce", GPUL_COMM_ALLREDUCE, GPUL_COMM_DIRECT,
		GPUL_COMM_SIMPLE },
	[KERNEL_DIRECT_REDUCESCATTER] = { FILE_DIRECT_REDUCESCATTER, "gpul_comm_direct_reducescatter", GPUL_COMM_REDUCESCATTER, GPUL_COMM_DIRECT,
		GPUL_COMM_SIMPLE },
	[KERNEL_DIRECT_ALLGATHER] = { FILE_DIRECT_ALLGATHER, "gpul_comm_direct_allgather", GPUL_COMM_ALLGATHER, GPUL_COMM_DIRECT,
		GPUL_COMM_SIMPLE },
	[KERNEL_DIRECT_BROADCAST] = { FILE_DIRECT_BROADCAST, "gpul_comm_direct_broadcast", GPUL_COMM_BROADCAST, GPUL_COMM_DIRECT,
		GPUL_COMM_SIMPLE },
	EACH_PROTO(KERNEL_RING_ALLREDUCE, FILE_RING_ALLREDUCE, "gpul_comm_ring_allreduce", GPUL_COMM_ALLREDUCE, GPUL_COMM_RING),
	EACH_PROTO(KERNEL_RING_REDUCESCATTER, FILE_RING_REDUCESCATTER, "gpul_comm_ring_reducescatter", GPUL_COMM_REDUCESCATTER, GPUL_COMM_RING),
	EACH_PROTO(KERNEL_RING_ALLGATHER, FILE_RING_ALLGATHER, "gpul_comm_ring_allgather", GPUL_COMM_ALLGATHER, GPUL_COMM_RING),
	EACH_PROTO(KERNEL_RING_BROADCAST, FILE_RING_BROADCAST, "gpul_comm_ring_broadcast", GPUL_COMM_BROADCAST, GPUL_COMM_RING),
	EACH_PROTO(KERNEL_TREE_ALLREDUCE, FILE_TREE_ALLREDUCE, "gpul_comm_tree_allreduce", GPUL_COMM_ALLREDUCE, GPUL_COMM_TREE),
	EACH_PROTO(KERNEL_TWO_LEVEL_ALLREDUCE, FILE_TWO_LEVEL_ALLREDUCE, "gpul_comm_twolevel_allreduce", GPUL_COMM_ALLREDUCE,
		   GPUL_COMM_TWO_LEVEL),
	[KERNEL_PERSISTENT] = { FILE_PERSISTENT, "gpul_comm_persistent", GPUL_COMM_N_CALLS, GPUL_COMM_ALGO_AUTO, GPUL_COMM_PROTO_AUTO },
};

enum kernel_id gpul_comm_kernel_of(gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto)
{
	for (int id = 0; id < N_KERNELS; id++)
		if (kernels[id].call == call && kernels[id].algo == algo && kernels[id].proto == proto)
			return (enum kernel_id)id;
	return N_KERNELS;
}

bool gpul_comm_plan_exists(gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto)
{
	const bool transfers = algo == GPUL_COMM_DIRECT && (call == GPUL_COMM_SENDRECV || call == GPUL_COMM_ALLTOALL);

	if ((unsigned)call >= GPUL_COMM_N_CALLS || proto == GPUL_COMM_PROTO_AUTO || algo == GPUL_COMM_ALGO_AUTO)
		return false;
	return transfers || gpul_comm_kernel_of(call, algo, proto) != N_KERNELS;
}

gpul_status gpul_comm_kernel(gpul_comm *c, enum kernel_id id, CUfunction *out, gpul_error *err)
{
	const struct kernel_source *source = &kernels[id];
	const struct ptx_file *file = &files[source->file];
	gpul_module **module = &c->modules[source->file];
	const gpul_kernel *k;
	gpul_status st = GPUL_OK;

	if (!c->kernels[id]) {
		if (!*module)
			st = gpul_module_load_ptx(c->drv, file->begin, (size_t)(file->end - file->begin), file->name, NULL, module,
						  err);
		st = st ? st : gpul_kernel_find(*module, source->name, &k, err);
		st = st ? st : gpul_kernel_prepare(k, err);
		st = st ? st : gpul_kernel_function(k, &c->kernels[id], err);
	}
	*out = c->kernels[id];
	return st;
}

/* Does another rank run as a thread of this process? */
static bool shares_process(const gpul_comm *c)
{
	bool shares = false;

	for (int r = 0; r < c->n_ranks; r++)
		shares |= r != c->rank && gpul_boot_host(c->boot, r) == gpul_boot_host(c->boot, c->rank) && c->paths[r].pid == getpid();
	return shares;
}

gpul_status gpul_comm_kernels_load(gpul_comm *c, gpul_error *err)
{
	CUfunction unused;
	gpul_status st = GPUL_OK;

	if (c->interprets || !shares_process(c))
		return GPUL_OK;
	c->replay.off = true;  /* the driver may also wait when it makes a graph */
	for (int id = 0; !st && id < N_KERNELS; id++)
		if (id != KERNEL_PERSISTENT)
			st = gpul_comm_kernel(c, (enum kernel_id)id, &unused, err);
	return st;
}

void gpul_comm_kernels_unload(gpul_comm *c)
{
	for (unsigned i = 0; i < GPUL_COMM_MAX_FILES; i++)
		gpul_module_unload(c->modules[i]);
}
