/* map.c — gpuload map: queries an owner, and draws which processes map its memory at which addresses. */
#include "cli/share/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/lib/bench/bench_output.h"

enum { MAP_SVG, MAP_FORCE, MAP_JSON };

/* clang-format off */
static const struct cli_opt map_opts[] = {
	[MAP_SVG] = { "svg", "FILE", "write the picture as SVG; - is stdout", CLI_FILES },
	[MAP_FORCE] = { "force", NULL, "replace FILE if it exists", NULL },
	[MAP_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char map_details[] = "Draws the memory in the middle and each process that maps it at its side, with the address\n"
				  "ranges of the data for its CPU and its GPU, and the UUID of the GPU. Needs no driver and no\n"
				  "GPU.\n";

/* If an owner does not answer within this time, it is reported as stopped or busy. */
enum { ANSWER_MS = 1000 };

/* ---- texts ------------------------------------------------------------------------- */

/* Write an address range in two lines; from == 0 means that the CPU or GPU cannot access the memory. */
static bool write_range(const char *who, uint64_t from, size_t bytes, char out[2][MAP_TEXT_BYTES])
{
	if (from == 0) {
		snprintf(out[0], MAP_TEXT_BYTES, "%s: no access", who);
		out[1][0] = '\0';
		return false;
	}
	snprintf(out[0], MAP_TEXT_BYTES, "%s 0x%" PRIx64, who, from);
	snprintf(out[1], MAP_TEXT_BYTES, "  - 0x%" PRIx64, from + bytes);
	return true;
}

static void write_process(pid_t pid, bool read_only, const char uuid[16], struct map_process *p)
{
	char command[SHARE_COMMAND_BYTES], gpu[SHARE_UUID_BYTES];

	if (pid > 0)
		snprintf(p->title, MAP_TEXT_BYTES, "pid %ld %.14s", (long)pid, share_command_text(pid, command));
	else
		snprintf(p->title, MAP_TEXT_BYTES, "other pid namespace");
	snprintf(p->access, MAP_TEXT_BYTES, "%s", read_only ? "read-only" : "reads and writes");
	snprintf(p->device, MAP_TEXT_BYTES, "on %s", share_gpu_text(uuid, gpu));
}

static void write_owner(const gpul_ipc_share *s, struct map_process *p)
{
	write_process(s->pid, false, s->device_uuid, p);
	snprintf(p->role, MAP_TEXT_BYTES, "owner");
	p->has_cpu = write_range("CPU", share_data_at(s, s->cpu), s->bytes, p->cpu);
	p->has_gpu = write_range("GPU", share_data_at(s, s->gpu), s->bytes, p->gpu);
}

static void write_peer(const gpul_ipc_share *s, const gpul_ipc_peer *peer, struct map_process *p)
{
	write_process(peer->pid, peer->read_only, peer->device_uuid, p);
	snprintf(p->role, MAP_TEXT_BYTES, "peer in slot %d", peer->slot);
	p->has_cpu = write_range("CPU", share_data_at(s, peer->cpu), s->bytes, p->cpu);
	p->has_gpu = write_range("GPU", share_data_at(s, peer->gpu), s->bytes, p->gpu);
}

static bool is_host_kind(gpul_mem_kind kind)
{
	return kind != GPUL_MEM_DEVICE && kind != GPUL_MEM_DEVICE_IPC;
}

static void write_band(const gpul_ipc_share *s, struct map_picture *out)
{
	char size[SHARE_SIZE_BYTES], shape[SHARE_SHAPE_BYTES];

	out->control = s->control;
	snprintf(out->band[0], MAP_TEXT_BYTES, "%s", gpul_mem_kind_name(s->kind));
	snprintf(out->band[1], MAP_TEXT_BYTES, "%s", s->control ? "control page 4 KiB" : "");
	snprintf(out->band[2], MAP_TEXT_BYTES, "data %s", share_size_text(s->bytes, size));
	snprintf(out->band[3], MAP_TEXT_BYTES, "%.40s", share_shape_text(&s->shape, shape));
	snprintf(out->band[4], MAP_TEXT_BYTES, "%s mapped", share_size_text(s->mapped_bytes, size));
	if (is_host_kind(s->kind))
		snprintf(out->band[5], MAP_TEXT_BYTES, "on node %d", s->node);
	else
		snprintf(out->band[5], MAP_TEXT_BYTES, "in the owner's GPU");
}

void map_picture_make(const char *name, const gpul_ipc_share *share, struct map_picture *out)
{
	char size[SHARE_SIZE_BYTES], shape[SHARE_SHAPE_BYTES];

	*out = (struct map_picture){ .n = 0 };
	snprintf(out->title, sizeof out->title, "%.60s: %s, %s%s%.40s, %u attached, %s driver", name, gpul_mem_kind_name(share->kind),
		 share_size_text(share->bytes, size), share->shape.n_dims ? " of " : "",
		 share->shape.n_dims ? share_shape_text(&share->shape, shape) : "", share->n_peers, share->driver);
	write_band(share, out);
	write_owner(share, &out->process[out->n++]);
	for (unsigned i = 0; i < share->n_peers && i < GPUL_IPC_MAX_PEERS; i++)
		write_peer(share, &share->peers[i], &out->process[out->n++]);
}

/* ---- the command ------------------------------------------------------------------- */

static gpul_status print_json(const char *name, const gpul_ipc_share *share, gpul_error *err)
{
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_text(&j, "name", name);
	share_json_share(&j, share);
	json_end(&j, '}');
	return json_print(&j, err);
}

static gpul_status draw_picture(const char *name, const gpul_ipc_share *share, const struct cli_args *args, gpul_error *err)
{
	const char *svg = cli_value(args, MAP_SVG);
	struct map_picture picture;
	struct out o = { 0 };

	map_picture_make(name, share, &picture);
	if (svg)
		map_draw_svg(&picture, &o);
	else
		map_draw_text(&picture, &o);
	return output_file(svg, cli_value(args, MAP_FORCE) != NULL, &o, "picture", err);
}

static int cmd_map(const struct cli_args *args, gpul_error *err)
{
	gpul_ipc_share share;
	gpul_error why = { 0 };
	const char *name;

	if (args->n_operands != 1) {
		gpul_fail(err, GPUL_EINVAL, 0, "expected one NAME; gpuload shares lists them");
		return CLI_USAGE;
	}
	name = args->operands[0];
	if (gpul_ipc_request(name, ANSWER_MS, &share, &why))
		return cli_exit_code(share_explain(name, &why, err));
	if (cli_value(args, MAP_JSON))
		return cli_exit_code(print_json(name, &share, err));
	return cli_exit_code(draw_picture(name, &share, args, err));
}

const struct cli_cmd cli_map = {
	"map", "NAME", "draw which processes map a shared memory, as text or SVG", map_details, map_opts, cmd_map, CLI_SHARES, NULL,
};
