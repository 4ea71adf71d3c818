/* session.h — runs kernels in the software driver's interpreter without the CUDA API, for the
 * benchmarks.
 *
 * Device addresses are host addresses, so a buffer is memory from malloc that is registered for
 * kernels. */
#ifndef GPULOAD_BENCH_SOFTCUDA_SESSION_H
#define GPULOAD_BENCH_SOFTCUDA_SESSION_H

#include <stdint.h>

#include "softcuda/exec/exec.h"

enum { SESSION_MAX_BUFFERS = 8, SESSION_PARAM_BYTES = 256 };

struct session {
	gpul_exec_memory *memory;
	_Bool watched; /* true: tools (such as memcheck) watch the session; all watched sessions share one memory table */
	gpul_exec_machine *machine;
	gpul_exec_program *program;
	const gpul_exec_kernel *kernel;
	void *buffers[SESSION_MAX_BUFFERS];
	unsigned n_buffers;
	uint32_t param_bytes;
	_Alignas(16) unsigned char params[SESSION_PARAM_BYTES];
	gpul_error err; /* the first error; later calls do nothing */
};

/* n_workers 0: one worker for each CPU that this process may use.  Returns false on failure, with s->err set. */
_Bool session_open(struct session *s, const char *ptx_path, const char *kernel, unsigned n_workers);
/* Start tools, once: "memcheck,trace:file=x" as in GPULOAD_SOFT_TOOLS.  They watch the sessions of session_open_watched(). */
gpul_status session_start_tools(const char *tools, gpul_error *err);
_Bool session_open_watched(struct session *s, const char *ptx_path, const char *kernel, unsigned n_workers);
void session_close(struct session *s);

/* Append one kernel parameter, with the size and alignment that the ABI requires. */
void session_param(struct session *s, const void *value, uint32_t bytes, uint32_t align);
void session_param_i32(struct session *s, int32_t v);
/* Allocate a buffer of zeros; the first function also appends its address as a parameter. */
void *session_param_buffer(struct session *s, size_t bytes);
void *session_buffer(struct session *s, size_t bytes);

struct session_shape {
	uint32_t grid[3], block[3];
};
gpul_exec_launch *session_start(struct session *s, const struct session_shape *shape);
/* Launch, wait, and return the number of thread-instructions executed; 0 if the kernel faults, with s->err set. */
uint64_t session_finish(struct session *s, gpul_exec_launch *l);

#endif
