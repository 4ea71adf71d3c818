/* mmap_sum.h — the parts of gpuload mmap-sum.
 *
 *     request (mmap_sum.c) ── fork, before any driver is opened ──> children (mmap_sum_team.c)
 *          │                                                           │ each: open its GPU, attach
 *     master: open its GPU, create, fill, offer ══ socketpair ══════════╛ (ipc/)
 *          │ sums (mmap_sum_part.c)                                     │ sums
 *     collect <────────────────────── pipe: one report a child ─────────┘
 *          └── compare, print (mmap_sum_report.c) */
#ifndef GPULOAD_CLI_SUM_MMAP_SUM_H
#define GPULOAD_CLI_SUM_MMAP_SUM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/lib/devices_arg.h"
#include "cli/sum/sum.h"
#include "ipc/view.h"

extern const struct cli_cmd cli_mmap_sum;

enum { MMAP_SUM_MOST = 64 };  /* processes, the master among them */

struct mmap_sum_request {
	unsigned n;              /* processes, the master among them */
	gpul_mem_kind kind;
	gpul_type type;
	const char *fill;        /* borrowed */
	size_t count;            /* elements; 0: as many as the file of the fill holds */
	struct devices_arg devices;
	int timeout_ms;          /* for the whole of it */
	bool json;
};

/* What one process made of the buffer.  Plain bytes: it crosses a pipe, in one write. */
struct mmap_sum_report {
	gpul_error err;          /* status OK: the rest counts */
	struct sum gpu, cpu;
	uint64_t gpu_ns, cpu_ns; /* how long the sums took; the CPU's of device memory with its copy */
	uint64_t gpu_at, cpu_at; /* where this process sees the buffer; cpu_at 0: it does not */
};

struct mmap_sum_member {
	pid_t pid;
	int device;              /* ordinal */
	int socket, pipe;        /* the master's ends; -1: not any more */
	bool running;            /* a child that has not been waited for */
	bool attached, reported;
	struct mmap_sum_report report;
};

struct mmap_sum_team {
	unsigned n;
	struct mmap_sum_member member[MMAP_SUM_MOST];  /* [0] is the master */
	uint64_t deadline_ns;    /* of gpul_clock_ns() */
};

/** Both sums of a view, and how long they took.
 *
 * @view        borrowed; a context that may use it is current
 * @t           its element type
 * @timeout_ms  for the GPU's
 * @out         filled but for err
 * Errors  as sum_on_gpu(), sum_on_cpu()
 * Threads any thread may call
 * Source  - */
gpul_status mmap_sum_compute(const gpul_ipc_view *view, gpul_type t, int timeout_ms, struct mmap_sum_report *out,
			  gpul_error *err);

/** Start the children, which at once begin to attach; the master is member 0.
 *
 * A child that the master leaves behind, however it ends, is killed by the kernel.
 *
 * @r    outlives the team; no driver is open yet
 * @out  mmap_sum_team_end(); nothing is left running on failure
 * Errors  GPUL_ESYS no more processes or descriptors
 * Threads the only one of the process
 * Source  Linux prctl(2) PR_SET_PDEATHSIG */
gpul_status mmap_sum_team_start(const struct mmap_sum_request *r, struct mmap_sum_team *out, gpul_error *err);

struct gpul_ipc_server;

/** Serve the children until all have attached or, with reported, all have reported.
 *
 * @team      started, and its sockets added to s
 * @s         that offers the memory
 * @reported  which of the two
 * Errors  GPUL_ESYS a child died: names it and its signal; native = ETIMEDOUT: names who is late; what a child
 *         reports
 * Threads the only one of the process
 * Source  - */
gpul_status mmap_sum_team_serve(struct mmap_sum_team *team, struct gpul_ipc_server *s, bool reported,
				gpul_error *err);

/* What is left of the time for the whole; 0: it is over. */
int mmap_sum_left_ms(const struct mmap_sum_team *team);

/* End what still runs (kill: without asking) and leave no process and no descriptor behind.  A zeroed one is fine. */
void mmap_sum_team_end(struct mmap_sum_team *team, bool kill);

/** Compare and print.
 *
 * @r     request
 * @mem   what the buffer turned out to be; borrowed
 * @team  all have reported
 * Errors  GPUL_EFORMAT sums differ: whose, and which; GPUL_ESYS stdout takes no more
 * Threads one at a time
 * Source  - */
gpul_status mmap_sum_print(const struct mmap_sum_request *r, const gpul_mem *mem, const struct mmap_sum_team *team,
			   gpul_error *err);

#endif
