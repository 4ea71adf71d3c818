/* progress.h — how far a long scan has come, on a terminal and nowhere else.
 *
 *     libcublasLt.so.13:  42%        on stderr, in place; wiped out when done
 *
 * Nothing shows before a scan has taken a third of a second: what is quick should not flicker. */
#ifndef GPULOAD_CLI_LIB_PROGRESS_H
#define GPULOAD_CLI_LIB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/image/images.h"

struct progress {
	const char *what;     /* of the line; borrowed */
	bool on_terminal, shown;
	uint64_t started_ns;
	gpul_progress hook;   /* for gpul_images_open() and others; leads back here */
};

/** Begin; p must stay where it is while its hook is used.
 *
 * what may be a path: its last part is shown. */
void progress_begin(struct progress *p, const char *what);

/** Wipe the line out, before anything else is written or at the end; it may come back. */
void progress_wipe(struct progress *p);

#endif
