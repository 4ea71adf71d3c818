/* ls.c — gpuload ls: list the device code of files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/lib/command.h"
#include "cli/ls/ls.h"
#include "cli/ls/ls_rows.h"
#include "cli/lib/options/nvrtc_args.h"
#include "cli/lib/progress.h"
#include "cli/lib/message.h"
#include "loader/advice/advice.h"
#include "loader/cache/compile.h"
#include "loader/image/package/package.h"
#include "loader/image/source.h"

/* clang-format off */
enum {
	LS_IMAGES, LS_STRICT, LS_SM, LS_KIND, LS_MATCH, LS_KERNEL, LS_GROUP, LS_SORT, LS_DIFF, LS_SASS, LS_JSON,
	LS_INCLUDE, LS_DEFINE, LS_STD,
};
/* clang-format on */

/* clang-format off */  /* a table with one row per option */
static const struct cli_opt ls_opts[] = {
	[LS_IMAGES] = { "images", NULL, "list only the images, not their kernels; fast, because nothing is unpacked", NULL },
	[LS_STRICT] = { "strict", NULL, "refuse a PTX or CUDA file that NVIDIA's ptxas refuses, and say why", NULL },
	[LS_SM] = IMAGE_SM_OPT,
	[LS_KIND] = IMAGE_KIND_OPT,
	[LS_MATCH] = { "match", "GLOB", "list only kernels whose name matches GLOB", NULL },
	[LS_KERNEL] = { "kernel", "NAME", "list only kernels with this mangled or C++ name", NULL },
	[LS_GROUP] = { "group", "kernel", "one entry per kernel, with the range of its values over all images", "kernel" },
	[LS_SORT] = { "sort", "KEY", "one list, sorted by registers, shared, stack (largest first) or name",
		"registers shared stack name" },
	[LS_DIFF] = { "diff", NULL, "compare two files: list kernels that are gone, new or changed", NULL },
	[LS_SASS] = { "sass", NULL, "with --kernel or --match: also the machine code, disassembled by nvdisasm", NULL },
	[LS_JSON] = { "json", NULL, "print one JSON object per FILE, one per line", NULL },
	[LS_INCLUDE] = NVRTC_INCLUDE_OPT,
	[LS_DEFINE] = NVRTC_DEFINE_OPT,
	[LS_STD] = NVRTC_STD_OPT,
	{ 0 },
};
/* clang-format on */

static const char ls_details[] =
	"Lists the device code in each FILE: its images and their kernels. FILE is PTX, CUDA C++\n"
	"(.cu), a cubin, a fatbin, an object, an archive, a shared library or a program. FILE can\n"
	"also be a folder, a wheel (.whl), a zip file or a tar file (.tar, .tar.gz, .tar.zst): then\n"
	"each file in it that has device code is listed in one line, or with its kernels if --match,\n"
	"--kernel, --group, --sort or --json is given. No driver and no GPU are needed. A .cu file is compiled to PTX first, for the architecture of --sm\n"
	"(default: sm_75). A FILE of - is standard input.\n"
	"\n"
	"An image is one piece of device code: machine code for one architecture (cubin), PTX, or\n"
	"LTO code. A registered image is registered with the CUDA runtime by the program; an\n"
	"embedded image was found in the data of a library that loads the image itself.\n"
	"\n"
	"The columns of the kernel table are\n"
	"\n"
	"    regs     registers per thread\n"
	"    shared   bytes of static shared memory per block\n"
	"    stack    bytes of stack per thread, with the functions that the kernel calls\n"
	"    frame    bytes of stack per thread of the kernel alone\n"
	"    const    bytes of constant memory, including the parameters\n"
	"    threads  largest number of threads per block; with =, the required number\n"
	"    cluster  blocks per cluster\n"
	"    kernel   name; below it the parameters as OFFSET:BYTES TYPE, where TYPE is from the\n"
	"             C++ name or from PTX, and is missing if neither contains it\n"
	"\n"
	"A - means that the image does not contain the value. For a PTX file, the parameters are\n"
	"shown with their use, which is found by an analysis of the code.\n"
	"\n"
	"GLOB is a shell pattern. It must match the whole mangled name, the whole C++ name, or the\n"
	"C++ name without return type and parameters: '*reduce*' matches every kernel with \"reduce\"\n"
	"in its name.\n"
	"\n"
	"--diff OLD NEW compares the kernels of two files by name, kind and architecture. The exit\n"
	"status does not depend on the differences.\n"
	"\n"
	"--strict checks PTX as ptxas of CUDA 13.0 does: versions, targets, modifiers, types and\n"
	"operands. The first error is printed with its line, and the exit status is 1.\n"
	"\n"
	"--sass needs nvdisasm of the CUDA toolkit, in PATH, $CUDA_HOME/bin or /usr/local/cuda/bin.\n"
	"\n"
	"A damaged image is reported on stderr, and the other images are listed. Exit status: 0 all\n"
	"listed; 1 an image is damaged, a file cannot be read or has no device code, or nothing\n"
	"matches; 2 the command line is wrong.\n";

