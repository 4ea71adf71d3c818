/* ls_paths.c — lists each file in a folder or in a package for gpuload ls.
 *
 * Many files in a folder have no device code; they are not mentioned.  Without an option that selects or orders kernels, each
 * file is listed in one line. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/lib/message.h"
#include "cli/ls/ls.h"
#include "loader/image/package/package.h"
#include "loader/image/source.h"

enum { HEAD_BYTES = 4096 };

/* ---- packages ---------------------------------------------------------------------- */

struct package {
	struct ls *ls;
	ls_lister *list;
	const char *path;
};

static void report(struct ls *ls, const char *path, const gpul_error *why)
{
	ls->failed = true;
	if (strncmp(why->text, path, strlen(path)) == 0)
		cli_message("ls", "%s", why->text);
	else
		cli_message("ls", "%s: %s", path, why->text);
}

static gpul_status list_member(const char *name, const void *bytes, size_t n_bytes, const gpul_error *failed, void *context,
			       gpul_error *err)
{
	struct package *p = context;
	gpul_source *source = NULL;
	gpul_error why = { 0 };
	gpul_status st;
	char *path;

	if (asprintf(&path, "%s/%s", p->path, name) < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a path");
	if (failed) {
		report(p->ls, path, failed);
		free(path);
		return GPUL_OK;
	}
	st = gpul_source_of(bytes, n_bytes, path, &source, &why);
	if (!st)
		st = p->list(p->ls, source, &why);
	if (st)
		report(p->ls, path, &why);
	gpul_source_close(source);
	free(path);
	return ferror(stdout) ? gpul_fail(err, st, why.native, "%s", why.text) : GPUL_OK;
}

/* Report that no file has device code or, with --match, a kernel that matches. */
static void report_none(struct ls *ls, const char *path)
{
	if (ls->n_matched || ls->failed)
		return;
	ls->failed = true;
	if (ls_selects_kernels(ls) && ls->n_files)
		ls_report_no_match(ls, path);
	else
		cli_message("ls", "%s: no device code found in its files", path);
}

gpul_status ls_package(struct ls *ls, gpul_source *source, ls_lister *list, gpul_error *err)
{
	struct package p = { ls, list, gpul_source_name(source) };
	bool inside = ls->many;
	size_t n;
	const void *bytes = gpul_source_bytes(source, &n);
	gpul_status st;

	ls->many = true;
	if (!inside)
		ls->n_matched = ls->n_files = 0;
	st = gpul_package_visit(bytes, n, p.path, list_member, &p, err);
	ls->many = inside;
	if (!st && !inside)
		report_none(ls, p.path);
	return st;
}

/* ---- folders ----------------------------------------------------------------------- */

/* Read the start of a file, and decide whether ls can list it. */
static bool may_list(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	unsigned char head[HEAD_BYTES];
	ssize_t n;

	if (fd < 0)
		return errno != ENOENT; /* ls opens the file again later, and then reports the error */
	n = read(fd, head, sizeof head);
	close(fd);
	return n > 0 && (gpul_may_contain_code(head, (size_t)n, path) || gpul_is_package(head, (size_t)n));
}

static int by_path(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void list_entry(struct ls *ls, ls_lister *list, const FTSENT *e)
{
	gpul_source *source = NULL;
	gpul_error why = { 0 };
	gpul_status st = GPUL_OK;

	if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
		st = gpul_fail(&why, GPUL_ESYS, e->fts_errno, "%s: %s", e->fts_path, strerror(e->fts_errno));
	else if (e->fts_info == FTS_F && S_ISREG(e->fts_statp->st_mode) && may_list(e->fts_path))
		st = gpul_source_open(e->fts_path, &source, &why);
	if (!st && source)
		st = list(ls, source, &why);
	if (st)
		report(ls, e->fts_path, &why);
	gpul_source_close(source);
}

gpul_status ls_folder(struct ls *ls, const char *path, ls_lister *list, gpul_error *err)
{
	char *const paths[] = { (char *)(uintptr_t)path, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_path);
	FTSENT *e;

	if (!walk)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	ls->many = true;
	ls->n_matched = ls->n_files = 0;
	while ((e = fts_read(walk)) && !ferror(stdout))
		list_entry(ls, list, e);
	ls->many = false;
	report_none(ls, path);
	fts_close(walk);
	return GPUL_OK;
}
