/* may_contain_code.c — decides whether a file in a package or folder may contain device code. */
#include "loader/image/package/package.h"
#include "loader/image/recognise.h"

bool gpul_may_contain_code(const void *bytes, size_t n_bytes, const char *name)
{
	switch (gpul_recognise(bytes, n_bytes, name).kind) {
	case GPUL_CONTENT_PTX:
	case GPUL_CONTENT_CUBIN:
	case GPUL_CONTENT_HOST_ELF:
	case GPUL_CONTENT_ARCHIVE:
	case GPUL_CONTENT_FATBIN:
		return true;
	default:
		return false;
	}
}