#define CUDA_ARCH 75 /* the default of gpuload compile: runs on every GPU that CUDA 13 supports */

/* ---- CUDA C++ ---------------------------------------------------------------------- */

static gpul_status list_compiled(struct ls *ls, gpul_source *source, gpul_error *err)
{
	gpul_nvrtc_result r = { 0 };
	gpul_image image = { .kind = GPUL_IMAGE_PTX, .sm = ls->filter.sm ? ls->filter.sm : CUDA_ARCH, .suffix = ls->filter.suffix };
	const char *path = gpul_source_name(source), *text;
	char arch[24];
	gpul_status st = gpul_source_text(source, &text, err);

	if (st)
		return st;
	snprintf(arch, sizeof arch, "compute_%u%.1s", image.sm, (const char[]){ image.suffix, '\0' });
	st = gpul_compile_cached(text, path, ls->nvrtc_args, arch, false, &r, err);
	image.bytes = image.stored_bytes = r.image_bytes;
	if (st && r.log && *r.log) /* print all errors, because err contains only the first */
		fprintf(stderr, "%s%s", r.log, r.log[strlen(r.log) - 1] == '\n' ? "" : "\n");
	if (st == GPUL_OK)
		st = ls_ptx(ls, path, r.image, &image, err);
	gpul_nvrtc_result_free(&r);
	return st;
}

/* ---- messages ---------------------------------------------------------------------- */

/* Report on stderr that no image was found or selected.  The JSON object with an empty list is printed in any case. */
static void report_no_images(struct ls *ls, gpul_source *source, const gpul_images *images)
{
	const char *path = gpul_source_name(source), *advice;
	char buf[GPUL_ADVICE_BYTES];
	size_t n, n_wanted = 0;
	const gpul_image *all = gpul_images_all(images, &n);

	for (size_t i = 0; i < n; i++)
		n_wanted += image_filter_takes(&ls->filter, &all[i]);
	ls->n_files += n > 0;
	if (n_wanted || ls->many)
		return;
	ls->failed = true;
	advice = n == 0 ? gpul_advice_file(source, buf) : NULL;
	if (n == 0)
		cli_message("ls", "%s: no device code found%s%s", path, advice ? "; " : "", advice ? advice : "");
	else
		cli_message("ls", "%s: none of the %zu images matches --sm and --kind", path, n);
}

/* ---- images ------------------------------------------------------------------------ */

/* True for a file that is one PTX text; its kernels are analysed by ls_ptx(). */
static bool is_ptx_file(const gpul_images *images)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);

	return n == 1 && all->kind == GPUL_IMAGE_PTX && all->offset == 0 && !gpul_images_place(images, all)->member;
}

/* True if each file of a folder or package is listed in one line. */
static bool is_brief(const struct ls *ls)
{
	return !ls->json && !ls->group && !ls->sort && !ls->sass && !ls_selects_kernels(ls);
}

static gpul_status print_head(const struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	struct out o = { 0 };
	gpul_status st;

	ls_text_head(&o, ls, path, images);
	st = out_flush(&o, err);
	out_free(&o);
	return st;
}

