/* fifo_put.h — the parts of gpuload fifo trace --put: messages from the kernel of this process to the kernel of a child.
 *
 *     fifo_put_run.c   this process: kernel, FIFO, proxy          fifo_put_peer.c   the child: progress, flush, kernel
 *                 └──────────── fifo_put_end.c: device, memory, connection, clock ────────────┘
 *     fifo_put_json.c  events for ui.perfetto.dev                 fifo_put_text.c   percentiles
 *
 *     one message    begun  pushed        popped      posted          acknowledged         synced
 *     GPU            ├─ push ─┤─────────────────── sync ──────────────────────────────────────┤
 *     proxy                                ├── post ──┤── in flight ──────┤
 *     peer's CPU                                            seen ├ flush ┤ flushed
 *     peer's GPU                             ── wait for the step ──┤ kernel_seen
 *
 * CLOCK_MONOTONIC is common to both processes; each relates its GPU's clock to it (clock/fifo_clock.h). */
#ifndef GPULOAD_CLI_FIFO_PUT_FIFO_PUT_H
#define GPULOAD_CLI_FIFO_PUT_FIFO_PUT_H

#include <stddef.h>
#include <stdint.h>

#include "cli/fifo/clock/fifo_clock.h"
#include "cli/lib/options/devices_arg.h"
#include "cli/lib/out.h"

struct fifo_put_request {
	unsigned blocks, puts;          /* puts of each block */
	unsigned bytes;                 /* bytes of each put; a multiple of 8 */
	uint64_t timeout_ns;            /* time-out of a push, a sync, or a wait for a step */
	const char *backend, *provider; /* borrowed; NULL: automatic */
	gpul_mem_kind kind;             /* kind of the data's memory; the CPU can access it */
	struct devices_arg devices;
	int peer_device; /* ordinal of the child's GPU */
};

/* Times that the sender's kernel writes (fifo_put.cu), in ns of the GPU's clock. */
struct fifo_put_stamps {
	uint64_t begun, pushed, synced;
};

/* The times of one message, in ns since the trace began, on the CPU's clock. */
struct fifo_put_times {
	int64_t begun, pushed, synced;        /* times of the GPU; wrong by at most relation.bound_ns */
	int64_t popped, posted, acknowledged; /* times of the proxy's thread */
	int64_t seen, flushed;                /* peer's CPU: when it sees the new value of the step counter; when its flush has ended */
	int64_t kernel_seen;                  /* time of the peer's GPU; wrong by at most peer_relation.bound_ns */
};

struct fifo_put_trace {
	struct fifo_put_request ask;
	const char *driver;
	char device[96], peer_device[96];
	char fabric[96];             /* backend and device */
	const char *kind;            /* kind of memory that was used */
	struct fifo_put_times *puts; /* message number n of block b is element b * ask.puts + n */
	unsigned n_puts;
	struct fifo_clock_relation relation, peer_relation;
};

/** Run both processes, and record the times.
 *
 * @ask  the request; this function opens the devices, after it has forked
 * @out  owned by the caller: fifo_put_free(); empty on failure
 * Errors  GPUL_ESYS native = ETIMEDOUT: a push, a sync or a wait timed out; native = EINTR: Ctrl-C;
 *         GPUL_EFORMAT the receiver found wrong data; GPUL_EUNSUPPORTED, GPUL_EVERBS the fabric; GPUL_ECUDA, GPUL_ENOMEM
 * Threads the main thread */
gpul_status fifo_put_run(const struct fifo_put_request *ask, struct fifo_put_trace *out, gpul_error *err);
void fifo_put_free(struct fifo_put_trace *t); /* accepts a struct of zeros */

/** Write the trace as JSON in the Trace Event Format.
 *
 * @t    a trace
 * @out  the text is appended; owned by the caller
 * Errors  GPUL_ENOMEM
 * Source  Trace Event Format (Chromium project) */
gpul_status fifo_put_json(const struct fifo_put_trace *t, struct out *out, gpul_error *err);

/** Write percentiles of the time of each step, as a text table.
 *
 * @t    a trace
 * @out  the text is appended; owned by the caller
 * Errors  GPUL_ENOMEM */
gpul_status fifo_put_text(const struct fifo_put_trace *t, struct out *out, gpul_error *err);

#endif
