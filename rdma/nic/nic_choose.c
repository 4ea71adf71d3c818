/* nic_choose.c — measures the distance between a GPU and a NIC, and chooses the NIC for a GPU. */
#include <stdio.h>
#include <string.h>

#include "rdma/nic/topology_internal.h"

const char *gpul_nic_distance_name(gpul_nic_distance d)
{
	static const char *const names[] = { "PIX", "PXB", "PHB", "NODE", "SYS", "virtual", "unknown" };

	return d <= GPUL_NIC_UNKNOWN ? names[d] : "?";
}

static size_t count_slashes(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '/';
	return n;
}

/* Compare two PCI paths, which begin at a host bridge:
 *
 *     pci0000:d6/0000:d6:01.0/0000:d7:00.0/0000:d8:00.0/0000:d9:00.0     GPU   one bridge (a switch port) below the
 *     pci0000:d6/0000:d6:01.0/0000:d7:00.0/0000:d8:01.0/0000:da:00.0     NIC   common part, on each side: PIX
 *     └─ common: host bridge, root port, switch ─────┘
 *
 * With more bridges below the common part, the result is PXB; if only the host bridge is common, PHB; if nothing is common, -1. */
static int compare_paths(const char *a, const char *b)
{
	size_t common = 0;

	for (size_t i = 0;; i++) {
		bool ends_a = a[i] == '/' || !a[i], ends_b = b[i] == '/' || !b[i];

		if (ends_a && ends_b)
			common = i;
		if (a[i] != b[i] || !a[i])
			break;
	}
	if (!common)
		return -1;
	if (!a[common] && !b[common]) /* the same function: GPU and NIC are one chip */
		return GPUL_NIC_PIX;
	if (!memchr(a, '/', common))
		return GPUL_NIC_PHB;
	return count_slashes(a + common) <= 2 && count_slashes(b + common) <= 2 ? GPUL_NIC_PIX : GPUL_NIC_PXB;
}

static gpul_nic_distance measure(const struct pci_function *gpu, const gpul_nic *nic)
{
	int distance;

	if (!nic->pci[0])
		return GPUL_NIC_VIRTUAL;
	if (!gpu->address[0])
		return GPUL_NIC_UNKNOWN;
	distance = compare_paths(gpu->path, nic->path);
	if (distance >= 0)
		return (gpul_nic_distance)distance;
	/* Kernels without NUMA support, and most virtual machines, report node -1 for both: assume a machine with one node. */
	return gpu->node == nic->node ? GPUL_NIC_NODE : GPUL_NIC_SYS;
}

/* Find the GPU with a PCI address, in any form that gpul_pci_parse() accepts; .address is "" if there is none. */
static struct pci_function find_gpu(const gpul_nic_topology *t, const char *gpu)
{
	struct pci_function f = { .address = "" };
	char address[GPUL_PCI_TEXT_BYTES];

	if (!gpul_pci_parse(gpu, address) || !gpul_topology_find_pci(t, address, &f))
		f.address[0] = '\0';
	return f;
}

gpul_nic_distance gpul_nic_measure(const gpul_nic_topology *t, const char *gpu, const gpul_nic *nic)
{
	struct pci_function f = find_gpu(t, gpu);

	return measure(&f, nic);
}

struct rank { /* the criteria by which NICs are compared, the most important first */
	bool active;
	gpul_nic_distance distance;
	double gbps;
	bool virtual_function;
};

static struct rank rank_nic(const struct pci_function *gpu, const gpul_nic *nic)
{
	return (struct rank){ nic->active, measure(gpu, nic), nic->gbps, nic->virtual_function };
}

/* Compare two NICs: < 0: a is better; 0: they are equal. */
static int compare_ranks(const struct rank *a, const struct rank *b)
{
	if (a->active != b->active)
		return a->active ? -1 : 1;
	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	if (a->gbps < b->gbps || a->gbps > b->gbps)
		return a->gbps > b->gbps ? -1 : 1;
	return a->virtual_function - b->virtual_function;
}

struct wanted {
	const char *const *only; /* names of the NICs to consider; NULL: all */
	size_t n_only;
};

static bool is_wanted(const struct wanted *w, const gpul_nic *nic)
{
	for (size_t i = 0; w->only && i < w->n_only; i++)
		if (!strcmp(w->only[i], nic->name))
			return true;
	return !w->only;
}

/* Find the best NICs for a GPU.  *first: the first of them, NULL if there is no NIC; returns how many are equally good. */
static size_t find_best(const gpul_nic_topology *t, const struct pci_function *gpu, const struct wanted *w, const gpul_nic **first)
{
	struct rank best = { .active = false };
	size_t n = 0;

	*first = NULL;
	for (size_t i = 0; i < t->nics.n; i++) {
		const gpul_nic *nic = &t->nics.at[i];
		struct rank r = rank_nic(gpu, nic);
		int c = *first ? compare_ranks(&r, &best) : -1;

		if (!is_wanted(w, nic) || c > 0)
			continue;
		if (c < 0) {
			best = r;
			*first = nic;
			n = 0;
		}
		n++;
	}
	return n;
}

