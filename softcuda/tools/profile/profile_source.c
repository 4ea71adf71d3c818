/* profile_source.c — reads lines of source files for reports. */
#include "softcuda/tools/profile/profile_internal.h"

#include <sys/stat.h>

enum { MOST_SOURCE_BYTES = 16 << 20 };

static struct source {
	struct source *next;
	char *path, *text; /* text is NULL if the file cannot be read; newlines in it are replaced by NUL */
	GPUL_ARRAY(const char *) lines;
} *sources;

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "re");
	struct stat at;
	char *text = NULL;
	size_t n;

	if (!f)
		return NULL;
	if (!fstat(fileno(f), &at) && S_ISREG(at.st_mode) && at.st_size < MOST_SOURCE_BYTES)
		text = malloc((size_t)at.st_size + 1);
	if (text) {
		n = fread(text, 1, (size_t)at.st_size, f);
		text[n] = '\0';
	}
	fclose(f);
	return text;
}

static void cut_lines(struct source *s)
{
	char *rest = s->text, *line;

	while (rest && (line = strsep(&rest, "\n"))) {
		const char **slot = gpul_array_push(&s->lines);

		if (!slot)
			return;
		*slot = line;
	}
}

/* Return the lines of a file.  No lock is needed, because only one thread writes reports. */
static struct source *source_of(const char *path)
{
	struct source *s = sources;

	while (s && strcmp(s->path, path) != 0)
		s = s->next;
	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s || !(s->path = strdup(path))) {
		free(s);
		return NULL;
	}
	s->text = read_text(path);
	cut_lines(s);
	s->next = sources;
	sources = s;
	return s;
}

const char *gpul_source_line(const char *path, uint32_t line)
{
	const struct source *s = source_of(path);

	return s && line && line <= s->lines.n ? s->lines.at[line - 1] : NULL;
}

uint32_t gpul_source_n_lines(const char *path)
{
	const struct source *s = source_of(path);

	return s ? (uint32_t)s->lines.n : 0;
}
