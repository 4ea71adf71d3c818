/* soak.c — pushes triggers in all modes and shapes, for any length of time, and checks each of them.
 *
 *     soak [--driver auto|nvidia|soft] [--triggers 1000000] [--seconds N] [--only WORD] [--seed N] [--fifos N]
 *          [--ptx FILE]
 *     soak --break all        check that the checker finds each error of damage.c
 *
 * Prints a line for each shape (shapes.c) and consumer; the last line is `N passed, N failed, N skipped`. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file/file.h"
#include "tests/proxy/soak/soak.h"

enum { MAX_FIFOS = 8, SMALL_PER_MILLE = 8, SMALL_LEAST = 200, ENOUGH_FAILED = 5, SKIPPED = 77 };

struct options {
	gpul_driver_choice driver;
	uint64_t triggers, seconds, seed, fifos;
	const char *only, *ptx, *damage;
};

struct totals {
	uint64_t triggers;
	unsigned passed, failed;
};

/* ---- one shape with one consumer -------------------------------------------------------------------- */

/* Number of FIFOs: as many as the shape has, limited to half the CPUs, or --fifos. */
static unsigned fifos_of(const struct shape *s, const struct options *o)
{
	cpu_set_t set;
	unsigned cpus = 1;

	if (s->fifos == 1)
		return 1;
	if (o->fifos)
		return o->fifos < MAX_FIFOS ? (unsigned)o->fifos : MAX_FIFOS;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpus = (unsigned)CPU_COUNT(&set);
	return s->fifos <= cpus / 2 ? s->fifos : cpus >= 2 ? cpus / 2 : 1;
}

/* Run n FIFOs like the run `like` at the same time; the first error is stored in runs[0]. */
static uint64_t run_together(struct run *runs, unsigned n, const struct run *like)
{
	struct one *ones[MAX_FIFOS] = { NULL };
	pthread_t threads[MAX_FIFOS];
	unsigned opened = 0, started = 0;
	uint64_t came = 0;

	for (unsigned i = 0; i < n; i++) {
		runs[i] = *like;
		runs[i].quota = like->quota / n;
		if (i % 2) /* every second FIFO is read in place */
			runs[i].consumer = RUNS;
		runs[i].seed = soak_mix(like->seed + i);
	}
	while (opened < n && (ones[opened] = run_open(&runs[opened])))
		opened++;
	while (opened == n && started < n && pthread_create(&threads[started], NULL, run_soak, ones[started]) == 0)
		started++;
	if (opened == n && started < n)
		snprintf(runs[0].text, sizeof(runs[0].text), "could not start a thread for each FIFO");
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < n; i++) {
		run_close(ones[i]);
		came += runs[i].came;
		if (runs[i].text[0] && !runs[0].text[0])
			memcpy(runs[0].text, runs[i].text, sizeof(runs[0].text));
	}
	return came;
}

static void run_line(const struct run *like, const struct options *o, struct totals *totals)
{
	if (totals->failed >= ENOUGH_FAILED) /* each failure can take PATIENCE_NS */
		return;

	struct run runs[MAX_FIFOS];
	const unsigned n = fifos_of(like->shape, o);
	const uint64_t start = gpul_clock_ns(), came = run_together(runs, n, like);
	const double seconds = (double)(gpul_clock_ns() - start) * 1e-9;
	const bool good = !runs[0].text[0];

	printf("%s%s, %s", good ? "ok   " : "FAIL ", like->shape->name, consumer_names[like->consumer]);
	if (n > 1)
		printf(", %u FIFOs", n);
	printf(": %llu triggers, %.3f M/s\n", (unsigned long long)came, (double)came / seconds * 1e-6);
	if (!good)
		printf("    %s\n", runs[0].text);
	fflush(stdout);
	totals->triggers += came;
	*(good ? &totals->passed : &totals->failed) += 1;
}

/* ---- all shapes ------------------------------------------------------------------- */

static bool wanted(const struct options *o, const struct shape *s)
{
	return !o->only || strstr(s->name, o->only);
}

static void soak_small(const struct soak *soak, const struct options *o, struct totals *totals)
{
	unsigned n = 0, done = 0;
	const uint64_t start = gpul_clock_ns(), half_ns = o->seconds * 500000000;

	for (unsigned i = 0; i < n_shapes; i++)
		n += !shapes[i].percent && wanted(o, &shapes[i]) ? N_CONSUMERS : 0;
	for (unsigned i = 0; i < n_shapes; i++) {
		for (unsigned c = 0; c < N_CONSUMERS && !shapes[i].percent && wanted(o, &shapes[i]); c++) {
			struct run like = { .soak = soak,
					    .shape = &shapes[i],
					    .consumer = (enum consumer)c,
					    .quota = o->triggers * SMALL_PER_MILLE / 1000 / n + SMALL_LEAST,
					    .seed = soak_mix(soak->seed + i * N_CONSUMERS + c) };

			done++;
			like.until_ns = half_ns ? start + half_ns * done / n : 0;
			run_line(&like, o, totals);
		}
	}
}

static void soak_mass(const struct soak *soak, const struct options *o, struct totals *totals)
{
	const uint64_t left = o->triggers > totals->triggers ? o->triggers - totals->triggers : 0;
	const uint64_t start = gpul_clock_ns(), half_ns = o->seconds * 500000000;
	unsigned all = 0, done = 0;

	for (unsigned i = 0; i < n_shapes; i++)
		all += wanted(o, &shapes[i]) ? shapes[i].percent : 0;
	for (unsigned i = n_shapes; i-- > 0;) {
		struct run like = { .soak = soak, .shape = &shapes[i], .consumer = FAST, .seed = soak_mix(soak->seed + i) };

		if (!shapes[i].percent || !wanted(o, &shapes[i]))
			continue;
		done += shapes[i].percent;
		like.quota = left * shapes[i].percent / all + 1;
		like.until_ns = half_ns ? start + half_ns * done / all : 0;
		run_line(&like, o, totals);
	}
}

