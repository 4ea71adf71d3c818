/* recognise.c — recognises the kind of a file by its magic number or, for text, by its first word and name. */
#include "loader/image/recognise.h"

#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define EM_AMDGPU   224
#define EM_NVIDIA   190   /* NVIDIA CUDA, as in the ELF registry of machines */
#define ABI_CUDA_13 0x41  /* EI_OSABI of cubins since CUDA 13 (seen on 13.0.88); 0x33 before */
#define LOOK_AT     65536 /* number of bytes examined to decide whether a file is text */

static bool starts_with(const unsigned char *p, size_t n, const char *magic, size_t n_magic)
{
	return n >= n_magic && memcmp(p, magic, n_magic) == 0;
}

/* True if the only control characters are white space and 0x1a, an old end-of-text mark; bytes above 127 are allowed (UTF-8). */
static bool is_text(const unsigned char *p, size_t n)
{
	while (n && p[0] && p[n - 1] == 0)
		n--; /* ignore the NULs at the end of PTX that is stored for the driver */
	for (size_t i = 0; i < n && i < LOOK_AT; i++)
		if (p[i] < 32 && !isspace(p[i]) && p[i] != 0x1a)
			return false;
	return true;
}

/* True for a line marker of the C preprocessor: # 1 "a.ptx", or #line 1 "a.ptx". */
static bool is_line_marker(const unsigned char *p, size_t n)
{
	size_t i = starts_with(p, n, "#line ", 6) ? 6 : 2;

	return n > i && p[0] == '#' && (i == 6 || p[1] == ' ') && isdigit(p[i]);
}

/* Return the offset of the first character that is not white space, in a comment, or in a line marker such as # 1 "a.ptx"; n: none. */
static size_t first_word(const unsigned char *p, size_t n)
{
	size_t i = 0;

	while (i < n) {
		if (isspace(p[i]) || p[i] == 0) {
			i++;
		} else if ((i + 1 < n && p[i] == '/' && p[i + 1] == '/') || is_line_marker(p + i, n - i)) {
			while (i < n && p[i] != '\n')
				i++;
		} else if (i + 1 < n && p[i] == '/' && p[i + 1] == '*') {
			for (i += 2; i + 1 < n && !(p[i] == '*' && p[i + 1] == '/'); i++)
				;
			i += 2;
		} else {
			return i;
		}
	}
	return n;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = name ? strlen(name) : 0, k = strlen(suffix);

	return n > k && strcmp(name + n - k, suffix) == 0;
}

static gpul_content text_kind(const unsigned char *p, size_t n, const char *name)
{
	size_t i = first_word(p, n);

	if (starts_with(p + i, n - i, ".version", 8))
		return GPUL_CONTENT_PTX;
	if (has_suffix(name, ".cu"))
		return GPUL_CONTENT_CUDA;
	if (i == n && (n == 0 || isspace(p[0])))
		return GPUL_CONTENT_EMPTY;
	if (has_suffix(name, ".ptx"))
		return GPUL_CONTENT_PTX;
	return memmem(p, n, "__global__", 10) ? GPUL_CONTENT_CUDA : GPUL_CONTENT_TEXT;
}

/* Return the end of a table of the file; UINT64_MAX: overflow. */
static uint64_t table_end(uint64_t offset, uint64_t n, uint64_t each)
{
	uint64_t end;

	return n && !__builtin_add_overflow(offset, n * each, &end) ? end : n ? UINT64_MAX : 0;
}

static gpul_recognised elf(const unsigned char *p, size_t n)
{
	gpul_recognised image = { .kind = GPUL_CONTENT_HOST_ELF };
	uint64_t segments, sections;
	Elf64_Ehdr h;

	if (n < sizeof h || p[EI_CLASS] != ELFCLASS64)
		return image;
	memcpy(&h, p, sizeof h);
	if (h.e_machine == EM_AMDGPU)
		image.kind = GPUL_CONTENT_HSACO;
	if (h.e_machine != EM_NVIDIA)
		return image;
	image.kind = GPUL_CONTENT_CUBIN;
	image.sm = p[EI_OSABI] == ABI_CUDA_13 ? h.e_flags >> 8 & 0xff : h.e_flags & 0xff;
	segments = table_end(h.e_phoff, h.e_phnum, h.e_phentsize);
	sections = table_end(h.e_shoff, h.e_shnum, h.e_shentsize);
	image.bytes_needed = segments > sections ? segments : sections;
	return image;
}

gpul_recognised gpul_recognise(const void *bytes, size_t n_bytes, const char *name)
{
	static const struct {
		const char *magic;
		size_t n;
		gpul_content kind;
	} magics[] = {
		{ "!<arch>\n", 8, GPUL_CONTENT_ARCHIVE },
		{ "!<thin>\n", 8, GPUL_CONTENT_ARCHIVE },
		{ "\x50\xed\x55\xba", 4, GPUL_CONTENT_FATBIN },
		{ "\xb1\x43\x62\x46", 4, GPUL_CONTENT_FATBIN_WRAPPER },
		{ "\x10\xff\x10\xad", 4, GPUL_CONTENT_OFFLOAD },
		{ "__CLANG_OFFLOAD_BUNDLE__", 24, GPUL_CONTENT_HIP },
		{ "CCOB", 4, GPUL_CONTENT_HIP }, /* a compressed bundle */
		{ "BC\xc0\xde", 4, GPUL_CONTENT_BITCODE },
		{ "\xde\xc0\x17\x0b", 4, GPUL_CONTENT_BITCODE }, /* bitcode in LLVM's wrapper */
	};
	const unsigned char *p = bytes;
	gpul_recognised image = { .kind = n_bytes ? GPUL_CONTENT_UNKNOWN : GPUL_CONTENT_EMPTY };

	if (n_bytes == 0)
		return image;
	if (starts_with(p, n_bytes, ELFMAG, SELFMAG))
		return elf(p, n_bytes);
	for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
		if (starts_with(p, n_bytes, magics[i].magic, magics[i].n))
			image.kind = magics[i].kind;
	if (image.kind == GPUL_CONTENT_UNKNOWN && is_text(p, n_bytes))
		image.kind = text_kind(p, n_bytes, name);
	return image;
}

const char *gpul_content_text(gpul_content kind)
{
	switch (kind) {
	case GPUL_CONTENT_EMPTY:
		return "an empty file";
	case GPUL_CONTENT_PTX:
		return "PTX";
	case GPUL_CONTENT_CUDA:
		return "CUDA C++";
	case GPUL_CONTENT_TEXT:
		return "a text that is not PTX (no .version line)";
	case GPUL_CONTENT_CUBIN:
		return "a cubin (GPU machine code)";
	case GPUL_CONTENT_HOST_ELF:
		return "a host object, library or program (ELF)";
	case GPUL_CONTENT_ARCHIVE:
		return "an archive (.a)";
	case GPUL_CONTENT_FATBIN:
		return "a fatbin";
	case GPUL_CONTENT_FATBIN_WRAPPER:
		return "a fatbin wrapper without its fatbin";
	case GPUL_CONTENT_OFFLOAD:
		return "an offload binary of clang";
	case GPUL_CONTENT_HIP:
		return "a HIP fatbin (code for AMD GPUs)";
	case GPUL_CONTENT_HSACO:
		return "an AMD code object (hsaco, machine code for AMD GPUs)";
	case GPUL_CONTENT_BITCODE:
		return "LLVM bitcode";
	case GPUL_CONTENT_UNKNOWN:
		break;
	}
	return "a file of an unknown format";
}
