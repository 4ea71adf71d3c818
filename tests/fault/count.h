/* count.h — what a process and the system hold: nothing of it may grow. */
#ifndef GPULOAD_TESTS_FAULT_COUNT_H
#define GPULOAD_TESTS_FAULT_COUNT_H

#include "tests/fault/fault.h"

struct counts {
	int n_fds;
	int n_mapped_files;  /* mappings with a file behind them: memfds, devices, libraries */
	int n_shared;        /* of these: of memory that processes share (no libraries) */
	int n_held;          /* of the driver: see ledger.h */
};

void counts_take(struct counts *out);

/* True when this process holds no more than before.  Else text says what more there is, with the open files by name. */
bool counts_same(const struct counts *before, char text[FAULT_TEXT]);

/* Give this process and its children a /dev/shm of their own, where that is permitted: in one that is shared, somebody
 * else's names come and go. */
void names_private(void);

/* True when a folder holds nothing but NAME.sock and NAME.lock files, and a /dev/shm of our own nothing. */
bool names_clean(const char *folder, char text[FAULT_TEXT]);

/* How many processes (of those this one may look at) have a file open or mapped. */
int holders_of(dev_t device, ino_t inode);

#endif
