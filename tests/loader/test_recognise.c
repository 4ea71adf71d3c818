/* test_recognise.c — recognises files of every kind: complete, truncated and empty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include "loader/image/recognise.h"

static gpul_content kind_of(const char *bytes, size_t n, const char *name)
{
	return gpul_recognise(bytes, n, name).kind;
}

static void recognises_kinds_of_text(void **state)
{
	static const struct {
		const char *text, *name;
		gpul_content kind;
	} rows[] = {
		{ ".version 8.0\n", "k.ptx", GPUL_CONTENT_PTX },
		{ "// a comment\n/* another\n */ .version 8.0\n", "anything", GPUL_CONTENT_PTX },
		{ ".version 8.0\n", NULL, GPUL_CONTENT_PTX },
		{ "# 1 \"a.ptx\" 2\n#line 3 \"b\"\n.version 8.0\n\x1a", NULL, GPUL_CONTENT_PTX },
		{ "# .version 8.0\n", "notes", GPUL_CONTENT_TEXT },
		{ "__global__ void k() {}\n", "k.cu", GPUL_CONTENT_CUDA },
		{ "// only a comment\n", "k.cu", GPUL_CONTENT_CUDA },
		{ "__global__ void k() {}\n", "k.cpp", GPUL_CONTENT_CUDA },
		{ "__global__ void k() {}\n", "/dev/fd/63", GPUL_CONTENT_CUDA },
		{ "int main() {}\n", "k.cpp", GPUL_CONTENT_TEXT },
		{ ".visible .entry k() {}\n", "k.ptx", GPUL_CONTENT_PTX }, /* the name makes it PTX; the parser then reports the error */
		{ "/* never ends", "k.ptx", GPUL_CONTENT_PTX },
		{ " \n\t\n", "k.ptx", GPUL_CONTENT_EMPTY },
		{ "", "k.ptx", GPUL_CONTENT_EMPTY },
		{ "caf\xc3\xa9", "k.txt", GPUL_CONTENT_TEXT },
		{ "\x01\x02\x03", "k.ptx", GPUL_CONTENT_UNKNOWN },
		{ "\x01\x02\x03", "k.cu", GPUL_CONTENT_UNKNOWN },
		{ ".cu", ".cu", GPUL_CONTENT_TEXT }, /* a hidden file ".cu" has no suffix */
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_int_equal(kind_of(rows[i].text, strlen(rows[i].text), rows[i].name), rows[i].kind);
	assert_int_equal(kind_of(NULL, 0, NULL), GPUL_CONTENT_EMPTY);
	assert_int_equal(kind_of(".version 8.0\n", 14, "with its NUL"), GPUL_CONTENT_PTX);
}

static void recognises_containers_by_their_magic_number(void **state)
{
	(void)state;
	assert_int_equal(kind_of("!<arch>\n/     ", 14, "a"), GPUL_CONTENT_ARCHIVE);
	assert_int_equal(kind_of("\x50\xed\x55\xba\1\0\x10\0", 8, "a"), GPUL_CONTENT_FATBIN);
	assert_int_equal(kind_of("\xb1\x43\x62\x46\1\0\0\0", 8, "a"), GPUL_CONTENT_FATBIN_WRAPPER);
	assert_int_equal(kind_of("BC\xc0\xde\x35\x14\0\0", 8, "a"), GPUL_CONTENT_BITCODE);
	assert_int_equal(kind_of("\x10\xff\x10\xad\1\0\0\0", 8, "a"), GPUL_CONTENT_OFFLOAD);
	assert_int_equal(kind_of("__CLANG_OFFLOAD_BUNDLE__\1\0", 26, "a"), GPUL_CONTENT_HIP);
	assert_int_equal(kind_of("CCOB\2\0\1\0", 8, "a"), GPUL_CONTENT_HIP);
	assert_int_equal(kind_of(".version 8.0\n\0\0\0", 16, "a"), GPUL_CONTENT_PTX);
	assert_int_equal(kind_of("\x50\xed\x55", 3, "a"), GPUL_CONTENT_TEXT); /* a truncated fatbin could also be Latin-1 text */
}

static gpul_recognised elf(unsigned machine, unsigned abi, uint32_t flags, uint64_t sections_at, size_t n)
{
	unsigned char bytes[sizeof(Elf64_Ehdr)];
	Elf64_Ehdr h = {
		.e_machine = (uint16_t)machine, .e_flags = flags, .e_shoff = sections_at, .e_shnum = 3, .e_shentsize = sizeof(Elf64_Shdr)
	};

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_OSABI] = (unsigned char)abi;
	memcpy(bytes, &h, sizeof h);
	return gpul_recognise(bytes, n, "x");
}

static void recognises_a_cubin_and_its_architecture(void **state)
{
	const size_t whole = sizeof(Elf64_Ehdr);

	(void)state;
	assert_int_equal(elf(190, 0x41, 0x6005a02, 64, whole).kind, GPUL_CONTENT_CUBIN);
	assert_int_equal(elf(190, 0x41, 0x6005a02, 64, whole).sm, 90); /* CUDA 13: bits 8 to 15 */
	assert_int_equal(elf(190, 0x33, 0x5a055a, 64, whole).sm, 90);  /* before CUDA 13: bits 0 to 7 */
	assert_int_equal(elf(190, 0x33, 75, 1000, whole).bytes_needed, 1000 + 3 * sizeof(Elf64_Shdr));
	assert_true(elf(190, 0x33, 75, UINT64_MAX - 1, whole).bytes_needed == UINT64_MAX);
	assert_int_equal(elf(EM_X86_64, 0, 0, 64, whole).kind, GPUL_CONTENT_HOST_ELF);
	for (size_t n = SELFMAG; n < whole; n++) /* a truncated header must not be read beyond its end */
		assert_int_equal(elf(190, 0x41, 0, 64, n).kind, GPUL_CONTENT_HOST_ELF);
}

static void every_kind_has_a_description(void **state)
{
	(void)state;
	for (int k = GPUL_CONTENT_EMPTY; k <= GPUL_CONTENT_UNKNOWN; k++)
		assert_true(strlen(gpul_content_text((gpul_content)k)) > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recognises_kinds_of_text),
		cmocka_unit_test(recognises_containers_by_their_magic_number),
		cmocka_unit_test(recognises_a_cubin_and_its_architecture),
		cmocka_unit_test(every_kind_has_a_description),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
