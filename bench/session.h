/* session.h — the interpreter without the CUDA API around it: what the benchmarks run kernels
 * with.
 *
 * Device addresses are host addresses, so a buffer is a malloc that kernels are allowed to
 * touch. */
#ifndef GPULOAD_BENCH_SESSION_H
#define GPULOAD_BENCH_SESSION_H

#include <stdint.h>

#include "softcuda/exec/exec.h"

enum { SESSION_MAX_BUFFERS = 8, SESSION_PARAM_BYTES = 256 };

struct session {
	gpul_exec_memory *memory;
	gpul_exec_machine *machine;
	gpul_exec_program *program;
	const gpul_exec_kernel *kernel;
	void *buffers[SESSION_MAX_BUFFERS];
	unsigned n_buffers;
	uint32_t param_bytes;
	_Alignas(16) unsigned char params[SESSION_PARAM_BYTES];
	gpul_error err; /* the first failure; nothing is done after it */
};

/* n_workers 0: one for each CPU this process may run on.  False: see s->err. */
_Bool session_open(struct session *s, const char *ptx_path, const char *kernel,
		   unsigned n_workers);
void session_close(struct session *s);

/* Append one parameter, aligned as the ABI wants. */
void session_param(struct session *s, const void *value, uint32_t bytes, uint32_t align);
void session_param_i32(struct session *s, int32_t v);
/* A zeroed buffer; its address is also appended as a parameter. */
void *session_param_buffer(struct session *s, size_t bytes);
void *session_buffer(struct session *s, size_t bytes);

struct session_shape {
	uint32_t grid[3], block[3];
};
gpul_exec_launch *session_start(struct session *s, const struct session_shape *shape);
/* Wait, release, and return the thread-instructions executed; 0 and s->err on a fault. */
uint64_t session_finish(struct session *s, gpul_exec_launch *l);

double now_ms(void);
/* Of all threads together: what a busy machine cannot spoil. */
double cpu_ms(void);

#endif
