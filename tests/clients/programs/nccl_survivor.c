/* nccl_survivor.c — one rank of endless all-reduces.  When another rank ends, it aborts its communicator and checks its own GPU.
 *
 *     nccl_survivor RANK N COUNT FD...
 *
 * tests/clients/nccl_kills.py starts N of them.  COUNT: floats of an all-reduce.  FD...: read ends of pipes, which
 * signal the end of the other ranks.
 *
 *     id HEX             rank 0 writes this line, and each other rank reads it
 *     ready              after the initialisation
 *     noticed HOW        an error of NCCL (error), or the end of a pipe (pipe)
 *     aborted MS N       ncclCommAbort has returned after MS milliseconds; N all-reduces before it had correct results
 *
 * The communicator is non-blocking, so that it can be aborted at any time.  Exit 0: all these lines were printed; 1: a line begins
 * with FAILED. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 8 };

struct rank {
	int me, n;
	size_t count;
	struct pollfd life[MOST_RANKS];
	nfds_t n_life;
	ncclComm_t comm;
	cudaStream_t stream;
	float *in, *out, *host;
	const char *noticed; /* "error" or "pipe"; NULL: no other rank has ended */
	char why[256];
};

static void fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	printf("FAILED ");
	vprintf(format, ap);
	putchar('\n');
	va_end(ap);
	exit(1);
}

static void must_cuda(cudaError_t r, const char *what)
{
	if (r != cudaSuccess)
		fail("%s: %s", what, cudaGetErrorString(r));
}
#define C(call) must_cuda(call, #call)

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- another rank has gone --------------------------------------------------------------------------- */

/* Returns true if NCCL reports an error or a pipe is closed, so another rank has ended; sets r->noticed. */
static int has_gone(struct rank *r, ncclResult_t result)
{
	if (result != ncclSuccess && result != ncclInProgress) {
		r->noticed = "error";
		snprintf(r->why, sizeof r->why, "%s", ncclGetErrorString(result));
	} else if (poll(r->life, r->n_life, 0) > 0) {
		r->noticed = "pipe";
	}
	return r->noticed != NULL;
}

/* Wait until a non-blocking call of NCCL is complete.  Returns 0 if another rank has ended. */
static int settle(struct rank *r, ncclResult_t result)
{
	while (!has_gone(r, result) && r->comm) {
		if (result == ncclSuccess)
			return 1;
		usleep(200);
		if (ncclCommGetAsyncError(r->comm, &result) != ncclSuccess)
			result = ncclInternalError;
	}
	return 0;
}

/* Wait until the stream is idle.  Returns 0 if another rank has ended. */
static int finish(struct rank *r)
{
	ncclResult_t result = ncclSuccess;
	cudaError_t e;

	while ((e = cudaStreamQuery(r->stream)) == cudaErrorNotReady) {
		if (ncclCommGetAsyncError(r->comm, &result) != ncclSuccess)
			result = ncclInternalError;
		if (has_gone(r, result))
			return 0;
		usleep(200);
	}
	C(e);
	return 1;
}

/* ---- all-reduces --------------------------------------------------------------------------------------- */

static float input(int rank, int turn, size_t i)
{
	return (float)((rank + 1) * 1000 + (turn + (int)i) % 997);
}

static void check(const struct rank *r, int turn)
{
	C(cudaMemcpy(r->host, r->out, r->count * sizeof *r->host, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < r->count; i++) {
		float sum = 0;

		for (int k = 0; k < r->n; k++)
			sum += input(k, turn, i);
		if (r->host[i] != sum)
			fail("all-reduce %d: element %zu is %g, expected %g", turn, i, (double)r->host[i], (double)sum);
	}
}

/* Returns the number of all-reduces, all with correct results, before another rank ended. */
static int reduce_until_a_rank_has_gone(struct rank *r)
{
	for (int turn = 0;; turn++) {
		for (size_t i = 0; i < r->count; i++)
			r->host[i] = input(r->me, turn, i);
		C(cudaMemcpy(r->in, r->host, r->count * sizeof *r->host, cudaMemcpyHostToDevice));
		if (!settle(r, ncclAllReduce(r->in, r->out, r->count, ncclFloat, ncclSum, r->comm, r->stream)) || !finish(r))
			return turn;
		check(r, turn);
	}
}

/* ---- start and end --------------------------------------------------------------------------------------- */

static void start(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	char line[2 * sizeof(ncclUniqueId) + 8];
	unsigned char *byte;
	ncclUniqueId id;

	config.blocking = 0;
	if (!r->me) {
		if (ncclGetUniqueId(&id) != ncclSuccess)
			fail("ncclGetUniqueId: %s", ncclGetLastError(NULL));
		printf("id ");
		for (byte = (unsigned char *)&id; byte < (unsigned char *)(&id + 1); byte++)
			printf("%02x", *byte);
		putchar('\n');
	} else {
		if (!fgets(line, sizeof line, stdin) || strncmp(line, "id ", 3))
			fail("rank %d has read no ID", r->me);
		byte = (unsigned char *)&id;
		for (size_t k = 0; k < sizeof id; k++)
			sscanf(line + 3 + 2 * k, "%2hhx", &byte[k]);
	}
	C(cudaSetDevice(r->me));
	C(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
	C(cudaMalloc((void **)&r->in, r->count * sizeof *r->in));
	C(cudaMalloc((void **)&r->out, r->count * sizeof *r->out));
	if (!settle(r, ncclCommInitRankConfig(&r->comm, r->n, id, r->me, &config)))
		fail("ncclCommInitRankConfig: %s %s (%s)", r->noticed ? r->noticed : "", r->why, ncclGetLastError(NULL));
}

/* Check that the GPU works: its context has no error, and data that is copied to it and back is unchanged. */
static void use_gpu(struct rank *r)
{
	C(cudaStreamSynchronize(r->stream));
	r->host[0] = 7;
	C(cudaMemcpy(r->in, r->host, sizeof *r->host, cudaMemcpyHostToDevice));
	r->host[0] = 0;
	C(cudaMemcpy(r->host, r->in, sizeof *r->host, cudaMemcpyDeviceToHost));
	if (r->host[0] != 7)
		fail("the GPU does not work after the abort");
	C(cudaFree(r->in));
	C(cudaFree(r->out));
	C(cudaStreamDestroy(r->stream));
}

int main(int argc, char **argv)
{
	struct rank r = { 0 };
	double begin;
	int right;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4 || argc > 4 + MOST_RANKS)
		return 2;
	r = (struct rank){ .me = atoi(argv[1]), .n = atoi(argv[2]), .count = (size_t)atol(argv[3]) };
	for (int k = 4; k < argc; k++)
		r.life[r.n_life++] = (struct pollfd){ .fd = atoi(argv[k]), .events = POLLIN };
	r.host = malloc(r.count * sizeof *r.host);
	if (!r.host)
		return 1;
	start(&r);
	puts("ready");
	right = reduce_until_a_rank_has_gone(&r);
	printf("noticed %s %s\n", r.noticed, r.why);
	begin = now_ms();
	if (ncclCommAbort(r.comm) != ncclSuccess)
		fail("ncclCommAbort: %s", ncclGetLastError(NULL));
	printf("aborted %.0f %d\n", now_ms() - begin, right);
	use_gpu(&r);
	free(r.host);
	return 0;
}
