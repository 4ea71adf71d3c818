/* zip.c — reads the members of a zip file, such as a wheel, by the central directory at its end.
 *
 *     local header, content │ local header, content │ ... │ central directory │ end record
 *
 * Numbers are little-endian.  Files of more than 4 GiB (zip64) have a second end record, and 64-bit numbers in an extra
 * field of a directory entry. */
#include <limits.h>
#include <stdlib.h>

#include "loader/image/package/package_internal.h"

#if GPUL_HAVE_ZLIB
#include <zlib.h>
#endif

enum { LOCAL_BYTES = 30, ENTRY_BYTES = 46, END_BYTES = 22, END64_BYTES = 56, LOCATOR_BYTES = 20, LONGEST_COMMENT = 65535 };
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1 /* a bit of the flags */, EXTRA_ZIP64 = 1 };

typedef struct member {
	char *name; /* owned */
	unsigned flags, method;
	uint32_t crc;
	uint64_t packed_bytes, bytes, local_at;
	const unsigned char *packed;
} member;

static uint64_t read_number(const unsigned char *at, unsigned n_bytes)
{
	uint64_t n = 0;

	while (n_bytes)
		n = n << 8 | at[--n_bytes];
	return n;
}

static gpul_status damaged(const gpul_package *p, uint64_t at, const char *what, gpul_error *err)
{
	return gpul_fail(err, GPUL_EFORMAT, at > INT_MAX ? INT_MAX : (int)at, "%s: at byte %llu: %s", p->name, (unsigned long long)at,
			 what);
}

/* ---- the directory ----------------------------------------------------------------------------- */

/* Find the position of the end record; UINT64_MAX: none. */
static uint64_t find_end(const gpul_package *p)
{
	uint64_t at = p->n_bytes < END_BYTES ? 0 : p->n_bytes - END_BYTES;
	uint64_t first = at > LONGEST_COMMENT ? at - LONGEST_COMMENT : 0;

	for (; p->n_bytes >= END_BYTES; at--) {
		if (memcmp(p->bytes + at, "PK\5\6", 4) == 0)
			return at;
		if (at == first)
			break;
	}
	return UINT64_MAX;
}

static gpul_status find_directory(const gpul_package *p, uint64_t *at, uint64_t *n, gpul_error *err)
{
	uint64_t end = find_end(p), end64;

	if (end == UINT64_MAX)
		return damaged(p, p->n_bytes, "the zip file has no end record: it is cut off", err);
	*n = read_number(p->bytes + end + 10, 2);
	*at = read_number(p->bytes + end + 16, 4);
	if ((*n == UINT16_MAX || *at == UINT32_MAX) && end >= LOCATOR_BYTES && memcmp(p->bytes + end - LOCATOR_BYTES, "PK\6\7", 4) == 0) {
		end64 = read_number(p->bytes + end - LOCATOR_BYTES + 8, 8);
		if (p->n_bytes < END64_BYTES || end64 > p->n_bytes - END64_BYTES || memcmp(p->bytes + end64, "PK\6\6", 4) != 0)
			return damaged(p, end, "the zip file's 64-bit end record is missing", err);
		*n = read_number(p->bytes + end64 + 32, 8);
		*at = read_number(p->bytes + end64 + 48, 8);
	}
	return GPUL_OK;
}

/* Read sizes and position that do not fit into 32 bits from the extra field. */
static void read_extra(const unsigned char *at, uint64_t n, member *m)
{
	while (n >= 4) {
		uint64_t id = read_number(at, 2), bytes = read_number(at + 2, 2), used = 0;
		uint64_t *wide[] = { &m->bytes, &m->packed_bytes, &m->local_at };

		if (bytes > n - 4)
			return;
		for (size_t i = 0; id == EXTRA_ZIP64 && i < 3; i++) {
			if (*wide[i] != UINT32_MAX || used + 8 > bytes)
				continue;
			*wide[i] = read_number(at + 4 + used, 8);
			used += 8;
		}
		at += 4 + bytes;
		n -= 4 + bytes;
	}
}

/* Read the entry at *at and move to the next one; m->name is allocated. */
static gpul_status read_entry(const gpul_package *p, uint64_t *at, member *m, gpul_error *err)
{
	const unsigned char *e = p->bytes + *at;
	uint64_t left = *at < p->n_bytes ? p->n_bytes - *at : 0, n_name, n_extra, n_comment, skip;

	if (left < ENTRY_BYTES || memcmp(e, "PK\1\2", 4) != 0)
		return damaged(p, *at, "there is no valid entry of the zip file's directory", err);
	*m = (member){ .flags = (unsigned)read_number(e + 8, 2),
		       .method = (unsigned)read_number(e + 10, 2),
		       .crc = (uint32_t)read_number(e + 16, 4),
		       .packed_bytes = read_number(e + 20, 4),
		       .bytes = read_number(e + 24, 4),
		       .local_at = read_number(e + 42, 4) };
	n_name = read_number(e + 28, 2);
	n_extra = read_number(e + 30, 2);
	n_comment = read_number(e + 32, 2);
	if (left - ENTRY_BYTES < n_name + n_extra + n_comment)
		return damaged(p, *at, "an entry of the zip file's directory is cut off", err);
	read_extra(e + ENTRY_BYTES + n_name, n_extra, m);
	if (p->n_bytes < LOCAL_BYTES || m->local_at > p->n_bytes - LOCAL_BYTES || memcmp(p->bytes + m->local_at, "PK\3\4", 4) != 0)
		return damaged(p, *at, "an entry of the zip file's directory has no member", err);
	skip = LOCAL_BYTES + read_number(p->bytes + m->local_at + 26, 2) + read_number(p->bytes + m->local_at + 28, 2);
	left = p->n_bytes - m->local_at;
	if (skip > left || m->packed_bytes > left - skip)
		return damaged(p, m->local_at, "a member of the zip file is cut off", err);
	m->packed = p->bytes + m->local_at + skip;
	m->name = strndup((const char *)e + ENTRY_BYTES, n_name);
	*at += ENTRY_BYTES + n_name + n_extra + n_comment;
	return m->name ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory for a name", p->name);
}

