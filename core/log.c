/* log.c — print log lines, or send them to a sink. */
#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1 };  /* GPULOAD_LOG has not been read yet */

static _Atomic int shown_level = UNKNOWN;
static gpul_log_sink *log_sink;
static void *log_user;

static int level_from_environment(void)
{
	static const char *const names[] = { "off", "notice", "info", "debug" };
	const char *text = secure_getenv("GPULOAD_LOG");

	for (int i = 0; text && i < 4; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	return GPUL_LOG_NOTICE;  /* an unknown name is ignored, because logging must not fail */
}

bool gpul_log_shows(gpul_log_level level)
{
	int shown = atomic_load_explicit(&shown_level, memory_order_relaxed);

	if (shown == UNKNOWN) {
		int from_env = level_from_environment();

		/* Several threads may store the level at once: they store the same value, and a level set by
		 * gpul_log_set_level() stays. */
		if (!atomic_compare_exchange_strong(&shown_level, &shown, from_env))
			from_env = shown;
		shown = from_env;
	}
	return level != GPUL_LOG_OFF && (int)level <= shown;
}

void gpul_log_set_level(gpul_log_level level)
{
	atomic_store(&shown_level, (int)level);
}

void gpul_log_to(gpul_log_sink *sink, void *user)
{
	log_sink = sink;
	log_user = user;
}

void gpul_log(gpul_log_level level, const char *module, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!gpul_log_shows(level))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (log_sink)
		log_sink(log_user, level, module, line);
	else if (level == GPUL_LOG_NOTICE)
		fprintf(stderr, "gpuload: %s\n", line);
	else
		fprintf(stderr, "gpuload %s: %s\n", module, line);
}

void gpul_log_lines(gpul_log_level level, const char *module, const char *text)
{
	while (text && *text) {
		int n = (int)strcspn(text, "\n");

		if (n)
			gpul_log(level, module, "%.*s", n, text);
		text += n + (text[n] == '\n');
	}
}
