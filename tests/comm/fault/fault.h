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
	DEED_IS_KILLED,    /* SIGKILL by another process, at any time */
	DEED_KILLS_ITSELF, /* SIGKILL at a step, by the victim itself */
	DEED_IS_STOPPED,   /* SIGSTOP, and SIGCONT when the others have ended */
	DEED_EXITS,        /* exit(0) without gpul_comm_destroy() */
	DEED_ABORTS,       /* gpul_comm_abort() from another thread, while its kernel waits */
	DEED_IS_LATE,      /* makes no call, so that all others wait for it, most of them indirectly */
	DEED_SENDS_FIRST,  /* like its neighbour, sends a long message before it receives: a deadlock */
	DEED_OTHER_SIZE,   /* sends another number of bytes */
	DEED_OTHER_CALL,   /* broadcast where the others call allreduce */
	DEED_FAULTS,       /* runs a kernel that executes trap */
	DEED_NO_MEMORY,    /* gpul_comm_create() with a driver that has no memory */
	DEED_NO_WINDOW,    /* gpul_comm_alloc() with a driver that has no memory */
	DEED_OTHER_OPTIONS,
	DEED_IS_ABSENT, /* never calls gpul_comm_create() */
	N_DEEDS
};

/* The environment in which the launcher and its ranks run. */
enum place {
	PLACE_HERE,
	PLACE_NO_SHM,   /* nothing can be created in /dev/shm */
	PLACE_PIDS,     /* in a new pid namespace */
	PLACE_NO_TMP,   /* with a read-only /tmp; the sockets are in another folder */
	PLACE_FEW_FILES /* at most 64 open files in a process */
};

/* The phase of a rank. */
enum phase { PHASE_START, PHASE_CREATE, PHASE_ALLOC, PHASE_CALL, PHASE_GRAPH, PHASE_FREE, PHASE_DESTROY, N_PHASES };

struct outcome {
	_Atomic int32_t pid;
	_Atomic uint32_t steps; /* number of library calls that the rank has begun */
	_Atomic uint32_t phase;
	_Atomic uint32_t done; /* 1: the fields below are valid */
	gpul_status status;    /* status of the first call that failed */
	int native;
	gpul_comm_failure failure;  /* failure of the communicator, if one existed */
	char text[248];             /* error text of the first call that failed */
	char complaint[TEXT_BYTES]; /* an additional error: a leak, or a later call with another error text */
	uint64_t ended_ns;          /* gpul_clock_ns() just before the process ends */
	uint64_t abort_ns;          /* for the victim of DEED_ABORTS: time from gpul_comm_abort() until its kernel ended */
};

struct shared {
	/* parameters of the round */
	enum deed deed;
	enum place place;
	int n_ranks, victim;
	gpul_comm_transport transport;
	bool has_network; /* true: some ranks are connected by the network */
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	uint32_t at_step;  /* number of the library call at which the victim acts */
	uint32_t n_cycles; /* number of cycles; 0: until a failure */
	uint64_t seed;     /* seed of the random sizes, the same for all ranks */
	int timeout_ms, create_timeout_ms;
	_Atomic uint32_t others_done; /* set by fault.c when the other ranks have ended: a late victim may then end */

	struct outcome ranks[MOST_RANKS];
	int exit_status; /* result of gpul_comm_launch() */
	char launcher_text[248];
};

/* Run this process as a rank; returns its exit status. */
int rank_main(struct shared *s);

/* State of a rank between gpul_comm_create() and gpul_comm_destroy(), for work.c. */
struct worker {
	struct shared *s;
	struct outcome *o;
	const gpul_driver *drv;
	gpul_comm *comm;
	CUstream stream;
	CUdeviceptr send, recv, window;
	int rank, n_ranks;
	uint64_t random; /* state of the random numbers, which are the same on all ranks */
};

/* Count a library call; called before each.  The victim acts when its step is reached. */
void step(struct worker *w, enum phase phase);
uint64_t draw(struct worker *w, uint64_t limit);

gpul_status work_open(struct worker *w, gpul_error *err);
void work_close(struct worker *w);
/* Make some random calls, until one fails. */
gpul_status work_cycle(struct worker *w, gpul_error *err);
/* Make the victim's wrong call or, on the other ranks, the calls that they make at the same time. */
gpul_status work_wrongly(struct worker *w, gpul_error *err);

/* ---- scenarios.c ---- */

struct scenario {
	const char *name, *what;
	enum deed deed;
	enum place place;
	unsigned few, many; /* number of rounds by default, and with --full */
	int timeout_ms, create_timeout_ms;
	int least_ranks;
	bool (*check)(const struct shared *s, char text[TEXT_BYTES]);
};
extern const struct scenario scenarios[];
extern const unsigned n_scenarios;

/* Write the reason why the result of a round is wrong; returns false. */
bool complain(char text[TEXT_BYTES], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- launch.c ---- */

/* Start the ranks of a round; returns the launcher's process, which ends after all ranks, or -1 if s->place is not permitted. */
pid_t launch(struct shared *s, int shared_fd, const char *folder);
/* True if this process is allowed to enter a place, for example to create a namespace. */
bool permitted(enum place place);

#endif
