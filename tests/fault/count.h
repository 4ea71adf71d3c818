/* count.h — count descriptors, mappings and driver objects, to detect leaks. */
#ifndef GPULOAD_TESTS_FAULT_COUNT_H
#define GPULOAD_TESTS_FAULT_COUNT_H

#include "tests/fault/fault.h"

struct counts {
	int n_fds;
	int n_mapped_files; /* mappings of files: memfds, devices, libraries */
	int n_shared;       /* the part of n_mapped_files that is shared memory */
	int n_held;         /* driver objects, counted by ledger.h */
};

void counts_take(struct counts *out);

/* True when the counts of this process are as before.  False: text has the differences, and names of open files. */
bool counts_same(const struct counts *before, char text[FAULT_TEXT]);

/* Give this process and its children a private /dev/shm, if permitted, because other programs create and remove names
 * in the shared /dev/shm. */
void names_private(void);

/* True when the folder contains only NAME.sock and NAME.lock files, and a private /dev/shm is empty. */
bool names_clean(const char *folder, char text[FAULT_TEXT]);

/* The number of processes, among those that this process may inspect, that have a file open or mapped. */
int holders_of(dev_t device, ino_t inode);

#endif
