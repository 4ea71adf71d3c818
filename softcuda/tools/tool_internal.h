/* tool_internal.h — defines a tool: an observer of kernels with a name, options, and a report.
 *
 * A tool is a folder or a file here, and an entry in start/tools.c. Its create() makes an observer, whose hooks
 * (softcuda/exec/observer_internal.h) do the work. A tool reports errors with gpul_tool_report(). Files that it writes are
 * complete after finish(), which is called once, when no kernel runs any more: at process exit, or by gpuloadSoftFinishTools().
 *
 * In a process without tools, only gpul_tools_start() is called, once (start/start_internal.h). */
#ifndef GPULOAD_SOFTCUDA_TOOLS_TOOL_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_TOOL_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "softcuda/exec/observer_internal.h"
#include "softcuda/exec/shown_name_internal.h"

enum { MAX_TOOL_OPTIONS = 16 };

struct tool_options {
	unsigned n;
	/* an option of a tool; value is "" for an option without a value */
	struct tool_option {
		const char *key, *value;
	} option[MAX_TOOL_OPTIONS];
};

struct tool {
	const char *name, *summary; /* summary: one line that lists the options, for GPULOAD_SOFT_TOOLS=help */
	const char *const *keys; /* names of the tool's options, terminated by NULL; other options are refused before create() is called */
	/** Create the observer.
	 *
	 * @memory  borrowed; exists as long as the process
	 * @out owned by the tool until the process ends; on failure, everything that create() has done is undone, including files
	 * Errors GPUL_EINVAL an invalid option; GPUL_ENOMEM; GPUL_ESYS a file
	 * Threads  one thread, in cuInit */
	gpul_status (*create)(const struct tool_options *options, gpul_exec_memory *memory, struct observer **out, gpul_error *err);
	/* Undo create(), because another tool could not be created: remove the files that create() opened.  NULL: it opens no files. */
	void (*discard)(struct observer *o);
	/* Print or write the remaining output, such as a summary; no kernel is running.  NULL: the tool has no such output. */
	void (*finish)(struct observer *o);
	/* Called instead of finish() if the process must end while kernels run; hooks may still be called.  NULL: the output is lost. */
	void (*stop)(struct observer *o);
};

/* ---- options.c: for create() and discard() ---------------------------------------------------------------------------------- */

/* Return the value of an option; NULL: the option was not given. */
const char *gpul_tool_option(const struct tool_options *o, const char *key);
/* Parse a number of at least `least`; *out is untouched if the option was not given.  Errors: GPUL_EINVAL. */
gpul_status gpul_tool_number(const struct tool_options *o, const char *tool, const char *key, uint64_t least, uint64_t *out,
			     gpul_error *err);

/* Open a file for writing; "-": stdout.  Returns NULL on failure, with the cause in errno. */
FILE *gpul_tool_open_file(const char *path);
/* Close a file opened by gpul_tool_open_file() and remove it, unless it is a pipe or device.  Ignores NULL, stdout and stderr. */
void gpul_tool_discard_file(FILE *to, const char *path);

/* ---- tool_report.c ------------------------------------------------------------------------------------------------- */

/* Append all reports to a file instead of printing them on stderr; must be called before the first report.  Errors: GPUL_ESYS. */
gpul_status gpul_tool_reports_to(const char *path, gpul_error *err);
/* Report an error of a kernel immediately, on stderr or to the file of gpul_tool_reports_to(): "gpuload memcheck: TEXT"; further
 * lines of TEXT are indented. Errors after the first REPORTED_MOST of a tool are only counted. Any thread may call. */
enum { REPORTED_MOST = 100 };
void gpul_tool_report(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print information that is not an error, such as the name of a file, as "gpuload trace: TEXT". */
void gpul_tool_say(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Return the number of errors that a tool has reported; tool NULL: all tools together. */
unsigned gpul_tool_n_reported(const char *tool);
/* A tool that calls gpul_tool_sum_up() uses these two functions as its hooks, or calls them from its hooks. */
void gpul_tool_launch_begins(struct observer *o, gpul_exec_launch *l);
void gpul_tool_launch_ends(struct observer *o, gpul_exec_launch *l, const gpul_exec_fault *fault);
/* For finish(): print "gpuload memcheck: no errors", or the number of errors, or that no kernel ran, or that a kernel did not finish. */
void gpul_tool_sum_up(const char *tool);

/* Write a lane mask to buf as "lanes 0-15,20" or "lane 3".  Returns buf. */
const char *gpul_tool_lanes(uint32_t lanes, char *buf, size_t bytes);

/* ---- finding.c: reports each error once, and counts how often it occurs -------------------------------------------- */

/* Identifies a finding, for example by the instruction and the kind of error. number: id of the program that contains the
 * instruction, because a later program may have instructions at the same addresses. */
struct finding_key {
	const void *what[2];
	uint64_t number;
};
enum { FINDING_SLOTS = 256 };
/* Initialise with { .lock = PTHREAD_MUTEX_INITIALIZER }. */
struct tool_findings {
	pthread_mutex_t lock;
	struct tool_finding *slot[FINDING_SLOTS], *oldest, *newest;
};

/* Returns true, and counts the finding, if it has occurred before.  If not, the caller writes the text for gpul_finding_new(). */
bool gpul_finding_known(struct tool_findings *f, const struct finding_key *key);
/* Add a finding.  Returns true if the caller must report it; false if this number and text were reported before, or out of memory. */
bool gpul_finding_new(struct tool_findings *f, const struct finding_key *key, const char *text);
/* Print "TEXT: N times" for each finding that occurred more than once; `times` is the text after the number. */
void gpul_findings_say_counts(struct tool_findings *f, const char *tool, const char *times);

/* ---- tools, declared here because their own headers are private to their folders; start/tools.c lists them ------------ */

extern const struct tool gpul_debug_tool, gpul_profile_tool, gpul_racecheck_tool;

#endif
