/* kernel_names.h — finds the name of a kernel by its handle; the names come from calls that return handles. */
#ifndef GPULOAD_CLI_CALLS_LOG_KERNEL_NAMES_H
#define GPULOAD_CLI_CALLS_LOG_KERNEL_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "cli/calls/log/event.h"

/* The entry is empty if its name is NULL. */
struct kernel_name {
	uint64_t handle;
	int pid;
	char *name;
};

/* A hash table with open addressing.  If all members are zero, the table is empty. */
struct kernel_names {
	struct kernel_name *at;
	size_t n, room;
};

/* If the call associates a handle with a name (calls_row.names_kernel), store it.  When memory runs out, the name stays unknown. */
void kernel_names_learn(struct kernel_names *names, const struct calls_event *e);

/* Return the name of a handle in a process, demangled; NULL: unknown.  Valid until the next kernel_names_learn(). */
const char *kernel_name(const struct kernel_names *names, int pid, uint64_t handle);

void kernel_names_free(struct kernel_names *names);

#endif
