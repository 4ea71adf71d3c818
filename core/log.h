/* log.h — what the library has to say beside errors: a level, a module, one line.
 *
 * Errors are returned, never logged.  By default only notices are shown, on stderr: there is one in
 * the whole library, "no GPU: using the software driver".  GPULOAD_LOG=off|notice|info|debug chooses
 * how much; a program that has its own log takes the lines with gpul_log_to(). */
#ifndef GPULOAD_CORE_LOG_H
#define GPULOAD_CORE_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_log_level {
	GPUL_LOG_OFF,
	GPUL_LOG_NOTICE,  /* what the user should know once */
	GPUL_LOG_INFO,    /* which choice was made, and why */
	GPUL_LOG_DEBUG,   /* each step */
} gpul_log_level;

/* line has no newline and lives until the call returns. */
typedef void gpul_log_sink(void *user, gpul_log_level level, const char *module,
			   const char *line);

/* Say one line, printf-like.  Costs a load and a compare when the level is not shown.  Any thread. */
void gpul_log(gpul_log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Log each line of a text, a compiler's log say, that is not empty; NULL is fine. */
void gpul_log_lines(gpul_log_level level, const char *module, const char *text);

/* True when a line of this level would be shown: to skip work that only feeds the log. */
bool gpul_log_shows(gpul_log_level level);

/* Show lines up to this level, whatever GPULOAD_LOG says. */
void gpul_log_set_level(gpul_log_level level);

/* Send lines to sink(user, ...) from now on; NULL: to stderr.  Call before threads are started. */
void gpul_log_to(gpul_log_sink *sink, void *user);

#ifdef __cplusplus
}
#endif

#endif
