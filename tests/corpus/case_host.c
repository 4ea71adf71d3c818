/* case_host.c — kernels that interact with the host: a ring that a CPU thread reads, a flag that it
 * sets, printf, assert and the device's heap. */
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/corpus/corpus.h"
#include "tests/corpus/host.h"

extern char **environ;

enum { PATIENCE_S = 30 }; /* after this time without progress, the case stops the kernel and fails */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the ring
 * -------------------------------------------------------------------------------- */

enum { SLOTS = 8 }; /* fewer slots than pushes, so that the ring wraps many times */

struct slot { /* two words that the kernel writes with one store */
	_Atomic uint64_t word[2];
};

struct ring { /* in pinned memory, which the GPU and the CPU access */
	struct slot slots[SLOTS];
	_Atomic uint64_t tail, stop;
};

/* The kernel's atomics use the GPU's memory, because over PCIe an atomic of the GPU on host memory is
 * not atomic for the CPU. */
enum { HEAD, TAILCACHE, N_COUNTERS };

struct fifo_param { /* struct Fifo of persist.cu */
	uint64_t buf, head, tail, tailcache, size;
};

/* Read pushes until all have arrived.  The two words may arrive separately (PTX ISA 8.2.2), so a slot
 * is read when both are new: word 0 contains its position, and word 1, which has bit 63 set, is cleared
 * after use. */
static void read_pushes(struct corpus *c, struct ring *r, uint64_t pushes, uint64_t n)
{
	uint64_t *seen = calloc(n, sizeof *seen);
	double since = now_s();

	for (uint64_t h = 0; h < pushes && seen && !c->err.status;) {
		struct slot *s = &r->slots[h % SLOTS];
		uint64_t first = atomic_load(&s->word[0]), second = atomic_load(&s->word[1]);
		if (first == ((h << 16) | 1) && second >> 63) {
			uint64_t i = second & (UINT64_MAX >> 1);
			if (i >= n)
				gpul_fail(&c->err, GPUL_EFORMAT, 0, "push %llu has the unexpected value %llu", (unsigned long long)h,
					  (unsigned long long)i);
			else
				seen[i]++;
			atomic_store(&s->word[1], 0);
			atomic_store(&r->tail, ++h);
			since = now_s();
		} else if (now_s() - since > PATIENCE_S) {
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "push %llu of %llu did not arrive", (unsigned long long)h,
				  (unsigned long long)pushes);
		}
	}
	for (uint64_t i = 0; i < n && seen && !c->err.status; i++)
		if (seen[i] != pushes / n)
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "value %llu arrived %llu times, expected %llu", (unsigned long long)i,
				  (unsigned long long)seen[i], (unsigned long long)(pushes / n));
	free(seen);
	atomic_store(&r->stop, 1); /* after a failure: lets the kernel end */
	atomic_store(&r->tail, UINT64_MAX / 2);
}

static void run_ring(struct corpus *c, struct ring *r, unsigned blocks, uint64_t n)
{
	CUdeviceptr stop = (CUdeviceptr)(uintptr_t)&r->stop; /* unified addressing: the same address for both */
	uint64_t counters[N_COUNTERS] = { 0 };
	CUdeviceptr at = corpus_in(c, counters, sizeof counters);
	struct fifo_param fifo = { (uintptr_t)r->slots, at + HEAD * sizeof counters[0], (uintptr_t)&r->tail,
				   at + TAILCACHE * sizeof counters[0], SLOTS };

	memset(r, 0, sizeof *r);
	corpus_start(c, "persist", (struct corpus_shape){ .grid_x = blocks, .block_x = 64 }, (void *[]){ &fifo, &stop, &n });
	if (c->err.status)
		return;
	read_pushes(c, r, blocks * n, n);
	gpul_cu(c->drv, &c->err, cuCtxSynchronize());
	corpus_get(c, counters, at, sizeof counters);
	/* Each block stores n and then adds 1; the stores and additions of blocks may interleave. */
	uint64_t last = counters[TAILCACHE];
	if (!c->err.status && (last <= n || last > n + blocks))
		gpul_fail(&c->err, GPUL_EFORMAT, 0, "tailcache is %llu, expected %llu to %llu", (unsigned long long)last,
			  (unsigned long long)n + 1, (unsigned long long)n + blocks);
}

static void persist(struct corpus *c)
{
	void *r = NULL;

	if (gpul_cu(c->drv, &c->err, cuMemHostAlloc(&r, sizeof(struct ring), CU_MEMHOSTALLOC_DEVICEMAP)))
		return;
	run_ring(c, r, 1, 200);
	if (!c->err.status)
		run_ring(c, r, 4, 100);
	c->drv->cuMemFreeHost(r);
}

