/* boot_internal.h — the state of a rank's connection with its job, and the functions that boot's files share. */
#ifndef GPULOAD_COMM_BOOTSTRAP_BOOT_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_BOOT_INTERNAL_H

#include <poll.h>
#include <pthread.h>

#include "comm/bootstrap/notice_internal.h"
#include "comm/bootstrap/roster_internal.h"
#include "comm/bootstrap/boot_wire_internal.h"
#include "core/thread/bell.h"
#include "core/thread/lifeline.h"

struct gpul_boot {
	gpul_comm_job job;
	struct roster *roster;       /* the roster of the job, mapped */
	const struct notice *notice; /* the page in which gpuload's launcher reports ended ranks; NULL: there is none */
	/* lifeline (a robust futex) in this rank's entry of the roster; NULL: Linux has no robust futexes */
	gpul_lifeline *lifeline;
	struct boot_packet *packet; /* buffer for received packets */
	int roster_fd;              /* descriptor of the roster, which the leader keeps until all ranks have mapped it; -1: none */
	int leader;                 /* the lowest rank of this host, to which the other ranks of the host connect */
	uint32_t local;             /* mask of the ranks of this host, which share the roster */
	/* for each rank, a mask of the ranks that this rank reaches through it: for a leader,
	 * the ranks of its host; for a rank of this host, that rank itself; else 0 */
	uint32_t reach[GPUL_COMM_MAX_RANKS];
	/* in a leader: sockets to the ranks of its host; in other ranks: the socket to the leader; -1: none */
	_Atomic int socket[GPUL_COMM_MAX_RANKS];
	/* In jobs over several hosts (hosts/), the connections between rank 0 and the leaders of the other hosts are TCP streams. */
	struct boot_stream *stream[GPUL_COMM_MAX_RANKS];
	struct boot_links *links;               /* connections to other hosts; NULL: all ranks are on this machine */
	char refused[120];                      /* the last connection that rank 0 refused, and why; "": none */
	int32_t pid[GPUL_COMM_MAX_RANKS];       /* process ids of all ranks, as rank 0 has announced them over TCP */
	int n_hosts, host[GPUL_COMM_MAX_RANKS]; /* index of each rank's host; written under `lock` when all ranks have joined */
	char host_name[GPUL_COMM_MAX_RANKS][GPUL_COMM_HOST_BYTES]; /* names of the hosts, indexed like host[rank] */
	uint32_t n_calls;                                          /* number of calls begun */
	uint64_t limit_ns;                                         /* deadline from gpul_boot_limit(); BOOT_NEVER: none */
	int limit_ms, silent_ms;
	_Atomic bool in_call;
	gpul_bell
		bell; /* rung at each call, failure and change of `waits`, and by the program (gpul_boot_bell()); wakes the watch thread */
	_Atomic bool met; /* gpul_boot_open() has succeeded: all ranks have joined the job */

	/* The state of the watch thread (watch.c): */
	pthread_t watcher;
	bool watching;
	int stop;             /* eventfd: readable when the thread must end */
	int alarm;            /* eventfd: readable as soon as the job has failed; every poll() includes it */
	pthread_mutex_t lock; /* protects the members below */
	bool published;       /* this rank has published a failure record */
	bool reported;        /* on_event has been called */
	gpul_roster_callback *on_event;
	void *arg;
	/* when the thread last scanned the roster, and when it last saw each rank's heartbeat change */
	_Atomic uint64_t scanned_ns, moved_ns[GPUL_COMM_MAX_RANKS];
};

/* Deadlines are in ns of gpul_clock_ns(); a time-out of -1 gives BOOT_NEVER. */
#define BOOT_NEVER UINT64_MAX
uint64_t gpul_boot_deadline(int timeout_ms);
/* Compute the time until a deadline, for poll(): rounded up, 0 if it has passed, -1 for BOOT_NEVER. */
int gpul_boot_left_ms(uint64_t deadline_ns);

/** Acquire this rank's lifeline, and start the watch thread.
 *
 * @b      roster and job are set
 * Errors  GPUL_ESYS
 * Threads the thread that opens b */
