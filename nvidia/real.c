/* real.c — finds and opens NVIDIA's libraries; real.h describes the search. */
#include "nvidia/real.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/own_folder.h"

#ifndef GPUL_LIBDIR
#define GPUL_LIBDIR "/usr/local/lib/gpuload"
#endif

struct search {
	const char *variable, *wheel;
	const char *const *sub;
	const char *file;
	char own[PATH_MAX]; /* the folder of this library; "": unknown */
	bool (*visit)(const char *path, void *context);
	void *context;
};

/* ---- searching one folder or toolkit --------------------------------------------------------- */

static bool visit_file(const struct search *s, const char *path)
{
	char real[PATH_MAX];
	struct stat st;
	size_t own = strlen(s->own);

	if (!realpath(path, real) || stat(real, &st) || !S_ISREG(st.st_mode))
		return false;
	if (own && !strncmp(real, s->own, own) && real[own] == '/' && (!strchr(real + own + 1, '/') || !strncmp(real + own, "/bin/", 5)))
		return false; /* the file belongs to gpuload */
	return s->visit(real, s->context);
}

static bool visit_folder(const struct search *s, const char *folder)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", folder, s->file);

	return n > 0 && (size_t)n < sizeof path && visit_file(s, path);
}

/* Visit a toolkit: lib64/, lib/ or bin/ in `home`. */
static bool visit_toolkit(const struct search *s, const char *home)
{
	char path[PATH_MAX];

	for (const char *const *sub = s->sub; *sub; sub++) {
		int n = snprintf(path, sizeof path, "%s/%s", home, *sub);

		if (n > 0 && (size_t)n < sizeof path && visit_folder(s, path))
			return true;
	}
	return false;
}

/* Visit the wheels of a Python installation: site-packages/nvidia/cu13/lib, site-packages/nvidia/cuda_nvrtc/lib. */
static bool visit_wheels(const struct search *s, const char *site_packages)
{
	const char *const wheels[] = { "cu13", "cu12", s->wheel };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof wheels / sizeof *wheels; i++) {
		int n = snprintf(path, sizeof path, "%s/nvidia/%s", site_packages, wheels[i]);

		if (n > 0 && (size_t)n < sizeof path && visit_toolkit(s, path))
			return true;
	}
	return false;
}

/* ---- folders of Python packages ---------------------------------------------------------------- */

struct packages {
	const struct search *search;
	char last[PATH_MAX];
};

/* Called for each loaded object: if it belongs to a Python package, visit that package's wheels. */
static int visit_object(struct dl_phdr_info *info, size_t bytes, void *context)
{
	static const char *const marks[] = { "/site-packages/", "/dist-packages/" };
	struct packages *p = context;

	(void)bytes;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		const char *hit = info->dlpi_name ? strstr(info->dlpi_name, marks[i]) : NULL;
		size_t n = hit ? (size_t)(hit - info->dlpi_name) + strlen(marks[i]) - 1 : 0;

		if (!hit || n >= sizeof p->last || (!strncmp(p->last, info->dlpi_name, n) && !p->last[n]))
			continue;
		memcpy(p->last, info->dlpi_name, n);
		p->last[n] = '\0';
		if (visit_wheels(p->search, p->last))
			return 1;
	}
	return 0;
}

static bool visit_environment(const struct search *s, const char *prefix)
{
	char pattern[PATH_MAX];
	glob_t hits;
	bool done = false;

	if (!prefix || !*prefix || snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages", prefix) >= PATH_MAX ||
	    glob(pattern, 0, NULL, &hits))
		return false;
	for (size_t i = 0; i < hits.gl_pathc && !done; i++)
		done = visit_wheels(s, hits.gl_pathv[i]);
	globfree(&hits);
	return done;
}

static bool visit_python(const struct search *s)
{
	struct packages p = { .search = s };
	const char *site = secure_getenv("GPULOAD_SITE_PACKAGES"), *conda = secure_getenv("CONDA_PREFIX");

	return dl_iterate_phdr(visit_object, &p) || (site && *site && visit_wheels(s, site)) ||
	       visit_environment(s, secure_getenv("VIRTUAL_ENV")) || visit_environment(s, conda) ||
	       (conda && *conda && visit_toolkit(s, conda));
}

/* ---- LD_LIBRARY_PATH, and cuda-wheels in parent folders --------------------------------------- */

static bool visit_list(const struct search *s, const char *list)
{
	char folder[PATH_MAX];

	while (list && *list) {
		size_t n = strcspn(list, ":");

		if (n && n < sizeof folder) {
			memcpy(folder, list, n);
			folder[n] = '\0';
			if (visit_folder(s, folder))
				return true;
		}
		list += n + (list[n] == ':');
	}
	return false;
}

