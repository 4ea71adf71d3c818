/* nccl_rank.c — starts a rank of bench_nccl: opens libnccl.so.2 and a GPU, and joins the communicator. */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "bench/nccl/nccl.h"

void nccl_meet(const struct nccl_rank *b)
{
	struct nccl_meeting *m = b->request->meeting;
	int generation = m->generation;

	if (atomic_fetch_add(&m->arrived, 1) == b->ranks - 1) {
		m->arrived = 0;
		m->generation = generation + 1;
		return;
	}
	for (unsigned n = 1; m->generation == generation; n++)
		if (n % 4096 == 0)
			sched_yield();
}

gpul_status nccl_check(const struct nccl_rank *b, int result, const char *what, gpul_error *err)
{
	return result ? gpul_fail(err, GPUL_ESYS, result, "%s: NCCL error %d (%s)", what, result, b->nccl.GetErrorString(result)) : GPUL_OK;
}

/* Find the folder in which the Python package nvidia-nccl is installed; "": not found. */
static void find_nccl_of_python(char *path, size_t path_bytes)
{
	FILE *f = popen("python3 -c \"import importlib.util as u; "
			"print(list(u.find_spec('nvidia.nccl').submodule_search_locations)[0])\" 2>/dev/null",
			"r");

	path[0] = '\0';
	if (!f)
		return;
	if (fgets(path, (int)(path_bytes - sizeof "/lib/libnccl.so.2"), f)) {
		path[strcspn(path, "\n")] = '\0';
		strcat(path, "/lib/libnccl.so.2");
	}
	pclose(f);
}

static gpul_status open_nccl(struct nccl_rank *b, gpul_error *err)
{
	char path[4096] = "";
	void *lib = dlopen(b->request->library ? b->request->library : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!lib && !b->request->library) {
		find_nccl_of_python(path, sizeof path);
		lib = path[0] ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	}
	if (!lib)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "cannot open libnccl.so.2 (%s); give its path with --library", dlerror());
#define X(name, args) \
	if (!(*(void **)&b->nccl.name = dlsym(lib, "nccl" #name))) \
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "libnccl.so.2 has no function nccl" #name);
	NCCL_CALLS(X)
	X(GetErrorString, )
#undef X
	return GPUL_OK;
}

static gpul_status find_graph_calls(struct nccl_rank *b, gpul_error *err)
{
	CUdriverProcAddressQueryResult found;
	gpul_status st = GPUL_OK;

#define X(fn) st = st ? st : gpul_cu(b->drv, err, cuGetProcAddress(#fn, (void **)&b->graphs.fn, 12000, 0, &found));
	GRAPH_CALLS(X)
#undef X
	return st;
}

gpul_status nccl_open_rank(struct nccl_rank *b, gpul_error *err)
{
	struct nccl_meeting *m = b->request->meeting;
	size_t bytes = b->request->max_bytes;
	gpul_status st = open_nccl(b, err);

	st = st ? st : gpul_driver_open(GPUL_DRIVER_NVIDIA, &b->drv, err);
	st = st ? st : gpul_context_open(b->drv, b->rank, &b->context, err);
	if (!st && b->request->graph)
		st = find_graph_calls(b, err);
	st = st ? st : gpul_cu(b->drv, err, cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(b->drv, err, cuMemAlloc(&b->send, bytes));
	st = st ? st : gpul_cu(b->drv, err, cuMemAlloc(&b->recv, bytes));
	st = st ? st : gpul_cu(b->drv, err, cuMemHostAlloc((void **)&b->host, bytes, 0));
	if (!st && b->rank == 0)
		st = nccl_check(b, b->nccl.GetUniqueId(&m->id), "ncclGetUniqueId", err);
	if (st)
		return st;
	nccl_meet(b);
	return nccl_check(b, b->nccl.CommInitRank(&b->comm, b->ranks, m->id, b->rank), "ncclCommInitRank", err);
}

void nccl_close_rank(struct nccl_rank *b)
{
	b->nccl.CommDestroy(b->comm);
	b->drv->cuMemFreeHost(b->host);
	b->drv->cuMemFree(b->send);
	b->drv->cuMemFree(b->recv);
	b->drv->cuStreamDestroy(b->stream);
	gpul_context_close(&b->context);
}