gpul_status gpul_boot_watch_start(gpul_boot *b, gpul_error *err);
/* End the watch thread and release the lifeline.  Does nothing if the thread was not started. */
void gpul_boot_watch_stop(gpul_boot *b);

/* True if a rank has not joined the job yet.  The states of ranks on other hosts arrive late, but once this rank has joined, all
 * others have joined, too. */
bool gpul_boot_is_missing(const gpul_boot *b, int rank);

/* Publish the failure that gpuload's launcher reports.  Returns false if it reports none. */
bool gpul_boot_publish_notice(gpul_boot *b);

/* Publish the death of a rank whose socket or lifeline has ended, unless the rank has left normally. */
void gpul_boot_report_end(gpul_boot *b, int rank);

/* Publish a failure record, unless the job has failed already or this rank has published one. */
void gpul_boot_publish(gpul_boot *b, const struct roster_record *record);

/** Create the roster of a host, with this rank in it.  Does nothing if it exists.
 *
 * @b  the job
 * Errors  GPUL_ESYS
 * Threads the thread that opens b */
gpul_status gpul_boot_create_roster(gpul_boot *b, gpul_error *err);

/* True if gpuload's launcher started this rank, and reports that not all ranks of the job will arrive; err explains it. */
bool gpul_boot_has_notice(const gpul_boot *b, gpul_error *err);

/* Publish that a wait has failed because the process of a rank is stopped. why: a text that names the rank. */
void gpul_boot_report_stalled(gpul_boot *b, int rank, const gpul_error *why);

/** Fail the job because of a time-out or a wrong message, and return the first failure of the job.
 *
 * @b        the job
 * @culprit  the rank that is the cause; -1: unknown
 * @status   with native and text: this rank's failure
 * @native   see @status
 * @text     see @status
 * Errors    the status of the job's first failure */
gpul_status gpul_boot_fail_job(gpul_boot *b, int culprit, gpul_status status, int native, const char *text, gpul_error *err);

/** Handle the end of the connection to a rank: report its death, or that it has left.
 *
 * @b        the job
 * @rank     the rank
 * @doing    what this rank waited for, for the message
 * Errors    GPUL_EUNSUPPORTED */
gpul_status gpul_boot_ended(gpul_boot *b, int rank, const char *doing, gpul_error *err);

/* Return the mask of the ranks whose entries in the roster are up to date.  Entries of other hosts arrive through rank 0; if rank 0
 * has been silent for for_ms, they are out of date. */
uint32_t gpul_boot_current(const gpul_boot *b, unsigned for_ms);

enum { GPUL_BOOT_PLACE_BYTES = 40 + GPUL_COMM_HOST_BYTES };
/* Write "rank 3 (pid 4711)", and " on host NAME" if the job has several hosts; returns out. */
const char *gpul_boot_place(const gpul_boot *b, int rank, char out[GPUL_BOOT_PLACE_BYTES]);

/* Get the identity of this machine, and the host name that the job gives it. */
void gpul_boot_machine(const gpul_comm_job *job, struct boot_machine *out);
/* True if two ranks that are connected by a Unix socket share a host: the job gives both the same host name, or gives no name to either. */
bool gpul_boot_same_machine(const struct boot_machine *a, const struct boot_machine *b);
/* Called by rank 0: number the hosts of all ranks, and write the numbers into the roster. */
void gpul_boot_number_hosts(gpul_boot *b, const struct boot_machine machines[]);
/** Copy the hosts of all ranks from the roster, where rank 0 has written them.
 *
 * @b  the job
 * Errors  GPUL_EFORMAT the roster contains a number out of range
 * Threads the thread that opens b */
gpul_status gpul_boot_take_hosts(gpul_boot *b, gpul_error *err);

/* A wait of this rank, and the facts for the message of a time-out. */
struct boot_wait {
	const char *doing; /* what the rank waits for, such as "the meeting of job X" or "gpul_boot_barrier()" */
	uint32_t call;     /* the number of the call; 0: gpul_boot_open() */
	uint64_t deadline_ns;
	int timeout_ms;
	int silent_ms; /* how long a rank that has not begun the call may be silent; 0: no limit */
};

