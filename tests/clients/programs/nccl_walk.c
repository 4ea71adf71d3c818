/* nccl_walk.c — the collectives of NCCL, with every result checked.
 *
 *     nccl_walk group N [EXTRA...]          N ranks in one thread, with ncclCommInitAll and groups
 *     nccl_walk threads N [EXTRA...]        a thread for each rank
 *     nccl_walk processes N [EXTRA...]      a process for each rank; rank 0 sends the ncclUniqueId through a pipe
 *
 * EXTRA: sums (no maximum and average: NVLS has no algorithm for them), hosts (NCCL sees each process on a different host), split
 * (ncclCommSplit), graph (stream capture), register (ncclCommRegister), window (ncclCommWindowRegister), abort (rank 0 does not take part,
 * and the others abort), killed (with processes: rank 0 kills itself, and the others abort).  Rank r uses device r.
 * The last line is "N passed, N failed". */
#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 8, MOST_PER_RANK = 100000 };

struct rank {
	int me, n; /* this rank, and the number of ranks */
	ncclComm_t comm;
	ncclComm_t half; /* result of ncclCommSplit() in split(); else NULL */
	cudaStream_t stream;
	float *in, *out; /* MOST_PER_RANK floats for each rank */
	float *host;
	int passed, failed;
};

static void must_nccl(ncclResult_t r, const char *what)
{
	if (r == ncclSuccess)
		return;
	printf("FAILED %s: %s (%s)\n", what, ncclGetErrorString(r), ncclGetLastError(NULL));
	exit(1);
}

static void must_cuda(cudaError_t r, const char *what)
{
	if (r == cudaSuccess)
		return;
	printf("FAILED %s: %s\n", what, cudaGetErrorString(r));
	exit(1);
}
#define N(call) must_nccl(call, #call)
#define C(call) must_cuda(call, #call)

/* ---- values: sums of all ranks are exact in float ---------------------------------------------------- */

static float input(int rank, size_t i)
{
	return (float)((rank + 1) * 1000 + (int)(i % 997));
}

static float sum_of_all(int n, size_t i)
{
	float s = 0;

	for (int k = 0; k < n; k++)
		s += input(k, i);
	return s;
}

static void fill(struct rank *r)
{
	C(cudaSetDevice(r->me));
	for (size_t i = 0; i < (size_t)MOST_PER_RANK * r->n; i++)
		r->host[i] = input(r->me, i);
	C(cudaMemcpy(r->in, r->host, sizeof *r->in * MOST_PER_RANK * r->n, cudaMemcpyHostToDevice));
	C(cudaMemset(r->out, 0xff, sizeof *r->out * MOST_PER_RANK * r->n));
}

/* ---- collectives --------------------------------------------------------------------------------------- */

enum what { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND_RECV, ALL_TO_ALL, MAXIMUM, AVERAGE, N_WHAT };
static const char *const names[] = { "all-reduce",       "broadcast",  "reduce",  "all-gather", "reduce-scatter",
				     "send and receive", "all-to-all", "maximum", "average" };

static void call(struct rank *r, enum what what, size_t n)
{
	const int next = (r->me + 1) % r->n, before = (r->me + r->n - 1) % r->n;

	switch (what) {
	case ALL_REDUCE:
		N(ncclAllReduce(r->in, r->out, n, ncclFloat, ncclSum, r->comm, r->stream));
		break;
	case BROADCAST:
		N(ncclBroadcast(r->in, r->out, n, ncclFloat, r->n - 1, r->comm, r->stream));
		break;
	case REDUCE:
		N(ncclReduce(r->in, r->out, n, ncclFloat, ncclSum, r->n - 1, r->comm, r->stream));
		break;
	case ALL_GATHER:
		N(ncclAllGather(r->in, r->out, n, ncclFloat, r->comm, r->stream));
		break;
	case REDUCE_SCATTER:
		N(ncclReduceScatter(r->in, r->out, n, ncclFloat, ncclSum, r->comm, r->stream));
		break;
	case MAXIMUM:
		N(ncclAllReduce(r->in, r->out, n, ncclFloat, ncclMax, r->comm, r->stream));
		break;
	case AVERAGE:
		N(ncclAllReduce(r->in, r->out, n, ncclFloat, ncclAvg, r->comm, r->stream));
		break;
	case SEND_RECV:
		N(ncclGroupStart());
		N(ncclSend(r->in, n, ncclFloat, next, r->comm, r->stream));
		N(ncclRecv(r->out, n, ncclFloat, before, r->comm, r->stream));
		N(ncclGroupEnd());
		break;
	case ALL_TO_ALL:
		N(ncclGroupStart());
		for (int k = 0; k < r->n; k++) {
			N(ncclSend(r->in + k * n, n, ncclFloat, k, r->comm, r->stream));
			N(ncclRecv(r->out + k * n, n, ncclFloat, k, r->comm, r->stream));
		}
		N(ncclGroupEnd());
		break;
	default:
		break;
	}
}

