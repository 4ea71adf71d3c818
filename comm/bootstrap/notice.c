/* notice.c — writes and reads the page in which the launcher reports ended ranks. */
#include "comm/bootstrap/notice_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* in headers since Linux 5.1 */
#endif

/* The descriptor gets a high number, because shell scripts use low ones for their own files. */
enum { NOTICE_MAGIC = 0x4e544345, LEAST_FD = 100 };

gpul_status gpul_notice_create(int *fd, struct notice **out, gpul_error *err)
{
	int file = memfd_create("gpuload-notice", MFD_CLOEXEC | MFD_ALLOW_SEALING), high;
	struct notice *n = MAP_FAILED;

	if (file >= 0 && !ftruncate(file, sizeof *n))
		n = mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (n == MAP_FAILED) {
		int error = errno;

		if (file >= 0)
			close(file);
		return gpul_fail(err, GPUL_ESYS, error,
				 "cannot create the shared memory in which the launcher reports ranks that have ended: %s",
				 strerror(error));
	}
	n->magic = NOTICE_MAGIC;
	/* Linux before 5.1 lacks F_SEAL_FUTURE_WRITE, so a rank could write to the page, but it would harm only its own job. */
	(void)fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	(void)fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	high = fcntl(file, F_DUPFD, LEAST_FD);
	if (high < 0)
		high = dup(file);
	close(file);
	if (high < 0) {
		gpul_notice_unmap(n);
		return gpul_fail(err, GPUL_ESYS, errno,
				 "cannot create the shared memory in which the launcher reports ranks that have ended: %s",
				 strerror(errno));
	}
	*fd = high;
	*out = n;
	return GPUL_OK;
}

void gpul_notice_post_ends(struct notice *n, uint32_t ended, bool causes)
{
	if (ended && causes && !atomic_load(&n->failed) && !atomic_load(&n->first))
		atomic_store(&n->first, (uint32_t)__builtin_ctz(ended) + 1);
	atomic_store(&n->ended, ended);
}

void gpul_notice_post(struct notice *n, int rank, pid_t pid, const char *text)
{
	if (atomic_load(&n->failed))
		return;
	n->pid = (int32_t)pid;
	strncpy(n->text, text, sizeof n->text - 1);
	atomic_store(&n->failed, (uint32_t)rank + 1);
}

/* Validate the descriptor: if a program between launcher and rank has closed it, its number may now refer to another file. */
const struct notice *gpul_notice_find(void)
{
	const char *variable = secure_getenv("GPULOAD_COMM_NOTICE");
	char *end = NULL;
	long fd = variable ? strtol(variable, &end, 10) : -1;
	const struct notice *n;
	struct stat s;
	int seals;

	if (!variable || end == variable || *end || fd < 0 || fd > INT_MAX)
		return NULL;
	seals = fcntl((int)fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat((int)fd, &s) || s.st_size != (off_t)sizeof *n)
		return NULL;
	n = mmap(NULL, sizeof *n, PROT_READ, MAP_SHARED, (int)fd, 0);
	if (n == MAP_FAILED)
		return NULL;
	if (n->magic == NOTICE_MAGIC)
		return n;
	gpul_notice_unmap(n);
	return NULL;
}

/* If a rank exits with status 0 before all ranks have joined, other ranks fail as a consequence.  So the early exit is reported as
 * the cause, not their failure. */
bool gpul_notice_read(const struct notice *n, uint32_t absent, gpul_roster_event *out)
{
	uint32_t failed = n ? atomic_load(&n->failed) : 0;
	uint32_t first = n ? atomic_load(&n->first) : 0; /* read after `failed`, because the launcher writes it before `failed` */

	if (first > 0 && first <= GPUL_COMM_MAX_RANKS && absent & 1u << (first - 1)) {
		*out = (gpul_roster_event){
			.kind = GPUL_RANK_DIED, .rank = (int)first - 1, .culprit = (int)first - 1, .status = GPUL_EUNSUPPORTED
		};
		snprintf(out->text, sizeof out->text, "rank %d ended before all ranks had joined the job", out->rank);
		return true;
	}
	if (failed == 0 || failed > GPUL_COMM_MAX_RANKS)
		return false;
	*out = (gpul_roster_event){
		.kind = GPUL_RANK_DIED, .rank = (int)failed - 1, .pid = n->pid, .culprit = (int)failed - 1, .status = GPUL_EUNSUPPORTED
	};
	memcpy(out->text, n->text, sizeof out->text - 1);
	return true;
}

void gpul_notice_unmap(const struct notice *n)
{
	if (n)
		munmap((void *)(uintptr_t)n, sizeof *n);
}
