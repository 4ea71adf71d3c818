/* archive.c — reads ar archives, as `ar` and `nvcc -lib` write them, regular or thin.
 *
 *     !<arch>\n                                 or !<thin>\n: members are separate files
 *     ┌ name[16] date[12] user[6] group[6] mode[8] bytes[10] `\n ┐ ┌ content, padded to even ┐ ...
 *
 *     name  vec.o/       GNU              /      symbol table      //   long names
 *           /17          GNU: byte 17 of the long names            /SYM64/
 *           #1/20        BSD: the first 20 bytes of the content    __.SYMDEF
 *           vec.o        BSD, padded by blanks */
#include <ar.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loader/image/images_internal.h"

typedef struct archive {
	gpul_span rest;  /* the unread bytes, from the header of the next member */
	gpul_span names; /* GNU's table of long names; at == NULL: not read yet */
	bool thin;
} archive;

typedef struct member {
	const unsigned char *header;
	char name[256];    /* longer names are truncated; for messages, and to open members of thin archives */
	bool has_content;  /* false: the member is a table of the archive */
	gpul_span content; /* in a thin archive, at is NULL, and n is the member's length */
} member;

/* Parse a decimal number padded with blanks, the form of all numbers in a header. */
static bool read_number(const char *text, size_t n_text, uint64_t *out)
{
	size_t i = 0;

	*out = 0;
	for (; i < n_text && text[i] >= '0' && text[i] <= '9'; i++)
		*out = *out * 10 + (uint64_t)(text[i] - '0');
	if (i == 0)
		return false;
	while (i < n_text && text[i] == ' ')
		i++;
	return i == n_text;
}

static void set_member_name(member *m, const void *text, size_t n)
{
	snprintf(m->name, sizeof m->name, "%.*s", (int)(n < sizeof m->name ? n : sizeof m->name - 1), (const char *)text);
}

/* Read a long name of GNU: "/17" refers to byte 17 of the long names; the name there ends with "/\n". */
static bool read_long_name(const archive *a, uint64_t at, member *m)
{
	const unsigned char *text, *end;

	if (!a->names.at || at >= a->names.n)
		return false;
	text = a->names.at + at;
	end = memchr(text, '\n', a->names.n - (size_t)at);
	if (!end)
		return false;
	if (end > text && end[-1] == '/')
		end--;
	set_member_name(m, text, (size_t)(end - text));
	return true;
}

/* Read a long name of BSD: "#1/20" means that the first 20 bytes of the content are the name. */
static bool read_bsd_name(uint64_t n, member *m)
{
	if (n > m->content.n)
		return false;
	set_member_name(m, m->content.at, strnlen((const char *)m->content.at, (size_t)n));
	m->content = (gpul_span){ m->content.at + n, m->content.n - (size_t)n };
	return true;
}

static size_t name_length(const char name[16])
{
	const char *slash = memchr(name, '/', 16);
	size_t n = slash ? (size_t)(slash - name) : 16;

	while (n && name[n - 1] == ' ')
		n--;
	return n;
}

/* Read a member's name, and whether it is one of the archive's tables; false: the name is invalid. */
static bool read_name(archive *a, const char name[16], member *m)
{
	uint64_t n;

	m->has_content = false;
	if (memcmp(name, "//              ", 16) == 0) {
		a->names = m->content;
		return true;
	}
	if (memcmp(name, "/               ", 16) == 0 || memcmp(name, "/SYM64/         ", 16) == 0)
		return true;
	m->has_content = true;
	if (memcmp(name, "#1/", 3) == 0) {
		if (a->thin || !read_number(name + 3, 13, &n) || !read_bsd_name(n, m))
			return false;
	} else if (name[0] == '/') {
		/* In thin archives, another slash follows the number of a member whose base name has 15 characters. */
		if (!read_number(name + 1, name[15] == '/' ? 14 : 15, &n) || !read_long_name(a, n, m))
			return false;
	} else {
		set_member_name(m, name, name_length(name));
	}
	if (strncmp(m->name, "__.SYMDEF", 9) == 0)
		m->has_content = false;
	return m->name[0] != '\0';
}

