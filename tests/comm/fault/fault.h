/* fault.h — a round: a job of ranks, one of which (the victim) is killed, is stopped, or does something wrong.
 *
 *     fault.c ── forks a launcher (gpul_comm_launch) ── that starts N ranks: this program again ──> rank.c
 *        │                                                    │ number of steps, outcome
 *        └── at a random step of the victim: SIGKILL          └──> struct shared, a memfd that all of them map */
#ifndef GPULOAD_TESTS_COMM_FAULT_H
#define GPULOAD_TESTS_COMM_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "comm/comm.h"

enum { MOST_RANKS = 8, TEXT_BYTES = 400 };

/* The victim's action. */
enum deed {
	DEED_NOTHING,      /* no victim: all ranks work for a number of cycles */
	DEED_IS_KILLED,    /* SIGKILL from outside */
	DEED_KILLS_ITSELF, /* SIGKILL at a step, by the victim itself */
	DEED_IS_STOPPED,   /* SIGSTOP, and SIGCONT when the others have ended */
	DEED_EXITS,        /* exit(0) without gpul_comm_destroy() */
	DEED_ABORTS,       /* gpul_comm_abort() from another thread, while its kernel waits */
	DEED_IS_LATE,      /* it makes no call, so that the others wait for it, most of them
			    * indirectly */
	DEED_SENDS_FIRST,  /* with its neighbour: both send a long message, and receive afterwards */
	DEED_OTHER_SIZE,   /* sends another number of bytes */
	DEED_OTHER_CALL,   /* broadcast where the others call allreduce */
	DEED_FAULTS,       /* runs a kernel that fails */
	DEED_NO_MEMORY,    /* gpul_comm_create() with a driver that has no memory */
	DEED_NO_WINDOW,    /* gpul_comm_alloc() does */
	DEED_OTHER_OPTIONS,
	DEED_IS_ABSENT, /* never calls gpul_comm_create() */
	N_DEEDS
};

/* Where the launcher runs. */
enum place {
	PLACE_HERE,
	PLACE_NO_SHM,   /* nothing can be created in /dev/shm */
	PLACE_PIDS,     /* a pid namespace */
	PLACE_NO_TMP,   /* a read-only /tmp; the sockets are elsewhere */
	PLACE_FEW_FILES /* at most 64 open files in a process */
};

/* The phase of a rank. */
enum phase { PHASE_START, PHASE_CREATE, PHASE_ALLOC, PHASE_CALL, PHASE_GRAPH, PHASE_FREE, PHASE_DESTROY, N_PHASES };

struct outcome {
	_Atomic int32_t pid;
	_Atomic uint32_t steps; /* library calls begun */
	_Atomic uint32_t phase;
	_Atomic uint32_t done; /* the other members are valid */
	gpul_status status;    /* of the first call that failed */
	int native;
	gpul_comm_failure failure;  /* of the communicator, if one existed */
	char text[248];             /* of the first call that failed */
	char complaint[TEXT_BYTES]; /* an additional error: a leak, or another text from a later
				      * call */
	uint64_t ended_ns;          /* gpul_clock_ns() just before the process ends */
	uint64_t abort_ns;          /* victim of DEED_ABORTS: from gpul_comm_abort() until its kernel had ended */
};

struct shared {
	/* the round */
	enum deed deed;
	enum place place;
	int n_ranks, victim;
	gpul_comm_transport transport;
	bool has_network; /* between some of the ranks */
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	uint32_t at_step;  /* call at which the victim acts */
	uint32_t n_cycles; /* 0: until a failure */
	uint64_t seed;     /* of the sizes, the same for all ranks */
	int timeout_ms, create_timeout_ms;
	_Atomic uint32_t others_done; /* set by fault.c: a late victim may end */

	struct outcome ranks[MOST_RANKS];
	int exit_status; /* of gpul_comm_launch() */
	char launcher_text[248];
};

/* This process as a rank; returns its exit status. */
int rank_main(struct shared *s);

/* work.c: what ranks do between gpul_comm_create() and gpul_comm_destroy(). */
struct worker {
	struct shared *s;
	struct outcome *o;
	const gpul_driver *drv;
	gpul_comm *comm;
	CUstream stream;
	CUdeviceptr send, recv, window;
	int rank, n_ranks;
	uint64_t random; /* the same sequence on all ranks */
};

/* Called before each call: the victim's action may be due. */
void step(struct worker *w, enum phase phase);
uint64_t draw(struct worker *w, uint64_t limit);

gpul_status work_open(struct worker *w, gpul_error *err);
void work_close(struct worker *w);
/* Some calls; each of them can fail. */
gpul_status work_cycle(struct worker *w, gpul_error *err);
/* The victim's wrong call, and the calls of the other ranks at the same time. */
gpul_status work_wrongly(struct worker *w, gpul_error *err);

/* ---- scenarios.c ---- */

struct scenario {
	const char *name, *what;
	enum deed deed;
	enum place place;
	unsigned few, many; /* rounds in a check, and with --full */
	int timeout_ms, create_timeout_ms;
	int least_ranks;
	bool (*check)(const struct shared *s, char text[TEXT_BYTES]);
};
extern const struct scenario scenarios[];
extern const unsigned n_scenarios;

/* Write why a round is wrong; returns false. */
bool complain(char text[TEXT_BYTES], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- launch.c ---- */

/* Start the ranks of a round; returns the launcher's process, which ends when all ranks have ended.  -1: not permitted here. */
pid_t launch(struct shared *s, int shared_fd, const char *folder);
/* True if the process may enter a place. */
bool permitted(enum place place);

#endif
