/* control.h — the first page of a shared buffer: an abort word and step counters, for kernels and CPU threads.
 *
 * control_page.h draws it.  A step counter has one writer and only grows.  post is a release and wait an acquire, both
 * of system scope: what the writer wrote before, the waiter sees.  The abort word is 0; once it is not, every wait
 * ends.  Kernels have the same four words in control_device.cuh.
 *
 * Device memory, which the CPU does not see, is read and written by copies, on a stream of their own that no kernel
 * holds up; a context that can reach it must be current then. */
#ifndef GPULOAD_IPC_CONTROL_H
#define GPULOAD_IPC_CONTROL_H

#include "ipc/control_page.h"
#include "ipc/view.h"

#ifdef __cplusplus
extern "C" {
#endif

static_assert(sizeof(struct gpul_ipc_control) == GPUL_IPC_CONTROL_BYTES, "as drawn");

/** Raise the abort word: every wait on it, on GPUs and CPUs, ends with this code.  The first code stays.
 *
 * Of two that are raised at the same moment in device memory, or by a GPU over PCIe, either may stay.
 *
 * @v     a view with a control page, not read-only
 * @code  not 0
 * Errors  GPUL_EINVAL no control page, code 0, read-only; GPUL_ECUDA
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_abort(const gpul_ipc_view *v, uint32_t code, gpul_error *err);

/** Read the abort word; *out 0: not raised.
 *
 * @v    a view with a control page
 * @out  filled
 * Errors  GPUL_EINVAL no control page; GPUL_ECUDA
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_aborted(const gpul_ipc_view *v, uint32_t *out, gpul_error *err);

/** Set a step counter, after everything that this thread wrote before.
 *
 * In device memory: after the copies that are complete, so wait for those (cuStreamSynchronize) first.
 *
 * @v      a view with a control page, not read-only
 * @step   0 ... GPUL_IPC_N_STEPS - 1
 * @value  at least what it was
 * Errors  GPUL_EINVAL no control page, no such step, read-only; GPUL_ECUDA
 * Threads one writer a counter
 * Source  C11 7.17.3, memory_order_release; PTX ISA, Memory Consistency Model, scope sys */
gpul_status gpul_ipc_step_post(const gpul_ipc_view *v, unsigned step, uint64_t value, gpul_error *err);

/** Read a step counter; what its writer wrote before is then seen.
 *
 * @v     a view with a control page
 * @step  0 ... GPUL_IPC_N_STEPS - 1
 * @out   filled
 * Errors  GPUL_EINVAL; GPUL_ECUDA
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_step_read(const gpul_ipc_view *v, unsigned step, uint64_t *out, gpul_error *err);

/** Wait until a step counter is at least value.
 *
 * Spins for some microseconds, then yields, then sleeps for at most 50 us at a time.
 *
 * @v           a view with a control page
 * @step        0 ... GPUL_IPC_N_STEPS - 1
 * @value       to be reached
 * @timeout_ms  < 0: for ever, or until the abort word
 * Errors  GPUL_EINVAL; GPUL_ECUDA; GPUL_ESYS native = ETIMEDOUT: says how far it got; native = ECANCELED: the
 *         abort word is raised
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_step_wait(const gpul_ipc_view *v, unsigned step, uint64_t value, int timeout_ms,
			       gpul_error *err);

/* Make the control page new, for an owner that lays it out itself; gpul_ipc_server_create() does it.  Of a page
 * that the CPU sees. */
void gpul_ipc_control_reset(struct gpul_ipc_control *page, uint64_t generation);

#ifdef __cplusplus
}
#endif

#endif
