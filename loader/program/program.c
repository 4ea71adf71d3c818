/* program.c — runs nvcc, and keeps its result in the cache.
 *
 * The caller has read the source, perhaps from a pipe, but nvcc opens its input several times. So nvcc gets a copy in a temporary folder.
 * The copy starts with a #line directive that names the source, and the source's folder is an include path, for #include "...".
 *
 * The cache key of a program does not contain its headers, because only nvcc knows them. So the result is stored with a list of
 * its source files from `nvcc -MD`, each with size and time; if one of them has changed, the result is invalid. */
#include "loader/program/program.h"

#include <errno.h>
#include <stdint.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file/file.h"
#include "core/log.h"
#include "core/cache/cache.h"

extern char **environ;

struct tools {
	char nvcc[GPUL_PROGRAM_PATH_BYTES], runtime[GPUL_PROGRAM_PATH_BYTES], libcuda[GPUL_PROGRAM_PATH_BYTES];
};

struct source {
	const char *text, *path;
};

/* The files of a compilation, in a temporary folder; all paths owned. */
struct work {
	char *folder, *source, *exe, *rule;
};

static gpul_status find_tools(struct tools *t, gpul_error *err)
{
	if (!gpul_program_find_nvcc(t->nvcc))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "nvcc was not found: install the CUDA toolkit, or set GPULOAD_NVCC");
	if (!gpul_program_find_runtime(t->runtime))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "libgpuload-rt.a is neither beside this program nor installed, and GPULOAD_RT is not set");
	if (!gpul_program_find_libcuda(t->nvcc, t->libcuda))
		*t->libcuda = '\0';
	return GPUL_OK;
}

/* ---- the cache ----------------------------------------------------------------------------- */