static bool visit_beside(const struct search *s)
{
	static const char *const places[] = { "/cuda-wheels", "/lib/gpuload/cuda-wheels" };
	char parent[PATH_MAX], path[2 * PATH_MAX];

	strcpy(parent, s->own);
	while (*parent) {
		for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
			snprintf(path, sizeof path, "%s%s", parent, places[i]);
			if (visit_toolkit(s, path))
				return true;
		}
		*strrchr(parent, '/') = '\0';
	}
	return false;
}

static bool visit_toolkits(const struct search *s)
{
	const char *const homes[] = { secure_getenv("CUDA_HOME"), secure_getenv("CUDA_PATH"), "/usr/local/cuda" };

	for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
		if (homes[i] && *homes[i] && visit_toolkit(s, homes[i]))
			return true;
	return false;
}

static bool visit_places(const struct search *s)
{
#ifdef __aarch64__
	static const char system[] = "/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:/usr/bin";
#else
	static const char system[] = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib:/usr/bin";
#endif
	const char *asked = secure_getenv(s->variable);

	if (asked && *asked)
		return visit_file(s, asked) || visit_folder(s, asked);
	return visit_python(s) || visit_toolkits(s) || visit_list(s, secure_getenv("LD_LIBRARY_PATH")) ||
	       visit_list(s, secure_getenv("PATH")) || visit_list(s, system) || visit_beside(s) ||
	       visit_toolkit(s, GPUL_LIBDIR "/cuda-wheels");
}

bool toolchain_search(const char *variable, const char *wheel, const char *const *sub, const char *const *files,
		      bool (*visit)(const char *path, void *context), void *context)
{
	struct search s = { .variable = variable, .wheel = wheel, .sub = sub, .visit = visit, .context = context };

	if (!gpul_own_folder(s.own, sizeof s.own))
		*s.own = '\0';
	for (; *files; files++) {
		s.file = *files;
		if (visit_places(&s))
			return true;
	}
	return false;
}

/* ---- opening a library ----------------------------------------------------------------------- */

struct found {
	void *handle;
	char *path;
};

/* All installations of gpuload export this mark, so that their libraries are not taken for NVIDIA's. */
__attribute__((visibility("default"))) extern const char gpuload_toolchain_mark;
const char gpuload_toolchain_mark = 1;

static bool open_file(const char *path, void *context)
{
	struct found *f = context;

	f->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (f->handle && dlsym(f->handle, "gpuload_toolchain_mark")) {
		dlclose(f->handle);
		f->handle = NULL;
	}
	if (f->handle)
		snprintf(f->path, TOOLCHAIN_PATH_BYTES, "%s", path);
	return f->handle;
}

/* Return the CUDA version in the name of this library: 12 for libnvrtc.so.12. */
static int own_version(const char *stem)
{
	const char *hit;
	Dl_info own;

	if (!dladdr(&gpuload_toolchain_mark, &own) || !own.dli_fname)
		return 13;
	hit = strstr(own.dli_fname, stem);
	return hit && !strcmp(hit + strlen(stem), ".12") ? 12 : 13;
}

static void open_once(toolchain_real *r)
{
	static const char *const sub[] = { "lib64", "lib", NULL };
	struct found f = { .path = r->path };
	int version = own_version(r->stem);
	char first[64], second[64];
	const char *const files[] = { first, second, NULL };

	snprintf(first, sizeof first, "%s.%d", r->stem, version);
	snprintf(second, sizeof second, "%s.%d", r->stem, version == 12 ? 13 : 12);
	if (!toolchain_search(r->variable, r->wheel, sub, files, open_file, &f)) {
		fprintf(stderr, "gpuload: NVIDIA's %s was not found: set %s to its path, or install it (pip install %s)\n", first,
			r->variable, r->package);
		return;
	}
	for (const toolchain_entry *e = r->entries; e->name; e++) {
		void *p = dlsym(f.handle, e->name);

		/* dlsym() returns a void *; memcpy turns it into a function pointer without a cast. */
		memcpy((char *)r->table + e->offset, &p, sizeof p);
	}
	if (r->opened)
		r->opened(f.handle, r->path);
}

bool toolchain_open(toolchain_real *real)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const toolchain_real
		*tried; /* only one is needed, because each library that contains this file opens only one NVIDIA library */

	pthread_mutex_lock(&lock);
	if (tried != real) {
		tried = real;
		open_once(real);
	}
	pthread_mutex_unlock(&lock);
	return *real->path;
}
