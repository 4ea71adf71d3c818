/* test_host_symbols.c — symbols of valid and damaged ELF files, and a cubin's variables by name. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/names/host_symbols_internal.h"
#include "loader/loader_internal.h"
#include "loader/symbol/symbol.h"
#include "tests/fake/fake_driver.h"

enum { N_SYMBOLS = 6 };

/* A linked ELF file with one symbol table, which is both .symtab and .dynsym. */
static const struct elf_file {
	Elf64_Ehdr header;
	Elf64_Sym symbols[N_SYMBOLS];
	char names[64];
	char section_names[48];
	Elf64_Shdr sections[5];
} whole = {
	.header = { .e_ident = "\x7f"
			       "ELF\2\1",
		    .e_type = ET_DYN,
		    .e_machine = 190,
		    .e_shoff = offsetof(struct elf_file, sections),
		    .e_shentsize = sizeof(Elf64_Shdr),
		    .e_shnum = 5,
		    .e_shstrndx = 4 },
	.names = "\0stub\0table\0_ZN2ns1tE\0small\0wanted\0hidden",
	.symbols = { { 0 },
		     { 1, STT_FUNC | STB_GLOBAL << 4, 0, 1, 0x1000, 0x20 },
		     { 6, STT_OBJECT, 0, 1, 0, 24 },
		     { 12, STT_OBJECT, 0, 1, 24, 8 },
		     { 22, STT_OBJECT, 0, 1, 32, 4 },
		     { 28, STT_FUNC | STB_GLOBAL << 4, 0, SHN_UNDEF, 0, 0 } },
	.section_names = "\0.symtab\0.dynsym\0.strtab\0.nv_fatbin",
	.sections = { { 0 },
		      { .sh_name = 1,
			.sh_type = SHT_SYMTAB,
			.sh_link = 3,
			.sh_offset = offsetof(struct elf_file, symbols),
			.sh_size = sizeof(Elf64_Sym) * N_SYMBOLS },
		      { .sh_name = 9,
			.sh_type = SHT_DYNSYM,
			.sh_link = 3,
			.sh_offset = offsetof(struct elf_file, symbols),
			.sh_size = sizeof(Elf64_Sym) * N_SYMBOLS },
		      { .sh_name = 17, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct elf_file, names), .sh_size = 64 },
		      { .sh_name = 25, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct elf_file, section_names), .sh_size = 48 } },
};

static void finds_exported_imported_and_local_functions(void **state)
{
	gpul_host_object o;

	(void)state;
	assert_true(gpul_host_read(&whole, sizeof whole, &o));
	assert_true(o.linked && o.shared && o.has_device_code);
	assert_false(o.relocatable_only || o.device_linked);
	assert_string_equal(gpul_host_function_at(&o, 0x1000), "stub");
	assert_string_equal(gpul_host_function_at(&o, 0x101f), "stub");
	assert_null(gpul_host_function_at(&o, 0x1020));
	assert_null(gpul_host_function_at(&o, 0));
	assert_true(gpul_host_exports(&o, "stub"));
	assert_false(gpul_host_exports(&o, "table")); /* a local symbol is not exported */
	assert_false(gpul_host_exports(&o, "wanted"));
	assert_true(gpul_host_imports(&o, "wanted"));
	assert_false(gpul_host_imports(&o, "stub"));
}

/* Call every function of host_symbols_internal.h on the file; sanitizers detect invalid accesses. */
static void query_all(const void *bytes, size_t n)
{
	gpul_host_object o;

	if (!gpul_host_read(bytes, n, &o))
		return;
	(void)gpul_host_function_at(&o, 0x1000);
	(void)gpul_host_exports(&o, "stub");
	(void)gpul_host_imports(&o, "wanted");
	for (size_t i = 0; i < o.n_symbols; i++)
		(void)gpul_host_variable(&o, i, 1);
}

static void reads_nothing_outside_a_damaged_file(void **state)
{
	(void)state;
	/* Allocate exactly n bytes, so that a sanitizer detects accesses beyond them. */
	for (size_t n = 0; n <= sizeof whole; n++) {
		char *cut = malloc(n ? n : 1);

		memcpy(cut, &whole, n);
		query_all(cut, n);
		free(cut);
	}
	for (size_t at = 0; at < sizeof whole; at++) {
		struct elf_file *bad = malloc(sizeof *bad);

		memcpy(bad, &whole, sizeof whole);
		for (int value = 0; value < 256; value += 51) {
			((unsigned char *)bad)[at] = (unsigned char)value;
			query_all(bad, sizeof *bad);
		}
		free(bad);
	}
}

static void finds_variables_of_machine_code_by_mangled_and_demangled_name(void **state)
{
	static uint64_t memory[3] = { 0x100, 0x200, 0x300 };
	const gpul_driver *drv = fake_driver(0);
	const gpul_code code = { .kind = GPUL_IMAGE_CUBIN, .bytes = &whole, .n_bytes = sizeof whole };
	gpul_module *m = NULL;
	gpul_error err = { 0 };
	uint64_t f = 0;

	(void)state;
	fake_behave()->global = memory;
	fake_behave()->global_bytes = sizeof memory;
	assert_int_equal(gpul_module_create(drv, NULL, &m, &err), GPUL_OK);
	assert_int_equal(gpul_variables_read(m, &code, &err), GPUL_OK);
	assert_int_equal(gpul_function_pointer(m, "table", 2, &f, &err), GPUL_OK);
	assert_int_equal(f, 0x300);
	assert_int_equal(gpul_function_pointer(m, "ns::t", 0, &f, &err), GPUL_OK);
	assert_int_equal(f, 0x100);
	assert_int_equal(gpul_function_pointer(m, "tabel", 0, &f, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'table'?"));
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_function_pointer(m, "small", 0, &f, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "it has: table, ns::t"));
	gpul_module_unload(m);
	assert_int_equal(fake_alive(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_exported_imported_and_local_functions),
		cmocka_unit_test(reads_nothing_outside_a_damaged_file),
		cmocka_unit_test(finds_variables_of_machine_code_by_mangled_and_demangled_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
