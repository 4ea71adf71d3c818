/* progress.c — print and wipe the progress line. */
#include "cli/lib/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file/file.h"

#define QUIET_NS 333000000u

static void show_progress(void *context, uint64_t done, uint64_t total)
{
	struct progress *p = context;

	if (!p->on_terminal || !total || gpul_clock_ns() - p->started_ns < QUIET_NS)
		return;
	fprintf(stderr, "\r\033[K%s: %3.0f%%", p->what, 100 * (double)done / (double)total);
	p->shown = true;
}

void progress_begin(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = gpul_file_name(what),
				.on_terminal = isatty(STDERR_FILENO) != 0,
				.started_ns = gpul_clock_ns(),
				.hook = { show_progress, p } };
}

void progress_wipe(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
