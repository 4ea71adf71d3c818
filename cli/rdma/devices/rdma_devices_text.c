/* rdma_devices_text.c — prints the result of gpuload rdma devices as tables. */
#include <stdio.h>
#include <string.h>

#include "cli/rdma/devices/rdma_devices.h"

/* Append a column and one blank; a text that is too long shifts the rest of the line. */
static void add_column(struct out *o, const char *text, size_t width)
{
	size_t first = o->n;

	out_name(o, text, strlen(text));
	while (o->n - first < width && !o->failed)
		out_bytes(o, " ", 1);
	out_bytes(o, "  ", 2);
}

/* End a line, and remove the blanks at its end. */
static void end_line(struct out *o)
{
	while (o->n && o->at[o->n - 1] == ' ')
		o->n--;
	out_bytes(o, "\n", 1);
}

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

static const gpul_verbs_gid_info *chosen_gid(const gpul_verbs_port_info *p)
{
	for (size_t i = 0; i < p->n_gids; i++)
		if ((int)p->gids[i].index == p->chosen_gid)
			return &p->gids[i];
	return NULL;
}

/* A port as sysfs and libibverbs report it; a pointer is NULL if its source does not list the port. */
struct port {
	int number;
	const gpul_nic_port *nic;
	const gpul_verbs_port_info *verbs;
};

static struct port find_port(const struct rdma_device_row *r, size_t index)
{
	struct port p = { 0 };

	if (r->verbs && index < r->verbs->n_ports)
		p.verbs = &r->verbs->ports[index];
	if (r->nic && index < r->nic->n_ports)
		p.nic = &r->nic->port[index];
	for (unsigned i = 0; p.verbs && r->nic && i < r->nic->n_ports; i++)
		if (r->nic->port[i].number == p.verbs->number)
			p.nic = &r->nic->port[i];
	p.number = p.verbs ? p.verbs->number : p.nic ? p.nic->number : 0;
	return p;
}

static size_t count_ports(const struct rdma_device_row *r)
{
	size_t n = r->nic ? r->nic->n_ports : 0;

	return r->verbs && r->verbs->n_ports > n ? r->verbs->n_ports : n;
}

static const char *netdev_of(const struct port *p)
{
	const gpul_verbs_gid_info *g = p->verbs ? chosen_gid(p->verbs) : NULL;

	if (p->nic && p->nic->netdev[0])
		return p->nic->netdev;
	return g ? or_dash(g->netdev) : "-";
}

static void write_gid(const struct port *p, char *text, size_t text_bytes)
{
	const gpul_verbs_gid_info *g = p->verbs ? chosen_gid(p->verbs) : NULL;

	if (g)
		snprintf(text, text_bytes, "%u  %s", g->index, g->address);
	else
		snprintf(text, text_bytes, "%s", p->verbs && !p->verbs->error[0] ? "none usable" : "-");
}

static void add_port(struct out *o, const struct rdma_device_row *r, const struct port *p)
{
	double gbps = p->verbs && p->verbs->gbps > 0 ? p->verbs->gbps : p->nic ? p->nic->gbps : 0;
	char number[12], rate[24] = "-", mtu[12] = "-", gid[64], node[12] = "-";
	bool verbs = p->verbs && !p->verbs->error[0];

	snprintf(number, sizeof number, "%d", p->number);
	if (gbps > 0)
		snprintf(rate, sizeof rate, "%g Gb/s", gbps);
	if (verbs)
		snprintf(mtu, sizeof mtu, "%u", p->verbs->mtu);
	write_gid(p, gid, sizeof gid);
	if (r->nic && r->nic->node >= 0)
		snprintf(node, sizeof node, "%d", r->nic->node);
	add_column(o, rdma_device_name(r), 10);
	add_column(o, number, 4);
	add_column(o, verbs ? p->verbs->state : p->nic ? or_dash(p->nic->state) : "-", 6);
	add_column(o, verbs ? p->verbs->link_layer : p->nic ? or_dash(p->nic->link_layer) : "-", 10);
	add_column(o, rate, 8);
	add_column(o, mtu, 4);
	add_column(o, node, 4);
	add_column(o, r->nic ? r->nic->pci[0] ? r->nic->pci : "virtual" : "-", 12);
	add_column(o, gid, 15);
	add_column(o, netdev_of(p), 0);
	end_line(o);
}