/* ---- a member ---------------------------------------------------------------------------------- */

#if GPUL_HAVE_ZLIB
/* Inflate at most n bytes; return the number of bytes written. */
static uint64_t inflate_start(const member *m, unsigned char *out, uint64_t n)
{
	z_stream z = { 0 };
	uint64_t at = 0, done = 0;
	int rc = Z_OK;

	if (inflateInit2(&z, -15) != Z_OK) /* raw deflate data, with the largest window */
		return 0;
	while (rc == Z_OK && done < n) {
		uint64_t left = m->packed_bytes - at, room = n - done;

		z.next_in = (unsigned char *)(uintptr_t)(m->packed + at);
		z.avail_in = left > INT_MAX ? INT_MAX : (uInt)left;
		z.next_out = out + done;
		z.avail_out = room > INT_MAX ? INT_MAX : (uInt)room;
		rc = inflate(&z, Z_NO_FLUSH);
		at = (uint64_t)(z.next_in - m->packed);
		done = (uint64_t)(z.next_out - out);
	}
	inflateEnd(&z);
	return done;
}

static bool is_right(const member *m, const unsigned char *bytes)
{
	return crc32_z(0, bytes, m->bytes) == m->crc;
}
#else
static uint64_t inflate_start(const member *m, unsigned char *out, uint64_t n)
{
	(void)m;
	(void)out;
	(void)n;
	return 0;
}

static bool is_right(const member *m, const unsigned char *bytes)
{
	(void)m;
	(void)bytes;
	return true;
}
#endif

static bool is_candidate(const member *m)
{
	unsigned char head[GPUL_PACKAGE_HEAD];
	uint64_t n = m->bytes < sizeof head ? m->bytes : sizeof head;

	if (n == 0 || (m->flags & ENCRYPTED))
		return false;
	if (m->method == STORED)
		return n <= m->packed_bytes && gpul_may_contain_code(m->packed, n, m->name);
	if (m->method != DEFLATED)
		return false;
	n = inflate_start(m, head, n);
	return n == 0 || gpul_may_contain_code(head, n, m->name); /* n is 0 if the data is damaged; the caller then reports the damage */
}

static gpul_status report_member(const gpul_package *p, const member *m, const char *what, gpul_error *err)
{
	gpul_error failed = { 0 };

	gpul_fail(&failed, GPUL_EFORMAT, 0, "%s", what);
	return p->visit(m->name, NULL, 0, &failed, p->context, err);
}

static gpul_status visit_member(const gpul_package *p, const member *m, gpul_error *err)
{
	unsigned char *out;
	gpul_status st;

	if (!is_candidate(m))
		return GPUL_OK;
	if (m->method == STORED && m->bytes == m->packed_bytes)
		return p->visit(m->name, m->packed, m->bytes, NULL, p->context, err);
	/* the ratio of deflate is at most 1032 to 1 */
	if (m->bytes > GPUL_PACKAGE_LIMIT || m->bytes / 1032 > m->packed_bytes)
		return report_member(p, m, "its compressed and uncompressed sizes cannot both be right", err);
	out = malloc(m->bytes + 1);
	if (!out)
		return report_member(p, m, "no memory to decompress it", err);
	out[m->bytes] = 0;
	st = inflate_start(m, out, m->bytes) == m->bytes && is_right(m, out) ? p->visit(m->name, out, m->bytes, NULL, p->context, err)
									     : report_member(p, m, "its compressed data is damaged", err);
	free(out);
	return st;
}

gpul_status gpul_zip_visit(const gpul_package *p, gpul_error *err)
{
	uint64_t at = 0, n = 0;
	gpul_status st = find_directory(p, &at, &n, err);

	if (!st && !GPUL_HAVE_ZLIB)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s is a zip file, but this gpuload was built without zlib: unpack the file first", p->name);
	for (uint64_t i = 0; i < n && !st; i++) {
		member m = { 0 };

		st = read_entry(p, &at, &m, err);
		if (!st)
			st = visit_member(p, &m, err);
		free(m.name);
	}
	return st;
}