static gpul_status list_images(struct ls *ls, gpul_source *source, const gpul_images *images, gpul_error *err)
{
	const char *path = gpul_source_name(source);
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);

	if (ls_report_damaged("ls", images))
		ls->failed = true;
	report_no_images(ls, source, images);
	if (ls->strict && !is_ptx_file(images) && ls_strict(ls, path, images, err))
		return GPUL_ENOMEM;
	if (n == 0 && (!ls->json || ls->many))
		return GPUL_OK;
	if (ls->images_only || (ls->many && is_brief(ls))) {
		ls->n_matched++;
		return ls->images_only ? ls_images(ls, path, images, err) : print_head(ls, path, images, err);
	}
	if (ls->sass)
		return ls_sass(ls, path, images, err);
	if (ls->group || ls->sort || (ls->many && !ls->json))
		return ls_sorted(ls, path, images, err);
	ls->n_matched++;
	if (is_ptx_file(images) && image_filter_takes(&ls->filter, all)) {
		gpul_unpacked text = { 0 };
		gpul_status st = gpul_image_unpack(all, &text, err);

		if (st == GPUL_OK)
			st = ls_ptx(ls, path, text.bytes, all, err);
		gpul_unpacked_free(&text);
		return st;
	}
	return ls_kernels(ls, path, images, err);
}

/* Print advice for a user who wants to use the file in another way, such as linking it. */
static void print_advice(gpul_source *source, const gpul_images *images)
{
	char buf[GPUL_ADVICE_BYTES];
	size_t n;
	const char *advice;

	gpul_images_all(images, &n);
	advice = n ? gpul_advice_file(source, buf) : NULL;
	if (advice)
		printf("\nnote: %s\n", advice);
}

static gpul_status list_source(struct ls *ls, gpul_source *source, gpul_error *err)
{
	const gpul_images *images;
	struct progress progress;
	size_t n;
	const void *bytes = gpul_source_bytes(source, &n);
	gpul_status st;

	if (gpul_is_package(bytes, n))
		return ls_package(ls, source, list_source, err);

	if (gpul_source_content(source) == GPUL_CONTENT_CUDA)
		return list_compiled(ls, source, err);
	progress_begin(&progress, gpul_source_name(source));
	st = gpul_source_images(source, &progress.hook, &images, err);
	progress_wipe(&progress);
	if (st == GPUL_OK)
		st = list_images(ls, source, images, err);
	if (st == GPUL_OK && !ls->json && !ls->images_only && !ls->many)
		print_advice(source, images);
	return st;
}

static gpul_status list_file(struct ls *ls, const char *path, gpul_error *err)
{
	gpul_source *source = NULL;
	gpul_error why = { 0 };
	struct stat s;
	gpul_status st, cut;

	if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
		return ls_folder(ls, path, list_source, err);
	st = gpul_source_open(path, &source, err);
	if (st)
		return st;
	st = list_source(ls, source, &why);
	cut = gpul_source_check(source, err); /* if the file was truncated meanwhile, that is the cause of any other error */
	if (st && !cut)
		gpul_fail(err, st, why.native, "%s", why.text);
	gpul_source_close(source);
	return cut ? cut : st;
}

/* ---- the command ------------------------------------------------------------------- */

/* List every file, even after an error in another file; stop if stdout can no longer be written. */
static gpul_status list_files(struct ls *ls, const struct cli_args *args, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0; i < args->n_operands && !ferror(stdout); i++) {
		gpul_error why = { 0 };

		if (i && !ls->json)
			putchar('\n');
		st = list_file(ls, args->operands[i], &why);
		if (!st)
			continue;
		ls->failed = true;
		if (i + 1 == args->n_operands || ferror(stdout))
			return gpul_fail(err, st, why.native, "%s", why.text);
		cli_message("ls", "%s", why.text);
	}
	return GPUL_OK;
}

/* Parse the value of --sort; LS_UNSORTED: it is not given. */
static gpul_status parse_sort(const char *text, enum ls_sort *out, gpul_error *err)
{
	static const char *const keys[] = {
		[LS_BY_REGISTERS] = "registers",
		[LS_BY_SHARED] = "shared",
		[LS_BY_STACK] = "stack",
		[LS_BY_NAME] = "name",
	};

	*out = LS_UNSORTED;
	for (size_t i = LS_BY_REGISTERS; text && i < sizeof keys / sizeof *keys; i++)
		if (strcmp(text, keys[i]) == 0)
			*out = (enum ls_sort)i;
	if (text && *out == LS_UNSORTED)
		return gpul_fail(err, GPUL_EINVAL, 0, "--sort must be registers, shared, stack or name, not '%s'", text);
	return GPUL_OK;
}

