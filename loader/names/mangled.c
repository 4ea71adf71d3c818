/* mangled.c — how long a mangled name is once it is demangled, about.
 *
 *     _Z1f 1aIiiE S_IS0_S0_E S_IS1_S1_E ...      each part is the one before it, twice
 *
 * A name of 300 characters can stand for one of gigabytes, and __cxa_demangle writes all of it: it
 * knows no limit.  This walks the name as it does, and keeps lengths instead of text: what stands
 * for itself is about as long as it is there, what refers to a part of before is as long as that.
 *
 * Grammar: the Itanium C++ ABI, 5.1; as far as it moves lengths.  What is not known counts a
 * little.  For the 25,000 names of CUDA 13.0's libraries it was 0.72 to 2.4 of the true length. */
#include "loader/names/mangled_internal.h"

#include <ctype.h>
#include <string.h>

enum { MOST_PARTS = 4096, MOST_ARGS = 64, MOST_DEPTH = 200 };
#define ENOUGH ((uint64_t)1 << 40) /* lengths stop growing here */

typedef struct walk {
	const char *p;
	uint64_t parts[MOST_PARTS]; /* what S_, S0_, S1_ ... refer to */
	size_t n_parts;
	uint64_t args[MOST_ARGS];   /* what T_, T0_ ... refer to: of the last list read */
	size_t n_args;
	unsigned depth;
} walk;

static uint64_t type(walk *w);

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < ENOUGH ? a + b : ENOUGH;
}

static uint64_t keep(walk *w, uint64_t length)
{
	if (w->n_parts < MOST_PARTS)
		w->parts[w->n_parts++] = length;
	return length;
}

static uint64_t step(walk *w, uint64_t length)
{
	w->p += *w->p != 0;
	return length;
}

/* "3abc" */
static uint64_t source_name(walk *w)
{
	uint64_t n = 0;

	for (; isdigit((unsigned char)*w->p) && n < ENOUGH; w->p++)
		n = n * 10 + (uint64_t)(*w->p - '0');
	n = strnlen(w->p, (size_t)n);
	w->p += n;
	return n + 2;
}

/* The number in "_", "0_", "1A_": 0, 1, ...; as in base 36. */
static size_t sequence(walk *w)
{
	size_t n = 0;
	bool some = false;

	for (; isdigit((unsigned char)*w->p) || isupper((unsigned char)*w->p); w->p++) {
		int digit = *w->p - (*w->p <= '9' ? '0' : 'A' - 10);

		n = (n * 36 + (size_t)digit) % (MOST_PARTS * 36);
		some = true;
	}
	w->p += *w->p == '_';
	return n + some;
}

static uint64_t arguments(walk *w);

/* An argument of a template that is a value: a literal, or an expression up to its E. */
static uint64_t value(walk *w)
{
	uint64_t n = 0;

	step(w, 0); /* L or X */
	while (*w->p && *w->p != 'E') {
		const char *before = w->p;

		n = sum(n, *w->p == 'L' || *w->p == 'X'       ? value(w)
			   : *w->p == 'I' || *w->p == 'J'     ? arguments(w)
			   : strchr("TSNPRK", *w->p) != NULL ? type(w)
							      : step(w, 4));
		if (w->p == before || w->depth > MOST_DEPTH)
			break;
	}
	return step(w, n);
}

/* "I...E", "J...E" */
static uint64_t arguments(walk *w)
{
	uint64_t own[MOST_ARGS], all = 2;
	size_t n = 0;

	step(w, 0);
	if (++w->depth > MOST_DEPTH)
		return ENOUGH;
	while (*w->p && *w->p != 'E') {
		uint64_t one = *w->p == 'L' || *w->p == 'X'   ? value(w)
			       : *w->p == 'I' || *w->p == 'J' ? arguments(w)
							      : type(w);

		if (n < MOST_ARGS)
			own[n++] = one;
		all = sum(all, one + 2);
	}
	w->depth--;
	memcpy(w->args, own, n * sizeof *own);
	w->n_args = n;
	return step(w, all);
}

/* What starts with S: a part of before, or a name of std's. */
static uint64_t substitution(walk *w, bool *is_new)
{
	uint64_t n = 12;
	size_t i;

	step(w, 0);
	*is_new = false;
	if (*w->p == 't') {
		step(w, 0);
		*is_new = true;
		return isdigit((unsigned char)*w->p) ? 5 + source_name(w) : 5;
	}
	if (islower((unsigned char)*w->p))
		return step(w, 64); /* Ss, Sa ...: std::basic_string<char, ...> */
	i = sequence(w);
	return i < w->n_parts ? w->parts[i] : n;
}

static uint64_t parameter(walk *w)
{
	size_t i;

	step(w, 0);
	i = sequence(w);
	return i < w->n_args ? w->args[i] : 4;
}

/* "Ul...E_", "Ut_": a name that the compiler gave. */
static uint64_t unnamed(walk *w)
{
	uint64_t n = 12;
	bool lambda = w->p[1] == 'l';

	w->p += w->p[1] ? 2 : 1;
	while (lambda && *w->p && *w->p != 'E')
		n = sum(n, type(w) + 2);
	if (lambda)
		step(w, 0);
	sequence(w);
	return n;
}

