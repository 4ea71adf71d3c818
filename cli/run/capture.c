/* capture.c — captures stdout by replacing descriptor 1, because kernels print by write() and by the driver's own copy of stdio. */
#include "cli/run/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void capture_begin(struct capture *c)
{
	fflush(stdout);
	c->file = memfd_create("stdout", MFD_CLOEXEC);
	c->saved = c->file < 0 ? -1 : dup(STDOUT_FILENO);
	if (c->saved >= 0 && dup2(c->file, STDOUT_FILENO) < 0) {
		close(c->saved);
		c->saved = -1;
	}
}

static char *read_all(int file, size_t *n_bytes)
{
	struct stat st;
	char *text = NULL;
	ssize_t n;

	if (fstat(file, &st) || st.st_size == 0)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	while (text && *n_bytes < (size_t)st.st_size) {
		n = pread(file, text + *n_bytes, (size_t)st.st_size - *n_bytes, (off_t)*n_bytes);
		if (n <= 0)
			break;
		*n_bytes += (size_t)n;
	}
	if (text)
		text[*n_bytes] = '\0';
	return text;
}

char *capture_end(struct capture *c, size_t *n_bytes)
{
	char *text = NULL;

	*n_bytes = 0;
	fflush(stdout);
	if (c->saved >= 0) {
		dup2(c->saved, STDOUT_FILENO);
		close(c->saved);
		text = read_all(c->file, n_bytes);
	}
	if (c->file >= 0)
		close(c->file);
	c->saved = c->file = -1;
	return text;
}
