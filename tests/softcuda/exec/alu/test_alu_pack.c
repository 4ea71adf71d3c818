/* test_alu_pack.c — cvt.pack: two integers are saturated and appended to a third. */
#include "tests/softcuda/exec/alu/alu_rig.h"

#include <cmocka.h>

static void cvt_pack_saturates_and_appends(void **state)
{
	static const struct {
		uint8_t bits, is_signed;
		uint32_t d;
	} rows[] = {
		{ 8, 0, 0x5678ff00 }, { 8, 1, 0x56787ffb }, { 16, 1, 0x012cfffb }, { 4, 0, 0x345678f0 },
		{ 4, 1, 0x3456787b }, { 2, 0, 0x2345678c }, { 2, 1, 0x23456786 },
	};

	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
			static const uint32_t values[] = { 300, (uint32_t)-5, 0x12345678 };
			struct rig *r = rig_reset(1);

			for (unsigned slot = 0; slot < 3; slot++)
				rig_set(r, SLOT_A + slot, 0, 32, values[slot]);
			rig_run(r, b, OP_CVT_PACK, 0, rows[k].bits, rows[k].is_signed);
			assert_int_equal(rig_get(r, SLOT_D, 0, 32), rows[k].d);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cvt_pack_saturates_and_appends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
