/* nvrtc_headers.c — texts that replace C and C++ headers that kernels include and NVRTC lacks.
 *
 * NVRTC has no C library headers, but declares printf, assert, malloc, memcpy and the mathematical functions itself;
 * these texts make `#include <cassert>` succeed.  Types and limits come from the toolkit's cuda/std if it is there,
 * so that a program may include both. */
#include "ptx/nvrtc/nvrtc_internal.h"

#define NOTHING "#pragma once\n"

static const char stdint_text[] = "#pragma once\n"
				  "#if __has_include(<cuda/std/cstdint>)\n"
				  "#include <cuda/std/cstdint>\n"
				  "#else\n"
				  "typedef signed char int8_t; typedef unsigned char uint8_t;\n"
				  "typedef short int16_t; typedef unsigned short uint16_t;\n"
				  "typedef int int32_t; typedef unsigned int uint32_t;\n"
				  "typedef long long int64_t; typedef unsigned long long uint64_t;\n"
				  "typedef long long intptr_t; typedef unsigned long long uintptr_t;\n"
				  "typedef long long intmax_t; typedef unsigned long long uintmax_t;\n"
				  "#define INT8_MAX 127\n#define INT8_MIN (-128)\n#define UINT8_MAX 255\n"
				  "#define INT16_MAX 32767\n#define INT16_MIN (-32768)\n#define UINT16_MAX 65535\n"
				  "#define INT32_MAX 2147483647\n#define INT32_MIN (-INT32_MAX - 1)\n#define UINT32_MAX "
				  "4294967295u\n"
				  "#define INT64_MAX 9223372036854775807ll\n#define INT64_MIN (-INT64_MAX - 1)\n"
				  "#define UINT64_MAX 18446744073709551615ull\n#define SIZE_MAX UINT64_MAX\n"
				  "#define INT64_C(x) x##ll\n#define UINT64_C(x) x##ull\n#define UINT32_C(x) x##u\n"
				  "#endif\n";

static const char cstdint_text[] = "#pragma once\n"
				   "#include <stdint.h>\n"
				   "namespace std {\n"
				   "using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;\n"
				   "using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using "
				   "::uintptr_t;\n"
				   "}\n";

static const char limits_text[] = "#pragma once\n"
				  "#if __has_include(<cuda/std/climits>)\n"
				  "#include <cuda/std/climits>\n"
				  "#else\n"
				  "#define CHAR_BIT 8\n"
				  "#define SCHAR_MAX 127\n#define SCHAR_MIN (-128)\n#define UCHAR_MAX 255\n"
				  "#define CHAR_MAX SCHAR_MAX\n#define CHAR_MIN SCHAR_MIN\n"
				  "#define SHRT_MAX 32767\n#define SHRT_MIN (-32768)\n#define USHRT_MAX 65535\n"
				  "#define INT_MAX 2147483647\n#define INT_MIN (-INT_MAX - 1)\n#define UINT_MAX "
				  "4294967295u\n"
				  "#define LLONG_MAX 9223372036854775807ll\n#define LLONG_MIN (-LLONG_MAX - 1)\n"
				  "#define ULLONG_MAX 18446744073709551615ull\n"
				  "#define LONG_MAX 9223372036854775807l\n#define LONG_MIN (-LONG_MAX - 1)\n"
				  "#define ULONG_MAX 18446744073709551615ul\n"
				  "#endif\n";

static const char float_text[] = "#pragma once\n"
				 "#ifndef FLT_MAX\n"
				 "#define FLT_MAX 3.40282346638528859812e+38f\n#define FLT_MIN "
				 "1.17549435082228750797e-38f\n"
				 "#define FLT_EPSILON 1.1920928955078125e-07f\n"
				 "#endif\n"
				 "#ifndef DBL_MAX\n"
				 "#define DBL_MAX 1.79769313486231570814e+308\n#define DBL_MIN "
				 "2.22507385850720138309e-308\n"
				 "#define DBL_EPSILON 2.2204460492503130808e-16\n"
				 "#endif\n";

static const struct {
	const char *name, *text;
} rows[] = {
	{ "stdint.h", stdint_text }, { "cstdint", cstdint_text }, { "inttypes.h", stdint_text }, { "limits.h", limits_text },
	{ "climits", limits_text },  { "float.h", float_text },   { "cfloat", float_text },      { "assert.h", NOTHING },
	{ "cassert", NOTHING },      { "stdio.h", NOTHING },      { "cstdio", NOTHING },         { "stdlib.h", NOTHING },
	{ "cstdlib", NOTHING },      { "string.h", NOTHING },     { "cstring", NOTHING },        { "math.h", NOTHING },
	{ "cmath", NOTHING },        { "stddef.h", NOTHING },     { "cstddef", NOTHING },        { "stdbool.h", NOTHING },
};

/* The replacement for C++ headers that device code cannot use; it declares the namespace, so that `using namespace std` compiles. */
static const char host_text[] = "#pragma once\nnamespace std {}\n";
static const char *const host_headers[] = {
	"algorithm",   "atomic",    "bitset",        "chrono",        "condition_variable",
	"deque",       "exception", "filesystem",    "fstream",       "functional",
	"future",      "getopt.h",  "iomanip",       "ios",           "iostream",
	"iterator",    "list",      "map",           "memory",        "mutex",
	"numeric",     "omp.h",     "optional",      "ostream",       "queue",
	"random",      "set",       "sstream",       "stdexcept",     "string",
	"string_view", "strings.h", "sys/time.h",    "thread",        "time.h",
	"ctime",       "unistd.h",  "unordered_map", "unordered_set", "vector",
};

_Static_assert(sizeof rows / sizeof *rows + sizeof host_headers / sizeof *host_headers <= (size_t)PTX_NVRTC_MAX_HEADERS,
	       "the arrays of the caller must hold all headers");

int ptx_nvrtc_headers(bool device_only, const char *names[PTX_NVRTC_MAX_HEADERS], const char *texts[PTX_NVRTC_MAX_HEADERS])
{
	const int n = sizeof rows / sizeof *rows, n_host = sizeof host_headers / sizeof *host_headers;

	for (int i = 0; i < n; i++) {
		names[i] = rows[i].name;
		texts[i] = rows[i].text;
	}
	for (int i = 0; device_only && i < n_host; i++) {
		names[n + i] = host_headers[i];
		texts[n + i] = host_text;
	}
	return device_only ? n + n_host : n;
}
