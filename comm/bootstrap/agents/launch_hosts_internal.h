/* launch_hosts_internal.h — the state of a launcher over several hosts. */
#ifndef GPULOAD_COMM_BOOTSTRAP_AGENTS_LAUNCH_HOSTS_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_AGENTS_LAUNCH_HOSTS_INTERNAL_H

#include "comm/bootstrap/agents/agent_internal.h"
#include "comm/bootstrap/agents/frames_internal.h"
#include "comm/bootstrap/launch/launch_internal.h"

enum { HELD_BYTES = 1024, LINE_BYTES = 4096 };

/* The incomplete last line of a rank's output.  Only whole lines are written, so that lines of several ranks are not mixed. */
struct line {
	size_t n;
	char at[LINE_BYTES];
};

/* The launcher's state for one host. */
struct host_part {
	const char *name;
	int first, n; /* first rank of the host, and number of its ranks */
	bool here;    /* the host is this machine, so it needs no agent */
	struct agent agent;
	struct frame_reader in;
	bool greeted, ready, done, lost;
	uint64_t received_ns;
	size_t n_held; /* bytes in held[]: the agent's standard error, held back until the host launcher is ready */
	char held[HELD_BYTES];
	char address[GPUL_COMM_ADDRESS_BYTES], no_address[200];
};

struct hosts_launch {
	const gpul_comm_launch_hosts_options *o;
	struct launch l; /* the ranks; each is marked `elsewhere`, because a host launcher starts it */
	struct host_part *parts;
	int n_parts;
	struct line lines[GPUL_COMM_MAX_RANKS][2]; /* lines of each rank's standard output and error that are not complete yet */
	gpul_error why;                            /* the failure that ended the launch; unset if a rank's failure ended it */
	int exit_status;                           /* exit status of the launch if `why` is set */
	uint64_t beat_ns;
	unsigned char payload[FRAME_BYTES];
};

/* ---- relay.c: the output of the ranks and agents ---- */

void gpul_relay_rank(struct hosts_launch *h, int rank, bool is_error, const void *bytes, size_t n_bytes);
/* Write the last line of a rank if it has no newline. */
void gpul_relay_rest(struct hosts_launch *h, int rank);
/* Write what an agent has sent to its standard error.  Until the host is ready, hold the output back, because it may explain a failure. */
void gpul_relay_agent(struct host_part *p, const char *bytes, size_t n_bytes);
/* Write the output that was held back; called when the host is ready. */
void gpul_relay_held(struct host_part *p);
/* Get the last line of the output that was held back, for a message; "": there is none. */
void gpul_relay_last_line(const struct host_part *p, char *text, size_t text_bytes);

/* ---- receive.c: what the host launchers report ---- */

/* Record what ended the launch, unless a cause has been recorded before. */
void gpul_hosts_fail(struct hosts_launch *h, int exit_status, gpul_status status, int native, const char *text);
/* Read and handle the frames that have arrived from a host launcher. */
void gpul_hosts_receive(struct hosts_launch *h, struct host_part *p);
/* Treat a host as lost: its ranks count as ended. */
void gpul_hosts_lose(struct hosts_launch *h, struct host_part *p, const char *what);

#endif