/* Make each error once, in a shape in which it can occur. */
static void soak_damages(const struct soak *soak, const struct options *o, struct totals *totals)
{
	for (unsigned d = NO_DAMAGE + 1; d < N_DAMAGES; d++) {
		const struct damage_row *row = &damages[d];
		const struct shape shape = { row->name, 64, row->shared ? 1 : 2, 2, 1, row->how, row->shared, 1, 0 };
		const struct run like = { .soak = soak, .shape = &shape, .damage = (enum damage)d, .quota = 100000, .seed = soak->seed };
		struct run run;

		if (strcmp(o->damage, "all") && strcmp(o->damage, row->name))
			continue;
		run_together(&run, 1, &like);
		const bool good = strstr(run.text, row->text);

		printf("%s%s: %s\n", good ? "ok   " : "FAIL ", row->name, run.text[0] ? run.text : "error not found");
		*(good ? &totals->passed : &totals->failed) += 1;
	}
}

/* ---- main ------------------------------------------------------------------------ */

/* Load the kernels, and query an attribute of each.  A driver may load a kernel lazily, which would block while another kernel
 * waits for the CPU; the query loads the kernel now. */
static gpul_status load(struct soak *s, const char *path, gpul_error *err)
{
	struct {
		const char *name;
		CUfunction *out;
	} kernels[] = { { "soak_push", &s->push }, { "soak_warp", &s->warp } };
	gpul_file ptx;
	gpul_status st = gpul_file_open(path, &ptx, err);

	if (st)
		return st;
	st = gpul_cu(s->drv, err, cuLibraryLoadData(&s->library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0));
	gpul_file_close(&ptx);
	for (int i = 0; !st && i < 2; i++) {
		CUkernel kernel;
		int registers;

		st = gpul_cu(s->drv, err, cuLibraryGetKernel(&kernel, s->library, kernels[i].name));
		st = st ? st : gpul_cu(s->drv, err, cuKernelGetFunction(kernels[i].out, kernel));
		st = st ? st : gpul_cu(s->drv, err, cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, *kernels[i].out));
	}
	return st;
}

static gpul_status open_soak(struct soak *s, const struct options *o, gpul_error *err)
{
	gpul_status st = gpul_driver_open(o->driver, &s->drv, err);

	s->seed = o->seed;
	st = st ? st : gpul_context_open(s->drv, 0, &s->context, err);
	return st ? st : load(s, o->ptx, err);
}

static void close_soak(struct soak *s)
{
	if (s->library)
		s->drv->cuLibraryUnload(s->library);
	gpul_context_close(&s->context);
}

static bool parse_number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return end != text && !*end && !errno && *text != '-';
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option long_options[] = { { "driver", 1, NULL, 'd' }, { "triggers", 1, NULL, 'n' }, { "seconds", 1, NULL, 't' },
						      { "only", 1, NULL, 'o' },   { "seed", 1, NULL, 's' },     { "fifos", 1, NULL, 'f' },
						      { "ptx", 1, NULL, 'p' },    { "break", 1, NULL, 'b' },    { 0 } };
	bool good = true;

	for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
		switch (c) {
		case 'd':
			good = good && gpul_driver_choice_parse(optarg, &o->driver);
			break;
		case 'n':
			good = good && parse_number(optarg, &o->triggers);
			break;
		case 't':
			good = good && parse_number(optarg, &o->seconds);
			break;
		case 's':
			good = good && parse_number(optarg, &o->seed);
			break;
		case 'f':
			good = good && parse_number(optarg, &o->fifos);
			break;
		case 'o':
			o->only = optarg;
			break;
		case 'p':
			o->ptx = optarg;
			break;
		case 'b':
			o->damage = optarg;
			break;
		default:
			good = false;
		}
	}
	return good && optind == argc;
}

int main(int argc, char **argv)
{
	struct options o = {
		.driver = GPUL_DRIVER_AUTO, .triggers = 1000000, .seed = 1, .ptx = GPUL_KERNELS "/tests/proxy/soak/kernels.ptx"
	};
	struct soak soak = { 0 };
	struct totals totals = { 0 };
	gpul_error err = { 0 };
	const uint64_t start = gpul_clock_ns();
	gpul_status st;

	if (!parse(argc, argv, &o)) {
		fprintf(stderr, "usage: soak [--driver auto|nvidia|soft] [--triggers N] [--seconds N] [--only WORD] "
				"[--seed N] [--fifos N] [--ptx FILE] [--break all|NAME]\n");
		return 2;
	}
	st = open_soak(&soak, &o, &err);
	if (st) {
		fprintf(stderr, "soak: %s\n", err.text);
		close_soak(&soak);
		return st == GPUL_EUNSUPPORTED ? SKIPPED : 1;
	}
	if (o.damage) {
		soak_damages(&soak, &o, &totals);
	} else {
		soak_small(&soak, &o, &totals);
		soak_mass(&soak, &o, &totals);
		printf("%llu triggers in %.1f s\n", (unsigned long long)totals.triggers, (double)(gpul_clock_ns() - start) * 1e-9);
	}
	close_soak(&soak);
	if (totals.failed >= ENOUGH_FAILED)
		puts("stopped after 5 failures");
	printf("%u passed, %u failed, 0 skipped\n", totals.passed, totals.failed);
	return totals.failed || !totals.passed;
}
