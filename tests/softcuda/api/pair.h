/* pair.h — tests that need two processes.  A driver does not survive a fork, so each side calls
 * cuInit by itself and the test program never does.
 *
 * A side runs to its end or exits: cmocka's assertions are the test program's, `must` is theirs. */
#ifndef GPULOAD_TESTS_SOFTCUDA_API_PAIR_H
#define GPULOAD_TESTS_SOFTCUDA_API_PAIR_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A side has a socket to the other one. */
typedef void pair_side(int peer);

/* Run both; the test fails unless both return.  */
void run_pair(pair_side *owner, pair_side *other);
/* Start one side, which has `peer`; waited for by end_side. */
pid_t start_side(pair_side *side, int peer, int close_this);
void end_side(pid_t side);
/* Two sockets that are each other's. */
void make_sockets(int fd[2]);

CUcontext be_process(int device);  /* cuInit, and a context of that device, current */
void tell(int peer, const void *bytes, size_t n_bytes);
void hear(int peer, void *bytes, size_t n_bytes);
void tell_turn(int peer);          /* "your turn" */
void hear_turn(int peer);
int open_descriptors(void);        /* of this process */
bool has_line(const char *path, const char *part);  /* a file of /proc/self holds it */

void must_hold(bool holds, const char *what, const char *file, int line);
void must_return(CUresult got, CUresult want, const char *call, const char *file, int line);
#define must(condition) must_hold(condition, #condition, __FILE__, __LINE__)
#define must_be(call, want) must_return(call, want, #call, __FILE__, __LINE__)
#define must_ok(call) must_be(call, CUDA_SUCCESS)

#endif
