/* tool_internal.h — a tool: an observer of kernels with a name, options, and a report.
 *
 * A tool is a folder or a file here, and a row in start/tools.c.  create() makes its observer; from then on everything happens in the hooks
 * (softcuda/exec/observer_internal.h).  What it finds goes to gpul_tool_report(); files that it writes are complete after
 * finish(), which is called once, when no kernel runs any more: at the exit of the process, or by gpuloadSoftFinishTools().
 *
 * In a process without tools nothing here runs, except gpul_tools_start() once (start/start_internal.h). */
#ifndef GPULOAD_SOFTCUDA_TOOLS_TOOL_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_TOOL_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "softcuda/exec/observer_internal.h"
#include "softcuda/exec/shown_name_internal.h"

enum { MAX_TOOL_OPTIONS = 16 };

struct tool_options {
	unsigned n;
	struct tool_option { const char *key, *value; } option[MAX_TOOL_OPTIONS];  /* value "": none was given */
};

struct tool {
	const char *name, *summary;  /* summary: one line for GPULOAD_SOFT_TOOLS=help, with its options */
	const char *const *keys;     /* of its options; ends with NULL.  The caller of create() refuses the others */
	/** Create the observer.
	 *
	 * @memory  borrowed; exists as long as the process
	 * @out     belongs to the tool, as long as the process exists; on failure nothing is left, no file either
	 * Errors   GPUL_EINVAL an option is wrong; GPUL_ENOMEM; GPUL_ESYS a file
	 * Threads  one thread, in cuInit */
	gpul_status (*create)(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err);
	/* Undo create(), because another tool could not be created: remove the files that it has opened.  NULL: it has opened none. */
	void (*discard)(struct observer *o);
	/* Print and write what is left, such as a summary; NULL: nothing is.  No kernel runs. */
	void (*finish)(struct observer *o);
	/* Called instead of finish() if the process has to end at once, although kernels run: hooks may be called at the same time, and
	 * later.  NULL: what the tool has seen is lost. */
	void (*stop)(struct observer *o);
};

/* ---- options.c: for create() ---------------------------------------------------------------------------------- */

/* The value of an option; NULL: it was not given. */
const char *gpul_tool_option(const struct tool_options *o, const char *key);
/* A number of at least `least`; *out is untouched if the option was not given.  Errors: GPUL_EINVAL. */
gpul_status gpul_tool_number(const struct tool_options *o, const char *tool, const char *key, uint64_t least, uint64_t *out, gpul_error *err);

/* ---- output.c: for create() and discard() ----------------------------------------------------------------------- */

/* Open a file to write; "-": stdout.  NULL: errno has the cause. */
FILE *gpul_tool_open_file(const char *path);
/* Close a file of gpul_tool_open_file() and remove it; pipes and devices stay.  NULL, stdout and stderr are left alone. */
void gpul_tool_discard_file(FILE *to, const char *path);

/* ---- report.c ------------------------------------------------------------------------------------------------- */

/* Append all reports to a file instead of printing them on stderr: before the first one.  Errors: GPUL_ESYS. */
gpul_status gpul_tool_reports_to(const char *path, gpul_error *err);
/* Report an error of a kernel on stderr, or to that file, at once: "gpuload memcheck: TEXT"; further lines of TEXT are indented.  Counted; after
 * REPORTED_MOST of a tool they are only counted.  Any thread may call. */
enum { REPORTED_MOST = 100 };
void gpul_tool_report(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print a line that is no error, such as a file's name: "gpuload trace: TEXT". */
void gpul_tool_say(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The number of errors that a tool has reported; NULL: all tools. */
unsigned gpul_tool_n_reported(const char *tool);
/* Hooks, or for hooks, of a tool that calls gpul_tool_sum_up(). */
void gpul_tool_launch_begins(struct observer *o, gpul_exec_launch *l);
void gpul_tool_launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault);
/* Print "gpuload memcheck: no errors", or their number, or that no kernel ran, or that one did not run to its end: for finish(). */
void gpul_tool_sum_up(const char *tool);

/* ---- finding.c: an error is reported once, and counted ------------------------------------------------------------ */

/* What makes two findings the same one: for example an instruction and the kind of its error; number: of its program, because
 * another program may have instructions at the same addresses later. */
struct finding_key { const void *what[2]; uint64_t number; };
enum { FINDING_SLOTS = 256 };
/* All zeros but the lock: { .lock = PTHREAD_MUTEX_INITIALIZER }. */
struct tool_findings {
	pthread_mutex_t lock;
	struct tool_finding *slot[FINDING_SLOTS], *oldest, *newest;
};

/* True: the finding is known, and was counted.  Otherwise the caller makes its text, and calls gpul_finding_new(). */
bool gpul_finding_known(struct tool_findings *f, const struct finding_key *key);
/* Add a finding.  True: the caller reports it; false: one with the same number and text was reported, and this one is counted
 * for it, or there is no memory. */
bool gpul_finding_new(struct tool_findings *f, const struct finding_key *key, const char *text);
/* Print "TEXT: N times" for each finding that was found more than once; times: what to print behind the number. */
void gpul_findings_say_counts(struct tool_findings *f, const char *tool, const char *times);

/* ---- text.c ----------------------------------------------------------------------------------------------------- */

/* "lanes 0-15,20", "lane 3": the lanes of a mask.  Returns buf. */
const char *gpul_tool_lanes(uint32_t lanes, char *buf, size_t bytes);

#endif
