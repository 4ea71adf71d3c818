/* package.c — recognises a package, and chooses its reader. */
#include "loader/image/package/package.h"

#include <stdlib.h>

#include "loader/image/package/package_internal.h"

enum packing { NO_PACKAGE, ZIP, TAR, GZIP, ZSTD, XZ, BZIP2 };

static enum packing find_packing(const unsigned char *bytes, uint64_t n)
{
	static const struct {
		const char *magic;
		size_t n;
		enum packing packing;
	} rows[] = {
		{ "PK\3\4", 4, ZIP },
		{ "PK\5\6", 4, ZIP }, /* a zip file without members */
		{ "\x1f\x8b\x08", 3, GZIP },
		{ "\x28\xb5\x2f\xfd", 4, ZSTD },
		{ "\xfd"
		  "7zXZ",
		  6, XZ },
		{ "BZh", 3, BZIP2 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (n >= rows[i].n && memcmp(bytes, rows[i].magic, rows[i].n) == 0)
			return rows[i].packing;
	return gpul_is_tar(bytes, n) ? TAR : NO_PACKAGE;
}

bool gpul_is_package(const void *bytes, size_t n_bytes)
{
	return find_packing(bytes, n_bytes) != NO_PACKAGE;
}

/* Visit the tar file in a compressed stream. */
static gpul_status visit_compressed(const gpul_package *p, enum packing packing, gpul_error *err)
{
	unsigned char *whole = NULL;
	gpul_package tar = *p;
	gpul_status st = packing == GZIP ? gpul_unpack_gzip(p, &whole, &tar.n_bytes, err) : gpul_unpack_zstd(p, &whole, &tar.n_bytes, err);

	if (st)
		return st;
	tar.bytes = whole;
	st = gpul_is_tar(whole, tar.n_bytes)
		     ? gpul_tar_visit(&tar, err)
		     : gpul_fail(err, GPUL_EFORMAT, 0, "%s is a compressed file, but not a compressed tar file: decompress the file first",
				 p->name);
	free(whole);
	return st;
}

gpul_status gpul_package_visit(const void *bytes, size_t n_bytes, const char *name, gpul_package_visitor *visit, void *context,
			       gpul_error *err)
{
	const gpul_package p = { bytes, n_bytes, name, visit, context };
	enum packing packing = find_packing(bytes, n_bytes);

	switch (packing) {
	case ZIP:
		return gpul_zip_visit(&p, err);
	case TAR:
		return gpul_tar_visit(&p, err);
	case GZIP:
	case ZSTD:
		return visit_compressed(&p, packing, err);
	case XZ:
	case BZIP2:
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s is compressed by %s, which is not supported: decompress the file first",
				 name, packing == XZ ? "xz" : "bzip2");
	case NO_PACKAGE:
		break;
	}
	return gpul_fail(err, GPUL_EFORMAT, 0, "%s is not a zip or tar file", name);
}
