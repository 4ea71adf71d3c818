/* comm_kernels.c — loads the kernels of comm/kernels, which are embedded as PTX; each file is loaded when its first kernel is used. */
#include <unistd.h>

#include "comm/comm_internal.h"
#include "loader/embedded.h"

#define FILE_ROW(name, header) GPUL_EMBED(name##_ptx, "comm/kernels/" #name ".ptx");
#include "comm/kernels/kernels.def"

static const gpul_embedded *const files[N_KERNEL_FILES] = {
#define FILE_ROW(name, header) &name##_ptx,
#include "comm/kernels/kernels.def"
};

static const struct kernel_source {
	const char *name;
	enum kernel_file file;
	gpul_comm_call call;
	gpul_comm_algo algo; /* GPUL_COMM_AUTO: the kernel does not perform a collective */
	gpul_comm_proto proto;
} kernels[N_KERNELS] = {
#define KERNEL(name, file, function, work, call, algo, proto) \
	{ "gpul_comm_" #name, KERNEL_FILE_##file, GPUL_COMM_##call, GPUL_COMM_##algo, GPUL_COMM_##proto },
#include "comm/kernels/kernels.def"
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
	const bool transfers = algo == GPUL_COMM_DIRECT && gpul_comm_call_info(call)->transfers;

	if ((unsigned)call >= GPUL_COMM_N_CALLS || proto == GPUL_COMM_PROTO_AUTO || algo == GPUL_COMM_ALGO_AUTO)
		return false;
	return transfers || gpul_comm_kernel_of(call, algo, proto) != N_KERNELS;
}

gpul_status gpul_comm_kernel(gpul_comm *c, enum kernel_id id, CUfunction *out, gpul_error *err)
{
	const struct kernel_source *source = &kernels[id];
	gpul_module **module = &c->modules[source->file];
	const gpul_kernel *k;
	gpul_status st = GPUL_OK;

	if (!c->kernels[id]) {
		if (!*module)
			st = gpul_module_load_embedded(c->drv, files[source->file], module, err);
		st = st ? st : gpul_kernel_find(*module, source->name, &k, err);
		st = st ? st : gpul_kernel_prepare(k, err);
		st = st ? st : gpul_kernel_function(k, &c->kernels[id], err);
	}
	*out = c->kernels[id];
	return st;
}

/* True if another rank is a thread of this process. */
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
	c->replay.off =
		true; /* no graphs: the driver may wait for running kernels when it instantiates a graph, as when it loads a kernel */
	for (int id = 0; !st && id < N_KERNELS; id++)
		if (id != KERNEL_persistent)
			st = gpul_comm_kernel(c, (enum kernel_id)id, &unused, err);
	return st;
}

void gpul_comm_kernels_unload(gpul_comm *c)
{
	for (unsigned i = 0; i < N_KERNEL_FILES; i++)
		gpul_module_unload(c->modules[i]);
}
