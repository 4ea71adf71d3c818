/* test_cubin.c — read the kernels of cubins of both ABI versions, linked, relocatable and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/image/kernels/kernels.h"
#include "tests/loader/image/forge.h"

#define NV_INFO 0x70000000

static forge made;

/* Make a cubin with one kernel: two parameters, 300 floats of shared memory, 13 registers. */
static void make_one(bool older, unsigned sm, bool relocatable)
{
	const uint32_t first[] = { 0, 0, 0x21f000 }, second[] = { 0, 0x80001, 0x11f000 };
	const uint32_t threads[] = { 256, 1, 1 }, cluster[] = { 2, 1, 1 };
	unsigned symbol, text, info, shared = 1200;

	forge_start(&made, older, sm, relocatable);
	text = forge_kernel(&made, "_Z3addPfi", &symbol);
	if (older)
		made.sections[text].sh_flags |= 3 << 20;
	info = forge_section(&made, ".nv.info", NV_INFO, 0, 0);
	forge_numbers(&made, info, 0x2f, 2, (uint32_t[]){ symbol, 13 });
	forge_numbers(&made, info, 0x11, 2, (uint32_t[]){ symbol, 64 });
	if (!relocatable)
		forge_numbers(&made, info, 0x12, 2, (uint32_t[]){ symbol, 1736 });
	info = forge_section(&made, ".nv.info._Z3addPfi", NV_INFO, text, 0);
	forge_numbers(&made, info, 0x17, 3, second);
	forge_numbers(&made, info, 0x17, 3, first);
	forge_numbers(&made, info, 0x05, 3, threads);
	forge_numbers(&made, info, 0x3d, 3, cluster);
	forge_value(&made, info, 3, 0x1b, 255);
	if (!older)
		forge_value(&made, info, 2, 0x4c, 3);
	if (!relocatable && sm >= 90)
		shared += 1024;
	forge_section(&made, ".nv.shared._Z3addPfi", SHT_NOBITS, text, shared);
	forge_section(&made, ".nv.constant0._Z3addPfi", SHT_PROGBITS, text, 540);
	forge_finish(&made);
}

static gpul_status read_made(gpul_kernel_table *t, gpul_error *err)
{
	const gpul_image image = { .kind = GPUL_IMAGE_CUBIN };
	unsigned char *exact = malloc(made.n_bytes ? made.n_bytes : 1);
	gpul_status st;

	assert_non_null(exact);
	memcpy(exact, made.bytes, made.n_bytes); /* exactly as many bytes, so that ASan detects a read beyond the end */
	st = gpul_kernels_read(&image, exact, made.n_bytes, t, err);
	free(exact);
	return st;
}

static void check_one(bool relocatable)
{
	gpul_kernel_table t = { 0 };
	gpul_error err = { 0 };
	const gpul_kernel_info *k;

	assert_int_equal(read_made(&t, &err), GPUL_OK);
	assert_int_equal(t.n, 1);
	k = &t.at[0];
	assert_string_equal(k->name, "_Z3addPfi");
	assert_int_equal(k->n_params, 2);
	assert_int_equal(k->params[0].offset, 0);
	assert_int_equal(k->params[0].bytes, 8);
	assert_int_equal(k->params[1].offset, 8);
	assert_int_equal(k->params[1].bytes, 4);
	assert_int_equal(k->registers, 13);
	assert_int_equal(k->frame_bytes, 64);
	assert_int_equal(k->stack_bytes, relocatable ? GPUL_NOT_RECORDED : 1736);
	assert_null(t.ptxas_version);
	assert_null(t.ptxas_options);
	assert_int_equal(k->shared_bytes, 1200);
	assert_int_equal(k->const_bytes, 540);
	assert_int_equal(k->barriers, 3);
	assert_int_equal(k->max_threads[0], 256);
	assert_int_equal(k->required_threads[0], 0);
	assert_int_equal(k->cluster[0], 2);
	assert_false(k->is_static);
	gpul_kernel_table_free(&t);
}

static void reads_a_kernel_of_both_abi_versions(void **state)
{
	(void)state;
	for (int older = 0; older < 2; older++)
		for (int relocatable = 0; relocatable < 2; relocatable++) {
			const unsigned sms[] = { 75, 80, 90, 120 };

			for (size_t i = 0; i < 4; i++) {
				make_one(older, sms[i], relocatable);
				check_one(relocatable);
			}
		}
}

