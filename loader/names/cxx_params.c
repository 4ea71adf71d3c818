/* cxx_params.c — parses the parameter list of a demangled name.  __cxa_demangle writes const after the type that it qualifies
 * ("double const*"), and template arguments can contain others. */
#include "loader/names/cxx_params.h"

#include <string.h>

#include "loader/names/names.h"

struct span {
	const char *at;
	size_t n;
};

static bool ends_with(struct span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && memcmp(s.at + s.n - n, word, n) == 0;
}

static struct span trim(struct span s)
{
	while (s.n && s.at[0] == ' ')
		s.at++, s.n--;
	while (s.n && s.at[s.n - 1] == ' ')
		s.n--;
	return s;
}

static bool drop_suffix(struct span *s, const char *word)
{
	if (!ends_with(*s, word))
		return false;
	s->n -= strlen(word);
	*s = trim(*s);
	return true;
}

/* Find the type and the size of a value; sizes are those of 64-bit Linux. */
static gpul_type value_type(struct span s, uint32_t *bytes)
{
	static const struct {
		const char *name;
		gpul_type type;
		uint32_t bytes; /* size of a type that is not in gpul_type; else 0 */
	} rows[] = {
		{ "char", GPUL_I8, 0 },
		{ "signed char", GPUL_I8, 0 },
		{ "unsigned char", GPUL_U8, 0 },
		{ "bool", GPUL_U8, 0 },
		{ "short", GPUL_I16, 0 },
		{ "unsigned short", GPUL_U16, 0 },
		{ "int", GPUL_I32, 0 },
		{ "unsigned int", GPUL_U32, 0 },
		{ "long", GPUL_I64, 0 },
		{ "unsigned long", GPUL_U64, 0 },
		{ "long long", GPUL_I64, 0 },
		{ "unsigned long long", GPUL_U64, 0 },
		{ "__half", GPUL_F16, 0 },
		{ "_Float16", GPUL_F16, 0 },
		{ "__nv_bfloat16", GPUL_BF16, 0 },
		{ "float", GPUL_F32, 0 },
		{ "double", GPUL_F64, 0 },
		{ "float2", GPUL_TYPE_NONE, 8 },
		{ "float3", GPUL_TYPE_NONE, 12 },
		{ "float4", GPUL_TYPE_NONE, 16 },
		{ "double2", GPUL_TYPE_NONE, 16 },
		{ "int2", GPUL_TYPE_NONE, 8 },
		{ "int3", GPUL_TYPE_NONE, 12 },
		{ "int4", GPUL_TYPE_NONE, 16 },
		{ "uint2", GPUL_TYPE_NONE, 8 },
		{ "uint3", GPUL_TYPE_NONE, 12 },
		{ "uint4", GPUL_TYPE_NONE, 16 },
		{ "dim3", GPUL_TYPE_NONE, 12 },
		{ "__half2", GPUL_TYPE_NONE, 4 },
		{ "__int128", GPUL_TYPE_NONE, 16 },
		{ "unsigned __int128", GPUL_TYPE_NONE, 16 },
		{ "decltype(nullptr)", GPUL_TYPE_NONE, 8 },
	};

	*bytes = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strlen(rows[i].name) == s.n && memcmp(rows[i].name, s.at, s.n) == 0) {
			*bytes = rows[i].type ? (uint32_t)gpul_type_bytes(rows[i].type) : rows[i].bytes;
			return rows[i].type;
		}
	return GPUL_TYPE_NONE;
}

static gpul_cxx_param parse_param(struct span s)
{
	gpul_cxx_param p = { .text = s.at, .text_bytes = s.n };
	uint32_t element;

	while (drop_suffix(&s, " const") || drop_suffix(&s, " volatile") || drop_suffix(&s, "__restrict"))
		; /* skip const and volatile of the parameter itself, which do not matter to a caller */
	/* a pointer or reference to a function or an array */
	if (memmem(s.at, s.n, "(*", 2) || memmem(s.at, s.n, "(&", 2)) {
		p.bytes = 8;
		return p;
	}
	if (!drop_suffix(&s, "*") && !drop_suffix(&s, "&")) {
		p.type = value_type(s, &p.bytes);
		return p;
	}
	p.bytes = 8;
	while (drop_suffix(&s, " volatile"))
		;
	p.constant = drop_suffix(&s, " const");
	while (drop_suffix(&s, " volatile"))
		;
	p.pointer = !ends_with(s, "*") && !ends_with(s, "&");
	p.type = p.pointer ? value_type(s, &element) : GPUL_TYPE_NONE;
	return p;
}

/* Return the length of the parameter at the start of s: up to a comma outside brackets, or the end of the list. */
static size_t param_bytes(struct span s)
{
	int depth = 0;

	for (size_t i = 0; i < s.n; i++) {
		bool arrow = s.at[i] == '>' && i && s.at[i - 1] == '-';

		if (strchr("(<[{", s.at[i]))
			depth++;
		else if (strchr(")>]}", s.at[i]) && !arrow)
			depth--;
		else if (s.at[i] == ',' && depth == 0)
			return i;
	}
	return s.n;
}

size_t gpul_cxx_params(const char *demangled, gpul_cxx_param *out, size_t room)
{
	size_t n_name = gpul_name_before_params(demangled), count = 0;
	struct span left = { demangled + n_name, strlen(demangled) - n_name };

	if (left.n < 2)
		return GPUL_CXX_NO_LIST;
	left = trim((struct span){ left.at + 1, left.n - 2 });
	while (left.n) {
		size_t n = param_bytes(left);

		if (count < room)
			out[count] = parse_param(trim((struct span){ left.at, n }));
		count++;
		n += n < left.n; /* skip the comma */
		left = trim((struct span){ left.at + n, left.n - n });
	}
	return count;
}
