/* log.h — writes log lines: a level, a module, one line of text.
 *
 * Errors are returned, not logged.  By default only notices are printed, on stderr:
 *
 *     the library           no NVIDIA driver; using the software driver
 *     the software driver   blocks wait for blocks that cannot start; a barrier number above 15; machine code
 *     nvidia/redirect       a CUDA runtime in a program, whose calls cannot be redirected
 *
 * The software driver and the runtime also log explanations of a program's mistakes, such as a launch with too many threads.
 * GPULOAD_LOG=off|notice|info|debug sets the level; gpul_log_to() sends the lines to a program's own log. */
#ifndef GPULOAD_CORE_LOG_H
#define GPULOAD_CORE_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_log_level {
	GPUL_LOG_OFF,
	GPUL_LOG_NOTICE, /* information that the user should see once */
	GPUL_LOG_INFO,   /* decisions and their reasons */
	GPUL_LOG_DEBUG,  /* every step of the work */
} gpul_log_level;

/* Receives a log line without its newline; the text is valid during the call only. */
typedef void gpul_log_sink(void *user, gpul_log_level level, const char *module, const char *line);

/* Log one line, printf-like.  A line that is not shown costs one load and one comparison.  Any thread. */
void gpul_log(gpul_log_level level, const char *module, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Log each non-empty line of a text, for example a compiler's log; accepts NULL. */
void gpul_log_lines(gpul_log_level level, const char *module, const char *text);

/* Log a mistake of the program that uses the library.  With GPULOAD_LOG=info every mistake is logged; otherwise each line once, as
 * a notice, and at most 10 lines per process, because some programs make mistakes on purpose.  The last line says how to see the
 * others. */
void gpul_log_mistake(const char *module, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True if the next mistake will be logged, provided that its line is new. */
bool gpul_log_shows_mistakes(void);

/* True if lines of this level are shown; otherwise the caller need not compose them. */
bool gpul_log_shows(gpul_log_level level);

/* Show lines up to this level, whatever GPULOAD_LOG says. */
void gpul_log_set_level(gpul_log_level level);

/* Send lines to sink(user, ...) from now on; NULL: to stderr.  Call before threads are started. */
void gpul_log_to(gpul_log_sink *sink, void *user);

#ifdef __cplusplus
}
#endif

#endif