static float expected(const struct rank *r, enum what what, size_t n, size_t i)
{
	switch (what) {
	case ALL_REDUCE:
	case REDUCE:
		return sum_of_all(r->n, i);
	case BROADCAST:
		return input(r->n - 1, i);
	case ALL_GATHER:
		return input((int)(i / n), i % n);
	case REDUCE_SCATTER:
		return sum_of_all(r->n, r->me * n + i);
	case SEND_RECV:
		return input((r->me + r->n - 1) % r->n, i);
	case ALL_TO_ALL:
		return input((int)(i / n), r->me * n + i % n);
	case MAXIMUM:
		return input(r->n - 1, i);
	default:
		return sum_of_all(r->n, i) / (float)r->n;
	}
}

static void check(struct rank *r, enum what what, size_t n, const char *how)
{
	const size_t got = what == ALL_GATHER || what == ALL_TO_ALL ? n * r->n : n;
	float off;

	C(cudaSetDevice(r->me));
	C(cudaStreamSynchronize(r->stream));
	C(cudaMemcpy(r->host, r->out, sizeof *r->out * (got + 1), cudaMemcpyDeviceToHost));
	for (size_t i = 0; (what != REDUCE || r->me == r->n - 1) && i < got; i++) {
		off = r->host[i] - expected(r, what, n, i);
		if (off <= 1e-3f && off >= -1e-3f) /* an average is not exact, because NCCL multiplies by 1/n before it adds */
			continue;
		printf("FAILED %s%s of %zu: rank %d has %g at %zu, expected %g\n", names[what], how, n, r->me, r->host[i], i,
		       expected(r, what, n, i));
		r->failed++;
		return;
	}
	r->passed++;
}

static int only_sums;
static const size_t sizes[] = { 1, 1000, MOST_PER_RANK - 1 };

/* Run and check every collective with every size, for the ranks of this thread: all ranks, or one. */
static void run_all(struct rank *ranks, int n_ranks, const char *how)
{
	for (int what = 0; what < (only_sums ? MAXIMUM : N_WHAT); what++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			for (int k = 0; k < n_ranks; k++)
				fill(&ranks[k]);
			N(ncclGroupStart());
			for (int k = 0; k < n_ranks; k++)
				call(&ranks[k], (enum what)what, sizes[s]);
			N(ncclGroupEnd());
			for (int k = 0; k < n_ranks; k++)
				check(&ranks[k], (enum what)what, sizes[s], how);
		}
}

/* ---- extras ------------------------------------------------------------------------------------------------ */

/* Split the communicator into one for even and one for odd ranks, in reverse order of ranks.  work() destroys both later: the last rank
 * of a process that destroys a communicator waits for the GPUs of all ranks in the process, which must not wait for that rank. */
static void split(struct rank *ranks, int n_ranks)
{
	N(ncclGroupStart());
	for (int k = 0; k < n_ranks; k++) {
		C(cudaSetDevice(ranks[k].me));
		N(ncclCommSplit(ranks[k].comm, ranks[k].me % 2, -ranks[k].me, &ranks[k].half, NULL));
	}
	N(ncclGroupEnd());
	for (int k = 0; k < n_ranks; k++)
		fill(&ranks[k]);
	N(ncclGroupStart());
	for (int k = 0; k < n_ranks; k++)
		N(ncclAllReduce(ranks[k].in, ranks[k].out, 1000, ncclFloat, ncclSum, ranks[k].half, ranks[k].stream));
	N(ncclGroupEnd());
	for (int k = 0; k < n_ranks; k++) {
		struct rank *r = &ranks[k];
		float want = 0;
		int place;

		C(cudaSetDevice(r->me));
		C(cudaStreamSynchronize(r->stream));
		C(cudaMemcpy(r->host, r->out, 4000, cudaMemcpyDeviceToHost));
		for (int other = r->me % 2; other < r->n; other += 2)
			want += input(other, 999);
		N(ncclCommUserRank(r->half, &place));
		if (r->host[999] == want && place == (r->n - 1 - r->me) / 2)
			r->passed++;
		else
			printf("FAILED split: rank %d is %d and has %g, expected %g\n", r->me, place, r->host[999], want), r->failed++;
	}
}

