/* image_filter.c — parse --sm and --kind, and compare images with them. */
#include "cli/lib/options/image_filter.h"

#include <stdlib.h>
#include <string.h>

static gpul_status parse_sm(const char *text, struct image_filter *out, gpul_error *err)
{
	const char *number = !strncmp(text, "sm_", 3) ? text + 3 : !strncmp(text, "compute_", 8) ? text + 8 : text;
	size_t n = strspn(number, "0123456789");

	if (n < 2 || n > 3 || (number[n] && (!strchr("af", number[n]) || number[n + 1])))
		return gpul_fail(err, GPUL_EINVAL, 0, "--sm must be an architecture such as 90 or sm_90a, not '%s'", text);
	out->sm = (uint16_t)strtoul(number, NULL, 10);
	out->suffix = number[n];
	return GPUL_OK;
}

gpul_status image_filter_parse(const char *sm, const char *kind, const char *match, struct image_filter *out, gpul_error *err)
{
	static const gpul_image_kind kinds[] = { GPUL_IMAGE_PTX, GPUL_IMAGE_CUBIN, GPUL_IMAGE_LTO };

	*out = (struct image_filter){ .match = match };
	for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kind, gpul_image_kind_name(kinds[i])))
			out->kind = kinds[i];
	if (kind && !out->kind)
		return gpul_fail(err, GPUL_EINVAL, 0, "--kind must be ptx, cubin or lto, not '%s'", kind);
	return sm ? parse_sm(sm, out, err) : GPUL_OK;
}

bool image_filter_takes(const struct image_filter *f, const gpul_image *image)
{
	return (!f->sm || f->sm == image->sm) && (!f->suffix || f->suffix == image->suffix) && (!f->kind || f->kind == image->kind);
}
