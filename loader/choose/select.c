/* select.c — gives each image a verdict for a device.
 *
 * Code for sm_90a runs on one architecture only; code for sm_100f runs on a family (10.0 and 10.3): the same major version, from its
 * minor version up. Source: CUDA C++ Programming Guide, Feature Set Compiler Targets. LTO code, which nvJitLink compiles to machine
 * code, ranks between machine code and PTX; for a driver that runs PTX only, it ranks after PTX, which needs no linker. */
#include "loader/choose/choose_internal.h"

#include <stdlib.h>

/* Return the verdict on an image for a GPU of this compute capability. */
static gpul_verdict fits_device(const gpul_image *image, uint32_t cc)
{
	bool same_major = image->sm / 10 == cc / 10;

	if (image->suffix == 'a' && image->sm != cc)
		return GPUL_LEFT_SPECIFIC;
	if (image->suffix == 'f' && (!same_major || image->sm > cc))
		return GPUL_LEFT_SPECIFIC;
	if (image->kind == GPUL_IMAGE_CUBIN && !same_major)
		return GPUL_LEFT_OTHER_MAJOR;
	return image->sm > cc ? GPUL_LEFT_NEWER : GPUL_TAKEN;
}

static gpul_verdict fits_target(const gpul_image *image, const gpul_target *target)
{
	if ((target->only_sm && image->sm != target->only_sm) || (target->only_suffix && image->suffix != target->only_suffix) ||
	    (target->only_kind && (uint32_t)image->kind != target->only_kind))
		return GPUL_LEFT_NOT_ASKED;
	if (target->machine_code)
		return fits_device(image, target->cc);
	return image->kind == GPUL_IMAGE_CUBIN ? GPUL_LEFT_MACHINE_CODE : GPUL_TAKEN;
}

static int rank_of_kind(gpul_image_kind kind, bool machine_code)
{
	switch (kind) {
	case GPUL_IMAGE_CUBIN:
		return 3;
	case GPUL_IMAGE_PTX:
		return machine_code ? 1 : 2;
	case GPUL_IMAGE_LTO:
		return machine_code ? 2 : 1;
	}
	return 0;
}

/* Prefer the highest architecture that is not above the device.  Only an interpreter can also run PTX for newer architectures:
 * among these, prefer the lowest, because it is the least likely to use new features. */
static int compare_sm(const gpul_image *a, const gpul_image *b, uint32_t cc)
{
	if ((a->sm <= cc) != (b->sm <= cc))
		return a->sm <= cc ? 1 : -1;
	if (a->sm == b->sm)
		return 0;
	return (a->sm > b->sm) == (a->sm <= cc) ? 1 : -1;
}

static int rank_of_suffix(char suffix)
{
	return suffix == 'a' ? 2 : suffix == 'f' ? 1 : 0;
}

int gpul_select_order(const gpul_image *a, const gpul_image *b, const gpul_target *target)
{
	int by_kind = rank_of_kind(a->kind, target->machine_code) - rank_of_kind(b->kind, target->machine_code);
	int by_sm = compare_sm(a, b, target->cc);
	int by_suffix = rank_of_suffix(a->suffix) - rank_of_suffix(b->suffix);

	if (by_kind || by_sm)
		return by_kind ? by_kind : by_sm;
	/* an interpreter may not support the architecture-specific features that "a" code uses */
	return target->machine_code ? by_suffix : -by_suffix;
}

/* Compare image i, which suits the target, with the best image of its unit (fatbin) so far. */
static void update_best(const gpul_image *images, size_t i, size_t *best, const gpul_target *target, gpul_verdict *verdicts)
{
	int c = *best == SIZE_MAX ? 1 : gpul_select_order(&images[i], &images[*best], target);

	if (c > 0 || (c == 0 && images[i].kind == GPUL_IMAGE_PTX)) {
		if (*best != SIZE_MAX)
			verdicts[*best] = GPUL_LEFT_FOR_BETTER;
		*best = i;
	} else {
		verdicts[i] = GPUL_LEFT_FOR_BETTER;
	}
}

void gpul_select_among(const gpul_image *images, size_t n, const gpul_target *target, gpul_verdict *verdicts)
{
	size_t best = SIZE_MAX;

	/* the images of a unit are adjacent */
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || images[i].unit != images[i - 1].unit)
			best = SIZE_MAX;
		verdicts[i] = fits_target(&images[i], target);
		if (verdicts[i] == GPUL_TAKEN)
			update_best(images, i, &best, target, verdicts);
	}
}

void gpul_select(const gpul_images *images, const gpul_target *target, gpul_verdict *verdicts)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);

	gpul_select_among(all, n, target, verdicts);
}

const char *gpul_verdict_text(gpul_verdict v)
{
	switch (v) {
	case GPUL_TAKEN:
		return "taken";
	case GPUL_LEFT_FOR_BETTER:
		return "another image of the same program suits this device better";
	case GPUL_LEFT_OTHER_MAJOR:
		return "machine code for another generation of GPUs";
	case GPUL_LEFT_NEWER:
		return "for a newer GPU than this device";
	case GPUL_LEFT_SPECIFIC:
		return "for another architecture or family only (suffix a or f)";
	case GPUL_LEFT_MACHINE_CODE:
		return "machine code: this driver runs PTX only";
	case GPUL_LEFT_NOT_ASKED:
		return "excluded by --sm or --kind";
	case GPUL_LEFT_DAMAGED:
		return "damaged: it cannot be read";
	}
	return "?";
}
