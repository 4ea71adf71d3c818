/* notice_internal.h — a page in which the launcher reports to the ranks which of them have ended.
 *
 * The roster shows the death of a rank that has arrived.  The launcher also knows of ranks that end before they arrive, and
 * why a rank ended.  The page is a memfd that the ranks inherit; the number of its descriptor is in GPULOAD_COMM_NOTICE. */
#ifndef GPULOAD_COMM_BOOTSTRAP_NOTICE_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_NOTICE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "comm/bootstrap/roster.h"

struct notice {
	uint32_t magic;
	_Atomic uint32_t ended;  /* mask of the ranks that have ended with status 0 */
	_Atomic uint32_t first;  /* 0: none; else 1 + the first rank that ended with status 0, if none had failed before */
	_Atomic uint32_t failed; /* 0: none; else 1 + the first rank that failed, with its pid and text below */
	int32_t pid;
	char text[200]; /* such as "rank 3 (pid 4711) was killed by signal 9 (Killed)" */
};

/** Create the page, in the launcher.
 *
 * @fd   set: the descriptor that the ranks inherit (not close-on-exec); owned by the caller
 * @out  mapped; gpul_notice_unmap().  Only this mapping can write
 * Errors  GPUL_ESYS
 * Source  Linux memfd_create(2); fcntl(2): F_SEAL_FUTURE_WRITE */
gpul_status gpul_notice_create(int *fd, struct notice **out, gpul_error *err);

/* Publish the ranks (a mask) that have ended with status 0. causes: whether such an end can be the cause of later failures. */
void gpul_notice_post_ends(struct notice *n, uint32_t ended, bool causes);

/* Publish the first failure of a rank; later ones are ignored. */
void gpul_notice_post(struct notice *n, int rank, pid_t pid, const char *text);

/* Map the page of this process' launcher.  NULL: there is none, or a program between launcher and rank has closed the descriptor. */
const struct notice *gpul_notice_find(void);

/* Read why the job has failed, or cannot start because one of the absent ranks (a mask) has ended.  Returns false if neither is
 * reported.  n may be NULL. */
bool gpul_notice_read(const struct notice *n, uint32_t absent, gpul_roster_event *out);

void gpul_notice_unmap(const struct notice *n);

#endif
