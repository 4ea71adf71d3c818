/* bind.c — finds the wrapper of a function, and stores the address of the real function that the wrapper calls.
 *
 * Each auditor has its own copy of this code and of the C library. All auditors use the data in the wrappers' library: the table
 * gpuload_calls_binding, the functions that wrappers call (gpuload_calls_real), and the libraries of these functions
 * (gpuload_calls_owners). */
#include "nvidia/calls/bind.h"

#include <cuda.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvidia/calls/bind_internal.h"
#include "nvidia/loaded.h"

/* CUDA 13 changed the parameters of these functions of the runtime API. */
/* clang-format off */
static const char *const changed_in_13[] = {
	"cudaGetDeviceProperties", "cudaGraphAddDependencies", "cudaGraphGetEdges", "cudaGraphNodeGetDependencies", "cudaGraphNodeGetDependentNodes",
	"cudaGraphRemoveDependencies", "cudaMemAdvise", "cudaMemPrefetchAsync", "cudaMemcpy3DBatchAsync", "cudaMemcpyBatchAsync",
	"cudaStreamGetCaptureInfo", "cudaStreamUpdateCaptureDependencies",
};
/* clang-format on */

bool calls_are_in(const struct link_map *map)
{
	return find_export(map, "gpuload_calls_binding") && find_export(map, "gpuload_calls_owners");
}

static const char *name_of(const struct calls_binding *b, size_t row)
{
	return (const char *)b + b->rows[row].name;
}

/* Find the index of a function in the table of wrappers; -1: the function has no wrapper. */
static long find_row(const struct calls_binding *b, const char *name)
{
	long low = 0, high = b->n_rows;

	while (low < high) {
		long middle = (low + high) / 2;
		int order = strcmp(name, name_of(b, (size_t)middle));

		if (!order)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

static bool is_of_driver(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Returns true if the function's parameters differ from its wrapper's, which was compiled with the headers of another version of CUDA. */
static bool has_other_parameters(const struct link_map *object, const char *name)
{
	const bool is_12 = find_export(object, "cudaGetDeviceProperties_v2") != 0; /* CUDA 13 removed this function */

	if (is_of_driver(name) || is_12 == (CUDA_VERSION < 13000))
		return false;
	for (size_t i = 0; i < sizeof changed_in_13 / sizeof *changed_in_13; i++)
		if (!strncmp(name, changed_in_13[i], strlen(changed_in_13[i])))
			return true;
	return false;
}

static uintptr_t wrapper_of(const struct calls_binding *b, size_t row)
{
	return (uintptr_t)b + (uintptr_t)(intptr_t)b->rows[row].wrapper;
}

/* ---- the table of symbols -------------------------------------------------------------------- */

/* Return the access rights (PROT_*) of the segment that contains an address; 0: unknown. */
static int rights_of(const struct link_map *object, uintptr_t address)
{
	const Elf64_Ehdr *head = (const void *)object->l_addr; /* the first segment begins with the ELF header */
	const Elf64_Phdr *segments;

	if (!object->l_addr || memcmp(head->e_ident, ELFMAG, SELFMAG))
		return 0;
	segments = (const void *)(object->l_addr + head->e_phoff);
	for (size_t i = 0; i < head->e_phnum; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type == PT_LOAD && address - object->l_addr - s->p_vaddr < s->p_memsz)
			return PROT_READ | (s->p_flags & PF_W ? PROT_WRITE : 0) | (s->p_flags & PF_X ? PROT_EXEC : 0);
	}
	return 0;
}

/* Change the symbols of an object to the addresses of the wrappers.  If mprotect() fails, la_symbind64() still redirects most calls. */
static void redirect_symbols(const struct calls_binding *b, void *const *reals, const struct link_map *object, bool driver)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t low = UINTPTR_MAX, high = 0;
	int rights;

	for (size_t i = 0; i < (size_t)b->n_rows; i++) {
		const uintptr_t at = (uintptr_t)find_symbol(object, name_of(b, i));

		low = at && at < low ? at : low;
		high = at > high ? at : high;
	}
	rights = high ? rights_of(object, low) : 0;
	low -= low % page;
	if (!rights || mprotect((void *)low, high + sizeof(Elf64_Sym) - low, rights | PROT_WRITE))
		return;
	for (size_t i = 0; i < (size_t)b->n_rows; i++) {
		const char *name = name_of(b, i);
		Elf64_Sym *symbol = (Elf64_Sym *)(uintptr_t)find_symbol(object, name);

		if (symbol && is_of_driver(name) == driver && reals[i] && !has_other_parameters(object, name))
			symbol->st_value = wrapper_of(b, i) - object->l_addr;
	}
	mprotect((void *)low, high + sizeof(Elf64_Sym) - low, rights);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Let the wrappers call the functions of this object.  Returns false if they already call the functions of another driver or runtime. */
static bool take_over(const struct link_map *wrappers, const struct calls_binding *b, void **reals, const struct link_map *object,
		      bool driver)
{
	const struct link_map **owner = (const struct link_map **)find_export(wrappers, "gpuload_calls_owners") + !driver, *none = NULL;

	if (!__atomic_compare_exchange_n(owner, &none, object, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return none == object;
	for (size_t i = 0; i < (size_t)b->n_rows; i++)
		if (is_of_driver(name_of(b, i)) == driver)
			reals[i] = (void *)find_export(object, name_of(b, i));
	redirect_symbols(b, reals, object, driver);
	return true;
}

uintptr_t calls_bind(const struct link_map *wrappers, const struct link_map *object, const char *name, uintptr_t real)
{
	const struct calls_binding *b = wrappers ? (const struct calls_binding *)find_export(wrappers, "gpuload_calls_binding") : NULL;
	void **reals;
	long row;

	if (!b || (row = find_row(b, name)) < 0 || has_other_parameters(object, name))
		return real;
	reals = (void **)find_export(wrappers, "gpuload_calls_real");
	if (!take_over(wrappers, b, reals, object, is_of_driver(name)))
		return real;
	if (real != wrapper_of(b, (size_t)row)) /* if the symbol was redirected before, `real` is the wrapper */
		reals[row] = (void *)real;
	return wrapper_of(b, (size_t)row);
}

void calls_own(const struct link_map *wrappers, const struct link_map *object)
{
	const struct calls_binding *b = wrappers ? (const struct calls_binding *)find_export(wrappers, "gpuload_calls_binding") : NULL;
	void **reals = b ? (void **)find_export(wrappers, "gpuload_calls_real") : NULL;

	if (!b)
		return;
	if (find_export(object, "cuDriverGetVersion"))
		take_over(wrappers, b, reals, object, true);
	if (find_export(object, "cudaRuntimeGetVersion"))
		take_over(wrappers, b, reals, object, false);
}

void calls_unbind(const struct link_map *wrappers, const struct link_map *object)
{
	const struct link_map **owners = wrappers ? (const struct link_map **)find_export(wrappers, "gpuload_calls_owners") : NULL;

	for (int i = 0; owners && i < 2; i++)
		if (owners[i] == object)
			owners[i] = NULL;
}
