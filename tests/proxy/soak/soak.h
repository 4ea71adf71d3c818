/* soak.h — the files of the soak test: shapes.c (configurations), run.c (one FIFO, its kernel and its thread), check.c (checks
 * each trigger), damage.c (errors that the checker must find), soak.c (main). */
#ifndef GPULOAD_TESTS_PROXY_SOAK_H
#define GPULOAD_TESTS_PROXY_SOAK_H

#include "driver/context.h"
#include "proxy/fifo.h"
#include "tests/proxy/soak/work.h"

enum { SOAK_TEXT = 320 };

/* ---- configurations ---- */

/* The behaviour of the CPU thread that polls. */
enum consumer { FAST, SLOW, STOPS, TINY, LARGE, LATE, RUNS, GIVES_UP, N_CONSUMERS };

struct shape {
	const char *name;
	unsigned slots, lanes, blocks, threads;
	enum soak_how how;
	bool shared;
	unsigned fifos;   /* FIFOs at the same time; 1 for small shapes, which are run with each consumer */
	unsigned percent; /* percentage of the triggers that the small shapes leave; 0: a small shape */
};

extern const struct shape shapes[];
extern const unsigned n_shapes;
extern const char *const consumer_names[N_CONSUMERS];

/* ---- checks ---- */

struct thread_state {
	uint64_t next;         /* number of the thread's next trigger */
	uint32_t before, lane; /* position of the thread's last trigger; its lane */
};

struct checker {
	const struct shape *shape;
	uint64_t seed;
	struct thread_state *threads;
	uint64_t *positions; /* per lane: position of the next trigger */
	unsigned n_threads, payload_mask;
	volatile uint64_t *payload, *answers;
	bool forgets_answer;  /* true: the handler omits its answer (damage.c) */
	char text[SOAK_TEXT]; /* the first error; "": none */
};

bool checker_open(struct checker *c, const struct shape *shape, uint64_t seed);
void checker_close(struct checker *c);
void checker_launch(struct checker *c); /* a kernel is launched: none of its threads has pushed yet */
bool checker_take(struct checker *c, const gpul_fifo_item *items, unsigned n); /* false: text describes the error */
/* Check that every thread's next number is `upto`, and that the kernel's results report `count` pushes per thread. */
bool checker_end(struct checker *c, const uint64_t *results, uint64_t upto, uint64_t count);
/* Check the end of an aborted kernel: all its triggers that could still arrive have arrived.  Then expect number upto at position 0. */
bool checker_end_aborted(struct checker *c, const uint64_t *results, uint64_t upto, uint64_t count);

/* ---- errors that the checker must find ---- */

enum damage { NO_DAMAGE, DROP, REPEAT, SWAP, STALE_WORD, STALE_SLOT, FLIP, NO_PAYLOAD, NO_ANSWER, WRONG_LANE, OVERTAKE, N_DAMAGES };

struct damage_row {
	const char *name, *text; /* text: part of the checker's message */
	enum soak_how how;       /* kind of push */
	bool shared;             /* threads share a lane; false: each thread owns one */
};

extern const struct damage_row damages[N_DAMAGES];
/* Make the error in the received items once; false: these items do not allow it. */
bool damage_do(enum damage damage, struct checker *c, gpul_fifo_item *items, unsigned *n);

/* ---- one FIFO, its kernel and its thread ---- */

struct soak {
	const gpul_driver *drv;
	gpul_context context;
	CUlibrary library;
	CUfunction push, warp;
	uint64_t seed;
};

struct one; /* defined in run.c */

struct run {
	const struct soak *soak;
	const struct shape *shape;
	enum consumer consumer;
	enum damage damage;
	uint64_t quota, seed; /* quota: number of triggers, rounded up to a multiple of the threads */
	uint64_t until_ns;    /* no launch after this time; 0: no limit */
	uint64_t came;        /* out: number of checked triggers */
	char text[SOAK_TEXT]; /* out: the error; "": none */
};

/* Allocate everything for a run; NULL: run->text has the reason.  Allocating and freeing may block while kernels wait for the CPU,
 * so all concurrent runs are opened before the first starts, and closed after the last has ended. */
struct one *run_open(struct run *run);
void *run_soak(void *one);       /* the start function of a run's thread */
void run_close(struct one *one); /* accepts NULL */

#endif