/* Return number `index` of the NICs that are equally good for the GPU; `first` is number 0. */
static const gpul_nic *find_equal(const gpul_nic_topology *t, const struct pci_function *gpu, const struct wanted *w, const gpul_nic *first,
				  size_t index)
{
	struct rank best = rank_nic(gpu, first);

	for (const gpul_nic *nic = first; nic < t->nics.at + t->nics.n; nic++) {
		struct rank r = rank_nic(gpu, nic);

		if (is_wanted(w, nic) && compare_ranks(&r, &best) == 0 && index-- == 0)
			return nic;
	}
	return first;
}

/* Count the GPUs before this one in the list that have the same vendor, class and n best NICs, so that equal GPUs get different NICs. */
static size_t count_rivals(const gpul_nic_topology *t, const struct pci_function *gpu, const struct wanted *w, const gpul_nic *first,
			   size_t n)
{
	size_t rivals = 0;

	for (size_t i = 0; i < t->gpus.n && gpu->address[0]; i++) {
		const struct pci_function *other = &t->gpus.at[i];
		const gpul_nic *its_first;

		if (!strcmp(other->address, gpu->address))
			break;
		if (other->vendor == gpu->vendor && other->class == gpu->class && find_best(t, other, w, &its_first) == n &&
		    its_first == first)
			rivals++;
	}
	return rivals;
}

/* Find a NIC without an active port that is nearer to the GPU than the chosen one; NULL: none.  The reason for the choice mentions it. */
static const gpul_nic *find_passed_over(const gpul_nic_topology *t, const struct pci_function *gpu, const struct wanted *w,
					const gpul_nic *chosen)
{
	for (size_t i = 0; chosen->active && i < t->nics.n; i++)
		if (!t->nics.at[i].active && is_wanted(w, &t->nics.at[i]) && measure(gpu, &t->nics.at[i]) < measure(gpu, chosen))
			return &t->nics.at[i];
	return NULL;
}

/* Write where a NIC is, such as "mlx5_3 is below the same PCIe switch as GPU 0000:43:00.0 (PIX)". */
static void explain_place(const struct pci_function *gpu, const gpul_nic *nic, char *why, size_t why_bytes)
{
	static const char *const where[] = {
		[GPUL_NIC_PIX] = "is below the same PCIe switch as",
		[GPUL_NIC_PXB] = "is below the same PCIe root port, several switches away from",
		[GPUL_NIC_PHB] = "is at the same PCIe host bridge as",
		[GPUL_NIC_NODE] = "is on the same NUMA node as",
		[GPUL_NIC_SYS] = "is on another NUMA node than",
	};
	gpul_nic_distance d = measure(gpu, nic);

	if (d <= GPUL_NIC_SYS)
		snprintf(why, why_bytes, "%s %s GPU %s (%s)", nic->name, where[d], gpu->address, gpul_nic_distance_name(d));
	else if (d == GPUL_NIC_VIRTUAL)
		snprintf(why, why_bytes, "%s is a software NIC without a PCI device, and no other NIC is nearer to the GPU", nic->name);
	else
		snprintf(why, why_bytes, "%s is the %s (no GPU with a PCI address was given)", nic->name,
			 nic->active ? "fastest NIC with an active port" : "first NIC");
}

static void explain(const gpul_nic_topology *t, const struct pci_function *gpu, const struct wanted *w, const gpul_nic *nic, size_t n_equal,
		    char why[GPUL_NIC_WHY_BYTES])
{
	const gpul_nic *passed = find_passed_over(t, gpu, w, nic);
	size_t n;

	if (w->only ? w->n_only == 1 : t->nics.n == 1)
		snprintf(why, GPUL_NIC_WHY_BYTES, "%s is the only NIC", nic->name);
	else
		explain_place(gpu, nic, why, GPUL_NIC_WHY_BYTES);
	n = strlen(why);
	if (n_equal > 1)
		n += (size_t)snprintf(why + n, GPUL_NIC_WHY_BYTES - n, ", 1 of %zu equally near NICs", n_equal);
	if (n < GPUL_NIC_WHY_BYTES && !nic->active)
		snprintf(why + n, GPUL_NIC_WHY_BYTES - n, "; no port is active");
	else if (n < GPUL_NIC_WHY_BYTES && passed)
		snprintf(why + n, GPUL_NIC_WHY_BYTES - n, "; %s is nearer to the GPU, but has no active port", passed->name);
}

const gpul_nic *gpul_nic_choose(const gpul_nic_topology *t, const char *gpu, const char *const *only, size_t n_only,
				char why[GPUL_NIC_WHY_BYTES])
{
	struct pci_function f = find_gpu(t, gpu);
	struct wanted w = { only, n_only };
	const gpul_nic *first;
	size_t n = find_best(t, &f, &w, &first);

	if (!first) {
		if (why)
			snprintf(why, GPUL_NIC_WHY_BYTES, "%s", t->nics.n ? "none of the NICs can be used" : "no RDMA NIC");
		return NULL;
	}
	first = find_equal(t, &f, &w, first, count_rivals(t, &f, &w, first, n) % n);
	if (why)
		explain(t, &f, &w, first, n, why);
	return first;
}
