/* ls_sass.c — gpuload ls --sass: prints the machine code of the selected kernels, disassembled by NVIDIA's nvdisasm.
 *
 *     cubin ── memory file ── /dev/fd/N ── nvdisasm -fun SYMBOL ── pipe ──> text below the kernel
 *
 * nvdisasm belongs to the CUDA toolkit.  It is searched for in PATH, in $CUDA_HOME/bin, and in /usr/local/cuda/bin. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/lib/message.h"
#include "cli/ls/ls.h"

#define STO_ENTRY 0x10 /* bit of st_other that marks a kernel */

extern char **environ;

/* ---- the tool ---------------------------------------------------------------------- */

static bool is_program(char **path)
{
	if (*path && access(*path, X_OK) == 0)
		return true;
	free(*path);
	*path = NULL;
	return false;
}

/* Find the path of nvdisasm, owned by the caller; NULL: not found. */
static char *find_nvdisasm(void)
{
	const char *folders = secure_getenv("PATH"), *home = secure_getenv("CUDA_HOME");
	char *path = NULL;

	for (; folders && *folders; folders += strcspn(folders, ":"), folders += *folders == ':')
		if (asprintf(&path, "%.*s/nvdisasm", (int)strcspn(folders, ":"), folders) >= 0 && is_program(&path))
			return path;
	if (home && asprintf(&path, "%s/bin/nvdisasm", home) >= 0 && is_program(&path))
		return path;
	path = strdup("/usr/local/cuda/bin/nvdisasm");
	return is_program(&path) ? path : NULL;
}

