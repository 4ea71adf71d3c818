/* tar.c — reads the members of a tar file.
 *
 *     0      100       124       136       156   157        257     263      345       500  512
 *     │ name │ mode... │ size    │ time... │type │ link     │ ustar │ ...    │ prefix  │    │ content, padded to 512 │ ...
 *
 * A name of more than 100 bytes is in a separate member, before the member that it names: of type L (GNU), or of type x
 * (pax: "LENGTH path=NAME\n"). */
#include <limits.h>
#include <stdlib.h>

#include "loader/image/package/package_internal.h"

enum { BLOCK = 512, NAME_AT = 0, SIZE_AT = 124, TYPE_AT = 156, MAGIC_AT = 257, PREFIX_AT = 345 };
enum { NAME_BYTES = 100, SIZE_BYTES = 12, PREFIX_BYTES = 155, LONGEST_NAME = 4096 };

typedef struct reader {
	const gpul_package *p;
	uint64_t at;             /* position of the next header */
	char name[LONGEST_NAME]; /* name of the next member, from a header of type L or x; "": none */
	uint64_t bytes;          /* size of the next member, from a header of type x; UINT64_MAX: none */
} reader;

bool gpul_is_tar(const unsigned char *bytes, uint64_t n_bytes)
{
	return n_bytes >= BLOCK && memcmp(bytes + MAGIC_AT, "ustar", 5) == 0;
}

static gpul_status damaged(const reader *r, const char *what, gpul_error *err)
{
	return gpul_fail(err, GPUL_EFORMAT, r->at > INT_MAX ? INT_MAX : (int)r->at, "%s: at byte %llu: %s", r->p->name,
			 (unsigned long long)r->at, what);
}

/* Read a size: an octal number or, if the first bit is set, a binary number.  UINT64_MAX: invalid. */
static uint64_t read_size(const unsigned char *at)
{
	uint64_t n = 0;
	size_t i = 0;

	if (at[0] & 0x80) {
		for (i = 4; i < SIZE_BYTES; i++)
			n = n << 8 | at[i];
		return n;
	}
	while (i < SIZE_BYTES && at[i] == ' ')
		i++;
	for (; i < SIZE_BYTES && at[i] >= '0' && at[i] <= '7'; i++)
		n = n << 3 | (unsigned)(at[i] - '0');
	return i < SIZE_BYTES && at[i] != 0 && at[i] != ' ' ? UINT64_MAX : n;
}

static void keep_name(reader *r, const char *text, uint64_t n)
{
	n = n < LONGEST_NAME ? n : LONGEST_NAME - 1;
	n = strnlen(text, n);
	memcpy(r->name, text, n);
	r->name[n] = 0;
}

/* Read the records "LENGTH KEY=VALUE\n" of a pax header. */
static void read_pax(reader *r, const char *text, uint64_t n)
{
	while (n) {
		const char *key = text;
		uint64_t bytes = 0, left;

		for (; key < text + n && *key >= '0' && *key <= '9' && bytes < n; key++)
			bytes = bytes * 10 + (uint64_t)(*key - '0');
		if (bytes == 0 || bytes > n || key >= text + bytes || *key++ != ' ')
			return;
		left = bytes - (uint64_t)(key - text);
		if (left > 5 && memcmp(key, "path=", 5) == 0)
			keep_name(r, key + 5, left - 6);
		if (left > 6 && memcmp(key, "size=", 5) == 0) {
			r->bytes = 0;
			for (const char *c = key + 5; *c >= '0' && *c <= '9' && r->bytes < GPUL_PACKAGE_LIMIT; c++)
				r->bytes = r->bytes * 10 + (uint64_t)(*c - '0');
		}
		text += bytes;
		n -= bytes;
	}
}

static void read_short_name(reader *r, const unsigned char *h)
{
	const char *name = (const char *)h + NAME_AT, *prefix = (const char *)h + PREFIX_AT;
	size_t n = 0;

	if (h[MAGIC_AT + 5] == 0 && *prefix) { /* "ustar\0" is the POSIX format, in which a name may have a prefix */
		n = strnlen(prefix, PREFIX_BYTES);
		memcpy(r->name, prefix, n);
		r->name[n++] = '/';
	}
	memcpy(r->name + n, name, strnlen(name, NAME_BYTES));
	r->name[n + strnlen(name, NAME_BYTES)] = 0;
}

static gpul_status visit_member(reader *r, const unsigned char *h, uint64_t n, gpul_error *err)
{
	const unsigned char *content = h + BLOCK;
	uint64_t head = n < GPUL_PACKAGE_HEAD ? n : GPUL_PACKAGE_HEAD;
	gpul_status st = GPUL_OK;

	if (h[TYPE_AT] == 'L') {
		keep_name(r, (const char *)content, n);
		return GPUL_OK;
	}
	if (h[TYPE_AT] == 'x') {
		read_pax(r, (const char *)content, n);
		return GPUL_OK;
	}
	if (!*r->name)
		read_short_name(r, h);
	if ((h[TYPE_AT] == '0' || h[TYPE_AT] == 0) && n && gpul_may_contain_code(content, head, r->name))
		st = r->p->visit(r->name, content, n, NULL, r->p->context, err);
	*r->name = 0;
	r->bytes = UINT64_MAX;
	return st;
}

gpul_status gpul_tar_visit(const gpul_package *p, gpul_error *err)
{
	reader *r = calloc(1, sizeof *r);
	gpul_status st = r ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory to read it", p->name);

	if (r)
		*r = (reader){ .p = p, .bytes = UINT64_MAX };
	while (!st && p->n_bytes - r->at >= BLOCK && p->bytes[r->at]) { /* a block of zeros ends the file */
		const unsigned char *h = p->bytes + r->at;
		bool extends = h[TYPE_AT] == 'L' || h[TYPE_AT] == 'x';
		uint64_t n = !extends && r->bytes != UINT64_MAX ? r->bytes : read_size(h + SIZE_AT);

		if (!gpul_is_tar(h, p->n_bytes - r->at) || n == UINT64_MAX)
			st = damaged(r, "there is no valid member header", err);
		else if (n > p->n_bytes - r->at - BLOCK)
			st = damaged(r, "the tar file is cut off", err);
		else
			st = visit_member(r, h, n, err);
		n = BLOCK + (n + BLOCK - 1) / BLOCK * BLOCK;
		if (!st)
			r->at = n < p->n_bytes - r->at ? r->at + n : p->n_bytes;
	}
	if (!st && p->n_bytes > r->at && p->n_bytes - r->at < BLOCK && p->bytes[r->at])
		st = damaged(r, "the tar file is cut off", err);
	free(r);
	return st;
}