static void add_ports(struct out *o, const struct rdma_devices *d)
{
	static const struct {
		const char *title;
		size_t width;
	} columns[] = {
		{ "device", 10 }, { "port", 4 }, { "state", 6 }, { "link", 10 }, { "rate", 8 },
		{ "MTU", 4 },     { "NUMA", 4 }, { "PCI", 12 },  { "GID", 15 },  { "netdev", 0 },
	};

	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		add_column(o, columns[i].title, columns[i].width);
	end_line(o);
	for (size_t i = 0; i < d->n_rows; i++) {
		const struct rdma_device_row *r = &d->rows[i];

		for (size_t p = 0; p < count_ports(r); p++) {
			struct port port = find_port(r, p);

			add_port(o, r, &port);
		}
		if (r->verbs && r->verbs->error[0])
			out_add(o, "%-10s  cannot be used: %s\n", rdma_device_name(r), r->verbs->error);
		else if (!r->verbs && !d->recorded && !d->no_verbs[0])
			out_add(o, "%-10s  cannot be used: libibverbs has no provider for it\n", rdma_device_name(r));
		else if (r->verbs && !r->verbs->usable)
			out_add(o, "%-10s  cannot be used: it is not RoCE or InfiniBand\n", rdma_device_name(r));
	}
}

/* Format a size such as "1 GiB", "64 KiB" or "17 B"; "any" if there is no limit. */
static void write_bytes(uint64_t bytes, char *text, size_t text_bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	if (bytes >= UINT64_MAX / 2) {
		snprintf(text, text_bytes, "any");
		return;
	}
	for (; bytes && bytes % 1024 == 0 && unit + 1 < sizeof units / sizeof *units; unit++)
		bytes /= 1024;
	snprintf(text, text_bytes, "%llu %s", (unsigned long long)bytes, units[unit]);
}

static void add_provider(struct out *o, const gpul_ofi_entry *e, bool all)
{
	char text[64];

	add_column(o, e->provider, 14);
	add_column(o, e->domain, 12);
	write_bytes(e->max_message_bytes, text, sizeof text);
	add_column(o, text, 11);
	write_bytes(e->inject_bytes, text, sizeof text);
	add_column(o, text, 7);
	write_bytes(e->remote_data_bytes, text, sizeof text);
	add_column(o, text, 11);
	snprintf(text, sizeof text, "%llu", (unsigned long long)e->depth);
	add_column(o, text, 5);
	if (all) {
		add_column(o, e->endpoint, 8);
		add_column(o, e->rma ? "yes" : "no", 3);
		add_column(o, e->gpu_memory ? "yes" : "no", 3);
		add_column(o, e->version, 7);
		add_column(o, e->chosen ? "used" : e->usable ? "yes" : "no", 6);
	}
	add_column(o, or_dash(e->address), 0);
	end_line(o);
}

static void add_providers(struct out *o, const struct rdma_devices *d, bool all)
{
	static const struct {
		const char *title;
		size_t width;
		bool details;
	} columns[] = {
		{ "provider", 14, false },    { "domain", 12, false }, { "max message", 11, false }, { "inject", 7, false },
		{ "remote data", 11, false }, { "depth", 5, false },   { "endpoint", 8, true },      { "RMA", 3, true },
		{ "GPU", 3, true },           { "version", 7, true },  { "usable", 6, true },        { "address", 0, false },
	};

	if (d->recorded)
		return;
	out_text(o, "\n");
	if (d->no_providers[0]) {
		out_add(o, "libfabric cannot be used: %s\n", d->no_providers);
		return;
	}
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (all || !columns[i].details)
			add_column(o, columns[i].title, columns[i].width);
	end_line(o);
	for (size_t i = 0; i < d->providers.n; i++)
		if (all || d->providers.at[i].chosen)
			add_provider(o, &d->providers.at[i], all);
	if (all)
		out_add(o, "libfabric %s\n", d->providers.version);
}

static void add_distances(struct out *o, const struct rdma_devices *d)
{
	char title[24];

	out_text(o, "\n");
	add_column(o, "distance", 10);
	for (size_t g = 0; g < d->n_gpus; g++) {
		snprintf(title, sizeof title, "GPU %d", d->gpus[g].ordinal);
		add_column(o, title, 6);
	}
	end_line(o);
	for (size_t i = 0; i < d->n_rows; i++) {
		add_column(o, rdma_device_name(&d->rows[i]), 10);
		for (size_t g = 0; g < d->n_gpus; g++) {
			const char *name = gpul_nic_distance_name(rdma_device_distance(d, &d->rows[i], &d->gpus[g]));

			snprintf(title, sizeof title, "%s%s", name, d->rows[i].nic && d->gpus[g].nic == d->rows[i].nic ? "*" : "");
			add_column(o, title, 6);
		}
		end_line(o);
	}
}

static void add_reasons(struct out *o, const struct rdma_devices *d)
{
	out_text(o, "\n");
	if (d->no_gpus[0])
		out_add(o, "GPUs: none: %s\n", d->no_gpus);
	for (size_t g = 0; g < d->n_gpus; g++)
		out_add(o, "GPU %d  %s  %s\n       %s\n", d->gpus[g].ordinal, or_dash(d->gpus[g].pci), d->gpus[g].name, d->gpus[g].why);
	out_add(o, "host   %s\n", d->why);
}