static void flagwait(struct corpus *c)
{
	enum { N = 64 };
	void *flag = NULL;
	uint64_t got[N];
	uint32_t want = 0xcafe;

	if (gpul_cu(c->drv, &c->err, cuMemHostAlloc(&flag, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP)))
		return;
	atomic_store((_Atomic uint32_t *)flag, 0);
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)flag, out = corpus_out(c, sizeof got);
	corpus_start(c, "flagwait", (struct corpus_shape){ .grid_x = 1, .block_x = N }, (void *[]){ &at, &want, &out });
	usleep(2000); /* gives the kernel time to wait for the flag; the result does not depend on this time */
	if (!c->err.status && c->drv->cuStreamQuery(NULL) != CUDA_ERROR_NOT_READY)
		gpul_fail(&c->err, GPUL_EFORMAT, 0, "the kernel ended before its flag was set");
	atomic_store((_Atomic uint32_t *)flag, want);
	corpus_wait(c);
	corpus_get(c, got, out, sizeof got);
	for (int i = 0; i < N && !c->err.status; i++)
		if (got[i] == 0 || got[i] == 0xcdcdcdcdcdcdcdcd)
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "out[%d] has no time", i);
	c->drv->cuMemFreeHost(flag);
}

/* ---- printf, assert, malloc
 * -------------------------------------------------------------------- */

static void launch_pf(struct corpus *c, int x, unsigned threads)
{
	double d = -1.5;
	CUdeviceptr s = corpus_in(c, "text", 5);

	corpus_launch(c, "pf", (struct corpus_shape){ .grid_x = 1, .block_x = threads }, (void *[]){ &x, &d, &s });
}

/* Redirect stdout to the file, until restore_stdout(). */
static int redirect_stdout(FILE *to)
{
	int saved = dup(STDOUT_FILENO);

	fflush(stdout);
	dup2(fileno(to), STDOUT_FILENO);
	return saved;
}

static void restore_stdout(int saved)
{
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

static void read_back(FILE *f, char *text, size_t text_bytes)
{
	rewind(f);
	text[fread(text, 1, text_bytes - 1, f)] = 0;
}

int corpus_assert_child(struct corpus *c)
{
	launch_pf(c, 42, 1);
	return c->err.native == CUDA_ERROR_ASSERT ? 0 : 1;
}

/* A failed assertion makes the context unusable, so it runs in a separate process. */
static void run_assert(struct corpus *c, FILE *out)
{
	char driver[32], text[4096];
	char *args[] = { (char *)"test_corpus", (char *)"--driver", driver, (char *)"--assert", (char *)c->path, NULL };
	posix_spawn_file_actions_t fds;
	pid_t pid;
	int status = 0;

	snprintf(driver, sizeof driver, "%s", c->drv->name);
	posix_spawn_file_actions_init(&fds);
	posix_spawn_file_actions_adddup2(&fds, fileno(out), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&fds, fileno(out), STDERR_FILENO);
	int e = posix_spawn(&pid, "/proc/self/exe", &fds, NULL, args, environ);
	posix_spawn_file_actions_destroy(&fds);
	if (e || waitpid(pid, &status, 0) != pid) {
		gpul_fail(&c->err, GPUL_ESYS, e, "cannot run the assert case: %s", strerror(e));
		return;
	}
	read_back(out, text, sizeof text);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		gpul_fail(&c->err, GPUL_EFORMAT, 0, "assert did not end in CUDA_ERROR_ASSERT: %s", text);
	else if (!strstr(text, "printf.cu") || !strstr(text, "x != 42"))
		gpul_fail(&c->err, GPUL_EFORMAT, 0, "the failed assertion is not named: %s", text);
}

static void pf(struct corpus *c)
{
	static const char want[] = "thread 0: x=-7 d=-1.500000 s=text\n"
				   "thread 1: x=-7 d=-1.500000 s=text\n"
				   "thread 2: x=-7 d=-1.500000 s=text\n";
	FILE *out = tmpfile();
	char text[4096];

	if (!out) {
		gpul_fail(&c->err, GPUL_ESYS, 0, "no temporary file");
		return;
	}
	int saved = redirect_stdout(out);
	launch_pf(c, -7, 3);
	restore_stdout(saved);
	read_back(out, text, sizeof text);
	if (!c->err.status && strcmp(text, want) != 0)
		gpul_fail(&c->err, GPUL_EFORMAT, 0, "printf wrote \"%s\"", text);
	if (!c->err.status && ftruncate(fileno(out), 0) == 0) {
		rewind(out);
		run_assert(c, out);
	}
	fclose(out);
}

static void dynmem(struct corpus *c)
{
	enum { N = 64 };
	uint64_t got[N];
	int n = 25;

	CUdeviceptr out = corpus_out(c, sizeof got);
	corpus_launch(c, "dynmem", (struct corpus_shape){ .grid_x = 1, .block_x = N }, (void *[]){ &out, &n });
	corpus_get(c, got, out, sizeof got);
	for (int i = 0; i < N && !c->err.status; i++)
		if (got[i] == 0 || got[i] % 16 || got[i] == 0xcdcdcdcdcdcdcdcd)
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "malloc returned 0x%llx in thread %d", (unsigned long long)got[i], i);
}

const struct corpus_case corpus_host_cases[] = {
	{ "persist", "persist", persist },
	{ "persist", "flagwait", flagwait },
	{ "printf", "pf", pf },
	{ "printf", "dynmem", dynmem },
	{ NULL, NULL, NULL },
};
