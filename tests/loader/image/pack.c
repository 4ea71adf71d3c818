/* pack.c — build containers for tests: fatbins, archives, host ELF files. */
#include "tests/loader/image/pack.h"

#include <ar.h>
#include <assert.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if GPUL_HAVE_LZ4
#include <lz4.h>
#endif
#if GPUL_HAVE_ZSTD
#include <zstd.h>

#include "loader/image/source.h"
#endif

void pack_free(pack *p)
{
	free(p->at);
	*p = (pack){ 0 };
}

size_t pack_zeros(pack *p, size_t n)
{
	size_t at = p->n;

	if (p->n + n > p->room) {
		p->room = (p->n + n) * 2;
		p->at = realloc(p->at, p->room);
		assert(p->at);
	}
	if (n)
		memset(p->at + at, 0, n);
	p->n += n;
	return at;
}

size_t pack_bytes(pack *p, const void *bytes, size_t n)
{
	size_t at = pack_zeros(p, n);

	if (n)
		memcpy(p->at + at, bytes, n);
	return at;
}

void pack_set(pack *p, size_t at, uint64_t v, size_t n)
{
	assert(at + n <= p->n);
	for (size_t i = 0; i < n; i++)
		p->at[at + i] = (unsigned char)(v >> 8 * i);
}

size_t pack_u32(pack *p, uint32_t v)
{
	size_t at = pack_zeros(p, 4);

	pack_set(p, at, v, 4);
	return at;
}

void pack_align(pack *p, size_t multiple)
{
	pack_zeros(p, (multiple - p->n % multiple) % multiple);
}

size_t pack_fatbin(pack *p)
{
	size_t at = pack_u32(p, 0xBA55ED50);

	pack_u32(p, 1 | 16 << 16);
	pack_zeros(p, 8);
	return at;
}

void pack_fatbin_end(pack *p, size_t fatbin)
{
	pack_set(p, fatbin + FATBIN_PAYLOAD, p->n - fatbin - 16, 8);
}

/* Compress n bytes with LZ4 or zstd.  Returns the compressed size; 0: this build lacks the compressor. */
static size_t compress(uint64_t flags, const void *from, size_t n, unsigned char *to, size_t room)
{
	size_t out = 0;

	(void)from, (void)n, (void)to, (void)room;
#if GPUL_HAVE_LZ4
	if (flags & FLAG_LZ4)
		out = (size_t)LZ4_compress_default(from, (char *)to, (int)n, (int)room);
#endif
#if GPUL_HAVE_ZSTD
	if (flags & FLAG_ZSTD)
		out = ZSTD_compress(to, room, from, n, 3);
#endif
	return flags & (FLAG_LZ4 | FLAG_ZSTD) ? out : 0;
}

static void put_options(pack *p, size_t entry, const char *options)
{
	size_t n = options ? strlen(options) : 0;

	if (!options)
		return;
	pack_set(p, entry + ENTRY_OPTIONS, 64, 4);
	pack_u32(p, 72);
	pack_u32(p, (uint32_t)n);
	pack_bytes(p, options, n);
	while ((p->n - entry) % 8)
		pack_zeros(p, 1);
}

size_t pack_entry(pack *p, const pack_of *what, const void *payload, size_t n)
{
	size_t room = n * 2 + 1024, entry = pack_zeros(p, 64), stored, payload_at;
	unsigned char *packed = malloc(room);

	assert(packed);
	pack_set(p, entry + ENTRY_KIND, what->kind | 0x0101 << 16, 4);
	pack_set(p, entry + ENTRY_ARCH, what->sm, 4);
	pack_set(p, entry + ENTRY_FLAGS, what->flags | FLAG_64_BIT | FLAG_LINUX, 8);
	put_options(p, entry, what->options);
	pack_set(p, entry + ENTRY_HEADER_BYTES, p->n - entry, 4);
	stored = compress(what->flags, payload, n, packed, room);
	if (stored) {
		pack_set(p, entry + ENTRY_COMPRESSED, stored, 4);
		pack_set(p, entry + ENTRY_UNPACKED, n, 8);
	}
	payload_at = pack_bytes(p, stored ? packed : payload, stored ? stored : n);
	while ((p->n - entry) % 8)
		pack_zeros(p, 1);
	pack_set(p, entry + ENTRY_PADDED, p->n - payload_at, 8);
	free(packed);
	return entry;
}

size_t pack_fatbin_of(pack *p, const pack_of *what, const void *payload, size_t n)
{
	size_t fatbin = pack_fatbin(p);

	pack_entry(p, what, payload, n);
	pack_fatbin_end(p, fatbin);
	return fatbin;
}

