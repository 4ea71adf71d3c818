/* lesson.h — shared by the six programs: messages, and a socket between two processes.
 *
 * On the first error, these functions print a message and end the program. */
#ifndef LESSON_H
#define LESSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* End the program with `call` and the text of errno unless ok. */
void lesson_need(bool ok, const char *call);
/* End the program with status 77: it cannot run on this machine. */
void lesson_skip(const char *why);

/* ---- two processes with a TCP socket between them -------------------------------------------------------- */

struct lesson_peer {
	bool receives;     /* this process is the receiver; the other one is the sender */
	char own_host[64]; /* this process's address, as the socket knows it */
	FILE *in;          /* text lines from the other process */
	pid_t child;       /* the sender's process; 0: it was started by hand */
};

/* Start two processes: `PROGRAM` runs both of them here, `PROGRAM --listen` the receiver, and `PROGRAM HOST` the sender. */
void lesson_two_processes(int argc, char **argv, struct lesson_peer *peer);
/* Close the socket and, in the receiver, wait for the sender's process; returns the exit status of this program. */
int lesson_end(struct lesson_peer *peer);

/* Send a line to the other process (without "\n"), or read a line from the other process. */
void lesson_tell(const struct lesson_peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lesson_hear(const struct lesson_peer *peer, char line[256]);
/* Wait until the other process has called this function, too. */
void lesson_meet(const struct lesson_peer *peer);

/* One iteration of a waiting loop: yields the CPU, and ends the program after 30 s.  *since is 0 before the first one. */
void lesson_wait(uint64_t *since, const char *for_what);

#endif
