/* machine.c — build a copy of a machine's sysfs from a short description. */
#include "tests/rdma/nic/machine.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Format a path; a path longer than PATH_MAX is truncated, so that it is not found. */
__attribute__((format(printf, 2, 3))) static void write_text(char path[PATH_MAX], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, PATH_MAX, fmt, args);
	va_end(args);
}

static bool make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return true;
}

bool machine_file(const char *root, const char *path, const char *text)
{
	char whole[PATH_MAX];
	FILE *f;

	write_text(whole, "%s/%s", root, path);
	f = make_parents(whole) ? fopen(whole, "we") : NULL;
	if (!f)
		return false;
	fprintf(f, "%s\n", text);
	return fclose(f) == 0;
}

bool machine_link(const char *root, const char *path, const char *target)
{
	char whole[PATH_MAX];

	write_text(whole, "%s/%s", root, path);
	return make_parents(whole) && (symlink(target, whole) == 0 || errno == EEXIST);
}

static bool write_at(const char *root, const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX];

	write_text(path, "%s/%s", folder, name);
	return machine_file(root, path, text);
}

/* Create the files of a PCI function, and its link in bus/pci/devices. */
static bool add_function(const char *root, const char *folder, const char *node, const char *class, const char *vendor)
{
	char link[PATH_MAX], target[PATH_MAX], cpus[256] = "";
	FILE *f;

	write_text(link, "%s/devices/system/node/node%s/cpulist", root, node);
	f = fopen(link, "re");
	if (f) {
		if (fgets(cpus, sizeof cpus, f))
			cpus[strcspn(cpus, "\n")] = '\0';
		fclose(f);
	}
	write_text(link, "bus/pci/devices/%s", strrchr(folder, '/') + 1);
	write_text(target, "../../../%s", folder);
	return write_at(root, folder, "numa_node", node) && write_at(root, folder, "class", class) &&
	       write_at(root, folder, "vendor", vendor) && (!cpus[0] || write_at(root, folder, "local_cpulist", cpus)) &&
	       machine_link(root, link, target);
}

static bool add_pci(const char *root, const char *node, const char *class, const char *vendor, const char *path)
{
	char folder[PATH_MAX], bridge[PATH_MAX];
	const char *at;

	write_text(folder, "devices/%s", path);
	at = strstr(folder, "/pci");
	for (at = at ? strchr(at + 1, '/') : NULL; at && (at = strchr(at + 1, '/')) != NULL;) {
		write_text(bridge, "%.*s", (int)(at - folder), folder);
		if (!add_function(root, bridge, node, "0x060400", "0x1000"))
			return false;
	}
	return add_function(root, folder, node, class, vendor);
}

struct port_files {
	const char *state, *rate, *layer, *netdev;
};

static bool add_port(const char *root, const char *folder, const struct port_files *p)
{
	char port[PATH_MAX], text[300];
	bool up = !strcmp(p->state, "ACTIVE");

	write_text(port, "%s/ports/1", folder);
	snprintf(text, sizeof text, "%d: %s", up ? 4 : 1, p->state);
	if (!write_at(root, port, "state", text) || !write_at(root, port, "phys_state", up ? "5: LinkUp" : "3: Disabled") ||
	    !write_at(root, port, "link_layer", p->layer))
		return false;
	snprintf(text, sizeof text, "%s Gb/sec (4X)", p->rate);
	return write_at(root, port, "rate", text) && (!strcmp(p->netdev, "-") || write_at(root, port, "gid_attrs/ndevs/0", p->netdev));
}

static bool add_nic(const char *root, const char *name, const char *address, const struct port_files *port)
{
	char folder[PATH_MAX], link[PATH_MAX], target[PATH_MAX], real[PATH_MAX] = "devices/virtual";

	if (strcmp(address, "-")) {
		write_text(link, "%s/bus/pci/devices/%s", root, address);
		if (!realpath(link, real))
			return false;
		memmove(real, real + strlen(root) + 1, strlen(real + strlen(root) + 1) + 1);
	}
	write_text(folder, "%s/infiniband/%s", real, name);
	write_text(link, "class/infiniband/%s", name);
	write_text(target, "../../%s", folder);
	if (!add_port(root, folder, port) || !machine_link(root, link, target))
		return false;
	if (!strcmp(address, "-"))
		return true;
	write_text(link, "%s/device", folder);
	write_text(target, "../../../%s", address);
	return machine_link(root, link, target);
}

static bool add_line(const char *root, const char *line)
{
	char word[8][256] = { "" }, path[PATH_MAX];
	int n = sscanf(line, "%255s %255s %255s %255s %255s %255s %255s", word[0], word[1], word[2], word[3], word[4], word[5], word[6]),
	    text = 0;

	if (n <= 0 || word[0][0] == '#' || !strcmp(word[0], "expect") || !strcmp(word[0], "distance") || !strcmp(word[0], "why"))
		return true;
	if (!strcmp(word[0], "cpus") && n == 3) {
		write_text(path, "devices/system/node/node%s/cpulist", word[1]);
		return machine_file(root, path, word[2]);
	}
	if (!strcmp(word[0], "pci") && n == 5)
		return add_pci(root, word[1], word[2], word[3], word[4]);
	if (!strcmp(word[0], "nic") && n == 7)
		return add_nic(root, word[1], word[2], &(struct port_files){ word[3], word[4], word[5], word[6] });
	if (!strcmp(word[0], "file") && n >= 3 && sscanf(line, "%*s %*s %n", &text) == 0 && text)
		return machine_file(root, word[1], line + text);
	return !strcmp(word[0], "link") && n == 3 && machine_link(root, word[1], word[2]);
}

bool machine_build(const char *path, const char *root)
{
	char line[1024], real_root[PATH_MAX];
	FILE *f = fopen(path, "re");
	bool good = f && realpath(root, real_root);

	if (!good)
		fprintf(stderr, "%s, %s: %s\n", path, root, strerror(errno));
	for (int n = 1; good && fgets(line, sizeof line, f); n++) {
		line[strcspn(line, "\n")] = '\0';
		good = add_line(real_root, line);
		if (!good)
			fprintf(stderr, "%s:%d: %s: %s\n", path, n, line, strerror(errno));
	}
	if (f)
		fclose(f);
	return good;
}
