/* launch_hosts_internal.h — the state of a launcher over several hosts. */
#ifndef GPULOAD_COMM_BOOTSTRAP_AGENTS_LAUNCH_HOSTS_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_AGENTS_LAUNCH_HOSTS_INTERNAL_H

#include "comm/bootstrap/agents/agent_internal.h"
#include "comm/bootstrap/agents/frames_internal.h"
#include "comm/bootstrap/launch/launch_internal.h"

enum { HELD_BYTES = 1024, LINE_BYTES = 4096 };

/* Output that is passed on line by line, so that the lines of several ranks are not mixed. */
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
	size_t n_held; /* output of the agent to standard error that is held back until the part answers */
	char held[HELD_BYTES];
	char address[GPUL_COMM_ADDRESS_BYTES], no_address[200];
};

struct hosts_launch {
	const gpul_comm_launch_hosts_options *o;
	struct launch l; /* the ranks; all of them are marked `elsewhere` */
	struct host_part *parts;
	int n_parts;
	struct line lines[GPUL_COMM_MAX_RANKS][2]; /* lines of each rank's standard output and error that are not complete yet */
	gpul_error why;                            /* the failure that ended the launch, if it was not that of a rank */
	int exit_status;                           /* exit status of the launch in that case */
	uint64_t beat_ns;
	unsigned char payload[FRAME_BYTES];
};

/* ---- relay.c: the output of the ranks and agents ---- */

void gpul_relay_rank(struct hosts_launch *h, int rank, bool is_error, const void *bytes, size_t n_bytes);
/* Write the last line of a rank if it has no newline. */
void gpul_relay_rest(struct hosts_launch *h, int rank);
/* Pass on what an agent writes to standard error; before the host is ready, hold the output back, because it may explain a failure. */
void gpul_relay_agent(struct host_part *p, const char *bytes, size_t n_bytes);
/* Write the output that was held back; called when the host is ready. */
void gpul_relay_held(struct host_part *p);
/* Get the last line that was held back, for a message; "": none. */
void gpul_relay_last_line(const struct host_part *p, char *text, size_t text_bytes);

/* ---- receive.c: what the parts report ---- */

/* Record what ended the launch, unless a cause is recorded already. */
void gpul_hosts_fail(struct hosts_launch *h, int exit_status, gpul_status status, int native, const char *text);
/* Read and handle the frames that have arrived from a part. */
void gpul_hosts_receive(struct hosts_launch *h, struct host_part *p);
/* Treat a host as lost: its ranks count as ended. */
void gpul_hosts_lose(struct hosts_launch *h, struct host_part *p, const char *what);

#endif
