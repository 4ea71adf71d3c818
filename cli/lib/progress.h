/* progress.h — a progress line for long scans, shown only if stderr is a terminal.
 *
 *     libcublasLt.so.13:  42%        on stderr, updated in place; wiped at the end
 *
 * The line appears after a third of a second, so that a quick scan does not flicker. */
#ifndef GPULOAD_CLI_LIB_PROGRESS_H
#define GPULOAD_CLI_LIB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/image/images.h"

struct progress {
	const char *what; /* the text before the colon; borrowed */
	bool on_terminal, shown;
	uint64_t started_ns;
	gpul_progress hook; /* callback for gpul_source_images() and similar functions, whose context is this struct */
};

/** Start a progress line; *p must not move while its hook is in use.
 *
 * `what` is a name or a path; only the last component of a path is shown. */
void progress_begin(struct progress *p, const char *what);

/** Wipe the line, before other output and at the end; the next progress report shows it again. */
void progress_wipe(struct progress *p);

#endif