/* Start nvdisasm with the cubin as input; its output goes to the pipe. */
static int start_nvdisasm(const char *tool, const char *symbol, int cubin, int output, pid_t *child)
{
	char input[32];
	char *const words[] = {
		(char *)(uintptr_t)tool, (char *)(uintptr_t)"-c", (char *)(uintptr_t)"-fun", (char *)(uintptr_t)symbol, input, NULL
	};
	posix_spawn_file_actions_t actions;
	int rc;

	snprintf(input, sizeof input, "/dev/fd/%d", cubin);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	rc = posix_spawn(child, tool, &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static void read_output(int fd, struct out *text)
{
	char block[65536];
	ssize_t n;

	while ((n = read(fd, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			out_bytes(text, block, (size_t)n);
}

/* Create a memory file with the cubin, which nvdisasm inherits; -1: not possible, see errno. */
static int make_file(const gpul_unpacked *cubin)
{
	int fd = memfd_create("cubin", 0);
	const char *at = cubin->bytes;
	size_t left = cubin->n_bytes;

	while (fd >= 0 && left) {
		ssize_t n = write(fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			close(fd);
			return -1;
		}
		at += n;
		left -= (size_t)n;
	}
	return fd;
}

/* Append the disassembled kernel to text. */
static gpul_status disassemble(const char *tool, const gpul_unpacked *cubin, uint64_t symbol, struct out *text, gpul_error *err)
{
	int ends[2], fd = make_file(cubin), rc = 0, status = 0;
	char index[24];
	pid_t child;

	if (fd < 0 || pipe2(ends, O_CLOEXEC)) {
		rc = errno;
		if (fd >= 0)
			close(fd);
		return gpul_fail(err, GPUL_ESYS, rc, "nvdisasm cannot be started: %s", strerror(rc));
	}
	snprintf(index, sizeof index, "%llu", (unsigned long long)symbol);
	rc = start_nvdisasm(tool, index, fd, ends[1], &child);
	close(ends[1]);
	close(fd);
	if (!rc) {
		read_output(ends[0], text);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	if (rc)
		return gpul_fail(err, GPUL_ESYS, rc, "%s cannot be started: %s", tool, strerror(rc));
	if (status)
		return gpul_fail(err, GPUL_ESYS, status, "%s failed with exit status %d", tool, WEXITSTATUS(status));
	return GPUL_OK;
}

/* ---- the symbol -------------------------------------------------------------------- */

static bool is_inside(const gpul_unpacked *u, uint64_t at, uint64_t n)
{
	return at <= u->n_bytes && n <= u->n_bytes - at;
}

static bool read_section(const gpul_unpacked *u, const Elf64_Ehdr *h, uint64_t i, Elf64_Shdr *s)
{
	uint64_t at = h->e_shoff + i * sizeof *s;

	if (!is_inside(u, h->e_shoff, 0) || !is_inside(u, at, sizeof *s))
		return false;
	memcpy(s, (const char *)u->bytes + at, sizeof *s);
	return s->sh_type == SHT_NOBITS || is_inside(u, s->sh_offset, s->sh_size);
}

static bool find_in_table(const gpul_unpacked *u, const Elf64_Shdr *table, const Elf64_Shdr *names, const char *kernel, uint64_t *index)
{
	size_t n_name = strlen(kernel) + 1;

	for (uint64_t k = 0; k < table->sh_size / sizeof(Elf64_Sym); k++) {
		Elf64_Sym sym;

		memcpy(&sym, (const char *)u->bytes + table->sh_offset + k * sizeof sym, sizeof sym);
		if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || !(sym.st_other & STO_ENTRY) || sym.st_name >= names->sh_size ||
		    names->sh_size - sym.st_name < n_name ||
		    memcmp((const char *)u->bytes + names->sh_offset + sym.st_name, kernel, n_name) != 0)
			continue;
		*index = k;
		return true;
	}
	return false;
}

/* Find the index of a kernel in the symbol table of its cubin; nvdisasm selects the kernel by this index. */
static bool find_symbol(const gpul_unpacked *u, const char *kernel, uint64_t *index)
{
	Elf64_Shdr table, names, first;
	Elf64_Ehdr h;
	uint64_t n;

	if (u->n_bytes < sizeof h)
		return false;
	memcpy(&h, u->bytes, sizeof h);
	n = h.e_shnum ? h.e_shnum : read_section(u, &h, 0, &first) ? first.sh_size : 0;
	for (uint64_t i = 0; i < n && read_section(u, &h, i, &table); i++)
		if (table.sh_type == SHT_SYMTAB)
			return read_section(u, &h, table.sh_link, &names) && names.sh_type != SHT_NOBITS &&
			       find_in_table(u, &table, &names, kernel, index);
	return false;
}

/* ---- the file ---------------------------------------------------------------------- */

struct sass {
	struct ls *ls;
	const char *path, *tool;
	const gpul_images *images;
	struct json json; /* json.out is also the buffer for output as text */
	size_t n_kernels;
};

static gpul_status print_kernel(struct sass *s, const gpul_image *image, const gpul_unpacked *cubin, const gpul_kernel_info *k,
				const struct cxx_name *name, gpul_error *err)
{
	struct out text = { 0 };
	uint64_t symbol = 0;
	char arch[16];
	gpul_status st = find_symbol(cubin, k->name, &symbol)
				 ? disassemble(s->tool, cubin, symbol, &text, err)
				 : gpul_fail(err, GPUL_EFORMAT, 0, "%s: the symbol table has no entry for kernel '%s'", s->path, k->name);

	if (!st && s->ls->json) {
		ls_json_kernel(&s->json, k, name);
		json_text(&s->json, "kind", gpul_image_kind_name(image->kind));
		json_text(&s->json, "arch", gpul_image_arch(image, arch));
		json_u64(&s->json, "image", ls_image_index(s->images, image));
		json_chars(&s->json, "sass", text.n ? text.at : "", text.n);
		json_end(&s->json, '}');
	} else if (!st) {
		out_text(&s->json.out, "\n");
		ls_text_image(&s->json.out, s->images, image);
		out_text(&s->json.out, "\n" LS_TABLE_HEAD);
		ls_text_kernel(&s->json.out, k, name);
		out_text(&s->json.out, "\n");
		out_bytes(&s->json.out, text.at, text.n);
		st = out_flush(&s->json.out, err);
	}
	out_free(&text);
	s->n_kernels++;
	return st;
}

static gpul_status list_cubin(struct sass *s, const gpul_image *image, gpul_unpacked *u, gpul_error *err)
{
	gpul_kernel_table table = { 0 };
	gpul_status st = gpul_image_unpack(image, u, err);

	if (!st)
		st = gpul_kernels_read(image, u->bytes, u->n_bytes, &table, err);
	for (size_t i = 0; i < table.n && !st; i++) {
		const struct cxx_name *name = cxx_names_get(s->ls->names, table.at[i].name);

		if (ls_takes_kernel(s->ls, table.at[i].name, name))
			st = print_kernel(s, image, u, &table.at[i], name, err);
	}
	gpul_kernel_table_free(&table);
	return st;
}

static gpul_status list_cubins(struct sass *s, gpul_error *err)
{
	size_t n, n_cubins = 0;
	const gpul_image *all = gpul_images_all(s->images, &n);
	gpul_unpacked u = { 0 };
	gpul_status st = GPUL_OK;

	for (size_t i = 0; i < n && !st; i++) {
		if (all[i].kind != GPUL_IMAGE_CUBIN || !image_filter_takes(&s->ls->filter, &all[i]))
			continue;
		n_cubins++;
		st = list_cubin(s, &all[i], &u, err);
	}
	gpul_unpacked_free(&u);
	if (!st && n_cubins == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: no machine code to disassemble: compile its PTX with ptxas", s->path);
	if (!st && s->n_kernels == 0)
		ls_report_no_match(s->ls, s->path);
	return st;
}

gpul_status ls_sass(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	char *tool = find_nvdisasm();
	struct sass s = { .ls = ls, .path = path, .tool = tool, .images = images };
	gpul_status st;

	if (!tool)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "--sass needs nvdisasm of the CUDA toolkit, which is not in PATH, $CUDA_HOME/bin or /usr/local/cuda/bin");
	if (ls->json) {
		json_begin(&s.json, NULL, '{');
		json_text(&s.json, "file", path);
		json_begin(&s.json, "kernels", '[');
	}
	st = list_cubins(&s, err);
	if (ls->json && !st) {
		json_end(&s.json, ']');
		json_end(&s.json, '}');
		st = json_print(&s.json, err);
	}
	out_free(&s.json.out);
	free(tool);
	return st;
}
