/* share_json.c — writes members of JSON objects that describe shared memory: its shape, owner and peers. */
#include "cli/share/share.h"

#include <stdio.h>

void share_json_shape(struct json *j, const gpul_ipc_shape *shape)
{
	json_text(j, "dtype", shape->n_dims ? shape->dtype : "");
	json_begin(j, "shape", '[');
	for (unsigned i = 0; i < shape->n_dims && i < GPUL_IPC_MAX_DIMS; i++)
		json_u64(j, NULL, shape->dim[i]);
	json_end(j, ']');
}

static void add_hex(struct json *j, const char *key, const void *bytes, size_t n)
{
	char text[2 * 16 + 1] = "";

	for (size_t i = 0; i < n && i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
	json_text(j, key, text);
}

/* Add an address or a pid.  The value 0 means "not valid in this process", and is written as null. */
static void add_known(struct json *j, const char *key, uint64_t value)
{
	if (value)
		json_u64(j, key, value);
	else
		json_null(j, key);
}

static void add_peer(struct json *j, const gpul_ipc_share *share, const gpul_ipc_peer *p)
{
	char command[SHARE_COMMAND_BYTES];

	json_begin(j, NULL, '{');
	json_i64(j, "slot", p->slot);
	add_known(j, "pid", (uint64_t)p->pid);
	json_text(j, "command", share_command_text(p->pid, command));
	json_u64(j, "uid", p->uid);
	add_known(j, "cpu", share_data_at(share, p->cpu));
	add_known(j, "gpu", share_data_at(share, p->gpu));
	add_hex(j, "device_uuid", p->device_uuid, sizeof p->device_uuid);
	json_bool(j, "read_only", p->read_only);
	json_u64(j, "attached_ms", p->attached_ms);
	json_end(j, '}');
}

void share_json_share(struct json *j, const gpul_ipc_share *share)
{
	char command[SHARE_COMMAND_BYTES];

	add_known(j, "pid", (uint64_t)share->pid);
	json_text(j, "command", share_command_text(share->pid, command));
	json_u64(j, "uid", share->uid);
	json_text(j, "kind", gpul_mem_kind_name(share->kind));
	json_u64(j, "bytes", share->bytes);
	json_u64(j, "mapped_bytes", share->mapped_bytes);
	share_json_shape(j, &share->shape);
	json_i64(j, "node", share->node);
	add_hex(j, "device_uuid", share->device_uuid, sizeof share->device_uuid);
	json_text(j, "driver", share->driver);
	add_known(j, "cpu", share_data_at(share, share->cpu));
	add_known(j, "gpu", share_data_at(share, share->gpu));
	json_bool(j, "read_only", share->read_only);
	json_bool(j, "control_page", share->control);
	json_u64(j, "generation", share->generation);
	add_hex(j, "id", share->id, sizeof share->id);
	json_begin(j, "peers", '[');
	for (unsigned i = 0; i < share->n_peers && i < GPUL_IPC_MAX_PEERS; i++)
		add_peer(j, share, &share->peers[i]);
	json_end(j, ']');
}
