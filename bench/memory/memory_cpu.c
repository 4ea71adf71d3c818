/* memory_cpu.c — measurements without a GPU: the registration cache, NUMA, page tables, the end of a
 * process. */
#include "bench/memory/memory.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memalloc/numa.h"
#include "memalloc/regcache.h"

/* ---- the registration cache -------------------------------------------------------------- */

enum { REGIONS = 1000, REGION_BYTES = 16384, HITS = 100000, APART = 2 * REGION_BYTES };

static gpul_status fake_register(void *user, void *at, size_t bytes, void **token, gpul_error *err)
{
	(void)user, (void)at, (void)bytes, (void)token, (void)err;
	return GPUL_OK;
}

static void fake_deregister(void *user, void *at, size_t bytes, void *token)
{
	(void)user, (void)at, (void)bytes, (void)token;
}

static void *region_at(unsigned i)
{
	return (void *)((uintptr_t)1 << 32 | (uintptr_t)(i % REGIONS) * APART);
}

/* Return the time in ns of a get and a put of a random region that is in the cache. */
static double time_hits(gpul_regcache *c)
{
	const gpul_region *r = NULL;
	unsigned s = 12345;
	uint64_t start = gpul_clock_ns();

	for (int i = 0; i < HITS; i++) {
		s = s * 1664525 + 1013904223;
		if (gpul_regcache_get(c, (char *)region_at(s >> 16) + 100, 4000, &r, NULL) == GPUL_OK)
			gpul_regcache_put(c, r);
	}
	return (double)(gpul_clock_ns() - start) / HITS;
}

static gpul_status measure_regcache(int runs, gpul_error *err)
{
	const gpul_reg_ops ops = { .reg = fake_register, .dereg = fake_deregister };
	double idle[MEMORY_MAX_SAMPLES], used[MEMORY_MAX_SAMPLES];
	const gpul_region *r = NULL;
	gpul_regcache *c = NULL;
	gpul_status st = gpul_regcache_create(&ops, (size_t)REGIONS * REGION_BYTES, &c, err);

	for (unsigned i = 0; !st && i < REGIONS; i++) {
		st = gpul_regcache_get(c, region_at(i), REGION_BYTES, &r, err);
		if (!st)
			gpul_regcache_put(c, r);
	}
	for (int i = 0; !st && i < runs; i++)
		idle[i] = time_hits(c);
	for (unsigned i = 0; !st && i < REGIONS; i++) /* each region remains in use, so the cache's queue of idle regions is empty */
		st = gpul_regcache_get(c, region_at(i), REGION_BYTES, &r, err);
	for (int i = 0; !st && i < runs; i++)
		used[i] = time_hits(c);
	gpul_regcache_destroy(c);
	if (st)
		return st;
	memory_row("registration cache: get and put of one of 1000 idle regions", "ns", idle, NULL, runs);
	memory_row("registration cache: get and put of one of 1000 regions in use", "ns", used, NULL, runs);
	return GPUL_OK;
}

/* ---- NUMA -------------------------------------------------------------------------------- */

static gpul_status measure_numa(const struct memory_bench *b, gpul_error *err)
{
	const gpul_mem_desc desc = memory_desc(GPUL_MEM_HOST_NUMA, b->big_bytes);
	double us[MEMORY_MAX_SAMPLES];
	gpul_mem_numa numa = { 0 };
	gpul_error why = { 0 };
	gpul_mem *m = NULL;
	gpul_status st = gpul_mem_create(b->drv, &desc, &m, err);

	if (st)
		return st;
	for (int i = 0; !st && i < b->runs; i++) {
		uint64_t start = gpul_clock_ns();

		st = gpul_mem_verify_numa(m, 512, &numa, &why);
		us[i] = memory_us(start);
	}
	gpul_mem_destroy(m);
	if (st)
		memory_row_skipped("verify_numa of the large host-numa memory, 1 page in 512", why.text);
	else
		memory_row(numa.as_expected ? "verify_numa of the large host-numa memory, 1 page in 512"
					    : "verify_numa of the large host-numa memory, 1 page in 512 "
					      "(on another node)",
			   "us", us, NULL, b->runs);
	return GPUL_OK;
}

/* ---- pages ------------------------------------------------------------------------------- */

static gpul_status time_pages(size_t bytes, bool populate, double *us, gpul_error *err)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);
	void *p = MAP_FAILED;
	uint64_t start;
	bool there;

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return gpul_fail(err, GPUL_ESYS, errno, "memfd of %zu bytes: %s", bytes, strerror(errno));
	start = gpul_clock_ns();
	there = populate && madvise(p, bytes, MADV_POPULATE_WRITE) == 0;
	for (size_t i = 0; !there && i < bytes; i += 4096)
		((volatile char *)p)[i] = 0;
	*us = memory_us(start);
	munmap(p, bytes);
	return GPUL_OK;
}

static gpul_status measure_pages(const struct memory_bench *b, gpul_error *err)
{
	double populate[MEMORY_MAX_SAMPLES], touch[MEMORY_MAX_SAMPLES];
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i < b->runs; i++) {
		st = time_pages(b->bytes, i % 2, i % 2 ? &populate[i] : &touch[i], err);
		if (!st)
			st = time_pages(b->bytes, !(i % 2), i % 2 ? &touch[i] : &populate[i], err);
	}
	if (!st)
		memory_row("memfd pages: MADV_POPULATE_WRITE (bare: touched)", "us", populate, touch, b->runs);
	return st;
}

gpul_status memory_cpu(struct memory_bench *b, gpul_error *err)
{
	gpul_status st = measure_regcache(b->runs, err);

	st = st ? st : measure_numa(b, err);
	return st ? st : measure_pages(b, err);
}

/* ---- the end of a process ---------------------------------------------------------------- */

struct memory_victims {
	int n;
	struct {
		pid_t pid;
		int socket;
	} at[];
};

struct memory_victims *memory_victims_start(int n)
{
	struct memory_victims *v = calloc(1, sizeof *v + (size_t)n * sizeof v->at[0]);

	for (; v && v->n < n; v->n++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
			break;
		v->at[v->n].socket = ends[0];
		v->at[v->n].pid = fork();
		if (v->at[v->n].pid == 0) {
			close(ends[0]);
			for (;;)
				pause();
		}
		close(ends[1]);
	}
	return v;
}

gpul_status memory_kill(struct memory_victims *v, gpul_error *err)
{
	double us[MEMORY_MAX_SAMPLES];

	for (int i = 0; i < v->n; i++) {
		struct pollfd p = { .fd = v->at[i].socket, .events = POLLIN };
		uint64_t start = gpul_clock_ns();

		if (v->at[i].pid <= 0 || kill(v->at[i].pid, SIGKILL) || poll(&p, 1, 10000) != 1)
			return gpul_fail(err, GPUL_ESYS, errno, "the connection of a killed process did not end");
		us[i] = memory_us(start);
	}
	memory_row("SIGKILL to the end of a connection", "us", us, NULL, v->n);
	return GPUL_OK;
}

void memory_victims_stop(struct memory_victims *v)
{
	for (int i = 0; v && i < v->n; i++) {
		close(v->at[i].socket);
		if (v->at[i].pid > 0) {
			kill(v->at[i].pid, SIGKILL);
			waitpid(v->at[i].pid, NULL, 0);
		}
	}
	free(v);
}
