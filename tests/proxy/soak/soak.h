/* soak.h — the soak's parts: shapes.c (what is run), run.c (one FIFO, its kernel and its thread),
 * check.c (is each trigger the one that it has to be?), damage.c (mistakes that have to be found), soak.c (main). */
#ifndef GPULOAD_TESTS_PROXY_SOAK_H
#define GPULOAD_TESTS_PROXY_SOAK_H

#include "driver/context.h"
#include "proxy/fifo.h"
#include "tests/proxy/soak/work.h"

enum { SOAK_TEXT = 320 };

/* ---- what is run ---- */

/* How the CPU's thread behaves. */
enum consumer { FAST, SLOW, STOPS, TINY, LARGE, LATE, RUNS, GIVES_UP, N_CONSUMERS };

struct shape {
	const char *name;
	unsigned slots, lanes, blocks, threads;
	enum soak_how how;
	bool shared;
	unsigned fifos;      /* at the same time; 1: small: each of the consumers has its turn */
	unsigned percent;    /* of the triggers that the small ones leave; 0: small */
};

extern const struct shape shapes[];
extern const unsigned n_shapes;
extern const char *const consumer_names[N_CONSUMERS];

/* ---- is each trigger the one that it has to be? ---- */

struct thread_state {
	uint64_t next;          /* number that has to come */
	uint32_t before, lane;  /* position of the last one; where its triggers come */
};

struct checker {
	const struct shape *shape;
	uint64_t seed;
	struct thread_state *threads;
	uint64_t *positions;            /* of each lane: the next one */
	unsigned n_threads, payload_mask;
	volatile uint64_t *payload, *answers;
	bool forgets_answer;            /* damage.c */
	char text[SOAK_TEXT];               /* the first damage; "" none */
};

bool checker_open(struct checker *c, const struct shape *shape, uint64_t seed);
void checker_close(struct checker *c);
void checker_launch(struct checker *c);     /* a kernel begins: nobody has a trigger before */
bool checker_take(struct checker *c, const gpul_fifo_item *items, unsigned n);  /* false: text says what is wrong */
/* All threads have come as far as number upto, as the kernel's results say that they pushed count. */
bool checker_end(struct checker *c, const uint64_t *results, uint64_t upto, uint64_t count);
/* The same of a kernel that was aborted: what was pushed came, if it could; next, number upto comes at position 0. */
bool checker_end_aborted(struct checker *c, const uint64_t *results, uint64_t upto, uint64_t count);

/* ---- mistakes that have to be found ---- */

enum damage {
	NO_DAMAGE, DROP, REPEAT, SWAP, STALE_WORD, STALE_SLOT, FLIP, NO_PAYLOAD, NO_ANSWER, WRONG_LANE, OVERTAKE, N_DAMAGES
};

struct damage_row {
	const char *name, *text;   /* what the checker has to say */
	enum soak_how how;         /* of the kernel's threads, which */
	bool shared;               /* share a lane, or own one each */
};

extern const struct damage_row damages[N_DAMAGES];
/* Do it to what came, once.  False: not with these. */
bool damage_do(enum damage damage, struct checker *c, gpul_fifo_item *items, unsigned *n);

/* ---- one FIFO, its kernel and its thread ---- */

struct soak {
	const gpul_driver *drv;
	gpul_context context;
	CUlibrary library;
	CUfunction push, warp;
	uint64_t seed;
};

struct one;  /* run.c */

struct run {
	const struct soak *soak;
	const struct shape *shape;
	enum consumer consumer;
	enum damage damage;
	uint64_t quota, seed;      /* triggers; more by less than one for each thread */
	uint64_t until_ns;         /* no launch after this; 0: none */
	uint64_t came;             /* out: triggers that were checked */
	char text[SOAK_TEXT];          /* out: what went wrong; "" nothing */
};

/* Make what a run needs; NULL: run->text says why not.  While kernels wait for the CPU, a driver's calls to allocate and to
 * free may wait for them: so all runs of a time are opened before the first begins, and closed after the last one. */
struct one *run_open(struct run *run);
void *run_soak(void *one);    /* a pthread's function */
void run_close(struct one *one);  /* NULL is fine */

#endif