static void graph(struct rank *ranks, int n_ranks)
{
	cudaGraphExec_t exec[MOST_RANKS];
	cudaGraph_t g;

	for (int k = 0; k < n_ranks; k++)
		fill(&ranks[k]);
	for (int k = 0; k < n_ranks; k++) {
		C(cudaSetDevice(ranks[k].me));
		C(cudaStreamBeginCapture(ranks[k].stream, cudaStreamCaptureModeThreadLocal));
	}
	N(ncclGroupStart());
	for (int k = 0; k < n_ranks; k++)
		call(&ranks[k], ALL_REDUCE, 1000);
	N(ncclGroupEnd());
	for (int k = 0; k < n_ranks; k++) {
		C(cudaSetDevice(ranks[k].me));
		C(cudaStreamEndCapture(ranks[k].stream, &g));
		C(cudaGraphInstantiate(&exec[k], g, 0));
		C(cudaGraphDestroy(g));
	}
	for (int turn = 0; turn < 3; turn++) {
		for (int k = 0; k < n_ranks; k++)
			fill(&ranks[k]);
		for (int k = 0; k < n_ranks; k++) {
			C(cudaSetDevice(ranks[k].me));
			C(cudaGraphLaunch(exec[k], ranks[k].stream));
		}
		for (int k = 0; k < n_ranks; k++)
			check(&ranks[k], ALL_REDUCE, 1000, " in a graph");
	}
	for (int k = 0; k < n_ranks; k++)
		C(cudaGraphExecDestroy(exec[k]));
}

/* Registers the buffers in and out, which ncclMemAlloc() has allocated. */
static void registered(struct rank *ranks, int n_ranks)
{
	const size_t bytes = sizeof(float) * MOST_PER_RANK * ranks->n;
	void *handle[MOST_RANKS][2];

	for (int k = 0; k < n_ranks; k++) {
		C(cudaSetDevice(ranks[k].me));
		N(ncclCommRegister(ranks[k].comm, ranks[k].in, bytes, &handle[k][0]));
		N(ncclCommRegister(ranks[k].comm, ranks[k].out, bytes, &handle[k][1]));
	}
	run_all(ranks, n_ranks, " of registered memory");
	for (int k = 0; k < n_ranks; k++) {
		N(ncclCommDeregister(ranks[k].comm, handle[k][0]));
		N(ncclCommDeregister(ranks[k].comm, handle[k][1]));
	}
}

static void windows(struct rank *ranks, int n_ranks)
{
	const size_t bytes = sizeof(float) * MOST_PER_RANK * ranks->n;
	ncclWindow_t window[MOST_RANKS][2];

	N(ncclGroupStart());
	for (int k = 0; k < n_ranks; k++) {
		C(cudaSetDevice(ranks[k].me));
		N(ncclCommWindowRegister(ranks[k].comm, ranks[k].in, bytes, &window[k][0], NCCL_WIN_COLL_SYMMETRIC));
		N(ncclCommWindowRegister(ranks[k].comm, ranks[k].out, bytes, &window[k][1], NCCL_WIN_COLL_SYMMETRIC));
	}
	N(ncclGroupEnd());
	run_all(ranks, n_ranks, " of symmetric windows");
	for (int k = 0; k < n_ranks; k++)
		for (int w = 0; w < 2; w++)
			N(ncclCommWindowDeregister(ranks[k].comm, window[k][w]));
}

/* Rank 0 does not call the all-reduce (dies: it kills itself), so the other ranks' GPUs wait for it until these ranks abort. */
static void abort_all(struct rank *ranks, int n_ranks, int dies)
{
	if (dies && !ranks->me)
		raise(SIGKILL);
	for (int k = 0; k < n_ranks; k++) {
		if (ranks[k].me)
			call(&ranks[k], ALL_REDUCE, 1000);
	}
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	for (int k = 0; k < n_ranks; k++) {
		C(cudaSetDevice(ranks[k].me));
		if (ranks[k].me && cudaStreamQuery(ranks[k].stream) != cudaErrorNotReady)
			printf("FAILED abort: rank %d does not wait\n", ranks[k].me), ranks[k].failed++;
		N(ncclCommAbort(ranks[k].comm));
		ranks[k].comm = NULL;
		ranks[k].passed++;
	}
}

