/* trace.h — the trace of a rank's kernels: their waits, steps and copies, with their times.
 *
 *     gpul_comm_trace_start ─ calls, gpul_comm_wait ─ gpul_comm_trace_stop ─ gpul_comm_trace_read
 *
 * Kernels record events (device/trace.cuh) into device memory of their own GPU, in ns of its %globaltimer.  Ranks with different
 * GPUs have different clocks; a program that merges traces must convert the times.  Without a trace, recording costs no time.
 *
 * The proxy of a rank with a network (net/net_proxy.h) records at the same time, in ns of gpul_clock_ns(). */
#ifndef GPULOAD_COMM_TRACE_H
#define GPULOAD_COMM_TRACE_H

#include "comm/comm.h"
#include "comm/layout.h"
#include "comm/net/net_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Start recording.  Waits for the device's work first.
 *
 * @c           communicator
 * @max_events  room for events of the kernels, and for as many of the proxy; those beyond it are counted, but lost. 0: continue the
 *              previous trace, and keep its events
 * Errors  GPUL_EINVAL max_events is 0 and there is no previous trace, or a persistent kernel runs; GPUL_ENOMEM; GPUL_ECUDA
 * Threads one at a time */
gpul_status gpul_comm_trace_start(gpul_comm *c, size_t max_events, gpul_error *err);
/** Stop recording; the events are kept until the next start.  Waits for the device's work first.  Over a network, stop only when
 * the calls of the other ranks have ended, too, because a proxy may transfer the last steps of a kernel after the kernel has ended.
 *
 * @c  communicator
 * Errors  GPUL_EINVAL a persistent kernel runs; GPUL_ECUDA
 * Threads one at a time */
gpul_status gpul_comm_trace_stop(gpul_comm *c, gpul_error *err);

/** Read the events, in the order in which they ended.
 *
 * @c       communicator
 * @out     receives the events
 * @max     number of events for which out has room
 * @n       set: the number of events read
 * @n_lost  set: the number of recorded events that are not in out
 * Errors  GPUL_ECUDA
 * Threads one at a time */
gpul_status gpul_comm_trace_read(gpul_comm *c, gpul_comm_event *out, size_t max, size_t *n, size_t *n_lost, gpul_error *err);
/* Read the events of the proxy in the same way; without a network there are none.  One thread at a time; cannot fail. */
void gpul_comm_trace_read_net(gpul_comm *c, gpul_comm_net_event *out, size_t max, size_t *n, size_t *n_lost);

#ifdef __cplusplus
}
#endif

#endif