/* Hand-written kernels and cubins of older tools lack the attributes 0x2f (register count) and 0x12 (minimum stack size). */
static void reads_registers_and_stack_of_cubins_without_their_attributes(void **state)
{
	const uint32_t infos[] = { 3, 28u << 24 | 3, 255u << 24 };
	const uint32_t registers[] = { GPUL_NOT_RECORDED, 28, 255 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		gpul_kernel_table t = { 0 };
		unsigned symbol, text, info;

		forge_start(&made, i == 1, 75, false); /* both formats, because libcublasLt of CUDA 13 also has such kernels */
		text = forge_kernel(&made, "k", &symbol);
		made.sections[text].sh_info = infos[i];
		info = forge_section(&made, ".nv.info", NV_INFO, 0, 0);
		if (i)
			forge_numbers(&made, info, 0x11, 2, (uint32_t[]){ symbol, 24 });
		forge_finish(&made);
		assert_int_equal(read_made(&t, NULL), GPUL_OK);
		assert_int_equal(t.at[0].registers, registers[i]);
		assert_int_equal(t.at[0].stack_bytes, i ? 24 : 0);
		gpul_kernel_table_free(&t);
	}
}

/* Append a note of a tool as ptxas and nvlink 13.0 write it; returns its length. */
static size_t put_note(unsigned char *to, const char *tool, const char *version, const char *options)
{
	uint32_t tool_at = 1, version_at = tool_at + (uint32_t)strlen(tool) + 1;
	uint32_t options_at = version_at + (uint32_t)strlen(version) + 1;
	uint32_t n_texts = options_at + (uint32_t)strlen(options) + 1;
	uint32_t head[] = { 12, 24 + n_texts, 2000 };
	uint32_t description[] = { 2, 0, tool_at, version_at, 0, options_at };

	memcpy(to, head, sizeof head);
	memcpy(to + 12, "NVIDIA Corp", 12);
	memcpy(to + 24, description, sizeof description);
	memset(to + 48, 0, n_texts + 3);
	memcpy(to + 48 + tool_at, tool, strlen(tool));
	memcpy(to + 48 + version_at, version, strlen(version));
	memcpy(to + 48 + options_at, options, strlen(options));
	return (48 + n_texts + 3) / 4 * 4;
}

/* Make a cubin for sm_100 with one kernel and n bytes of notes. */
static void make_noted(const unsigned char *notes, size_t n)
{
	unsigned symbol, section;

	forge_start(&made, false, 100, false);
	forge_kernel(&made, "k", &symbol);
	section = forge_section(&made, ".note.nv.tkinfo", SHT_NOTE, 0, n);
	made.content[section] = notes;
	forge_finish(&made);
}

static void reads_how_ptxas_was_called(void **state)
{
	unsigned char notes[512];
	size_t first = put_note(notes, "nvlink", "Cuda, V13.1.2", "-arch sm_100 -report-arch");
	size_t n = first + put_note(notes + first, "ptxas", "Cuda compilation tools, release 13.0, V13.0.88", " -arch sm_100f -m 64  ");
	gpul_kernel_table t = { 0 };
	bool relocatable;
	uint16_t sm = 0;
	char suffix = '?';

	(void)state;
	make_noted(notes, n);
	assert_int_equal(read_made(&t, NULL), GPUL_OK);
	assert_string_equal(t.ptxas_version, "13.0.88");
	assert_string_equal(t.ptxas_options, "-arch sm_100f -m 64");
	assert_string_equal(t.at[0].name, "k");
	gpul_kernel_table_free(&t);
	assert_int_equal(gpul_cubin_target(made.bytes, made.n_bytes, &sm, &suffix, &relocatable, NULL), GPUL_OK);
	assert_true(sm == 100 && suffix == 'f');
	for (size_t cut = 0; cut < n; cut++) { /* a damaged note is ignored: the kernels are still listed */
		unsigned char damaged[512];

		make_noted(notes, cut);
		assert_int_equal(read_made(&t, NULL), GPUL_OK);
		assert_null(t.ptxas_version);
		gpul_kernel_table_free(&t);
		memcpy(damaged, notes, n);
		damaged[cut] = 0xff;
		make_noted(damaged, n);
		assert_int_equal(read_made(&t, NULL), GPUL_OK);
		gpul_kernel_table_free(&t);
	}
}

