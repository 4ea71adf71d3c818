/* child.h — child processes of a test: each runs the test program again, with a role (a function), connected by pipes.
 *
 * A child executes the program anew instead of only forking, because CUDA cannot be used after fork() in a process that opened a driver. */
#ifndef GPULOAD_TESTS_IPC_CHILD_H
#define GPULOAD_TESTS_IPC_CHILD_H

#include <sys/types.h>

struct child {
	pid_t pid;
	int to, from; /* the child's standard input and output */
};

/* A role is the main function of a child: it talks to the test through standard input and output, and returns the exit status. */
typedef int role(const char *argument);
struct role_entry {
	const char *name;
	role *play;
};

/* Call this first in main(): in a child it runs the role and does not return. */
void play_role(int argc, char **argv, const struct role_entry *roles);

struct child start_child(const char *name, const char *argument);
/* Read a line from the child, without its newline; fails the test after a time-out. */
const char *receive_from_child(struct child *c);
void send_to_child(struct child *c, const char *line);
/* Close the child's standard input; the child must then exit with the given waitpid() status. */
void end_child(struct child *c, int status);
void kill_child(struct child *c);

/* Called in a role: say() prints a line, hear() reads a line (false: end of input). */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int hear(char line[128]);

#endif