/* Refuse options that contradict each other. */
static gpul_status check_options(const struct ls *ls, const struct cli_args *args, gpul_error *err)
{
	const char *group = cli_value(args, LS_GROUP);
	bool diff = cli_value(args, LS_DIFF) != NULL;

	if (ls->strict && (ls->images_only || ls->group || ls->sort || ls->sass || diff))
		return gpul_fail(err, GPUL_EINVAL, 0, "--strict cannot be combined with --images, --group, --sort, --sass and --diff");
	if (args->n_operands == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "ls needs a FILE: gpuload ls FILE...");
	if (ls->images_only && (ls_selects_kernels(ls) || ls->group || ls->sort || ls->sass || diff))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s cannot be combined with --images, which does not read the kernels",
				 ls->filter.match ? "--match"
				 : ls->kernel     ? "--kernel"
				 : ls->group      ? "--group"
				 : ls->sort       ? "--sort"
				 : ls->sass       ? "--sass"
						  : "--diff");
	if (group && strcmp(group, "kernel") != 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--group must be kernel, not '%s'", group);
	if (ls->sass && !ls_selects_kernels(ls))
		return gpul_fail(err, GPUL_EINVAL, 0, "--sass needs --kernel NAME or --match GLOB");
	if (ls->sass && (ls->group || ls->sort))
		return gpul_fail(err, GPUL_EINVAL, 0, "--sass cannot be combined with --group and --sort");
	if (diff && (ls->group || ls->sort || ls->sass))
		return gpul_fail(err, GPUL_EINVAL, 0, "--diff cannot be combined with --group, --sort and --sass");
	if (diff && args->n_operands != 2)
		return gpul_fail(err, GPUL_EINVAL, 0, "--diff needs two files: gpuload ls --diff OLD NEW");
	return GPUL_OK;
}

static gpul_status parse_options(const struct cli_args *args, struct ls *ls, gpul_error *err)
{
	gpul_status st = image_filter_parse(cli_value(args, LS_SM), cli_value(args, LS_KIND), cli_value(args, LS_MATCH), &ls->filter, err);

	ls->json = cli_value(args, LS_JSON) != NULL;
	ls->images_only = cli_value(args, LS_IMAGES) != NULL;
	ls->strict = cli_value(args, LS_STRICT) != NULL;
	ls->kernel = cli_value(args, LS_KERNEL);
	ls->group = cli_value(args, LS_GROUP) != NULL;
	ls->sass = cli_value(args, LS_SASS) != NULL;
	if (st == GPUL_OK)
		st = parse_sort(cli_value(args, LS_SORT), &ls->sort, err);
	return st ? st : check_options(ls, args, err);
}

static int cmd_ls(const struct cli_args *args, gpul_error *err)
{
	const struct nvrtc_rows rows = { LS_INCLUDE, LS_DEFINE, LS_STD };
	struct nvrtc_args nvrtc = { 0 };
	struct ls ls = { 0 };
	gpul_status st = parse_options(args, &ls, err);

	if (st)
		return cli_exit_code(st);
	st = nvrtc_args_add(&nvrtc, args, rows, err);
	ls.nvrtc_args = (const char *const *)nvrtc.words;
	ls.names = cxx_names_create();
	if (st == GPUL_OK && !ls.names)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the names of kernels");
	if (st == GPUL_OK && cli_value(args, LS_DIFF))
		st = ls_diff(&ls, args->operands[0], args->operands[1], err);
	else if (st == GPUL_OK)
		st = list_files(&ls, args, err);
	cxx_names_destroy(ls.names);
	nvrtc_args_free(&nvrtc);
	return st || ls.failed ? CLI_FAILED : CLI_DONE;
}

const struct cli_cmd cli_ls = {
	"ls", "FILE...", "list the kernels in files: parameters, registers, memory", ls_details, ls_opts, cmd_ls, CLI_FILES, NULL,
};
