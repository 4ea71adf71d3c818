/* test_mangled.c — estimates of demangled lengths, compared with the demangler's results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/demangle.h"
#include "core/mangled_internal.h"

/* "_Z1f1aIiiES_IS0_S0_ES_IS1_S1_E...": both template arguments of each parameter are the previous parameter, so lengths double. */
static void make_bomb(char *name, size_t room, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = (size_t)snprintf(name, room, "_Z1f1aIiiE");

	for (int i = 0; i < levels; i++)
		n += (size_t)snprintf(name + n, room - n, "S_IS%c_S%c_E", digits[i], digits[i]);
}

static void estimates_the_length_of_real_names_within_a_factor_of_three(void **state)
{
	static const char *const names[] = {
		"_Z6vecaddPKdS0_Pdi",
		"_Z4axpyIdEvT_PKS0_PS0_i",
		"_ZN6shapes6insideENS_3boxEPKfPjj",
		"_Z13gen_sequencedI15curandStateTestdiXadL_Z28curand_uniform_double_noargs"
		"IS0_EdPT_iEE10rng_configIS0_L14curandOrdering101EEEvS3_PT0_mmT1_",
		"_Z9transposeI12sytrd_paramsIfLi32ELi8ELi512ELi32ELi16ELi1ELi2EELi128ELi0ELi0EE"
		"viiPNT_9data_typeES4_ii",
		"_Z3runIZ4mainEUlfE_EvT_PfMN1a1bEFvA4_iE",
		"_Z1fIJifdEEvDpT_St4pairIKSsSaIcEE",
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *text = gpul_demangle(names[i]);
		uint64_t estimate = gpul_mangled_length(names[i]);

		if (!text)
			skip(); /* no C++ runtime on this machine */
		assert_in_range(estimate, strlen(text) / 3, 3 * strlen(text));
		free(text);
	}
}

static void does_not_demangle_a_name_that_would_expand_to_gigabytes(void **state)
{
	char name[1024];

	(void)state;
	make_bomb(name, sizeof name, 5);
	assert_in_range(gpul_mangled_length(name), 500, 4000);
	make_bomb(name, sizeof name, 30);
	assert_in_range(gpul_mangled_length(name), (uint64_t)1 << 30, (uint64_t)1 << 40);
	assert_null(gpul_demangle(name));
}

static void terminates_for_truncated_and_deeply_nested_names(void **state)
{
	enum { DEEP = 400000 }; /* one stack frame for each character would need more than 8 MiB */
	static const char *const units[] = { "P", "I",  "J",  "N",  "F",  "L",  "X",  "A",  "S",   "U",    "Z",   "D",  "1",  "M",
					     "T", "Ul", "LX", "XL", "ad", "cv", "DT", "Dp", "A1_", "Dv1_", "Xad", "IL", "IX", "NI" };
	char name[1024], *deep = malloc(DEEP + 16);

	(void)state;
	assert_non_null(deep);
	make_bomb(name, sizeof name, 30);
	for (size_t n = strlen(name); n; n--) {
		name[n] = '\0';
		assert_true(gpul_mangled_length(name) > 0);
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		for (int in_list = 0; in_list < 2; in_list++) {
			size_t n = (size_t)snprintf(deep, 16, in_list ? "_Z1fIX" : "_Z1f");

			for (; n < DEEP; n += strlen(units[i]))
				strcpy(deep + n, units[i]);
			assert_true(gpul_mangled_length(deep) > 0);
			assert_null(gpul_demangle(deep));
		}
	free(deep);
}

static void demangles_names_that_the_device_linker_made_unique(void **state)
{
	char *text = gpul_demangle("__nv_static_32__b4148644_10_onerank_cu_fdf47990__Z13oneRankReducePvm");

	(void)state;
	assert_null(gpul_demangle("__nv_static_32__b4148644_10_onerank_cu_fdf47990"));
	assert_null(gpul_demangle("__nv_static_99999999999999999999__a__Z1fv"));
	assert_null(gpul_demangle("__nv_static_"));
	if (!text)
		skip(); /* no C++ runtime on this machine */
	assert_string_equal(text, "oneRankReduce(void*, unsigned long)");
	free(text);
	text = gpul_demangle("__nv_static_4__a_b_reduce");
	assert_string_equal(text, "reduce");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates_the_length_of_real_names_within_a_factor_of_three),
		cmocka_unit_test(demangles_names_that_the_device_linker_made_unique),
		cmocka_unit_test(does_not_demangle_a_name_that_would_expand_to_gigabytes),
		cmocka_unit_test(terminates_for_truncated_and_deeply_nested_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
