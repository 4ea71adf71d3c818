/* control.h — the first page of a shared buffer: an abort word and step counters, for kernels and CPU threads.
 *
 * control_page.h has a drawing.  A step counter has one writer and only increases.  A post is a release and a wait is an acquire,
 * both of system scope: the waiter sees what the writer wrote before its post.  Every wait ends when the abort word is set to a
 * value other than 0.  Kernels use the same operations in control_device.cuh.
 *
 * A page in device memory, which the CPU cannot access, is read and written by copies on a separate stream, so
 * that kernels do not delay them; a context that can access the memory must be current. */
#ifndef GPULOAD_IPC_CONTROL_H
#define GPULOAD_IPC_CONTROL_H

#include "ipc/control_page.h"
#include "ipc/view.h"

#ifdef __cplusplus
extern "C" {
#endif

static_assert(sizeof(struct gpul_ipc_control) == GPUL_IPC_CONTROL_BYTES, "as drawn");

/** Set the abort word: every wait on GPUs and CPUs ends with this code.  Once it is set, further codes are ignored.
 *
 * If two codes are set at the same time in device memory, or by a GPU over PCIe, either of them may be kept.
 *
 * @v     a view with a control page, not read-only
 * @code  not 0
 * Errors  GPUL_EINVAL no control page, code 0, read-only; GPUL_ECUDA */
gpul_status gpul_ipc_abort(const gpul_ipc_view *v, uint32_t code, gpul_error *err);

/** Read the abort word; *out is 0 if it is not set.
 *
 * @v    a view with a control page
 * @out  filled
 * Errors  GPUL_EINVAL no control page; GPUL_ECUDA */
gpul_status gpul_ipc_aborted(const gpul_ipc_view *v, uint32_t *out, gpul_error *err);

/** Set a step counter, with release semantics: threads that wait for it see everything that this thread wrote before.
 *
 * For data in device memory, wait for the copies (cuStreamSynchronize) before posting.
 *
 * @v      a view with a control page, not read-only
 * @step   0 ... GPUL_IPC_N_STEPS - 1
 * @value  at least the counter's current value
 * Errors  GPUL_EINVAL no control page, no such step, read-only; GPUL_ECUDA
 * Threads one writer for each counter
 * Source  C11 7.17.3, memory_order_release; PTX ISA, Memory Consistency Model, scope sys */
gpul_status gpul_ipc_step_post(const gpul_ipc_view *v, unsigned step, uint64_t value, gpul_error *err);

/** Read a step counter, with acquire semantics: the caller then sees everything that its writer wrote before the post.
 *
 * @v     a view with a control page
 * @step  0 ... GPUL_IPC_N_STEPS - 1
 * @out   filled
 * Errors  GPUL_EINVAL; GPUL_ECUDA */
gpul_status gpul_ipc_step_read(const gpul_ipc_view *v, unsigned step, uint64_t *out, gpul_error *err);

/** Wait until a step counter is at least value.
 *
 * Spins for 20 us, then yields, then sleeps for 50 us at a time.
 *
 * @v           a view with a control page
 * @step        0 ... GPUL_IPC_N_STEPS - 1
 * @value       value to wait for
 * @timeout_ms  < 0: no time-out, only the abort word ends the wait
 * Errors  GPUL_EINVAL; GPUL_ECUDA; GPUL_ESYS native = ETIMEDOUT (the message gives the counter's value); native
 *         = ECANCELED: the abort word is set */
gpul_status gpul_ipc_step_wait(const gpul_ipc_view *v, unsigned step, uint64_t value, int timeout_ms, gpul_error *err);

/* Initialise a control page that the CPU can access, for owners without a server; gpul_ipc_server_create() does this itself. */
void gpul_ipc_control_reset(struct gpul_ipc_control *page, uint64_t generation);

#ifdef __cplusplus
}
#endif

#endif
