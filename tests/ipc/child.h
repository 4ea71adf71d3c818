/* child.h — child processes of a test: this program started again in a role, connected by pipes.
 *
 * The child is a new program, because a process that has opened a driver cannot fork and use it in the child. */
#ifndef GPULOAD_TESTS_IPC_CHILD_H
#define GPULOAD_TESTS_IPC_CHILD_H

#include <sys/types.h>

struct child {
	pid_t pid;
	int to, from; /* the child's standard input and output */
};

/* A role uses standard input and output to talk to the test, and returns the exit status. */
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