/* Append "SIZE TIME PATH\n"; false: stat() failed. */
static bool print_file(FILE *to, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	fprintf(to, "%jd %jd.%09ld %s\n", (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, path);
	return true;
}

/* List the files in a make rule "program: a.cu \<newline> b.h ...", except the copy of the source.  The caller frees the list;
 * NULL: out of memory, or a file is missing. */
static char *list_files(char *rule, const char *copy)
{
	char *text = NULL, *colon = strstr(rule, ": ");
	size_t n_bytes;
	FILE *to = colon ? open_memstream(&text, &n_bytes) : NULL;
	bool ok = to != NULL;

	for (char *at = colon ? colon + 2 : NULL; ok && *at;) {
		char word[GPUL_PROGRAM_PATH_BYTES];
		size_t n = 0;

		at += strspn(at, " \t\r\n");
		for (; *at && !strchr(" \t\r\n", *at) && n + 1 < sizeof word; at++) {
			if (at[0] == '\\' && at[1] == ' ') /* an escaped space in a file name */
				at++;
			word[n++] = *at;
		}
		word[n] = '\0';
		ok = n == 0 || !strcmp(word, "\\") || !strcmp(word, copy) || print_file(to, word);
	}
	if (to && (fclose(to) || !ok)) {
		free(text);
		text = NULL;
	}
	return text;
}

/* True if no file of a list has changed. */
static bool files_are_unchanged(const char *list)
{
	bool same = *list != '\0';

	while (same && *list) {
		size_t n = strcspn(list, "\n"), now_bytes;
		char *line = strndup(list, n), *now = NULL, *path = line ? strchr(line, ' ') : NULL;
		FILE *to = open_memstream(&now, &now_bytes);

		path = path ? strchr(path + 1, ' ') : NULL;
		same = to && path && print_file(to, path + 1);
		same = to && fclose(to) == 0 && same && now_bytes == n + 1 && !memcmp(now, list, n);
		free(now);
		free(line);
		list += n + (list[n] == '\n');
	}
	return same;
}

static gpul_cache_key *create_key(const struct source *source, const char *const *options, uint32_t cc, const struct tools *t)
{
	gpul_cache_key *key = gpul_cache_key_create("program");
	char *folder = getcwd(NULL, 0);

	gpul_cache_key_add_text(key, folder);
	free(folder);
	gpul_cache_key_add_text(key, source->path);
	gpul_cache_key_add_text(key, source->text);
	gpul_cache_key_add(key, &cc, sizeof cc);
	gpul_cache_key_add_text(key, secure_getenv("NVCC_PREPEND_FLAGS"));
	gpul_cache_key_add_text(key, secure_getenv("NVCC_APPEND_FLAGS"));
	for (size_t i = 0; options && options[i]; i++)
		gpul_cache_key_add_text(key, options[i]);
	if (key && gpul_cache_key_add_tool(key, t->nvcc) && gpul_cache_key_add_tool(key, t->runtime))
		return key;
	gpul_cache_key_destroy(key);
	return NULL;
}

/* ---- nvcc ---------------------------------------------------------------------------------- */

/* Run nvcc, with its stdout redirected to stderr, because stdout is for the program that will run. */
static gpul_status run_nvcc(const char *const *argv, gpul_error *err)
{
	posix_spawn_file_actions_t actions;
	int status = 0, e;
	pid_t pid;

	e = posix_spawn_file_actions_init(&actions);
	if (e)
		return gpul_fail(err, GPUL_ESYS, e, "cannot start %s: %s", argv[0], strerror(e));
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	e = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (e)
		return gpul_fail(err, GPUL_ESYS, e, "cannot start %s: %s", argv[0], strerror(e));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return gpul_fail(err, GPUL_ESYS, errno, "cannot wait for nvcc: %s", strerror(errno));
	if (status)
		return gpul_fail(err, GPUL_EFORMAT, status, "the program was not built: the messages of nvcc are above");
	return GPUL_OK;
}

/* Write a #line directive that names the source, and then the source. */
static gpul_status write_copy(const struct source *source, const char *copy, gpul_error *err)
{
	FILE *to = fopen(copy, "we");

	if (!to)
		return gpul_fail(err, GPUL_ESYS, errno, "%s cannot be created: %s", copy, strerror(errno));
	fputs("#line 1 \"", to);
	for (const char *c = source->path; *c; c++)
		fputc(strchr("\"\\\n", *c) ? '_' : *c, to); /* ptxas cannot read these characters in a file name, even if they are quoted */
	fprintf(to, "\"\n%s", source->text);
	if (fclose(to))
		return gpul_fail(err, GPUL_ESYS, errno, "%s cannot be written: %s", copy, strerror(errno));
	return GPUL_OK;
}

/* Return the folder of the source as an option of gcc, quoted for nvcc and its shell.  The caller frees it; NULL: out of memory. */
static char *quote_folder(const char *path)
{
	const char *slash = strrchr(path, '/'), *end = slash && strncmp(path, "/dev/", 5) && strncmp(path, "/proc/", 6) ? slash + 1 : path;
	char *text = NULL;
	size_t n_bytes;
	FILE *to = open_memstream(&text, &n_bytes);

	if (!to)
		return NULL;
	fputs(*path == '/' && end > path ? "\"" : "\"./", to);
	for (; path < end; path++) {
		if (strchr("\\\"$`,", *path))
			fputc('\\', to);
		fputc(*path, to);
	}
	fputc('"', to);
	return fclose(to) ? NULL : text;
}

static gpul_status compile(const struct source *source, const char *const *options, uint32_t cc, const struct tools *t,
			   const struct work *w, gpul_error *err)
{
	char arch[64], *folder = quote_folder(source->path);
	const char *const first[] = { t->nvcc,    "-cudart",     "none",       "-lineinfo", "-Wno-deprecated-gpu-targets",
				      "-gencode", arch,          "-Xcompiler", "-iquote",   "-Xcompiler",
				      folder,     "-MD",         "-MF",        w->rule,     "-o",
				      w->exe,     w->source,     t->runtime,   "-ldl",      "-lpthread",
				      "-Xlinker", "--as-needed", t->libcuda };
	size_t n_first = sizeof first / sizeof *first - (*t->libcuda ? 0 : 3), n = 0;
	const char **argv;
	gpul_status st = write_copy(source, w->source, err);

	while (options && options[n])
		n++;
	argv = calloc(n_first + n + 1, sizeof *argv);
	if (!argv || !folder)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the options of nvcc");
	if (!st) {
		snprintf(arch, sizeof arch, "arch=compute_%u,code=compute_%u", cc, cc);
		memcpy(argv, first, n_first * sizeof *first);
		for (size_t i = 0; i < n; i++)
			argv[n_first + i] = options[i];
		gpul_log(GPUL_LOG_INFO, "loader", "building %s with %s", source->path, t->nvcc);
		st = run_nvcc(argv, err);
	}
	free(argv);
	free(folder);
	return st;
}

/* Read the program and, for the cache, the list of its files. */
static gpul_status fetch(const struct work *w, gpul_cache_key *key, void **out, size_t *out_bytes, gpul_error *err)
{
	gpul_file program, text;
	char *list = NULL;
	gpul_status st = gpul_file_open(w->exe, &program, err);

	if (st)
		return st;
	*out = malloc(program.n_bytes);
	if (*out) {
		memcpy(*out, program.bytes, program.n_bytes);
		*out_bytes = program.n_bytes;
	} else {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a program of %zu bytes", program.n_bytes);
	}
	if (!st && key && !gpul_file_open(w->rule, &text, NULL)) {
		char *copy = strndup(text.bytes, text.n_bytes);

		list = copy ? list_files(copy, w->source) : NULL;
		free(copy);
		gpul_file_close(&text);
	}
	if (list)
		gpul_cache_store_image(key, *out, *out_bytes, list);
	free(list);
	gpul_file_close(&program);
	return st;
}

static gpul_status build(const struct source *source, const char *const *options, uint32_t cc, const struct tools *t, gpul_cache_key *key,
			 void **out, size_t *out_bytes, gpul_error *err)
{
	const char *temporary = secure_getenv("TMPDIR");
	struct work w = { 0 };
	gpul_status st;

	if (asprintf(&w.folder, "%s/gpuload-XXXXXX", temporary && *temporary ? temporary : "/tmp") < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a path");
	if (!mkdtemp(w.folder)) {
		st = gpul_fail(err, GPUL_ESYS, errno, "cannot create %s: %s", w.folder, strerror(errno));
		goto free_folder;
	}
	if (asprintf(&w.exe, "%s/program", w.folder) < 0 || asprintf(&w.rule, "%s/program.d", w.folder) < 0 ||
	    asprintf(&w.source, "%s/program.cu", w.folder) < 0) {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a path");
		goto remove_folder;
	}
	st = compile(source, options, cc, t, &w, err);
	if (!st)
		st = fetch(&w, key, out, out_bytes, err);
	unlink(w.exe);
	unlink(w.rule);
	unlink(w.source);
remove_folder:
	rmdir(w.folder);
free_folder:
	free(w.exe);
	free(w.rule);
	free(w.source);
	free(w.folder);
	return st;
}

gpul_status gpul_program_build(const char *text, const char *path, const char *const *options, uint32_t cc, bool no_cache, void **out,
			       size_t *out_bytes, gpul_error *err)
{
	const struct source source = { text, path };
	struct tools tools;
	gpul_cache_key *key;
	char *list = NULL;
	gpul_status st = find_tools(&tools, err);

	if (st)
		return st;
	key = no_cache ? NULL : create_key(&source, options, cc, &tools);
	if (!key || !gpul_cache_find_image(key, out, out_bytes, &list) || !files_are_unchanged(list)) {
		if (list)
			free(*out);
		st = build(&source, options, cc, &tools, key, out, out_bytes, err);
	}
	free(list);
	gpul_cache_key_destroy(key);
	return st;
}
