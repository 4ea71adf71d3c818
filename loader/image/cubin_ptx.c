/* cubin_ptx.c — copies the PTX that ptxas stored in a cubin.
 *
 * With line information (nvcc -lineinfo, -G) ptxas stores the PTX that it compiled, for debuggers.  Each line ends with a NUL,
 * so lines that it leaves out (comments, .loc) stay empty lines:
 *
 *     .nv_debug_ptx_txt             PTX of a whole program
 *     .nv_debug_ptx_txt.<number>    PTX of one source file; nvlink collects the sections of all its inputs
 *
 * Observed in CUDA 13.0. */
#include <stdlib.h>
#include <string.h>

#include "loader/image/cubin_internal.h"
#include "loader/image/images.h"

static const char section_name[] = ".nv_debug_ptx_txt";

static char *copy_lines(const unsigned char *bytes, size_t n_bytes)
{
	char *text = malloc(n_bytes + 1);

	for (size_t i = 0; text && i < n_bytes; i++)
		text[i] = bytes[i] ? (char)bytes[i] : '\n';
	if (text)
		text[n_bytes] = '\0';
	return text;
}

gpul_status gpul_cubin_ptx(const void *bytes, size_t n_bytes, size_t index, char **text, size_t *text_bytes, gpul_error *err)
{
	gpul_cubin c;
	gpul_status st = gpul_cubin_open(bytes, n_bytes, (gpul_cubin_gap){ 0 }, &c, err);

	if (st)
		return st;
	for (uint32_t i = 1; i < c.n_sections; i++) {
		Elf64_Shdr s = gpul_cubin_section(&c, i);
		const unsigned char *lines;

		if (!gpul_cubin_is_named(&c, &s, section_name) || index-- > 0)
			continue;
		lines = gpul_cubin_bytes(&c, &s);
		if (!lines)
			return gpul_fail(err, GPUL_EFORMAT, (int)i, "section %u of the cubin, its PTX, is outside the image", i);
		*text = copy_lines(lines, s.sh_size);
		*text_bytes = s.sh_size;
		return *text ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes of PTX", (size_t)s.sh_size);
	}
	*text = NULL;
	*text_bytes = 0;
	return GPUL_OK;
}
