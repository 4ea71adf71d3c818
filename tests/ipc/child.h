/* child.h — other processes that take part in a test: this program again, playing a role, with
 * pipes to talk to it.
 *
 * A process that has opened a driver cannot fork and use it in the child; one that starts anew
 * can. */
#ifndef GPULOAD_TESTS_IPC_CHILD_H
#define GPULOAD_TESTS_IPC_CHILD_H

#include <sys/types.h>

struct child {
	pid_t pid;
	int to, from; /* its standard input and output */
};

/* A role is played with the child's standard input and output, and gives its exit status. */
typedef int role(const char *argument);
struct role_entry {
	const char *name;
	role *play;
};

/* To be called first in main(): in a child, plays the role and does not return. */
void play_role(int argc, char **argv, const struct role_entry *roles);

struct child start_child(const char *name, const char *argument);
/* One line of it without its newline; what does not come in time fails the test. */
const char *hear_child(struct child *c);
void tell_child(struct child *c, const char *line);
/* Its standard input ends, and it must end with that status (of waitpid). */
void end_child(struct child *c, int status);
void kill_child(struct child *c);

/* In a role: say a line; wait for one (false: the end). */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int hear(char line[128]);

#endif
