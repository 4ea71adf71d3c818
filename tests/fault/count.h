/* count.h — count descriptors, mappings and driver objects, to detect leaks. */
#ifndef GPULOAD_TESTS_FAULT_COUNT_H
#define GPULOAD_TESTS_FAULT_COUNT_H

#include "tests/fault/fault.h"

struct counts {
	int n_fds;
	int n_mapped_files;  /* mappings of files: memfds, devices, libraries */
	int n_shared;        /* of these: shared memory (not libraries) */
	int n_held;          /* driver objects, counted by ledger.h */
};

void counts_take(struct counts *out);

/* Does this process hold no more than before?  False: text has what was added, and the names of the open files. */
bool counts_same(const struct counts *before, char text[FAULT_TEXT]);

/* Give this process and its children a private /dev/shm, if permitted: in the shared one, other programs create and
 * remove names. */
void names_private(void);

/* Does a folder contain only NAME.sock and NAME.lock files, and a private /dev/shm nothing? */
bool names_clean(const char *folder, char text[FAULT_TEXT]);

/* The number of processes, among those that this process may inspect, that have a file open or mapped. */
int holders_of(dev_t device, ino_t inode);

#endif
