/* count.h — what a process and the system hold: nothing of it may grow. */
#ifndef GPULOAD_TESTS_FAULT_COUNT_H
#define GPULOAD_TESTS_FAULT_COUNT_H

#include "tests/fault/fault.h"

struct counts {
	int n_fds;
	int n_mapped_files;  /* mappings with a file behind them: memfds, devices, libraries */
	int n_shared;        /* of these: of memory that processes share (no libraries) */
	size_t device_bytes; /* free on the GPU that is current; 0: not asked */
};

/* Count; drv NULL: do not ask the GPU. */
void counts_take(const gpul_driver *drv, struct counts *out);

/* True when after holds no more than before.  Else text says what more there is, with the open files by name.  The
 * GPU is asked again for two seconds: a dead process' memory comes back when the kernel has finished with it. */
bool counts_same(const gpul_driver *drv, const struct counts *before, char text[FAULT_TEXT]);

/* True when a folder holds nothing but NAME.sock and NAME.lock files, and /dev/shm nothing of gpuload that was not
 * there when this was first asked. */
bool names_clean(const char *folder, char text[FAULT_TEXT]);

/* How many processes (of those this one may look at) have a file open or mapped. */
int holders_of(dev_t device, ino_t inode);

#endif
