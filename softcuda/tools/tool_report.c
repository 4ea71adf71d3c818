/* tool_report.c — prints reports on stderr or to a file, and counts the errors of each tool. */
#include "softcuda/tools/tool_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096, FILE_BYTES = 1 << 14 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct count {
	const char *tool;
	unsigned n;
} counts[MAX_OBSERVERS];
static FILE *reports; /* file for reports; NULL: stderr */

/* Return the counter of a tool's errors.  The caller holds the lock. */
static struct count *count_of(const char *tool)
{
	unsigned k = 0;

	while (k + 1 < MAX_OBSERVERS && counts[k].tool && strcmp(counts[k].tool, tool) != 0)
		k++;
	counts[k].tool = tool;
	return &counts[k];
}

gpul_status gpul_tool_reports_to(const char *path, gpul_error *err)
{
	reports = fopen(path, "ae");
	if (!reports)
		return gpul_fail(err, GPUL_ESYS, errno, "%.80s, the file for the reports of tools: %s", path, strerror(errno));
	setvbuf(reports, NULL, _IOFBF, FILE_BYTES); /* each report is one write(), so that those of several processes do not mix */
	return GPUL_OK;
}

/* Print "gpuload TOOL: first line" and indent the other lines; in a file, add the process ID. The caller holds the lock. */
static void print_lines(const char *tool, char *text)
{
	FILE *to = reports ? reports : stderr;
	char *rest = text, *line = strsep(&rest, "\n");

	if (reports)
		fprintf(to, "%d: ", (int)getpid());
	fprintf(to, "gpuload %s: %s\n", tool, line);
	while ((line = strsep(&rest, "\n")))
		fprintf(to, "    %s\n", line);
	fflush(to);
}

void gpul_tool_report(const char *tool, const char *fmt, ...)
{
	char text[TEXT_BYTES];
	struct count *c;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&lock);
	c = count_of(tool);
	if (c->n++ < REPORTED_MOST)
		print_lines(tool, text);
	else if (c->n == REPORTED_MOST + 1)
		print_lines(tool, strcpy(text, "there are more errors; they are counted, but not printed"));
	pthread_mutex_unlock(&lock);
}

void gpul_tool_say(const char *tool, const char *fmt, ...)
{
	char text[TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&lock);
	print_lines(tool, text);
	pthread_mutex_unlock(&lock);
}

unsigned gpul_tool_n_reported(const char *tool)
{
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < MAX_OBSERVERS && counts[k].tool; k++)
		if (!tool || !strcmp(counts[k].tool, tool))
			n += counts[k].n;
	pthread_mutex_unlock(&lock);
	return n;
}

/* ---- counting launches ----------------------------------------------------------------------- */

static atomic_uint n_begun, n_complete; /* numbers of launches; all running tools count the same launches */

void gpul_tool_launch_begins(struct observer *o, gpul_exec_launch *l)
{
	(void)o;
	(void)l;
	atomic_fetch_add(&n_begun, 1);
}

void gpul_tool_launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	(void)o;
	(void)l;
	if (fault->kind == GPUL_EXEC_OK)
		atomic_fetch_add(&n_complete, 1);
}

void gpul_tool_sum_up(const char *tool)
{
	const unsigned n = gpul_tool_n_reported(tool);

	if (n)
		gpul_tool_say(tool, "%u error%s", n, n == 1 ? "" : "s");
	else if (!atomic_load(&n_begun))
		gpul_tool_say(tool, "no kernel ran, so nothing was checked");
	else if (atomic_load(&n_complete) < atomic_load(&n_begun))
		gpul_tool_say(tool, "no errors, but the check is incomplete: a kernel was stopped before its end");
	else
		gpul_tool_say(tool, "no errors");
}

const char *gpul_tool_lanes(uint32_t lanes, char *buf, size_t bytes)
{
	size_t used = (size_t)snprintf(buf, bytes, lanes & (lanes - 1) ? "lanes" : "lane");
	char separator = ' ';

	for (unsigned l = 0; l < 32 && used < bytes; l++) {
		unsigned end = l;

		if (!(lanes >> l & 1))
			continue;
		while (end + 1 < 32 && lanes >> (end + 1) & 1)
			end++;
		used += (size_t)snprintf(buf + used, bytes - used, end > l ? "%c%u-%u" : "%c%u", separator, l, end);
		separator = ',';
		l = end;
	}
	return buf;
}