/* Return the architecture suffix that is read from a cubin with these e_flags.  compat: value of attribute 9 in .nv.compat; 0: none. */
static char suffix_of(bool older, unsigned sm, uint32_t e_flags, unsigned compat)
{
	bool relocatable = false;
	char suffix = '?';
	uint16_t told = 0;

	forge_start(&made, older, sm, false);
	made.header.e_flags = e_flags;
	if (compat)
		forge_value(&made, forge_section(&made, ".nv.compat", NV_INFO + 0x86, 0, 0), 2, 9, compat);
	forge_finish(&made);
	assert_int_equal(gpul_cubin_target(made.bytes, made.n_bytes, &told, &suffix, &relocatable, NULL), GPUL_OK);
	assert_int_equal(told, sm);
	return suffix;
}

/* e_flags as ptxas 11.8, 12.9 and 13.0 wrote them for these targets. */
static void recognises_architecture_specific_code_of_each_cuda_version(void **state)
{
	(void)state;
	assert_int_equal(suffix_of(true, 60, 0x23053c, 0), 0);
	assert_int_equal(suffix_of(true, 90, 0x5a055a, 0), 0);
	assert_int_equal(suffix_of(true, 90, 0x5a0d5a, 0), 'a');
	assert_int_equal(suffix_of(false, 100, 0x6006402, 0), 0);
	assert_int_equal(suffix_of(false, 100, 0x600640a, 0), 'a');
	assert_int_equal(suffix_of(false, 90, 0x6005a04, 1), 'a');
	assert_int_equal(suffix_of(false, 100, 0x6006402, 1), 'a');
}

static void refuses_a_cubin_truncated_at_any_byte(void **state)
{
	(void)state;
	make_one(false, 90, false);
	while (made.n_bytes > 0) {
		gpul_kernel_table t = { 0 };
		gpul_error err = { 0 };

		made.n_bytes--;
		assert_int_equal(read_made(&t, &err), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, "cubin: at byte "));
		assert_null(t.at);
	}
}

/* Check that the cubin in `made` is refused with an error that contains `because`. */
static void refused(const char *because)
{
	gpul_kernel_table t = { 0 };
	gpul_error err = { 0 };

	assert_int_equal(read_made(&t, &err), GPUL_EFORMAT);
	assert_null(t.at);
	if (!strstr(err.text, because))
		fail_msg("expected '%s' in '%s'", because, err.text);
}

static void lists_kernels_but_no_device_functions(void **state)
{
	const unsigned char function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	gpul_kernel_table t = { 0 };
	gpul_error err = { 0 };
	unsigned symbol, text;

	(void)state;
	forge_start(&made, false, 90, false);
	text = forge_kernel(&made, "first", &symbol);
	forge_symbol(&made, "device_function", function, 0, text);
	forge_symbol(&made, "undefined", function, 0x10, SHN_UNDEF);
	forge_symbol(&made, "absolute", function, 0x10, SHN_ABS);
	forge_symbol(&made, "variable", ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0x10, text);
	forge_symbol(&made, "hidden", ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0x10, forge_section(&made, ".text.hidden", SHT_PROGBITS, 0, 128));
	forge_symbol(&made, "weak", ELF64_ST_INFO(STB_WEAK, STT_FUNC), 0x90, forge_section(&made, ".text.weak", SHT_PROGBITS, 0, 128));
	forge_finish(&made);
	read_made(&t, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(t.n, 3);
	assert_string_equal(t.at[0].name, "first");
	assert_string_equal(t.at[1].name, "hidden");
	assert_string_equal(t.at[2].name, "weak");
	assert_true(t.at[1].is_static);
	assert_false(t.at[2].is_static);
	assert_int_equal(t.at[0].registers, GPUL_NOT_RECORDED);
	assert_int_equal(t.at[0].n_params, 0);
	gpul_kernel_table_free(&t);
	forge_symbol(&made, "beyond", function, 0x10, 60);
	forge_finish(&made);
	refused("not in a section");
}

/* Add a kernel with an empty .nv.info; returns that section. */
static unsigned start_info(void)
{
	unsigned symbol, text;

	forge_start(&made, false, 100, false);
	text = forge_kernel(&made, "k", &symbol);
	return forge_section(&made, ".nv.info.k", NV_INFO, text, 0);
}

static void reads_parameters_beyond_4_kilobytes(void **state)
{
	unsigned info = start_info();
	gpul_kernel_table t = { 0 };

	(void)state;
	forge_numbers(&made, info, 0x45, 3, (uint32_t[]){ 0, 0x17700001, 8 });
	forge_numbers(&made, info, 0x45, 3, (uint32_t[]){ 0, 0, 6000 });
	forge_finish(&made);
	assert_int_equal(read_made(&t, NULL), GPUL_OK);
	assert_int_equal(t.at[0].n_params, 2);
	assert_int_equal(t.at[0].params[0].bytes, 6000);
	assert_int_equal(t.at[0].params[1].offset, 6000);
	assert_int_equal(t.at[0].params[1].bytes, 8);
	gpul_kernel_table_free(&t);
}

static void refuses_parameters_that_are_not_numbered_from_0(void **state)
{
	static const uint32_t pairs[][2] = { { 0, 0 }, { 0, 2 }, { 1, 2 }, { 0, 0xffff } };

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		unsigned info = start_info();

		for (int k = 0; k < 2; k++)
			forge_numbers(&made, info, 0x17, 3, (uint32_t[]){ 0, pairs[i][k], 0x100000 });
		forge_finish(&made);
		refused("not numbered from 0");
	}
	forge_numbers(&made, start_info(), 0x17, 3, (uint32_t[]){ 0, 0, 0x1f000 });
	forge_finish(&made);
	refused("a parameter has 0 bytes");
}

