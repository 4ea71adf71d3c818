/* io.c — reads and writes exactly n bytes. */
#include "core/file/io.h"

#include <errno.h>
#include <unistd.h>

bool gpul_read_all(int fd, void *bytes, size_t n_bytes)
{
	for (size_t done = 0; done < n_bytes;) {
		ssize_t n = read(fd, (char *)bytes + done, n_bytes - done);

		if (n == 0)
			errno = 0;
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

bool gpul_write_all(int fd, const void *bytes, size_t n_bytes)
{
	for (size_t done = 0; done < n_bytes;) {
		ssize_t n = write(fd, (const char *)bytes + done, n_bytes - done);

		if (n < 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}
