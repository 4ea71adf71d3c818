/* test_map.c — the pictures of gpuload map, for synthetic shares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/share/map.h"

/* Make a share with n peers; their pids are 4000000, 4000001, ... */
static gpul_ipc_share *share_with(unsigned n)
{
	static gpul_ipc_share s;

	s = (gpul_ipc_share){
		.kind = GPUL_MEM_HOST_NUMA,
		.bytes = 4096,
		.mapped_bytes = 2 << 20,
		.control = true,
		.node = 1,
		.driver = "soft",
		.cpu = 0x7f0000000000,
		.gpu = 0x7f0000000000,
		.shape = { .dtype = "<f4", .n_dims = 2, .dim = { 32, 32 } },
		.n_peers = n,
	};
	for (unsigned i = 0; i < n; i++)
		s.peers[i] = (gpul_ipc_peer){ .slot = (int)i, .pid = (pid_t)(4000000 + i), .cpu = 0x7f1000000000, .gpu = 0x7f2000000000 };
	return &s;
}

static struct out draw(const gpul_ipc_share *s, void (*how)(const struct map_picture *, struct out *))
{
	struct map_picture p;
	struct out o = { 0 };

	map_picture_make("w", s, &p);
	how(&p, &o);
	out_bytes(&o, "", 1);
	assert_false(o.failed);
	return o;
}

static size_t columns(const char *line, size_t n_bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < n_bytes; i++)
		n += ((unsigned char)line[i] & 0xc0) != 0x80;
	return n;
}

static void both_pictures_show_every_peer(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= GPUL_IPC_MAX_PEERS; n++) {
		struct out text = draw(share_with(n), map_draw_text), svg = draw(share_with(n), map_draw_svg);

		for (unsigned i = 0; i < n; i++) {
			char pid[32];

			snprintf(pid, sizeof pid, "pid %u", 4000000 + i);
			assert_non_null(strstr(text.at, pid));
			assert_non_null(strstr(svg.at, pid));
		}
		out_free(&text);
		out_free(&svg);
	}
}

static void a_picture_fits_into_80_columns(void **state)
{
	gpul_ipc_share *s = share_with(12);
	struct out o;

	(void)state;
	s->bytes = 1100 * ((size_t)1 << 30) + 7;
	s->cpu = s->gpu = 0x7fffffff00000000;
	s->node = 4095;
	for (unsigned i = 0; i < GPUL_IPC_MAX_DIMS; i++)
		s->shape.dim[i] = UINT64_MAX;
	s->shape.n_dims = GPUL_IPC_MAX_DIMS;
	o = draw(s, map_draw_text);
	for (const char *at = strchr(o.at, '\n') + 1; *at;) { /* skip the first line, which may be longer */
		size_t n = strcspn(at, "\n");

		if (columns(at, n) > 80)
			fail_msg("%.*s", (int)n, at);
		at += n + (at[n] != '\0');
		if (strncmp(at, "and\n", 4) == 0)
			break;
	}
	out_free(&o);
}

static void the_data_begins_behind_the_control_page(void **state)
{
	gpul_ipc_share *s = share_with(0);
	struct out o = draw(s, map_draw_text);

	(void)state;
	assert_non_null(strstr(o.at, "CPU 0x7f0000001000"));
	assert_non_null(strstr(o.at, "  - 0x7f0000002000"));
	assert_non_null(strstr(o.at, "control page 4 KiB"));
	out_free(&o);
	s->control = false;
	o = draw(s, map_draw_text);
	assert_non_null(strstr(o.at, "CPU 0x7f0000000000"));
	assert_null(strstr(o.at, "control page"));
	out_free(&o);
}

static void cpu_without_access_has_no_arrow(void **state)
{
	gpul_ipc_share *s = share_with(0);
	struct out o;

	(void)state;
	s->cpu = 0;
	s->kind = GPUL_MEM_DEVICE;
	o = draw(s, map_draw_text);
	assert_non_null(strstr(o.at, "│ CPU: no access         │   │"));
	assert_non_null(strstr(o.at, "│──▶│")); /* the arrow to the GPU is the only one */
	assert_null(strstr(strstr(o.at, "│──▶│") + 1, "│──▶│"));
	out_free(&o);
	o = draw(s, map_draw_svg);
	assert_null(strstr(o.at, "<path class=\"cpu\""));
	assert_non_null(strstr(o.at, "<path class=\"gpu\""));
	out_free(&o);
}

static void hostile_type_names_do_not_break_the_picture(void **state)
{
	gpul_ipc_share *s = share_with(1);
	struct out o;

	(void)state;
	memcpy(s->shape.dtype, "<&\"\x1b[2J", 8); /* fills all 8 bytes, so there is no NUL */
	s->peers[0].pid = 0;
	o = draw(s, map_draw_svg);
	assert_null(strstr(o.at, "<&"));
	assert_null(strchr(o.at, '\x1b'));
	assert_non_null(strstr(o.at, "&lt;&amp;"));
	assert_non_null(strstr(o.at, "other pid namespace"));
	out_free(&o);
	o = draw(s, map_draw_text);
	assert_null(strchr(o.at, '\x1b'));
	out_free(&o);
}

int main(void)
{
	setenv("LC_ALL", "C.UTF-8", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_pictures_show_every_peer),
		cmocka_unit_test(a_picture_fits_into_80_columns),
		cmocka_unit_test(the_data_begins_behind_the_control_page),
		cmocka_unit_test(cpu_without_access_has_no_arrow),
		cmocka_unit_test(hostile_type_names_do_not_break_the_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