static gpul_status read_next_header(const gpul_walk *w, archive *a, member *m)
{
	struct ar_hdr h;
	uint64_t n;
	bool inside;

	m->header = a->rest.at;
	if (a->rest.n < sizeof h)
		return gpul_walk_fail(w, m->header,
				      "the archive is cut off in a member's header: %zu of "
				      "%zu bytes" GPUL_AGAIN,
				      a->rest.n, sizeof h);
	memcpy(&h, a->rest.at, sizeof h);
	if (memcmp(h.ar_fmag, ARFMAG, 2) != 0 || !read_number(h.ar_size, sizeof h.ar_size, &n))
		return gpul_walk_fail(w, m->header, "the archive is damaged: there is no valid member header at its byte %zu" GPUL_AGAIN,
				      (size_t)(m->header - w->file.at));
	a->rest = (gpul_span){ a->rest.at + sizeof h, a->rest.n - sizeof h };
	/* A thin archive contains its own tables, but not the contents of its members. */
	inside = !a->thin || (h.ar_name[0] == '/' && (h.ar_name[1] == '/' || h.ar_name[1] == ' ' || h.ar_name[1] == 'S'));
	if (inside && n > a->rest.n)
		return gpul_walk_fail(w, m->header,
				      "the member at byte %zu of the archive claims %llu bytes, but only %zu bytes are left: the file "
				      "is cut off or damaged" GPUL_AGAIN,
				      (size_t)(m->header - w->file.at), (unsigned long long)n, a->rest.n);
	m->content = (gpul_span){ inside ? a->rest.at : NULL, (size_t)n };
	if (inside) {
		size_t step = (size_t)n + (n % 2 && n < a->rest.n);

		a->rest = (gpul_span){ a->rest.at + step, a->rest.n - step };
	}
	if (!read_name(a, h.ar_name, m))
		return gpul_walk_fail(w, m->header,
				      "the member at byte %zu of the archive has an invalid name: the file is damaged" GPUL_AGAIN,
				      (size_t)(m->header - w->file.at));
	return GPUL_OK;
}

/* Open a member of a thin archive: its name is relative to the archive's folder. */
static gpul_status open_thin_member(const gpul_walk *w, const char *name, gpul_file *out)
{
	const char *slash = strrchr(w->here.file, '/');
	int folder = slash && name[0] != '/' ? (int)(slash + 1 - w->here.file) : 0;
	gpul_error why = { 0 };
	char path[4096];
	gpul_status st;

	if (snprintf(path, sizeof path, "%.*s%s", folder, w->here.file, name) >= (int)sizeof path)
		return gpul_walk_fail(w, NULL, "the path of a thin archive's member is too long");
	st = gpul_file_open_regular(path, out, &why);
	if (st)
		return gpul_fail(w->err, st, why.native,
				 "%s is a thin archive, whose members are separate "
				 "files: %s",
				 w->here.file, why.text);
	return GPUL_OK;
}

static gpul_status read_thin_member(const gpul_walk *w, const member *m)
{
	gpul_walk inner = *w;
	gpul_file *file;
	gpul_status st;

	if (!w->source.bytes)
		return gpul_walk_fail(w, m->header, "cannot read a thin archive from memory, because its members are separate files");
	file = gpul_array_push(&w->list->more);
	if (!file)
		return gpul_walk_no_memory(w);
	st = open_thin_member(w, m->name, file);
	if (st)
		return st;
	inner.source = *file;
	inner.file = (gpul_span){ file->bytes, file->n_bytes };
	return w->read_member(&inner, inner.file);
}

/* Read a member's content.  If an archive inner.a is a member of another archive, its member x.o is named "inner.a(x.o)". */
static gpul_status read_member(const gpul_walk *w, const member *m, bool thin)
{
	gpul_walk inner = *w;
	char name[512];

	snprintf(name, sizeof name, "%s%s%s%s", w->here.member ? w->here.member : "", w->here.member ? "(" : "", m->name,
		 w->here.member ? ")" : "");
	inner.depth++;
	inner.here.member = name;
	return thin ? read_thin_member(&inner, m) : w->read_member(&inner, m->content);
}

gpul_status gpul_walk_archive(const gpul_walk *w, gpul_span s)
{
	archive a = { .rest = { s.at + SARMAG, s.n - SARMAG }, .thin = memcmp(s.at, ARMAG, SARMAG) != 0 };

	if (a.thin && w->depth) /* refused: a thin archive refers to files, so it could refer to itself, and reading would not end */
		return gpul_walk_fail(w, s.at,
				      "cannot read a thin archive inside another archive: give the thin archive as a file of its own");
	while (a.rest.n) {
		member m = { 0 };
		gpul_status st = read_next_header(w, &a, &m);

		if (st) /* without a valid header, the next one cannot be found */
			return gpul_walk_skip_damage(w, st);
		if (!m.has_content || m.content.n == 0)
			continue;
		st = gpul_walk_skip_damage(w, read_member(w, &m, !m.content.at));
		if (st)
			return st;
	}
	return GPUL_OK;
}