/* "N...E": each component but the last is a part, and all of it where it is a type. */
static uint64_t nested(walk *w)
{
	uint64_t all = 0;

	step(w, 0);
	while (*w->p && strchr("rVKRO", *w->p))
		step(w, 0);
	while (*w->p && *w->p != 'E') {
		const char *before = w->p;
		bool is_new = true;

		if (isdigit((unsigned char)*w->p))
			all = sum(all, source_name(w));
		else if (*w->p == 'S')
			all = sum(all, substitution(w, &is_new));
		else if (*w->p == 'T')
			all = sum(all, parameter(w));
		else if (*w->p == 'I')
			all = sum(all, arguments(w));
		else if (*w->p == 'U')
			all = sum(all, unnamed(w));
		else if (*w->p == 'L' || *w->p == 'B' || *w->p == 'M')
			is_new = step(w, 0);
		else /* an operator, a constructor */
			all = sum(all, step(w, 0) + step(w, 12));
		if (w->p == before || w->depth > MOST_DEPTH)
			break;
		if (is_new && *w->p != 'E')
			keep(w, all);
	}
	return step(w, all);
}

/* "Z" function "E" name: what a function has inside. */
static uint64_t local(walk *w)
{
	uint64_t n = 0;

	step(w, 0);
	while (*w->p && *w->p != 'E' && w->depth <= MOST_DEPTH)
		n = sum(n, type(w) + 2);
	step(w, 0);
	return sum(n, *w->p == 's' ? step(w, 14) : type(w));
}

/* Types up to an E. */
static uint64_t list(walk *w)
{
	uint64_t n = 4;

	step(w, 0);
	while (*w->p && *w->p != 'E' && w->depth <= MOST_DEPTH)
		n = sum(n, type(w) + 2);
	return step(w, n);
}

/* "A4_i", "Dv4_f", from the number on. */
static uint64_t array(walk *w)
{
	while (*w->p && *w->p != '_')
		step(w, 0);
	step(w, 0);
	return sum(type(w), 16);
}

static uint64_t of_d(walk *w) /* Dp, Dt, DT, Dv and built-in types */
{
	char c = w->p[1];

	if (c == 't' || c == 'T') {
		step(w, 0);
		return keep(w, value(w));
	}
	w->p += c ? 2 : 1;
	if (c == 'p')
		return keep(w, sum(type(w), 3));
	if (c == 'v')
		return keep(w, array(w));
	return 12;
}

/* A name by itself, or one of before, and its arguments. */
static uint64_t with_arguments(walk *w, uint64_t name, bool is_new)
{
	if (is_new)
		keep(w, name);
	return *w->p == 'I' ? keep(w, sum(name, arguments(w))) : name;
}

static uint64_t built_in(walk *w)
{
	return step(w, *w->p == 'y' ? 18 : *w->p == 'm' || *w->p == 'j' || *w->p == 'h' ? 13 : 8);
}

static uint64_t a_type(walk *w)
{
	bool is_new = true;
	uint64_t name;

	switch (*w->p) {
	case 'r': case 'V': case 'K': case 'P':
	case 'R': case 'O': case 'C': case 'G':
		step(w, 0);
		return keep(w, sum(6, type(w)));
	case 'A':
		step(w, 0);
		return keep(w, array(w));
	case 'M':
		step(w, 0);
		name = type(w);
		return keep(w, sum(name, type(w)));
	case 'F':
		return keep(w, list(w));
	case 'D':
		return of_d(w);
	case 'T':
		name = parameter(w);
		return with_arguments(w, name, true);
	case 'S':
		name = substitution(w, &is_new);
		return with_arguments(w, name, is_new);
	case 'N':
		return keep(w, nested(w));
	case 'Z':
		return keep(w, local(w));
	case 'U':
		return keep(w, unnamed(w));
	default:
		if (isdigit((unsigned char)*w->p)) {
			name = source_name(w);
			return with_arguments(w, name, true);
		}
		return built_in(w);
	}
}

static uint64_t type(walk *w)
{
	uint64_t n;

	if (++w->depth > MOST_DEPTH)
		return step(w, ENOUGH);
	n = a_type(w);
	w->depth--;
	return n;
}

uint64_t gpul_mangled_length(const char *name)
{
	walk w; /* large: not all of it is written for each name */
	uint64_t n;
	bool is_new;

	if (strncmp(name, "_Z", 2) != 0)
		return strlen(name);
	w.n_parts = w.n_args = w.depth = 0;
	w.p = name + 2;
	w.p += *w.p == 'L';
	if (*w.p == 'N') {
		n = nested(&w);
	} else if (*w.p == 'S') {
		n = substitution(&w, &is_new);
		n = *w.p == 'I' ? sum(keep(&w, n), arguments(&w)) : n;
	} else if (isdigit((unsigned char)*w.p)) {
		n = source_name(&w);
		n = *w.p == 'I' ? sum(keep(&w, n), arguments(&w)) : n;
	} else {
		n = type(&w);
	}
	while (*w.p && *w.p != '.' && w.depth <= MOST_DEPTH)
		n = sum(n, type(&w) + 2);
	return w.depth > MOST_DEPTH ? ENOUGH : sum(n, strlen(w.p));
}
