/* log.c — prints log lines, or sends them to a sink. */
#include "core/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 512, MOST_MISTAKES = 10 };
/* the level is UNKNOWN until GPULOAD_LOG has been read */
enum { UNKNOWN = -1 };

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
	return GPUL_LOG_NOTICE; /* ignore an unknown level name, because logging must not fail */
}

bool gpul_log_shows(gpul_log_level level)
{
	int shown = atomic_load_explicit(&shown_level, memory_order_relaxed);

	if (shown == UNKNOWN) {
		int from_env = level_from_environment();

		/* Several threads may store the level at the same time, which is safe: they store the same value, and do not
		 * overwrite a level set by gpul_log_set_level(). */
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

static void show_line(gpul_log_level level, const char *module, const char *line)
{
	if (log_sink)
		log_sink(log_user, level, module, line);
	else if (level == GPUL_LOG_NOTICE)
		fprintf(stderr, "gpuload: %s\n", line);
	else
		fprintf(stderr, "gpuload %s: %s\n", module, line);
}

void gpul_log(gpul_log_level level, const char *module, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;

	if (!gpul_log_shows(level))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	show_line(level, module, line);
}

/* ---- mistakes of programs ------------------------------------------------------------------------------ */

static pthread_mutex_t mistakes_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t mistakes[MOST_MISTAKES]; /* hashes of the mistakes that have been logged */
static _Atomic unsigned n_mistakes;

bool gpul_log_shows_mistakes(void)
{
	return gpul_log_shows(GPUL_LOG_INFO) || (gpul_log_shows(GPUL_LOG_NOTICE) && atomic_load(&n_mistakes) <= MOST_MISTAKES);
}

static uint64_t hash_of(const char *line)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* the hash function FNV-1a */

	while (*line)
		h = (h ^ (unsigned char)*line++) * UINT64_C(0x100000001b3);
	return h;
}

/* Return true if a mistake must be logged: its line is new, and at most MOST_MISTAKES others have been logged.  *is_last: the
 * caller must show a notice that further mistakes are not logged, instead of the line. */
static bool is_new_mistake(const char *line, bool *is_last)
{
	const uint64_t h = hash_of(line);
	bool is_new;
	unsigned n;

	pthread_mutex_lock(&mistakes_lock);
	n = atomic_load(&n_mistakes);
	is_new = n <= MOST_MISTAKES;
	for (unsigned i = 0; i < n && i < MOST_MISTAKES; i++)
		is_new = is_new && mistakes[i] != h;
	*is_last = is_new && n == MOST_MISTAKES;
	if (is_new && n < MOST_MISTAKES)
		mistakes[n] = h;
	if (is_new)
		atomic_store(&n_mistakes, n + 1);
	pthread_mutex_unlock(&mistakes_lock);
	return is_new;
}

void gpul_log_mistake(const char *module, const char *fmt, ...)
{
	char line[LINE_BYTES];
	bool is_last = false;
	va_list ap;

	if (!gpul_log_shows_mistakes())
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (gpul_log_shows(GPUL_LOG_INFO))
		show_line(GPUL_LOG_INFO, module, line);
	else if (is_new_mistake(line, &is_last))
		show_line(GPUL_LOG_NOTICE, module,
			  is_last ? "further failed calls of this program are not explained; set GPULOAD_LOG=info to see the reason for "
				    "each failure"
				  : line);
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