void pack_archive(pack *p, bool thin)
{
	pack_bytes(p, thin ? "!<thin>\n" : ARMAG, SARMAG);
}

size_t pack_member(pack *p, const char *name, const void *bytes, size_t n)
{
	char header[64];
	size_t at;

	snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644u, n);
	at = pack_bytes(p, header, 60);
	if (bytes)
		pack_bytes(p, bytes, n);
	if (bytes && n % 2)
		pack_bytes(p, "\n", 1);
	return at;
}

static Elf64_Shdr header_of(pack *p, const pack_section *s, size_t *names)
{
	Elf64_Shdr h = { .sh_name = (uint32_t)*names,
			 .sh_type = s->type ? s->type : SHT_PROGBITS,
			 .sh_flags = s->flags ? s->flags : SHF_ALLOC,
			 .sh_size = s->n,
			 .sh_addralign = 8 };

	*names += strlen(s->name) + 1;
	pack_align(p, 8);
	h.sh_offset = h.sh_addr = h.sh_type == SHT_NOBITS ? p->n : pack_bytes(p, s->bytes, s->n);
	return h;
}

size_t pack_elf(pack *p, const pack_section *sections, size_t n)
{
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof h,
			 .e_ehsize = sizeof h,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shstrndx = 1 };
	Elf64_Phdr load = { .p_type = PT_LOAD, .p_flags = PF_R, .p_align = 4096 };
	Elf64_Shdr *headers = calloc(n + 2, sizeof *headers);
	size_t at = pack_zeros(p, sizeof h), load_at = pack_zeros(p, sizeof load), names = 11, table;

	assert(headers && at == 0);
	for (size_t i = 0; i < n; i++)
		headers[i + 2] = header_of(p, &sections[i], &names);
	load.p_filesz = load.p_memsz = p->n;
	headers[1] = (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = p->n, .sh_size = names };
	pack_bytes(p, "\0.shstrtab", 11);
	for (size_t i = 0; i < n; i++)
		pack_bytes(p, sections[i].name, strlen(sections[i].name) + 1);
	pack_align(p, 8);
	table = pack_bytes(p, headers, (n + 2) * sizeof *headers);
	h.e_shnum = (uint16_t)(n + 2);
	h.e_shoff = table;
	memcpy(p->at, &h, sizeof h);
	memcpy(p->at + load_at, &load, sizeof load);
	free(headers);
	return table;
}

static struct { /* the open lists of images, with their sources */
	const gpul_images *list;
	gpul_source *source;
} open_lists[8];

static gpul_status list_source(gpul_source *source, const gpul_progress *progress, const gpul_images **out, gpul_error *err)
{
	gpul_status st = gpul_source_images(source, progress, out, err);
	size_t i = 0;

	if (st) {
		gpul_source_close(source);
		return st;
	}
	while (open_lists[i].list)
		assert_true(++i < sizeof open_lists / sizeof *open_lists);
	open_lists[i].list = *out;
	open_lists[i].source = source;
	return GPUL_OK;
}

gpul_status pack_images_open(const char *path, const gpul_progress *progress, const gpul_images **out, gpul_error *err)
{
	gpul_source *source = NULL;
	gpul_status st = gpul_source_open(path, &source, err);

	return st ? st : list_source(source, progress, out, err);
}

gpul_status pack_images_of(const void *bytes, size_t n_bytes, const char *name, const gpul_images **out, gpul_error *err)
{
	gpul_source *source = NULL;
	gpul_status st = gpul_source_of(bytes, n_bytes, name, &source, err);

	return st ? st : list_source(source, NULL, out, err);
}

void pack_images_close(const gpul_images *list)
{
	for (size_t i = 0; list && i < sizeof open_lists / sizeof *open_lists; i++)
		if (open_lists[i].list == list) {
			gpul_source_close(open_lists[i].source);
			open_lists[i].list = NULL;
			return;
		}
}

const gpul_images *pack_open(const pack *p)
{
	const gpul_images *list = NULL;
	gpul_error err = { 0 };

	if (pack_images_of(p->at, p->n, "test", &list, &err))
		fail_msg("%s", err.text);
	return list;
}

const gpul_image *pack_only(const gpul_images *list)
{
	size_t n;
	const gpul_image *image = gpul_images_all(list, &n);

	assert_int_equal(n, 1);
	return image;
}

size_t pack_count(const gpul_images *list)
{
	size_t n;

	gpul_images_all(list, &n);
	return n;
}

void pack_expect_refused(const pack *p, gpul_status st, const char *words)
{
	const gpul_images *list = NULL;
	gpul_error err = { 0 };

	assert_int_equal(pack_images_of(p->at, p->n, "test", &list, &err), st);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
	assert_null(strchr(err.text, '\n'));
	assert_null(list);
}
