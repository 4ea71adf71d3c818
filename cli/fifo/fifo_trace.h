/* fifo_trace.h — the way of gpuload fifo trace: what happened to each trigger, and when, as a picture.
 *
 *     argv ─ fifo_trace.c ─> request
 *              │  fifo_trace_run.c    a kernel pushes and writes its times down; the CPU takes out and does, too;
 *              │                      fifo_clock.h makes them times of one clock ──> struct fifo_trace
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
#include "cli/lib/devices_arg.h"
#include "cli/fifo/clock/fifo_clock.h"
#include "cli/lib/out.h"

extern const struct cli_cmd cli_fifo_trace;

enum {
	FIFO_TRACE_MOST = 100000,       /* triggers: what a browser still opens */
	FIFO_TRACE_MOST_BLOCKS = 4096,
	FIFO_TRACE_MOST_SLOTS = 1 << 20,
	FIFO_TRACE_BATCH = 64,          /* triggers at most between two releases */
};

struct fifo_trace_request {
	const char *path;               /* borrowed; "-" is stdout */
	bool force;
	unsigned slots, lanes;          /* slots in all; powers of two */
	unsigned blocks, triggers;      /* triggers of each block */
	bool sync;                      /* wait for each to be handled */
	uint64_t handler_ns;            /* so long the CPU works on each */
	gpul_mem_kind kind;
	uint64_t timeout_ns;            /* for a push or a sync */
	struct devices_arg devices;
};

/* As the kernel writes them (fifo_trace.cu); in its clock's ns. */
struct fifo_trace_stamps {
	uint64_t begun, pushed, synced;  /* synced 0: it did not wait */
};

/* Times are ns since the trace began, by the CPU's clock; those of the GPU may be wrong by relation.bound_ns. */
struct fifo_trace_trigger {
	int64_t begun, pushed, synced;  /* GPU: around the push, and when it knew that it was handled */
	int64_t room;                   /* CPU: its slot's last trigger was released; before begun: there was room */
	int64_t popped, handling, handled, released;
	unsigned lane, batch;
	uint64_t position;              /* in its lane */
};

struct fifo_trace_batch {
	int64_t popped, handled, released;
	unsigned n;
};

struct fifo_trace {
	struct fifo_trace_request ask;
	const char *driver;
	char device[96];
	const char *kind;               /* of memory, as it turned out */
	struct fifo_trace_trigger *triggers;  /* number i of block b is at b * ask.triggers + i */
	unsigned n_triggers;
	unsigned *order;                /* the triggers as they were popped */
	unsigned n_popped;
	struct fifo_trace_batch *batches;
	unsigned n_batches;
	struct fifo_clock_relation relation;
};

/** Push, take out, handle; write down when.
 *
 * @ask  its devices are not open yet
 * @out  owned by the caller: fifo_trace_free(); empty on failure
 * Errors  GPUL_ESYS native = ETIMEDOUT: a push or sync was not done in time; native = EINTR: Ctrl-C;
 *         GPUL_EFORMAT a trigger came twice, or torn, or not at all; those of the driver, of memory
 * Threads the main thread
 * Source  - */
gpul_status fifo_trace_run(const struct fifo_trace_request *ask, struct fifo_trace *out, gpul_error *err);
/** The same on a driver that is open, with a context that is current.
 *
 * @drv  borrowed
 * @ask  only the first ordinal of its devices is looked at: the context's
 * @out  owned by the caller: fifo_trace_free(); empty on failure
 * Errors  as above
 * Threads the main thread
 * Source  - */
gpul_status fifo_trace_with(const gpul_driver *drv, const struct fifo_trace_request *ask, struct fifo_trace *out,
			    gpul_error *err);
void fifo_trace_free(struct fifo_trace *t);  /* a zeroed one is fine */

/** The trace as JSON, in the Trace Event Format.
 *
 * @t    a trace
 * @out  what was made is added; owned by the caller
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  Trace Event Format (Chromium project) */
gpul_status fifo_trace_json(const struct fifo_trace *t, struct out *out, gpul_error *err);

/** Where the time went: percentiles of each step, as text.
 *
 * @t    a trace
 * @out  what was made is added; owned by the caller
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status fifo_trace_text(const struct fifo_trace *t, struct out *out, gpul_error *err);

#endif
