/* fifo_push.h — what gpuload fifo push and its kernel (fifo_push.cu) agree on; for C and nvcc, so it includes nothing. */
#ifndef GPULOAD_CLI_FIFO_FIFO_PUSH_H
#define GPULOAD_CLI_FIFO_FIFO_PUSH_H

enum fifo_push_flags {
	FIFO_PUSH_SHARE = 1,      /* threads draw tickets; else block b's one thread owns lane b */
	FIFO_PUSH_SYNC_EACH = 2,  /* wait for the proxy after each push, not only at the end */
	FIFO_PUSH_RELAXED = 4,    /* push, not push_release */
};

/* What a trigger carries: the number of the push in its thread, and the thread. */
enum { FIFO_PUSH_KIND = 1 };

/* What came of a thread's pushes. */
struct fifo_push_result {
	unsigned long long pushed;
	unsigned int result;  /* enum gpul_fifo_result, of the first call that was not OK */
	unsigned int zero;
};

#endif
