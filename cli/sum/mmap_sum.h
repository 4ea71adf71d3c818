/* mmap_sum.h — the parts of gpuload mmap-sum.
 *
 *     request (mmap_sum.c) ── fork, before any driver is opened ──> children (mmap_sum_team.c)
 *          │                                                           │ each: open its GPU, attach
 *     master: open its GPU, create, fill, offer ══ socketpair ══════════╛ (ipc/)
 *          │ sums (mmap_sum_part.c)                                     │ sums
 *     collect <────────────────────── pipe: one report per child ───────┘
 *          └── compare, print (mmap_sum_report.c) */
#ifndef GPULOAD_CLI_SUM_MMAP_SUM_H
#define GPULOAD_CLI_SUM_MMAP_SUM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/lib/options/devices_arg.h"
#include "cli/sum/cli_sum.h"
#include "ipc/view.h"

extern const struct cli_cmd cli_mmap_sum;

/* maximum number of processes, including the master */
enum { MMAP_SUM_MOST = 64 };

struct mmap_sum_request {
	unsigned n; /* number of processes, including the master */
	gpul_mem_kind kind;
	gpul_type type;
	const char *fill; /* borrowed */
	size_t count;     /* number of elements; 0: all elements of the file in fill */
	struct devices_arg devices;
	int timeout_ms; /* limit for the whole command */
	bool json;
};

/* The sums of one process.  The struct has no pointers, and is sent through a pipe in one write. */
struct mmap_sum_report {
	gpul_error err; /* status OK: the other fields are valid */
	struct sum gpu, cpu;
	uint64_t gpu_ns, cpu_ns; /* duration of the sums; for device memory cpu_ns includes the copy to the host */
	uint64_t gpu_at, cpu_at; /* addresses of the buffer in this process; cpu_at 0: not mapped for the CPU */
};

struct mmap_sum_member {
	pid_t pid;
	int device;       /* ordinal */
	int socket, pipe; /* the master's ends of its connections to the child; -1: closed */
	bool running;     /* true: a child for which waitpid() has not been called */
	bool attached, reported;
	struct mmap_sum_report report;
};

struct mmap_sum_team {
	unsigned n;
	struct mmap_sum_member member[MMAP_SUM_MOST]; /* member[0] is the master */
	uint64_t deadline_ns;                         /* deadline, as a time of gpul_clock_ns() */
};

/** Compute the GPU's and the CPU's sum of a view, and measure their duration.
 *
 * @view        borrowed; a context that can use it is current
 * @t           element type
 * @timeout_ms  limit for the GPU's sum
 * @out         filled in, except err
 * Errors  as sum_on_gpu(), sum_on_cpu() */
gpul_status mmap_sum_compute(const gpul_ipc_view *view, gpul_type t, int timeout_ms, struct mmap_sum_report *out, gpul_error *err);

/** Start the children, which begin to attach immediately; the master is member 0.
 *
 * When the master ends for any reason, the kernel kills the remaining children.
 *
 * @r    must outlive the team; no driver is open yet
 * @out  end it with mmap_sum_team_end(); no child is left on failure
 * Errors  GPUL_ESYS no more processes or descriptors
 * Threads the process must have only one thread
 * Source  Linux prctl(2) PR_SET_PDEATHSIG */
gpul_status mmap_sum_team_start(const struct mmap_sum_request *r, struct mmap_sum_team *out, gpul_error *err);

struct gpul_ipc_server;

/** Serve the children until all have attached or, if `reported` is true, until all have reported.
 *
 * @team      started, and its sockets added to s
 * @s         the server that offers the memory
 * @reported  true: wait for all reports; false: wait until all have attached
 * Errors  GPUL_ESYS a child died: the message names it and its signal; native = ETIMEDOUT: the message names the late
 *         child; the error that a child reports
 * Threads the process must have only one thread */
gpul_status mmap_sum_team_serve(struct mmap_sum_team *team, struct gpul_ipc_server *s, bool reported, gpul_error *err);

/* Return the time in ms that is left until the deadline; 0: the deadline has passed. */
int mmap_sum_left_ms(const struct mmap_sum_team *team);

/* Wait for the children and close all descriptors.  kill: kill the children first.  Accepts a team of zeros. */
void mmap_sum_team_end(struct mmap_sum_team *team, bool kill);

/** Compare the sums and print them.
 *
 * @r     request
 * @mem   the buffer; borrowed
 * @team  all members have reported
 * Errors  GPUL_EFORMAT sums differ: the message names the process; GPUL_ESYS stdout cannot be written
 * Threads one at a time */
gpul_status mmap_sum_print(const struct mmap_sum_request *r, const gpul_mem *mem, const struct mmap_sum_team *team, gpul_error *err);

#endif
