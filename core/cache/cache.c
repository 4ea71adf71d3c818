/* cache.c — finds or stores one result in the cache folder.
 *
 *     0    8        40              48        80
 *     ┌────┬────────┬───────────────┬─────────┬─────────────┐
 *     │mark│ key    │ payload_bytes │ digest  │ payload ... │   numbers in native byte order,
 *     └────┴────────┴───────────────┴─────────┴─────────────┘   which the mark shows
 *
 * After a system crash a file may have the right length but contain zeros, so each read checks the
 * payload's digest, which takes a few ms per megabyte. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/io.h"
#include "core/log.h"
#include "core/cache/cache_internal.h"

#define MARK UINT64_C(0x316568636163706c) /* the bytes "lpcache1" as a little-endian number */

struct header {
	uint64_t mark;
	unsigned char key[GPUL_SHA256_BYTES];
	uint64_t payload_bytes;
	unsigned char digest[GPUL_SHA256_BYTES];
};
_Static_assert(sizeof(struct header) == 80, "as drawn");

/* Write the name of the file that contains the result of a key: "ab/cdef...". */
static void file_name(const unsigned char key[GPUL_SHA256_BYTES], char name[CACHE_NAME_BYTES])
{
	char *at = name;

	for (int i = 0; i < GPUL_SHA256_BYTES; i++)
		at += snprintf(at, 4, i == 0 ? "%02x/" : "%02x", key[i]);
}

static void compute_digest(const void *bytes, size_t n_bytes, unsigned char digest[GPUL_SHA256_BYTES])
{
	gpul_sha256 s;

	gpul_sha256_begin(&s);
	gpul_sha256_add(&s, bytes, n_bytes);
	gpul_sha256_end(&s, digest);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Read the payload and append a NUL.  NULL: the file is not a valid result of this key, or out of memory. */
static void *read_result(int fd, const unsigned char key[GPUL_SHA256_BYTES], size_t *n_bytes)
{
	unsigned char digest[GPUL_SHA256_BYTES];
	struct header h;
	struct stat st;
	char *payload;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !gpul_read_all(fd, &h, sizeof h) || h.mark != MARK ||
	    memcmp(h.key, key, sizeof h.key) || st.st_size < 0 || (uint64_t)st.st_size - sizeof h != h.payload_bytes)
		return NULL;
	*n_bytes = (size_t)h.payload_bytes;
	payload = malloc(*n_bytes + 1);
	if (!payload)
		return NULL;
	payload[*n_bytes] = 0;
	if (gpul_read_all(fd, payload, *n_bytes)) {
		compute_digest(payload, *n_bytes, digest);
		if (!memcmp(digest, h.digest, sizeof digest))
			return payload;
	}
	free(payload);
	return NULL;
}

bool gpul_cache_find(const gpul_cache_key *key, void **bytes, size_t *n_bytes)
{
	unsigned char digest[GPUL_SHA256_BYTES];
	char name[CACHE_NAME_BYTES];
	gpul_cache_where w;
	int folder = key ? gpul_cache_open(false, &w) : -1, fd;
	void *payload = NULL;

	if (folder < 0)
		return false;
	gpul_cache_key_digest(key, digest);
	file_name(digest, name);
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		payload = read_result(fd, digest, n_bytes);
		gpul_log(GPUL_LOG_DEBUG, "cache", "%s %s", payload ? "found" : "damaged, removed:", name);
		if (payload)
			futimens(fd, NULL); /* set the time of use, for gpul_cache_trim(); fails on a read-only disk */
		else
			unlinkat(folder, name, 0);
		close(fd);
	}
	close(folder);
	if (!payload)
		return false;
	*bytes = payload;
	return true;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* Create a temporary file with a unique name; -1: it cannot be created. */
static int create_temporary(int folder, char name[40])
{
	static atomic_uint counter;
	int fd;

	do { /* retry, because processes of two containers may have the same pid */
		snprintf(name, 40, CACHE_NEW "%ld-%u", (long)getpid(), atomic_fetch_add(&counter, 1));
		fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EEXIST);
	return fd;
}

/* Write a temporary file, then rename it, so that readers find either the whole result or nothing. */
static bool write_result(int folder, const char *name, const struct header *h, const void *payload)
{
	char new_name[40], sub[3] = { name[0], name[1], 0 };
	int fd = create_temporary(folder, new_name);
	bool ok;

	if (fd < 0)
		return false;
	ok = gpul_write_all(fd, h, sizeof *h) && gpul_write_all(fd, payload, (size_t)h->payload_bytes);
	if (close(fd))
		ok = false;
	if (ok && mkdirat(folder, sub, 0700) && errno != EEXIST)
		ok = false;
	if (ok && !renameat(folder, new_name, folder, name))
		return true;
	unlinkat(folder, new_name, 0);
	return false;
}

/* Return the size of the largest file that this process may write: writing more raises SIGXFSZ, which ends the process. */
static uint64_t file_size_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

void gpul_cache_store(const gpul_cache_key *key, const void *bytes, size_t n_bytes)
{
	struct header h = { .mark = MARK, .payload_bytes = n_bytes };
	uint64_t bound = gpul_cache_bound();
	char name[CACHE_NAME_BYTES];
	gpul_cache_where w;
	int folder;

	if (!key || n_bytes > bound || bound - n_bytes < sizeof h)
		return;
	if (file_size_limit() < sizeof h + n_bytes) {
		gpul_log(GPUL_LOG_DEBUG, "cache", "the cache is not used: this process may not write files of %zu bytes (ulimit -f)",
			 sizeof h + n_bytes);
		return;
	}
	folder = gpul_cache_open(true, &w);
	if (folder < 0) {
		gpul_log(GPUL_LOG_DEBUG, "cache", "the cache is not used: %s", w.why_not);
		return;
	}
	gpul_cache_key_digest(key, h.key);
	file_name(h.key, name);
	compute_digest(bytes, n_bytes, h.digest);
	errno = 0;
	if (write_result(folder, name, &h, bytes))
		gpul_log(GPUL_LOG_DEBUG, "cache", "stored %s, %zu bytes", name, n_bytes);
	else
		gpul_log(GPUL_LOG_DEBUG, "cache", "cannot store %s: %s", name, strerror(errno));
	gpul_cache_trim(folder, bound, NULL, NULL);
	close(folder);
}
