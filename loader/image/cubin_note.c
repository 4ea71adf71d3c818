/* cubin_note.c — reads how a cubin was compiled from the notes of NVIDIA's tools.
 *
 *     note of .note.nv.tkinfo    {u32 name bytes, description bytes, type 2000} "NVIDIA Corp"
 *     its description            {u32 ?, object, tool, version, build, options} texts
 *                                positions in the texts: "ptxas", "... release 13.0, V13.0.88", "-arch sm_90 -m 64"
 *
 * Observed in cubins of ptxas and nvlink 12.7 to 13.1.  Linked code has one note of nvlink and one for each object.  A
 * note is only shown to the user, so a damaged one is ignored. */
#include <string.h>

#include "loader/image/cubin_internal.h"

#define NOTE_TOOL 2000

typedef struct description {
	uint32_t unknown, object, tool, version, build, options;
} description;

bool gpul_cubin_is_tool_note(const gpul_cubin *c, const Elf64_Shdr *s)
{
	return s->sh_type == SHT_NOTE && gpul_cubin_is_named(c, s, ".note.nv.tkinfo");
}

/* Return the text at position i of the n bytes `texts`; NULL: the text is not completely inside these bytes. */
static const char *text_at(const unsigned char *texts, size_t n, uint32_t i, size_t *n_text)
{
	const char *text = (const char *)texts + i;

	if (i >= n || !memchr(text, 0, n - i))
		return NULL;
	*n_text = strlen(text);
	return text;
}

/* Set the version: "13.0.88" from "Cuda compilation tools, release 13.0, V13.0.88". */
static void set_version(gpul_cubin_build *b, const char *text, size_t n)
{
	const char *v = memmem(text, n, ", V", 3);

	if (!v)
		return;
	b->version = v + 3;
	b->version_bytes = n - (size_t)(v + 3 - text);
}

static void set_options(gpul_cubin_build *b, const char *text, size_t n)
{
	for (; n && *text == ' '; text++)
		n--;
	while (n && text[n - 1] == ' ')
		n--;
	b->options = text;
	b->options_bytes = n;
}

/* Read a note's description; false: the note is not one of ptxas. */
static bool read_description(const unsigned char *p, size_t n, gpul_cubin_build *out)
{
	const char *tool, *version, *options;
	size_t n_tool = 0, n_version = 0, n_options = 0;
	description d;

	if (n < sizeof d)
		return false;
	memcpy(&d, p, sizeof d);
	p += sizeof d;
	n -= sizeof d;
	tool = text_at(p, n, d.tool, &n_tool);
	version = text_at(p, n, d.version, &n_version);
	options = text_at(p, n, d.options, &n_options);
	if (!tool || !version || !options || strcmp(tool, "ptxas") != 0)
		return false;
	set_version(out, version, n_version);
	set_options(out, options, n_options);
	return true;
}

static uint64_t padded(uint32_t n_bytes)
{
	return ((uint64_t)n_bytes + 3) & ~UINT64_C(3);
}

gpul_cubin_build gpul_cubin_build_of(const gpul_cubin *c, const Elf64_Shdr *s)
{
	const unsigned char *p = gpul_cubin_bytes(c, s);
	uint64_t left = p ? s->sh_size : 0;
	gpul_cubin_build b = { 0 };
	Elf64_Nhdr h;

	while (left >= sizeof h) {
		uint64_t name, bytes;

		memcpy(&h, p, sizeof h);
		name = sizeof h + padded(h.n_namesz);
		bytes = name + padded(h.n_descsz);
		if (bytes > left || (h.n_type == NOTE_TOOL && read_description(p + name, h.n_descsz, &b)))
			break;
		p += bytes;
		left -= bytes;
	}
	return b;
}

bool gpul_cubin_build_is_for(const gpul_cubin_build *b, char suffix)
{
	static const char option[] = "-arch sm_";
	const char *p, *end;

	if (!b->options)
		return false;
	p = memmem(b->options, b->options_bytes, option, sizeof option - 1);
	if (!p)
		return false;
	end = b->options + b->options_bytes;
	for (p += sizeof option - 1; p < end && *p >= '0' && *p <= '9'; p++)
		;
	return p < end && *p == suffix;
}