static void add_gids(struct out *o, const gpul_verbs_port_info *p)
{
	for (size_t i = 0; i < p->n_gids; i++) {
		const gpul_verbs_gid_info *g = &p->gids[i];

		out_add(o, "    GID %-3u %-10s  %-39s  %s%s%s\n", g->index, g->type, g->address, or_dash(g->netdev),
			g->link_local ? "  link-local" : "", (int)g->index == p->chosen_gid ? "  used" : "");
	}
	out_add(o, "    %s\n", p->gid_why);
}

static void add_port_details(struct out *o, const struct port *p)
{
	const gpul_verbs_port_info *v = p->verbs;

	out_add(o, "  port %d", p->number);
	if (v && v->error[0]) {
		out_add(o, "  %s\n", v->error);
		return;
	}
	if (p->nic || v)
		out_add(o, "  %s, %s, %s, netdev %s\n", v ? v->state : or_dash(p->nic->state),
			v ? or_dash(v->physical_state) : or_dash(p->nic->physical_state), v ? v->link_layer : or_dash(p->nic->link_layer),
			netdev_of(p));
	if (!v)
		return;
	out_add(o, "    rate %g Gb/s (%u x %g), MTU %u of %u, message at most %llu bytes\n", v->gbps, v->width, v->lane_gbps, v->mtu,
		v->max_mtu, (unsigned long long)v->max_message_bytes);
	out_add(o, "    LID %u, LMC %u, subnet manager LID %u SL %u, tables: %u GIDs, %u P_Keys\n", v->lid, v->lmc, v->sm_lid, v->sm_sl,
		v->gid_entries, v->pkey_entries);
	add_gids(o, v);
}

static void add_attributes(struct out *o, const gpul_verbs_device_info *v)
{
	char text[64];

	if (v->error[0]) {
		out_add(o, "  %s\n", v->error);
		return;
	}
	out_add(o, "  %s, firmware %s, vendor 0x%04x part %u, hardware revision %u\n", v->node_type, or_dash(v->firmware), v->vendor,
		v->part, v->hardware);
	out_add(o, "  node GUID %s, system GUID %s\n", v->node_guid, v->system_guid);
	out_add(o, "  atomics: %s; on-demand paging: %s; dmabuf: %s; inline: ", v->atomics, v->on_demand_paging, v->dmabuf ? "yes" : "no");
	out_add(o, v->max_inline_bytes >= 0 ? "%d bytes\n" : "not known\n", v->max_inline_bytes);
	out_add(o, "  capabilities: %s\n", v->capabilities);
	for (size_t i = 0; i < v->n_numbers; i++) {
		snprintf(text, sizeof text, "%s %llu", v->numbers[i].name, (unsigned long long)v->numbers[i].value);
		out_text(o, i % 3 == 0 ? "  " : "");
		add_column(o, text, 34);
		if (i % 3 == 2 || i + 1 == v->n_numbers)
			end_line(o);
	}
}

static void add_details(struct out *o, const struct rdma_device_row *r)
{
	out_text(o, "\n");
	out_name(o, rdma_device_name(r), strlen(rdma_device_name(r)));
	out_text(o, "\n");
	if (r->nic && r->nic->pci[0])
		out_add(o, "  PCI %s%s%s, %s, NUMA node %d, CPUs %s\n", r->nic->pci, r->nic->virtual_function ? " (virtual function)" : "",
			r->nic->by_netdev ? " (of the network device)" : "", r->nic->link[0] ? r->nic->link : "link unknown", r->nic->node,
			or_dash(r->nic->cpus));
	else if (r->nic)
		out_text(o, "  a software NIC without a PCI device\n");
	if (r->verbs)
		add_attributes(o, r->verbs);
	for (size_t i = 0; i < count_ports(r); i++) {
		struct port p = find_port(r, i);

		add_port_details(o, &p);
	}
}

gpul_status rdma_devices_print(const struct rdma_devices *d, bool all, gpul_error *err)
{
	struct out o = { 0 };
	gpul_status st;
	bool has_reason = d->no_verbs[0] && !d->recorded;

	if (!d->n_rows)
		out_add(&o, "no RDMA NIC%s%s%s: messages %s\n", has_reason ? " (" : "", has_reason ? d->no_verbs : "",
			has_reason ? ")" : "", d->no_providers[0] && !d->recorded ? "cannot be sent" : "go over libfabric, provider tcp");
	else
		add_ports(&o, d);
	if (d->n_rows && has_reason)
		out_add(&o, "the NICs cannot be used: %s\n", d->no_verbs);
	for (size_t i = 0; all && i < d->n_rows; i++)
		add_details(&o, &d->rows[i]);
	add_providers(&o, d, all);
	if (d->n_rows && d->n_gpus)
		add_distances(&o, d);
	if (d->n_rows && all)
		add_reasons(&o, d);
	st = out_flush(&o, err);
	out_free(&o);
	return st;
}
