/* rdma_devices_json.c — prints the result of gpuload rdma devices as JSON. */
#include "cli/rdma/devices/rdma_devices.h"

/* Add a text, or null if it is empty. */
static void add_text(struct json *j, const char *key, const char *text)
{
	if (text[0])
		json_text(j, key, text);
	else
		json_null(j, key);
}

static void add_sysfs_port(struct json *j, const gpul_nic_port *p)
{
	json_begin(j, NULL, '{');
	json_i64(j, "port", p->number);
	json_bool(j, "active", p->active);
	add_text(j, "state", p->state);
	add_text(j, "physical_state", p->physical_state);
	add_text(j, "link_layer", p->link_layer);
	add_text(j, "netdev", p->netdev);
	json_double(j, "gbps", p->gbps);
	json_end(j, '}');
}

static void add_sysfs(struct json *j, const gpul_nic *nic)
{
	if (!nic) {
		json_null(j, "sysfs");
		return;
	}
	json_begin(j, "sysfs", '{');
	add_text(j, "pci", nic->pci);
	json_bool(j, "pci_of_netdev", nic->by_netdev);
	json_bool(j, "virtual_function", nic->virtual_function);
	json_i64(j, "numa_node", nic->node);
	add_text(j, "cpus", nic->cpus);
	add_text(j, "pcie_link", nic->link);
	json_begin(j, "ports", '[');
	for (unsigned i = 0; i < nic->n_ports; i++)
		add_sysfs_port(j, &nic->port[i]);
	json_end(j, ']');
	json_end(j, '}');
}

static void add_gid(struct json *j, const gpul_verbs_gid_info *g)
{
	json_begin(j, NULL, '{');
	json_u64(j, "index", g->index);
	json_text(j, "type", g->type);
	json_text(j, "address", g->address);
	json_bool(j, "ipv4", g->ipv4);
	json_bool(j, "link_local", g->link_local);
	add_text(j, "netdev", g->netdev);
	json_end(j, '}');
}

static void add_port(struct json *j, const gpul_verbs_port_info *p)
{
	json_begin(j, NULL, '{');
	json_i64(j, "port", p->number);
	add_text(j, "error", p->error);
	json_bool(j, "active", p->active);
	json_text(j, "state", p->state);
	add_text(j, "physical_state", p->physical_state);
	json_text(j, "link_layer", p->link_layer);
	json_double(j, "gbps", p->gbps);
	json_u64(j, "lanes", p->width);
	json_double(j, "lane_gbps", p->lane_gbps);
	json_u64(j, "mtu", p->mtu);
	json_u64(j, "max_mtu", p->max_mtu);
	json_u64(j, "lid", p->lid);
	json_u64(j, "lmc", p->lmc);
	json_u64(j, "sm_lid", p->sm_lid);
	json_u64(j, "sm_sl", p->sm_sl);
	json_u64(j, "max_message_bytes", p->max_message_bytes);
	json_u64(j, "gid_entries", p->gid_entries);
	json_u64(j, "pkey_entries", p->pkey_entries);
	if (p->chosen_gid >= 0)
		json_i64(j, "gid", p->chosen_gid);
	else
		json_null(j, "gid");
	add_text(j, "gid_why", p->gid_why);
	json_begin(j, "gids", '[');
	for (size_t i = 0; i < p->n_gids; i++)
		add_gid(j, &p->gids[i]);
	json_end(j, ']');
	json_end(j, '}');
}

static void add_verbs(struct json *j, const gpul_verbs_device_info *v)
{
	if (!v) {
		json_null(j, "verbs");
		return;
	}
	json_begin(j, "verbs", '{');
	add_text(j, "error", v->error);
	json_bool(j, "usable", v->usable && !v->error[0]);
	json_text(j, "node_type", v->node_type);
	add_text(j, "firmware", v->firmware);
	add_text(j, "node_guid", v->node_guid);
	add_text(j, "system_guid", v->system_guid);
	json_u64(j, "vendor", v->vendor);
	json_u64(j, "part", v->part);
	json_u64(j, "hardware", v->hardware);
	add_text(j, "atomics", v->atomics);
	add_text(j, "on_demand_paging", v->on_demand_paging);
	json_bool(j, "dmabuf", v->dmabuf);
	if (v->max_inline_bytes >= 0)
		json_i64(j, "max_inline_bytes", v->max_inline_bytes);
	else
		json_null(j, "max_inline_bytes");
	add_text(j, "capabilities", v->capabilities);
	json_begin(j, "attributes", '{');
	for (size_t i = 0; i < v->n_numbers; i++)
		json_u64(j, v->numbers[i].name, v->numbers[i].value);
	json_end(j, '}');
	json_begin(j, "ports", '[');
	for (size_t i = 0; i < v->n_ports; i++)
		add_port(j, &v->ports[i]);
	json_end(j, ']');
	json_end(j, '}');
}

static void add_provider(struct json *j, const gpul_ofi_entry *e)
{
	json_begin(j, NULL, '{');
	json_text(j, "provider", e->provider);
	json_text(j, "domain", e->domain);
	json_text(j, "fabric", e->fabric);
	add_text(j, "address", e->address);
	json_text(j, "version", e->version);
	json_text(j, "endpoint", e->endpoint);
	json_u64(j, "max_message_bytes", e->max_message_bytes);
	json_u64(j, "inject_bytes", e->inject_bytes);
	json_u64(j, "remote_data_bytes", e->remote_data_bytes);
	json_u64(j, "depth", e->depth);
	json_bool(j, "rma", e->rma);
	json_bool(j, "gpu_memory", e->gpu_memory);
	json_bool(j, "usable", e->usable);
	json_bool(j, "chosen", e->chosen);
	json_end(j, '}');
}

static void add_gpu(struct json *j, const struct rdma_devices *d, const struct rdma_gpu *gpu)
{
	json_begin(j, NULL, '{');
	json_i64(j, "ordinal", gpu->ordinal);
	add_text(j, "name", gpu->name);
	add_text(j, "pci", gpu->pci);
	add_text(j, "nic", gpu->nic ? gpu->nic->name : "");
	json_text(j, "why", gpu->why);
	json_begin(j, "distances", '{');
	for (size_t i = 0; i < d->n_rows; i++)
		json_text(j, rdma_device_name(&d->rows[i]), gpul_nic_distance_name(rdma_device_distance(d, &d->rows[i], gpu)));
	json_end(j, '}');
	json_end(j, '}');
}

void rdma_devices_json(struct json *j, const struct rdma_devices *d)
{
	json_begin(j, NULL, '{');
	json_begin(j, "devices", '[');
	for (size_t i = 0; i < d->n_rows; i++) {
		json_begin(j, NULL, '{');
		json_text(j, "name", rdma_device_name(&d->rows[i]));
		add_sysfs(j, d->rows[i].nic);
		add_verbs(j, d->rows[i].verbs);
		json_end(j, '}');
	}
	json_end(j, ']');
	add_text(j, "no_verbs", d->no_verbs);
	add_text(j, "libfabric", d->providers.version);
	json_begin(j, "providers", '[');
	for (size_t i = 0; i < d->providers.n; i++)
		add_provider(j, &d->providers.at[i]);
	json_end(j, ']');
	add_text(j, "no_providers", d->no_providers);
	add_text(j, "nic", d->nic ? d->nic->name : "");
	json_text(j, "why", d->why);
	json_begin(j, "gpus", '[');
	for (size_t i = 0; i < d->n_gpus; i++)
		add_gpu(j, d, &d->gpus[i]);
	json_end(j, ']');
	add_text(j, "no_gpus", d->no_gpus);
	json_end(j, '}');
}
