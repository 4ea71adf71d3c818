/* test_calls.c — the rows of calls.def: names, numbers and properties, and the lists of calls that help and messages print. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "comm/calls.h"
#include "comm/plan.h"

static void names_are_different_and_parse(void **state)
{
	(void)state;
	for (gpul_comm_call call = 0; call < GPUL_COMM_N_CALLS; call++) {
		gpul_comm_call parsed = GPUL_COMM_N_CALLS;

		assert_true(gpul_comm_call_parse(gpul_comm_call_name(call), &parsed));
		assert_int_equal(parsed, call); /* no two rows have the same name */
	}
}

static void unknown_calls_have_no_name_and_no_property(void **state)
{
	static const struct gpul_comm_call_info none;
	static const int numbers[] = { -1, GPUL_COMM_N_CALLS, 15, INT32_MAX };
	gpul_comm_call call = GPUL_COMM_BROADCAST;

	(void)state;
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		assert_memory_equal(gpul_comm_call_info((gpul_comm_call)numbers[i]), &none, sizeof none);
		assert_string_equal(gpul_comm_call_name((gpul_comm_call)numbers[i]), "?");
	}
	assert_false(gpul_comm_call_parse("?", &call));
	assert_false(gpul_comm_call_parse("", &call));
	assert_false(gpul_comm_call_parse("allreduce ", &call));
	assert_int_equal(call, GPUL_COMM_BROADCAST);
}

/* The numbers must not change, because programs that were built with an older version use them. */
static void numbers_stay(void **state)
{
	(void)state;
	assert_int_equal(GPUL_COMM_SENDRECV, 0);
	assert_int_equal(GPUL_COMM_ALLTOALL, 1);
	assert_int_equal(GPUL_COMM_ALLREDUCE, 2);
	assert_int_equal(GPUL_COMM_REDUCESCATTER, 3);
	assert_int_equal(GPUL_COMM_ALLGATHER, 4);
	assert_int_equal(GPUL_COMM_BROADCAST, 5);
}

static void properties_agree(void **state)
{
	(void)state;
	for (gpul_comm_call call = 0; call < GPUL_COMM_N_CALLS; call++) {
		const struct gpul_comm_call_info *info = gpul_comm_call_info(call);

		assert_int_equal(info->has_parts, info->sends_parts || info->receives_parts);
		assert_false(info->transfers && (info->reduces || info->has_root));
		if (info->has_parts)
			assert_int_equal(info->rounds, 1); /* one round, because a rank's data is transferred only once */
	}
}

static void every_call_has_an_algorithm(void **state)
{
	(void)state;
	for (gpul_comm_call call = 0; call < GPUL_COMM_N_CALLS; call++) {
		unsigned n = 0;

		for (gpul_comm_algo algo = 0; algo < GPUL_COMM_N_ALGOS; algo++)
			for (gpul_comm_proto proto = 0; proto < GPUL_COMM_N_PROTOS; proto++)
				n += gpul_comm_plan_exists(call, algo, proto);
		assert_true(n > 0);
	}
	assert_false(gpul_comm_plan_exists(GPUL_COMM_N_CALLS, GPUL_COMM_DIRECT, GPUL_COMM_SIMPLE));
}

/* ---- the lists ------------------------------------------------------------------------------------------------------ */

static bool any(const struct gpul_comm_call_info *info)
{
	return info != NULL;
}

static bool reduces(const struct gpul_comm_call_info *info)
{
	return info->reduces;
}

static bool has_two_rounds(const struct gpul_comm_call_info *info)
{
	return info->rounds == 2;
}

static bool has_one_round(const struct gpul_comm_call_info *info)
{
	return info->rounds == 1;
}

static bool has_no_round(const struct gpul_comm_call_info *info)
{
	return info->rounds == 0;
}

/* Return a mask of the calls in a list, in which no call may occur twice. */
static unsigned calls_of(const char *list)
{
	char copy[160], *rest = NULL;
	unsigned found = 0;

	assert_true(snprintf(copy, sizeof copy, "%s", list) < (int)sizeof copy);
	for (const char *word = strtok_r(copy, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
		gpul_comm_call call;

		if (!strcmp(word, "and") || !strcmp(word, "or"))
			continue;
		assert_true(gpul_comm_call_parse(word, &call));
		assert_false(found & 1u << call);
		found |= 1u << call;
	}
	return found;
}

static void the_lists_have_the_calls_with_the_property(void **state)
{
	static const struct {
		const char *list;
		bool (*has)(const struct gpul_comm_call_info *info);
	} lists[] = {
		{ GPUL_COMM_LIST_ALL, any },
		{ GPUL_COMM_LIST_PLANNED, any },
		{ GPUL_COMM_LIST_WORDS, any },
		{ GPUL_COMM_LIST_REDUCES, reduces },
		{ GPUL_COMM_LIST_TWO_ROUNDS, has_two_rounds },
		{ GPUL_COMM_LIST_ONE_ROUND, has_one_round },
		{ GPUL_COMM_LIST_NO_ROUND, has_no_round },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
		unsigned expected = 0;

		for (gpul_comm_call call = 0; call < GPUL_COMM_N_CALLS; call++)
			expected |= (unsigned)lists[i].has(gpul_comm_call_info(call)) << call;
		assert_int_equal(calls_of(lists[i].list), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_different_and_parse),
		cmocka_unit_test(unknown_calls_have_no_name_and_no_property),
		cmocka_unit_test(numbers_stay),
		cmocka_unit_test(properties_agree),
		cmocka_unit_test(every_call_has_an_algorithm),
		cmocka_unit_test(the_lists_have_the_calls_with_the_property),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
