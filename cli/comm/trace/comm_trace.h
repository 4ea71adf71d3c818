/* comm_trace.h — gpuload comm --trace: the events of all ranks on one clock, as one file.
 *
 *     each rank   sample the GPU's clock ─ timed calls, recorded ─ sample again ─ convert to the CPU's clock ─┐
 *     rank 0   compare the clocks of the hosts (comm_clock.h)    events of all ranks <── boot ────────────────┘
 *                                  convert to the clock of rank 0's host ─> Trace Event Format, or FILE.svg: a picture */
#ifndef GPULOAD_CLI_COMM_TRACE_COMM_TRACE_H
#define GPULOAD_CLI_COMM_TRACE_COMM_TRACE_H

#include "cli/comm/trace/comm_clock.h"
#include "cli/comm/comm_run.h"
#include "cli/lib/json/cli_json.h"
#include "comm/layout.h"
#include "comm/trace.h"

/* maximum number of a rank's events; trace viewers in browsers cannot open many more */
enum { COMM_TRACE_MOST = 1 << 16 };

/* A section of the trace: the timed calls of one size. */
struct comm_section {
	uint64_t begin_ns, end_ns; /* times of the CPU's clock */
	uint64_t bytes;
	uint32_t in, iterations;
	uint64_t first_event; /* number of events in the rank's trace before the section */
};

struct comm_tracer {
	struct fifo_clock *clock; /* clock of this rank's GPU */
	struct comm_clocks *hosts;
	bool started;
	uint64_t resumed_at; /* number of events when recording was last resumed */
	struct comm_section sections[2 * COMM_MOST_ROWS];
	uint32_t n_sections;
};

/** Start: load the clock's kernel, sample the GPU's clock, and compare the clocks of the hosts.
 * All ranks call this and the next three functions.
 *
 * @r    its context is current
 * @out  owned by the caller: comm_trace_free(); NULL on failure
 * Errors  as fifo_clock_create(), fifo_clock_take() and comm_clocks_create()
 * Threads one at a time */
gpul_status comm_trace_create(struct comm_rank *r, struct comm_tracer **out, gpul_error *err);
void comm_trace_free(struct comm_tracer *t); /* accepts NULL */

/** Start recording, or continue after comm_trace_pause().
 *
 * @r  r->tracer NULL: nothing happens
 * Errors  as gpul_comm_trace_start()
 * Threads one at a time */
gpul_status comm_trace_resume(struct comm_rank *r, gpul_error *err);
/** Stop recording.
 *
 * @r        r->tracer NULL: nothing happens
 * @section  the section that was recorded: the timed calls of one size
 * Errors  as gpul_comm_trace_stop() and comm_clocks_check()
 * Threads one at a time */
gpul_status comm_trace_pause(struct comm_rank *r, const struct comm_section *section, gpul_error *err);

/** Collect the events of all ranks, and write the file on rank 0.
 *
 * @r       r->tracer is set
 * @result  q.trace is the path of the file; sets `waiting`, the hosts and the bounds
 * Errors  as fifo_clock_take(), comm_clocks_finish(), gpul_comm_trace_read(), gpul_boot_allgather(), new_file_write()
 * Threads one at a time
 * Source  Trace Event Format (Chromium project) */
gpul_status comm_trace_finish(struct comm_rank *r, struct comm_result *result, gpul_error *err);

/* The events of a rank, on the clock of rank 0's host. */
struct comm_rank_trace {
	const gpul_comm_event *events;
	size_t n;
	const struct comm_section *sections;
	size_t n_sections;
	uint64_t n_lost;
	const gpul_comm_net_event *net; /* events of the proxy */
	size_t n_net;
};

/* The last timed call that all ranks have recorded in full. */
struct comm_last_call {
	const struct comm_section *section; /* the section (timed calls of one size) of rank 0 that contains the call; NULL: none */
	bool is_last;                       /* true: the section has no later call; false: the trace has lost events of later calls */
	unsigned char *events[GPUL_COMM_MAX_RANKS]; /* for each rank and event: 1 if the event belongs to the call */
};
/* Find the last call by the order of the events: a block records the events of one call after those of the previous call, and the
 * KERNEL events of a call last.  Returns false if there is no memory.  The caller calls comm_last_call_free() in any case. */
bool comm_last_call_find(const struct comm_rank_trace *ranks, int n_ranks, struct comm_last_call *out);
void comm_last_call_free(struct comm_last_call *last);

/* Append the content of the trace file.  origin_ns: the time that the viewer shows as 0. */
void comm_trace_json(const struct comm_result *result, const struct comm_rank_trace *ranks, uint64_t origin_ns, struct out *o);
/* Append a picture of the last timed call. */
void comm_trace_svg(const struct comm_result *result, const struct comm_rank_trace *ranks, struct out *o);
/* Compute from a rank's events how long the rank has waited. */
struct comm_waiting comm_trace_waiting(const gpul_comm_event *events, size_t n, size_t n_lost);

/* ---- comm_trace_net.c: the network in the trace: the events of each rank's proxy, and arrows between ranks ----
 *
 *     rank S   block b            │ send step n │
 *                                         ╲ "posted"
 *              network 0               │ put to rank R, step n       │
 *                                                   ╲ "arrived"
 *     rank R   block b                     wait for data │ recv step n │ */

/** Collect the events of all proxies on rank 0's clock; all ranks call it.
 *
 * @r       its trace has been stopped
 * @hosts   rank 0: the clocks, by the number of the host; not used by the other ranks
 * @result  waiting[].n_net, n_net_lost are set
 * @ranks   their net and n_net are set; @all owns the memory
 * @all     freed by the caller, even on failure
 * Errors  as gpul_boot_allgather(); GPUL_ENOMEM
 * Threads one at a time */
gpul_status comm_trace_net_collect(struct comm_rank *r, const struct comm_host_clock *hosts, struct comm_result *result,
				   struct comm_rank_trace *ranks, gpul_comm_net_event **all, gpul_error *err);

/* Append the tracks of the proxies, and the arrows.  block_track: the track of block 0.  Returns the number of arrows that are left
 * out, because an error of the clocks would make them point backwards. */
uint64_t comm_trace_net_json(const struct comm_result *result, const struct comm_rank_trace *ranks, unsigned block_track,
			     uint64_t origin_ns, struct json *j);

#endif
