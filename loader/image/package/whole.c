/* whole.c — decompresses a file that is one gzip or zstd stream into memory. */
#include <limits.h>
#include <stdlib.h>

#include "loader/image/package/package_internal.h"

#if GPUL_HAVE_ZLIB
#include <zlib.h>
#endif
#if GPUL_HAVE_ZSTD
#include <zstd.h>
#endif

#define FIRST_BYTES ((uint64_t)1 << 20)

typedef struct grown {     /* the decompressed bytes so far */
	unsigned char *at; /* owned */
	uint64_t n, room;
} grown;

/* Double the buffer when it is full. */
static gpul_status grow(const gpul_package *p, grown *g, gpul_error *err)
{
	uint64_t room = g->room ? 2 * g->room : FIRST_BYTES;
	unsigned char *at;

	if (g->n < g->room)
		return GPUL_OK;
	if (room > GPUL_PACKAGE_LIMIT)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s has more than %llu bytes when it is decompressed: decompress the file first",
				 p->name, (unsigned long long)GPUL_PACKAGE_LIMIT);
	at = realloc(g->at, room);
	if (!at)
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory for %llu decompressed bytes", p->name, (unsigned long long)room);
	g->at = at;
	g->room = room;
	return GPUL_OK;
}

static gpul_status damaged(const gpul_package *p, uint64_t at, gpul_error *err)
{
	return gpul_fail(err, GPUL_EFORMAT, at > INT_MAX ? INT_MAX : (int)at, "%s: at byte %llu: the compressed data is damaged or cut off",
			 p->name, (unsigned long long)at);
}

static gpul_status finish(gpul_status st, grown *g, unsigned char **out, uint64_t *n_out)
{
	if (st) {
		free(g->at);
		return st;
	}
	*out = g->at;
	*n_out = g->n;
	return GPUL_OK;
}

#if GPUL_HAVE_ZLIB
gpul_status gpul_unpack_gzip(const gpul_package *p, unsigned char **out, uint64_t *n_out, gpul_error *err)
{
	z_stream z = { 0 };
	uint64_t at = 0;
	grown g = { 0 };
	gpul_status st = GPUL_OK;
	int rc = Z_OK;

	if (inflateInit2(&z, 15 + 16) != Z_OK) /* the largest window, in gzip format */
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory to decompress it", p->name);
	while (!st && rc != Z_STREAM_END) {
		uint64_t left = p->n_bytes - at, room;

		st = grow(p, &g, err);
		if (st)
			break;
		room = g.room - g.n;
		z.next_in = (unsigned char *)(uintptr_t)(p->bytes + at);
		z.avail_in = left > INT_MAX ? INT_MAX : (uInt)left;
		z.next_out = g.at + g.n;
		z.avail_out = room > INT_MAX ? INT_MAX : (uInt)room;
		rc = inflate(&z, Z_NO_FLUSH);
		at = (uint64_t)(z.next_in - p->bytes);
		g.n = (uint64_t)(z.next_out - g.at);
		if (rc == Z_STREAM_END && at < p->n_bytes && p->bytes[at] == 0x1f) /* another gzip stream follows */
			rc = inflateReset(&z);
		else if (rc != Z_OK && rc != Z_STREAM_END)
			st = damaged(p, at, err);
	}
	inflateEnd(&z);
	return finish(st, &g, out, n_out);
}
#else
gpul_status gpul_unpack_gzip(const gpul_package *p, unsigned char **out, uint64_t *n_out, gpul_error *err)
{
	(void)out;
	(void)n_out;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "%s is compressed by gzip, but this gpuload was built without zlib: decompress the file first", p->name);
}
#endif

#if GPUL_HAVE_ZSTD
gpul_status gpul_unpack_zstd(const gpul_package *p, unsigned char **out, uint64_t *n_out, gpul_error *err)
{
	ZSTD_DStream *zstd = ZSTD_createDStream();
	ZSTD_inBuffer in = { p->bytes, p->n_bytes, 0 };
	grown g = { 0 };
	gpul_status st = zstd ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory to decompress it", p->name);
	size_t more = 1;

	while (!st && (in.pos < in.size || more)) {
		ZSTD_outBuffer to;

		st = grow(p, &g, err);
		if (st)
			break;
		to = (ZSTD_outBuffer){ g.at, g.room, g.n };
		more = ZSTD_decompressStream(zstd, &to, &in);
		if (ZSTD_isError(more) || (more && in.pos == in.size && to.pos == g.n))
			st = damaged(p, in.pos, err);
		g.n = to.pos;
	}
	ZSTD_freeDStream(zstd);
	return finish(st, &g, out, n_out);
}
#else
gpul_status gpul_unpack_zstd(const gpul_package *p, unsigned char **out, uint64_t *n_out, gpul_error *err)
{
	(void)out;
	(void)n_out;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "%s is compressed by zstd, but this gpuload was built without libzstd: decompress the file first", p->name);
}
#endif
