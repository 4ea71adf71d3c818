/* test_select.c — the verdicts on images, and the selected image, for many lists of images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/choose/choose_internal.h"

enum { MAX_IMAGES = 16 };

/* Parse a list of images such as "sm_90a compute_80 lto_90 | sm_75"; a bar separates units (fatbins). */
static size_t parse_images(const char *text, gpul_image out[MAX_IMAGES])
{
	size_t n = 0;
	uint32_t unit = 0;
	char copy[200], *save = NULL;

	snprintf(copy, sizeof copy, "%s", text);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		const char *digits = w + strcspn(w, "0123456789");
		char *end;

		if (*w == '|') {
			unit++;
			continue;
		}
		assert_true(n < MAX_IMAGES);
		out[n] = (gpul_image){ .kind = *w == 's' ? GPUL_IMAGE_CUBIN : *w == 'l' ? GPUL_IMAGE_LTO : GPUL_IMAGE_PTX, .unit = unit };
		out[n].sm = (uint16_t)strtoul(digits, &end, 10);
		out[n++].suffix = *end;
	}
	return n;
}

/* Check the verdicts on a list of images.  `expected` has a letter for each image: T taken, b another image is
 * better, m other major version, n newer, s specific, c machine code, - excluded by the caller, d damaged. */
static void check_verdicts(const char *text, const gpul_target *target, const char *expected)
{
	static const char letters[] = "Tbmnsc-d";
	gpul_image images[MAX_IMAGES];
	gpul_verdict verdicts[MAX_IMAGES];
	char got[MAX_IMAGES + 1] = "";
	size_t n = parse_images(text, images);

	gpul_select_among(images, n, target, verdicts);
	for (size_t i = 0; i < n; i++)
		got[i] = letters[verdicts[i]];
	if (strcmp(got, expected))
		fail_msg("%s on %u: %s, expected %s", text, target->cc, got, expected);
}

static void selects_the_image_that_the_driver_of_a_gpu_would(void **state)
{
	static const struct {
		uint32_t cc;
		const char *images, *verdicts;
	} rows[] = {
		{ 90, "sm_75 sm_80 sm_90", "mmT" },
		{ 90, "sm_90 sm_90a", "bT" }, /* sm_90a is preferred, whatever the order */
		{ 90, "sm_90a sm_90", "Tb" },
		{ 90, "sm_90 sm_90", "Tb" },           /* of equal machine code the first is taken */
		{ 90, "compute_80 compute_80", "bT" }, /* of equal PTX the last is taken */
		{ 90, "compute_90a compute_90", "Tb" },
		{ 90, "sm_90 compute_90a", "Tb" }, /* machine code is preferred to any PTX */
		{ 90, "compute_70 compute_90 compute_80", "bTb" },
		{ 90, "compute_100 compute_75", "nT" },
		{ 90, "compute_100 sm_100", "nm" },
		{ 86, "sm_80 sm_86 sm_89", "bTn" },
		{ 87, "sm_80 sm_86 sm_89 compute_80", "bTnb" },
		{ 89, "sm_80 compute_89", "Tb" },
		{ 80, "sm_86 compute_75", "nT" },
		{ 100, "sm_90a compute_90a sm_100f", "ssT" },
		{ 103, "sm_100a sm_100f sm_100", "sTb" },
		{ 103, "sm_100f sm_103", "bT" },
		{ 100, "sm_103f compute_100", "sT" },
		{ 121, "sm_120f compute_120f", "Tb" },
		{ 121, "compute_120f compute_121", "bT" },
		{ 110, "compute_100f compute_100", "sT" },
		{ 90, "lto_90 compute_90", "Tb" },
		{ 90, "sm_90 lto_90", "Tb" },
		{ 90, "sm_90 | sm_90 compute_90 | compute_100", "TTbn" },
		{ 90, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_verdicts(rows[i].images, &(gpul_target){ .cc = rows[i].cc, .machine_code = true }, rows[i].verdicts);
}

static void selects_ptx_for_any_target_for_an_interpreter(void **state)
{
	static const struct {
		const char *images, *verdicts;
	} rows[] = {
		{ "sm_90 compute_75", "cT" },
		{ "compute_75 compute_90 compute_100", "bTb" },
		{ "compute_120 compute_100 compute_103", "bTb" },
		{ "compute_90a compute_90", "bT" },
		{ "compute_100a", "T" },
		{ "lto_90 compute_75", "bT" },
		{ "lto_90", "T" },
		{ "sm_90 sm_80", "cc" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_verdicts(rows[i].images, &(gpul_target){ .cc = 90 }, rows[i].verdicts);
}

static void rejects_images_that_the_caller_excludes(void **state)
{
	gpul_target t = { .cc = 90, .machine_code = true, .only_sm = 80 };

	(void)state;
	check_verdicts("sm_90 compute_80 compute_75", &t, "-T-");
	check_verdicts("sm_80 compute_90", &t, "m-"); /* an allowed image must still run on the device */
	t = (gpul_target){ .cc = 90, .machine_code = true, .only_sm = 90 };
	check_verdicts("sm_90 sm_90a compute_80", &t, "bT-");
	t.only_suffix = 'a';
	check_verdicts("sm_90 compute_90a sm_80", &t, "-T-");
	t = (gpul_target){ .cc = 90, .machine_code = true, .only_kind = GPUL_IMAGE_PTX };
	check_verdicts("sm_90 compute_90 compute_80", &t, "-Tb");
}

static void the_selection_does_not_depend_on_the_order(void **state)
{
	static const char *const words[] = { "sm_90a", "sm_90", "compute_90a", "compute_90", "compute_80", "sm_80", "compute_100" };
	const size_t n = sizeof words / sizeof *words;
	const gpul_target t = { .cc = 90, .machine_code = true };

	(void)state;
	for (size_t first = 0; first < n; first++)
		for (size_t step = 1; step < n; step++) {
			char text[200] = "";
			gpul_image images[MAX_IMAGES];
			gpul_verdict verdicts[MAX_IMAGES];

			for (size_t i = 0; i < n; i++) { /* n is prime, so each image occurs once */
				strcat(text, words[(first + i * step) % n]);
				strcat(text, " ");
			}
			gpul_select_among(images, parse_images(text, images), &t, verdicts);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(verdicts[i] == GPUL_TAKEN, images[i].kind == GPUL_IMAGE_CUBIN && images[i].suffix == 'a');
		}
}

static void every_verdict_has_a_text(void **state)
{
	(void)state;
	for (int v = GPUL_TAKEN; v <= GPUL_LEFT_DAMAGED; v++)
		assert_true(strlen(gpul_verdict_text((gpul_verdict)v)) > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selects_the_image_that_the_driver_of_a_gpu_would),
		cmocka_unit_test(selects_ptx_for_any_target_for_an_interpreter),
		cmocka_unit_test(rejects_images_that_the_caller_excludes),
		cmocka_unit_test(the_selection_does_not_depend_on_the_order),
		cmocka_unit_test(every_verdict_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
