/* fifo_push.h — flags and results that gpuload fifo push shares with its kernel (fifo_push.cu); for C and nvcc. */
#ifndef GPULOAD_CLI_FIFO_FIFO_PUSH_H
#define GPULOAD_CLI_FIFO_FIFO_PUSH_H

enum fifo_push_flags {
	FIFO_PUSH_SHARE = 1,     /* the threads share lanes; otherwise the thread of block b owns lane b */
	FIFO_PUSH_SYNC_EACH = 2, /* wait for the proxy after each push, not only at the end */
	FIFO_PUSH_RELAXED = 4,   /* call gpul_fifo_push() instead of gpul_fifo_push_release() */
};

/* Kind of the triggers; word 0 is the number of the push within its thread, word 1 the number of the thread. */
enum { FIFO_PUSH_KIND = 1 };

/* Result of one thread. */
struct fifo_push_result {
	unsigned long long pushed;
	unsigned int result; /* enum gpul_fifo_result of the first call that failed; OK: none failed */
	unsigned int zero;
};

#endif