static int has_extra(char **extras, const char *name)
{
	for (; *extras; extras++)
		if (!strcmp(*extras, name))
			return 1;
	return 0;
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */

static void make_buffers(struct rank *r)
{
	const size_t bytes = sizeof(float) * (MOST_PER_RANK * (size_t)r->n + 1);

	C(cudaSetDevice(r->me));
	C(cudaStreamCreate(&r->stream));
	N(ncclMemAlloc((void **)&r->in, bytes));
	N(ncclMemAlloc((void **)&r->out, bytes));
	r->host = malloc(bytes);
}

static void work(struct rank *ranks, int n_ranks, char **extras)
{
	for (int k = 0; k < n_ranks; k++)
		make_buffers(&ranks[k]);
	run_all(ranks, n_ranks, "");
	if (has_extra(extras, "split"))
		split(ranks, n_ranks);
	if (has_extra(extras, "graph"))
		graph(ranks, n_ranks);
	if (has_extra(extras, "register"))
		registered(ranks, n_ranks);
	if (has_extra(extras, "window"))
		windows(ranks, n_ranks);
	if (has_extra(extras, "abort") || has_extra(extras, "killed"))
		abort_all(ranks, n_ranks, has_extra(extras, "killed"));
	N(ncclGroupStart());
	for (int k = 0; k < n_ranks; k++)
		if (ranks[k].comm)
			N(ncclCommFinalize(ranks[k].comm));
	N(ncclGroupEnd());
	for (int k = 0; k < n_ranks; k++) {
		if (ranks[k].half)
			N(ncclCommDestroy(ranks[k].half));
		if (ranks[k].comm)
			N(ncclCommDestroy(ranks[k].comm));
		N(ncclMemFree(ranks[k].in));
		N(ncclMemFree(ranks[k].out));
		free(ranks[k].host);
	}
}

static int report(const struct rank *ranks, int n_ranks)
{
	int passed = 0, failed = 0;

	for (int k = 0; k < n_ranks; k++)
		passed += ranks[k].passed, failed += ranks[k].failed;
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}

static ncclUniqueId id_of_threads;
static char **extras_of_threads;

static void *run_thread(void *argument)
{
	struct rank *r = argument;

	C(cudaSetDevice(r->me));
	N(ncclCommInitRank(&r->comm, r->n, id_of_threads, r->me));
	work(r, 1, extras_of_threads);
	return NULL;
}

static int run_threads(struct rank *ranks, int n, char **extras)
{
	pthread_t thread[MOST_RANKS];

	N(ncclGetUniqueId(&id_of_threads));
	extras_of_threads = extras;
	for (int k = 0; k < n; k++)
		pthread_create(&thread[k], NULL, run_thread, &ranks[k]);
	for (int k = 0; k < n; k++)
		pthread_join(thread[k], NULL);
	return report(ranks, n);
}

/* Fork a process for each rank; rank 0 writes the ncclUniqueId into a pipe, once for each other rank. */
static int run_processes(struct rank *ranks, int n, char **extras)
{
	int pipe_of_id[2], status, failed = 0;

	if (pipe(pipe_of_id))
		return 1;
	for (int k = 0; k < n; k++) {
		ncclUniqueId id;

		if (fork())
			continue;
		if (has_extra(extras, "hosts"))
			setenv("NCCL_HOSTID", k % 2 ? "odd" : "even", 1);
		if (!k) {
			N(ncclGetUniqueId(&id));
			for (int other = 1; other < n; other++)
				if (write(pipe_of_id[1], &id, sizeof id) != sizeof id)
					exit(1);
		} else if (read(pipe_of_id[0], &id, sizeof id) != sizeof id) {
			exit(1);
		}
		C(cudaSetDevice(k));
		N(ncclCommInitRank(&ranks[k].comm, n, id, k));
		work(&ranks[k], 1, extras);
		exit(report(&ranks[k], 1));
	}
	while (wait(&status) > 0)
		failed += WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL || !has_extra(extras, "killed") : status != 0;
	printf("%d passed, %d failed\n", n - failed, failed);
	return failed != 0;
}

int main(int argc, char **argv)
{
	static struct rank ranks[MOST_RANKS];
	const int n = argc > 2 ? atoi(argv[2]) : 0;
	ncclComm_t comms[MOST_RANKS];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (n < 1 || n > MOST_RANKS)
		return 2;
	only_sums = has_extra(argv + 3, "sums");
	for (int k = 0; k < n; k++)
		ranks[k] = (struct rank){ .me = k, .n = n };
	if (!strcmp(argv[1], "threads"))
		return run_threads(ranks, n, argv + 3);
	if (!strcmp(argv[1], "processes"))
		return run_processes(ranks, n, argv + 3);
	N(ncclCommInitAll(comms, n, NULL));
	for (int k = 0; k < n; k++)
		ranks[k].comm = comms[k];
	work(ranks, n, argv + 3);
	return report(ranks, n);
}