/* A call of a function of boot.h, with the values that must be equal on all ranks. */
struct boot_call {
	gpul_boot *b;
	uint32_t what;
	uint64_t total; /* number of bytes of a block, of descriptors of a rank, or of rounds of gpul_boot_clocks() */
	struct boot_wait wait;
};

/** Begin a call: give it a number, and keep other threads from beginning one until it ends.
 *
 * @b           the job
 * @what        a value of enum boot_what
 * @total       see struct boot_call
 * @timeout_ms  -1: without limit
 * @out         ended by the caller with gpul_boot_call_end()
 * Errors    the failure of the job; GPUL_EINVAL another thread is in a call */
gpul_status gpul_boot_call_begin(gpul_boot *b, uint32_t what, uint64_t total, int timeout_ms, struct boot_call *out, gpul_error *err);
void gpul_boot_call_end(struct boot_call *c);
/** Wait for the next packet of a rank, which must belong to the same call, and store it in
 * b->packet.
 *
 * @c     the call, from gpul_boot_call_begin()
 * @from  the rank
 * @type  type of the packet
 * Errors    as gpul_boot_poll(); GPUL_EUNSUPPORTED the rank makes another call */
gpul_status gpul_boot_call_receive(struct boot_call *c, int from, enum boot_type type, gpul_error *err);

/** Fail the job because a deadline has passed, with a message that names the ranks that have not
 * arrived.
 *
 * @b        the job
 * @w        the wait
 * @pending  mask of the ranks that this rank waits for, used if all ranks have arrived
 * Errors    GPUL_ESYS, native = ETIMEDOUT */
gpul_status gpul_boot_timed_out(gpul_boot *b, const struct boot_wait *w, uint32_t pending, gpul_error *err);

/** Poll sockets and the alarm until one is ready.
 *
 * @b        the job
 * @fds      fds[0] is filled in here, for the alarm; the others by the caller
 * @n_fds    number of fds, including fds[0]
 * @w        the wait
 * @pending  see gpul_boot_timed_out()
 * Errors    the failure of the job; GPUL_ESYS poll(2) failed, or native = ETIMEDOUT: the deadline
 *           has passed
 * Source    Linux poll(2) */
gpul_status gpul_boot_poll(gpul_boot *b, struct pollfd *fds, nfds_t n_fds, const struct boot_wait *w, uint32_t pending, gpul_error *err);

/** Send one packet to a rank; waits while its socket is full.
 *
 * @b        the job
 * @rank     the rank
 * @head     see gpul_boot_send()
 * @payload @n_bytes @fds @n_fds  see gpul_boot_send()
 * @w        the wait
 * Errors    as gpul_boot_poll() */
gpul_status gpul_boot_send_to(gpul_boot *b, int rank, struct boot_head *head, const void *payload, size_t n_bytes, const int *fds,
			      unsigned n_fds, const struct boot_wait *w, gpul_error *err);

/** Wait for one packet of a rank, and store it in b->packet.
 *
 * @b        the job
 * @rank     the rank
 * @w        the wait
 * Errors    as gpul_boot_poll() */
gpul_status gpul_boot_receive_from(gpul_boot *b, int rank, const struct boot_wait *w, gpul_error *err);

/** Meet the ranks of this host, as its leader or as another rank.  On success the sockets are connected, and the watch
 * thread runs.
 *
 * @b     the job; the caller cleans up on failure
 * @path  path of the socket of this host; not used if the host has one rank
 * @w     the wait
 * Errors  as gpul_boot_open()
 * Threads the thread that opens b */
gpul_status gpul_boot_lead(gpul_boot *b, const char *path, const struct boot_wait *w, gpul_error *err);
/** As a rank that is not the leader, connect with the ranks of this host; see gpul_boot_lead().
 *
 * @b @path @w  see gpul_boot_lead()
 * Errors  as gpul_boot_open()
 * Threads the thread that opens b */
gpul_status gpul_boot_join(gpul_boot *b, const char *path, const struct boot_wait *w, gpul_error *err);

/* ---- sockets.c: the socket files of jobs whose rank 0 was killed during the meeting ---- */

/* Remove the socket files of all jobs of this user whose rank 0 has ended.  Files of running jobs are locked, and are kept. */
void gpul_boot_remove_dead_sockets(void);

#endif
