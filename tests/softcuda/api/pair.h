/* pair.h — tests with two processes.  A driver cannot be used after a fork, so each process calls cuInit, and the test
 * program never does.
 *
 * The processes check with `must`, which exits; only the test program uses cmocka's assertions. */
#ifndef GPULOAD_TESTS_SOFTCUDA_API_PAIR_H
#define GPULOAD_TESTS_SOFTCUDA_API_PAIR_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The function that one process runs; peer: a socket connected to the other process. */
typedef void pair_side(int peer);

/* Run both functions, each in its own process; the test fails unless both return. */
void run_pair(pair_side *owner, pair_side *other);
/* Fork a process that runs side(peer) and closes the descriptor close_this; end_side() waits for the process. */
pid_t start_side(pair_side *side, int peer, int close_this);
void end_side(pid_t side);
/* Create a connected pair of sockets. */
void make_sockets(int fd[2]);

CUcontext init_process(int device); /* call cuInit, and make a context on the device current */
void send_bytes(int peer, const void *bytes, size_t n_bytes);
void receive_bytes(int peer, void *bytes, size_t n_bytes);
void pass_turn(int peer); /* let the other process continue */
void await_turn(int peer);
int open_descriptors(void);                        /* number of open descriptors of this process */
bool has_line(const char *path, const char *part); /* true: a line of the file contains the text */

void must_hold(bool holds, const char *what, const char *file, int line);
void must_return(CUresult got, CUresult want, const char *call, const char *file, int line);
#define must(condition)     must_hold(condition, #condition, __FILE__, __LINE__)
#define must_be(call, want) must_return(call, want, #call, __FILE__, __LINE__)
#define must_ok(call)       must_be(call, CUDA_SUCCESS)

#endif