static void refuses_invalid_attributes(void **state)
{
	unsigned info = start_info();

	(void)state;
	forge_value(&made, info, 5, 0x17, 0);
	forge_finish(&made);
	refused("unknown format");
	info = start_info();
	forge_value(&made, info, 4, 0x17, 12); /* the attribute claims a payload of 12 bytes, but the section ends before it */
	forge_finish(&made);
	refused("cut short");
}

static void refuses_overlapping_sections(void **state)
{
	unsigned info = start_info();

	(void)state;
	for (int i = 0; i < 200; i++)
		forge_value(&made, info, 3, 0x1b, 255);
	for (int i = 0; i < 40; i++) /* 40 sections of 800 bytes in the same place: together larger than the image */
		forge_section(&made, ".nv.info.k", NV_INFO, 0, 0);
	forge_finish(&made);
	for (unsigned i = info + 1; i < made.n_sections; i++) {
		Elf64_Shdr *s = forge_header_of(&made, i);

		*s = *forge_header_of(&made, info);
		s->sh_info = i; /* each section refers to different code */
	}
	refused("overlap");
	info = start_info();
	forge_section(&made, ".nv.info.again", NV_INFO, made.sections[info].sh_info, 0);
	forge_finish(&made);
	refused("there is a second section .nv.info for the same code");
}

static void limits_the_number_of_kernels_that_share_one_code(void **state)
{
	unsigned info = start_info();
	gpul_kernel_table t = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		forge_numbers(&made, info, 0x17, 3, (uint32_t[]){ 0, i | i * 8 << 16, 0x200000 });
	forge_symbol(&made, "same", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, made.sections[info].sh_info);
	forge_finish(&made);
	refused("too many kernels with the same code");

	make_one(false, 90, false); /* two kernels may share the same code */
	forge_symbol(&made, "same", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, 4);
	forge_finish(&made);
	assert_int_equal(read_made(&t, NULL), GPUL_OK);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.at[1].n_params, 2);
	assert_ptr_equal(t.at[0].params, t.at[1].params);
	gpul_kernel_table_free(&t);
}

static void reads_more_than_65279_sections(void **state)
{
	static const uint32_t indices[] = { 0, 4 };
	gpul_kernel_table t = { 0 };
	unsigned indices_at;

	(void)state;
	make_one(false, 90, false);
	indices_at = forge_section(&made, ".symtab_shndx", SHT_SYMTAB_SHNDX, 0, sizeof indices);
	made.content[indices_at] = indices;
	made.symbols[1].st_shndx = SHN_XINDEX;
	forge_finish(&made);
	forge_header_of(&made, 0)->sh_size = made.n_sections;
	forge_header_of(&made, 0)->sh_link = 1;
	made.header.e_shnum = 0;
	made.header.e_shstrndx = SHN_XINDEX;
	memcpy(made.bytes, &made.header, sizeof made.header);
	assert_int_equal(read_made(&t, NULL), GPUL_OK);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.at[0].shared_bytes, 1200);
	gpul_kernel_table_free(&t);
	forge_header_of(&made, 0)->sh_size = UINT64_MAX;
	refused("more sections than fit");
}

