/* test_device_layout.c — the comment at the top of proxy/fifo.ptx has the same offsets as fifo_layout.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/file/file.h"
#include "proxy/fifo_layout.h"

#define AT(type, field) { #type, #field, offsetof(struct type, field) }

static const struct {
	const char *type, *field;
	size_t offset;
} FIELDS[] = {
	AT(gpul_fifo_device, slots),   AT(gpul_fifo_device, lines),      AT(gpul_fifo_device, lanes),     AT(gpul_fifo_device, raised),
	AT(gpul_fifo_device, n_lanes), AT(gpul_fifo_device, lane_shift), AT(gpul_fifo_line, tail),        AT(gpul_fifo_line, abort),
	AT(gpul_fifo_lane, head),      AT(gpul_fifo_lane, owner),        AT(gpul_fifo_lane, shared_tail), AT(gpul_trigger, word),
};

static const struct {
	const char *type;
	size_t bytes;
} TYPES[] = {
	{ "gpul_fifo_device", sizeof(struct gpul_fifo_device) },
	{ "gpul_fifo_line", sizeof(struct gpul_fifo_line) },
	{ "gpul_fifo_lane", sizeof(struct gpul_fifo_lane) },
	{ "gpul_trigger", sizeof(struct gpul_trigger) },
};

/* Find the line for a struct in the comment at the top of the file: "//     type  field +0  field +8  all 16". */
static const char *row(const char *ptx, const char *type, char *line, size_t line_bytes)
{
	char start[64];
	const char *at;

	snprintf(start, sizeof(start), "\n//     %s ", type);
	at = strstr(ptx, start);
	if (!at)
		fail_msg("proxy/fifo.ptx has no line with the offsets of %s", type);
	snprintf(line, line_bytes, "%.*s ", (int)strcspn(at + 1, "\n"), at + 1);
	return line;
}

static void ptx_offsets_match_the_struct_layout(void **state)
{
	(void)state;
	char line[256], said[64];
	unsigned n = 0;
	gpul_file ptx;

	assert_int_equal(gpul_file_open("proxy/fifo.ptx", &ptx, NULL), GPUL_OK);
	for (size_t i = 0; i < sizeof(FIELDS) / sizeof(*FIELDS); i++) {
		snprintf(said, sizeof(said), " %s +%zu ", FIELDS[i].field, FIELDS[i].offset);
		if (!strstr(row((const char *)ptx.bytes, FIELDS[i].type, line, sizeof(line)), said))
			fail_msg("not \"%s\" in: %s", said, line);
	}
	for (size_t i = 0; i < sizeof(TYPES) / sizeof(*TYPES); i++) {
		snprintf(said, sizeof(said), " all %zu ", TYPES[i].bytes);
		if (!strstr(row((const char *)ptx.bytes, TYPES[i].type, line, sizeof(line)), said))
			fail_msg("not \"%s\" in: %s", said, line);
		for (const char *p = line; (p = strchr(p, '+')); p++)
			n++;
	}
	assert_int_equal(n, sizeof(FIELDS) / sizeof(*FIELDS)); /* the comment has no further offsets */
	gpul_file_close(&ptx);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(ptx_offsets_match_the_struct_layout) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
