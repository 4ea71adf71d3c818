/* child.h — the actors' processes, and the line (socket) on which each gets commands and answers. */
#ifndef GPULOAD_TESTS_FAULT_CHILD_H
#define GPULOAD_TESTS_FAULT_CHILD_H

#include "tests/fault/fault.h"

/* A message between the test and an actor.  command: one letter, which the answer repeats. */
struct note {
	char command;
	bool good; /* in an answer: the command succeeded */
	int event; /* command 'v': a gpul_ipc_event_kind */
	int native;
	gpul_status status;
	int64_t value; /* a time-out in ms, a number of rounds, a pid */
	char text[FAULT_TEXT];
};

struct child {
	pid_t pid; /* process id of the child; 0: no process */
	int line;
};

/* The main function of a child; returns its exit status.  arg is a copy of the parent's argument. */
typedef int child_role(const struct fault *f, int line, const void *arg);

/* Fork a child that is killed when this process ends.  False: no more processes or descriptors. */
bool child_start(const struct fault *f, child_role *role, const void *arg, struct child *out);

/* Send a note, or wait for one.  False: the other side has ended, or time-out. */
bool note_send(int line, const struct note *n);
bool note_receive(int line, int timeout_ms, struct note *out);

/* Send a command to a child and wait for its answer.  False: the child has ended, or time-out. */
bool child_do(const struct child *c, char command, int64_t value, struct note *answer);

/* Wait for a child's end, and close the socket to it; returns its wait status, or -1 if it was killed after the time-out. */
int child_end(struct child *c, int timeout_ms);
/* Kill a child with SIGKILL, wait for its end and close the socket to it.  Does nothing if pid is 0. */
void child_kill(struct child *c);

#endif