/* Damage one header field at a time, and check the error. */
static void reports_which_header_field_is_wrong(void **state)
{
	const struct {
		size_t at, n;
		uint64_t value;
		const char *because;
	} rows[] = {
		{ EI_MAG0, 1, 0, "shorter than a 64-byte ELF header" },
		{ EI_CLASS, 1, ELFCLASS32, "not 64-bit" },
		{ EI_DATA, 1, ELFDATA2MSB, "not 64-bit" },
		{ EI_OSABI, 1, 0, "EI_OSABI" },
		{ offsetof(Elf64_Ehdr, e_type), 2, ET_CORE, "e_type" },
		{ offsetof(Elf64_Ehdr, e_machine), 2, 62, "e_machine" },
		{ offsetof(Elf64_Ehdr, e_shoff), 8, UINT64_MAX - 8, "section table" },
		{ offsetof(Elf64_Ehdr, e_shentsize), 2, 40, "not of 64 bytes" },
		{ offsetof(Elf64_Ehdr, e_shnum), 2, 60000, "more sections" },
		{ offsetof(Elf64_Ehdr, e_shstrndx), 2, 500, "the string table of section names does not exist" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		make_one(false, 90, false);
		memcpy(made.bytes + rows[i].at, &rows[i].value, rows[i].n);
		refused(rows[i].because);
	}
}

static void reports_which_table_is_outside_the_image(void **state)
{
	(void)state;
	make_one(false, 90, false);
	forge_header_of(&made, 1)->sh_size = UINT64_MAX;
	refused("section names is outside");
	make_one(false, 90, false);
	forge_header_of(&made, 3)->sh_offset = 1 << 20;
	refused("symbol table is outside");
	make_one(false, 90, false);
	forge_header_of(&made, 3)->sh_link = 3;
	refused("names are not inside");
	make_one(false, 90, false);
	forge_header_of(&made, 2)->sh_size = 1;
	refused("a kernel has an invalid name");
	make_one(false, 90, false);
	forge_header_of(&made, 6)->sh_offset = UINT64_MAX;
	refused("attributes is outside");
}

static void survives_a_change_of_any_byte(void **state)
{
	static unsigned char sound[FORGE_ROOM];
	static const unsigned char others[] = { 0x00, 0x01, 0x7f, 0xff };

	(void)state;
	make_one(true, 75, false);
	memcpy(sound, made.bytes, made.n_bytes);
	for (size_t i = 0; i < made.n_bytes; i++)
		for (size_t k = 0; k < sizeof others; k++) {
			gpul_kernel_table t = { 0 };
			gpul_error err = { 0 };

			made.bytes[i] = others[k];
			if (read_made(&t, &err))
				assert_true(err.status == GPUL_EFORMAT && t.n == 0);
			gpul_kernel_table_free(&t);
			made.bytes[i] = sound[i];
		}
}

static void reads_the_target_of_a_cubin_and_refuses_a_truncated_header(void **state)
{
	uint16_t sm = 0;
	char suffix = '?';
	bool relocatable = false;

	(void)state;
	make_one(true, 86, true);
	assert_int_equal(gpul_cubin_target(made.bytes, made.n_bytes, &sm, &suffix, &relocatable, NULL), GPUL_OK);
	assert_true(sm == 86 && suffix == 0 && relocatable);
	assert_int_equal(gpul_cubin_target(made.bytes, 63, &sm, &suffix, &relocatable, NULL), GPUL_EFORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_kernel_of_both_abi_versions),
		cmocka_unit_test(reads_registers_and_stack_of_cubins_without_their_attributes),
		cmocka_unit_test(reads_how_ptxas_was_called),
		cmocka_unit_test(lists_kernels_but_no_device_functions),
		cmocka_unit_test(reads_parameters_beyond_4_kilobytes),
		cmocka_unit_test(refuses_parameters_that_are_not_numbered_from_0),
		cmocka_unit_test(refuses_invalid_attributes),
		cmocka_unit_test(refuses_overlapping_sections),
		cmocka_unit_test(limits_the_number_of_kernels_that_share_one_code),
		cmocka_unit_test(reads_more_than_65279_sections),
		cmocka_unit_test(reports_which_header_field_is_wrong),
		cmocka_unit_test(reports_which_table_is_outside_the_image),
		cmocka_unit_test(refuses_a_cubin_truncated_at_any_byte),
		cmocka_unit_test(survives_a_change_of_any_byte),
		cmocka_unit_test(recognises_architecture_specific_code_of_each_cuda_version),
		cmocka_unit_test(reads_the_target_of_a_cubin_and_refuses_a_truncated_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
