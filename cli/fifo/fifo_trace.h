/* fifo_trace.h — the parts of gpuload fifo trace, which records the times of each step of each trigger.
 *
 *     argv ─ fifo_trace.c ─> request
 *              │  fifo_trace_run.c    a kernel pushes, the CPU handles the triggers, and both record times;
 *              │                      fifo_clock.h converts them to one clock ──> struct fifo_trace
 *              ├─ fifo_trace_json.c   events for ui.perfetto.dev and chrome://tracing
 *              └─ fifo_trace_text.c   percentiles
 *
 *     one trigger    begun       room  pushed              popped   handling  handled  released           synced
 *                      ├── wait ──┤      ├── in the ring ────┤          ├──────────┤        │               │
 *     GPU, its block   ├──────── push ───┼────────────────────────────── sync ──────────────────────────────┤
 *     CPU                                                    ├──── batch, of more triggers ─┤
 */
#ifndef GPULOAD_CLI_FIFO_FIFO_TRACE_H
#define GPULOAD_CLI_FIFO_FIFO_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/command.h"
#include "cli/lib/options/devices_arg.h"
#include "cli/fifo/clock/fifo_clock.h"
#include "cli/lib/out.h"

extern const struct cli_cmd cli_fifo_trace;

enum {
	FIFO_TRACE_MOST = 100000, /* maximum number of triggers; trace viewers in a browser cannot open more */
	FIFO_TRACE_MOST_BLOCKS = 4096,
	FIFO_TRACE_MOST_SLOTS = 1 << 20,
	FIFO_TRACE_BATCH = 64, /* maximum number of triggers whose slots are released together */
};

struct fifo_trace_request {
	const char *path; /* borrowed; "-" is stdout */
	bool force;
	unsigned slots, lanes;     /* total number of slots, number of lanes; powers of two */
	unsigned blocks, triggers; /* triggers of each block */
	bool sync;                 /* wait after each push until the trigger is handled */
	uint64_t handler_ns;       /* time for which the CPU works on each trigger */
	gpul_mem_kind kind;
	uint64_t timeout_ns; /* limit of a push or a sync */
	struct devices_arg devices;
};

/* Times that the kernel writes (fifo_trace.cu), in ns of the GPU's clock. */
struct fifo_trace_stamps {
	uint64_t begun, pushed, synced; /* synced is 0 if there was no sync */
};

/* Times are in ns since the trace began, on the CPU's clock; GPU times may be wrong by relation.bound_ns. */
struct fifo_trace_trigger {
	int64_t begun, pushed, synced; /* GPU: before and after the push, and after the sync */
	int64_t room;                  /* CPU: when the slot became free; if this is before `begun`, the push did not wait */
	int64_t popped, handling, handled, released;
	unsigned lane, batch;
	uint64_t position; /* position of the trigger in its lane */
};

struct fifo_trace_batch {
	int64_t popped, handled, released;
	unsigned n;
};

struct fifo_trace {
	struct fifo_trace_request ask;
	const char *driver;
	char device[96];
	const char *kind;                    /* kind of memory that was used */
	struct fifo_trace_trigger *triggers; /* trigger number i of block b is element b * ask.triggers + i */
	unsigned n_triggers;
	unsigned *order; /* indices of triggers in the order in which they were popped */
	unsigned n_popped;
	struct fifo_trace_batch *batches;
	unsigned n_batches;
	struct fifo_clock_relation relation;
};

/** Run the kernel, handle its triggers, and record the times.
 *
 * @ask  the request; this function opens its device
 * @out  owned by the caller: fifo_trace_free(); empty on failure
 * Errors  GPUL_ESYS native = ETIMEDOUT: a push or sync timed out; native = EINTR: Ctrl-C;
 *         GPUL_EFORMAT a trigger was repeated, torn or lost; GPUL_ECUDA, GPUL_ENOMEM
 * Threads the main thread */
gpul_status fifo_trace_run(const struct fifo_trace_request *ask, struct fifo_trace *out, gpul_error *err);
/** Run a trace like fifo_trace_run(), but on an open driver with a current context.
 *
 * @drv  borrowed
 * @ask  the request; ask->devices.ordinal[0] must be the device of the context
 * @out  owned by the caller: fifo_trace_free(); empty on failure
 * Errors  as fifo_trace_run()
 * Threads the main thread */
gpul_status fifo_trace_with(const gpul_driver *drv, const struct fifo_trace_request *ask, struct fifo_trace *out, gpul_error *err);
void fifo_trace_free(struct fifo_trace *t); /* accepts a struct of zeros */

/** Write the trace as JSON in the Trace Event Format.
 *
 * @t    a trace
 * @out  the text is appended; owned by the caller
 * Errors  GPUL_ENOMEM
 * Source  Trace Event Format (Chromium project) */
gpul_status fifo_trace_json(const struct fifo_trace *t, struct out *out, gpul_error *err);

/** Write percentiles of the time of each step, as a text table.
 *
 * @t    a trace
 * @out  the text is appended; owned by the caller
 * Errors  GPUL_ENOMEM */
gpul_status fifo_trace_text(const struct fifo_trace *t, struct out *out, gpul_error *err);

#endif
