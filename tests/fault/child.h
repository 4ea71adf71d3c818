/* child.h — processes that act, and the line on which each is told what to do and answers. */
#ifndef GPULOAD_TESTS_FAULT_CHILD_H
#define GPULOAD_TESTS_FAULT_CHILD_H

#include "tests/fault/fault.h"

/* One message on a line.  command: what to do, by a letter; an answer repeats it. */
struct note {
	char command;
	bool good;          /* answers: done, and everything was as it should be */
	int event;          /* 'v': a gpul_ipc_event_kind */
	int native;
	gpul_status status;
	int64_t value;      /* a time-out in ms, a number of rounds, a pid */
	char text[FAULT_TEXT];
};

struct child {
	pid_t pid;          /* 0: none */
	int line;
};

/* What a child does; its exit status.  arg is the parent's, as it was at the fork. */
typedef int child_role(const struct fault *f, int line, const void *arg);

/* Fork a child that dies with this process.  False: no more processes or descriptors. */
bool child_start(const struct fault *f, child_role *role, const void *arg, struct child *out);

/* Send a note, or wait for one.  False: the other side is gone, or the time is over. */
bool note_send(int line, const struct note *n);
bool note_receive(int line, int timeout_ms, struct note *out);

/* Tell a child to do something and wait for its answer.  False: it is gone, or did not answer in time. */
bool child_do(const struct child *c, char command, int64_t value, struct note *answer);

/* Wait for a child's end; its wait status, -1 when it did not end in time (then it is killed).  Closes the line. */
int child_end(struct child *c, int timeout_ms);
/* End it by SIGKILL, whatever it does; the same otherwise.  A child that is none is fine. */
void child_kill(struct child *c);

#endif
