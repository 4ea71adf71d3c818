/* launch_internal.h — the state of a launch: its processes, and the stages in which it ends. */
#ifndef GPULOAD_COMM_BOOTSTRAP_LAUNCH_LAUNCH_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_LAUNCH_LAUNCH_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "comm/bootstrap/launch.h"
#include "comm/bootstrap/notice_internal.h"

struct rank_process {
	bool started;
	pid_t pid;
	int status; /* from waitpid(), once the rank has ended */
	bool ended;
	bool forced;      /* the launcher has sent this process SIGTERM or SIGKILL */
	bool elsewhere;   /* the launcher of another host has started this process, and reports its end */
	const char *host; /* name of the host, for messages; NULL: the ranks are on one host */
};

/* The children that this process had before the launch; they are not killed at the end. */
struct orphans {
	pid_t *known;
	size_t n_known, room;
	size_t n_killed; /* number of processes killed in the current pass over the children */
	int was_subreaper;
};

/* The stage of a launch: what the launcher does with the ranks that still run. */
enum stage { STAGE_RUNNING, STAGE_SETTLING, STAGE_GRACE, STAGE_TERMINATED, STAGE_KILLED };

struct launch {
	gpul_comm_job job;
	int grace_ms;
	int report_ms; /* time after grace_ms in which other hosts may still report the ends of ranks */
	struct rank_process ranks[GPUL_COMM_MAX_RANKS];
	int failed;            /* the rank that failed first; -1: none */
	char failed_text[200]; /* description of this failure; "": the exit status of the rank describes it */
	enum stage stage;
	uint64_t stopped_since_ns; /* since when all remaining ranks have been stopped (SIGSTOP); 0: at least one of them runs */
	bool ended_stopped;        /* the stopped ranks had to be killed */
	uint64_t next_ns;          /* when the next stage begins, from STAGE_SETTLING on */
	int signals;               /* signalfd that reads the blocked signals */
	sigset_t mask_before;
	struct sigaction child_before;
	struct orphans orphans;
	struct notice *notice; /* page that reports ended ranks (notice_internal.h); NULL: this process has started no ranks */
	int notice_fd;
};

/* A rank's standard input, output and error. -1: inherited from the launcher, except that the input of ranks other than 0 is /dev/null. */
struct rank_files {
	int in, out, err;
};

/** Start one rank; returns after its exec().
 *
 * @argv  the program
 * @files the files of the rank
 * @job   rank, size and name, for the environment
 * @notice  the descriptor of the launcher's page, which the process inherits
 * @mask  the signal mask of the new process
 * @out   filled
 * @exit_status  set on failure: 127 the program does not exist, else 126
 * Errors  GPUL_ESYS
 * Threads as gpul_comm_launch()
 * Source  Linux prctl(2): PR_SET_PDEATHSIG */
gpul_status gpul_launch_start(char *const *argv, const struct rank_files *files, const gpul_comm_job *job, int notice, const sigset_t *mask,
			      struct rank_process *out, int *exit_status, gpul_error *err);

/* ---- stages.c ---- */

/** Block SIGCHLD and the signals that are forwarded, and read them from l->signals instead.  An
 * ignored signal stays ignored (nohup).
 *
 * @l  the launch
 * Errors  GPUL_ESYS
 * Threads as gpul_comm_launch()
 * Source  Linux signalfd(2) */
gpul_status gpul_launch_take_signals(struct launch *l, gpul_error *err);
void gpul_launch_restore_signals(struct launch *l);

/* Handle the end of a rank. text: how it ended; "": use the status from waitpid(). */
void gpul_launch_note_end(struct launch *l, int rank, int status, const char *text);
/* Reap the ranks of this host that have ended.  Returns the number of ranks that still run. */
int gpul_launch_reap(struct launch *l);
/* Start the stages that are due.  Returns the poll() time-out until the next stage; -1: no further stage. */
int gpul_launch_next_stage(struct launch *l);
/* Forward a signal.  The first signal starts the grace period, the second one kills the ranks.
 * from_terminal: the ranks have received it already. */
void gpul_launch_pass_signal(struct launch *l, int signal, bool from_terminal);
void gpul_launch_kill(struct launch *l);
/* Describe how a rank has ended. */
void gpul_launch_describe_end(const struct launch *l, int rank, char *text, size_t text_bytes);

/** Compute the result of a launch whose ranks have all ended.
 *
 * @l            the launch
 * @exit_status  as gpul_comm_launch()
 * Errors  GPUL_EUNSUPPORTED a rank failed, or the launcher had to kill it
 * Threads as gpul_comm_launch() */
gpul_status gpul_launch_result(const struct launch *l, int *exit_status, gpul_error *err);
/* Remove the files of a job, if its ranks were killed. */
void gpul_launch_remove_files(const char *job);

/* Become the parent of processes that a rank started and left behind (a child subreaper). */
void gpul_launch_adopt(struct orphans *o);
/* Kill and reap the adopted processes, and undo gpul_launch_adopt(). */
void gpul_launch_end_orphans(struct orphans *o);

#endif
