/* test_wire.c — parsing messages: valid messages are copied unchanged, invalid ones are refused with a reason. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "ipc/wire_internal.h"

static const unsigned types[] = { WIRE_HELLO, WIRE_OFFER, WIRE_READY, WIRE_REFUSED, WIRE_INFO, WIRE_BYE };
enum { N_TYPES = sizeof types / sizeof types[0] };

static struct wire_share good_share(void)
{
	return (struct wire_share){
		.id = { 1, 2, 3 },
		.generation = 4,
		.mapped_bytes = 2 << 20,
		.bytes = 1 << 20,
		.granularity_bytes = 4096,
		.kind = GPUL_MEM_MEMFD,
		.node = 1,
		.flags = WIRE_HAS_CONTROL,
		.n_dims = 2,
		.slot = 63,
		.via = WIRE_VIA_FD,
		.dtype = "<f4",
		.dim = { 512, 512 },
		.driver = "soft",
	};
}

/* Return a valid message of a type. */
static gpul_ipc_message good_message(unsigned type)
{
	gpul_ipc_message m;

	memset(&m, 0, sizeof m);
	m.head = gpul_ipc_wire_head((enum wire_type)type);
	switch (type) {
	case WIRE_HELLO:
		m.hello.intent = WIRE_ATTACH;
		m.hello.n_gpus = WIRE_MAX_GPUS;
		strcpy(m.hello.driver, "nvidia");
		break;
	case WIRE_OFFER:
		m.offer.share = good_share();
		break;
	case WIRE_REFUSED:
		m.refused.status = GPUL_EINVAL;
		strcpy(m.refused.text, "no");
		break;
	case WIRE_INFO:
		m.info.share = good_share();
		m.info.n_peers = GPUL_IPC_MAX_PEERS;
		for (unsigned i = 0; i < GPUL_IPC_MAX_PEERS; i++)
			m.info.peer[i].slot = i;
		break;
	}
	return m;
}

/* Parse a message; returns the reason for the refusal; NULL: accepted. */
static const char *parse_reason(const void *bytes, size_t n_bytes)
{
	static gpul_error err;
	/* A copy of exactly n_bytes, so that the sanitizer detects reads past its end. */
	void *copy = malloc(n_bytes ? n_bytes : 1);
	gpul_ipc_message out;
	gpul_status st;

	assert_non_null(copy);
	memcpy(copy, bytes, n_bytes);
	err = (gpul_error){ 0 };
	st = gpul_ipc_wire_parse(copy, n_bytes, &out, &err);
	free(copy);
	assert_true(st == GPUL_OK || st == GPUL_EFORMAT);
	assert_int_equal(st, err.status);
	return st ? err.text : NULL;
}

static void copies_valid_messages_unchanged(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_TYPES; i++) {
		gpul_ipc_message m = good_message(types[i]), out;

		assert_int_equal(gpul_ipc_wire_parse(&m, gpul_ipc_wire_bytes(types[i]), &out, NULL), GPUL_OK);
		assert_memory_equal(&m, &out, gpul_ipc_wire_bytes(types[i]));
	}
}

static void refuses_every_wrong_length(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_TYPES; i++) {
		gpul_ipc_message m = good_message(types[i]);
		unsigned char room[sizeof m + 1] = { 0 };

		memcpy(room, &m, sizeof m);
		for (size_t n = 0; n <= sizeof room; n++)
			assert_int_equal(parse_reason(room, n) == NULL, n == gpul_ipc_wire_bytes(types[i]));
	}
}

static void reports_another_version(void **state)
{
	gpul_ipc_message m = good_message(WIRE_BYE);

	(void)state;
	m.head.version = 9;
	assert_non_null(strstr(parse_reason(&m, sizeof m.head), "uses protocol version 9, but this process uses version 1"));
	m = good_message(WIRE_BYE);
	m.head.magic++;
	assert_non_null(strstr(parse_reason(&m, sizeof m.head), "a message that is not from gpuload"));
	for (unsigned type = 0; type < 1 << 16; type++) {
		m = good_message(WIRE_BYE);
		m.head.type = (uint16_t)type;
		assert_int_equal(parse_reason(&m, sizeof m.head) == NULL, type == WIRE_BYE);
	}
}

/* Changes each field of the offer's description of the memory, if the field can be invalid. */
static void refuses_inconsistent_sizes(void **state)
{
	static const uint64_t sizes[] = { 0, (uint64_t)-1, (uint64_t)1 << 63, ((uint64_t)1 << 56) + 4096, 4095, 4096 };
	gpul_ipc_message m;

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		m = good_message(WIRE_OFFER);
		m.offer.share.mapped_bytes = sizes[i]; /* smaller than the offered memory, or too large */
		assert_non_null(parse_reason(&m, sizeof m.offer));
	}
	m = good_message(WIRE_OFFER);
	m.offer.share.bytes = m.offer.share.mapped_bytes - GPUL_IPC_CONTROL_BYTES;
	assert_null(parse_reason(&m, sizeof m.offer));
	m.offer.share.bytes++;
	assert_non_null(strstr(parse_reason(&m, sizeof m.offer), "size is invalid"));
	m.offer.share.bytes = (uint64_t)-1;
	assert_non_null(strstr(parse_reason(&m, sizeof m.offer), "size is invalid"));
	m.offer.share.bytes = 0;
	assert_non_null(strstr(parse_reason(&m, sizeof m.offer), "size is invalid"));
	for (uint64_t grain = 0; grain < 5; grain += 1) {
		m = good_message(WIRE_OFFER);
		m.offer.share.granularity_bytes = grain;
		assert_int_equal(parse_reason(&m, sizeof m.offer) == NULL, grain == 1 || grain == 2 || grain == 4);
	}
}

static void refuses_a_shape_larger_than_the_bytes(void **state)
{
	gpul_ipc_message m = good_message(WIRE_OFFER);
	struct wire_share *s = &m.offer.share;

	(void)state;
	assert_null(parse_reason(&m, sizeof m.offer)); /* valid, because the shape's 512 * 512 * 4 bytes are all bytes of the memory */
	s->dim[1]++;
	assert_non_null(strstr(parse_reason(&m, sizeof m.offer), "shape"));
	s->dim[0] = s->dim[1] = (uint64_t)1 << 32; /* the product of the dimensions is 0 in 64 bits */
	assert_non_null(strstr(parse_reason(&m, sizeof m.offer), "dimension"));
	s->n_dims = GPUL_IPC_MAX_DIMS + 1;
	assert_non_null(strstr(parse_reason(&m, sizeof m.offer), "dimensions"));
	s->n_dims = 0;
	assert_null(parse_reason(&m, sizeof m.offer)); /* a share without a shape is valid */
	memset(s->dtype, 'x', sizeof s->dtype);        /* the text has no NUL at its end */
	assert_non_null(strstr(parse_reason(&m, sizeof m.offer), "not printable text"));
}

static void refuses_a_method_that_does_not_fit_the_kind(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < GPUL_MEM_N_KINDS + 2; kind++) {
		for (unsigned via = 0; via < 5; via++) {
			bool by_fd = kind == GPUL_MEM_HOST_NUMA || kind == GPUL_MEM_MEMFD || kind == GPUL_MEM_SHM ||
				     kind == GPUL_MEM_DEVICE;
			bool fits = (via == WIRE_VIA_FD && by_fd) || (via == WIRE_VIA_FABRIC && kind == GPUL_MEM_DEVICE) ||
				    (via == WIRE_VIA_CUDA_IPC && kind == GPUL_MEM_DEVICE_IPC);
			gpul_ipc_message m = good_message(WIRE_OFFER);

			m.offer.share.kind = kind;
			m.offer.share.via = via;
			assert_int_equal(parse_reason(&m, sizeof m.offer) == NULL, fits);
		}
	}
}

static void refuses_fields_out_of_range(void **state)
{
	static const struct {
		unsigned type;
		size_t at;
		uint32_t value;
	} wrong[] = {
		{ WIRE_HELLO, offsetof(struct wire_hello, intent), 0 },
		{ WIRE_HELLO, offsetof(struct wire_hello, intent), 3 },
		{ WIRE_HELLO, offsetof(struct wire_hello, read_only), 2 },
		{ WIRE_HELLO, offsetof(struct wire_hello, n_gpus), WIRE_MAX_GPUS + 1 },
		{ WIRE_HELLO, offsetof(struct wire_hello, zero), 1 },
		{ WIRE_HELLO, offsetof(struct wire_hello, driver), 0x41411b41 }, /* an escape character */
		{ WIRE_OFFER, offsetof(struct wire_offer, share.flags), 8 },
		{ WIRE_OFFER, offsetof(struct wire_offer, share.slot), GPUL_IPC_MAX_PEERS },
		{ WIRE_OFFER, offsetof(struct wire_offer, share.node), (uint32_t)-2 },
		{ WIRE_OFFER, offsetof(struct wire_offer, share.zero), 1 },
		{ WIRE_READY, offsetof(struct wire_ready, read_only), 2 },
		{ WIRE_READY, offsetof(struct wire_ready, zero), 1 },
		{ WIRE_REFUSED, offsetof(struct wire_refused, status), GPUL_OK },
		{ WIRE_REFUSED, offsetof(struct wire_refused, status), GPUL_EVERBS + 1 },
		{ WIRE_INFO, offsetof(struct wire_info, n_peers), GPUL_IPC_MAX_PEERS + 1 },
		{ WIRE_INFO, offsetof(struct wire_info, zero), 1 },
		{ WIRE_INFO, offsetof(struct wire_info, peer[3].slot), 2 }, /* slot 2 is already that of peer 2 */
		{ WIRE_INFO, offsetof(struct wire_info, peer[63].slot), 64 },
		{ WIRE_INFO, offsetof(struct wire_info, peer[5].pid), (uint32_t)-1 },
		{ WIRE_INFO, offsetof(struct wire_info, share.kind), GPUL_MEM_PINNED },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		gpul_ipc_message m = good_message(wrong[i].type);

		assert_null(parse_reason(&m, gpul_ipc_wire_bytes(wrong[i].type)));
		memcpy((char *)&m + wrong[i].at, &wrong[i].value, sizeof wrong[i].value);
		if (!parse_reason(&m, gpul_ipc_wire_bytes(wrong[i].type)))
			fail_msg("case %u was accepted", i);
	}
}

static void replaces_unprintable_characters_in_a_reason(void **state)
{
	gpul_ipc_message m = good_message(WIRE_REFUSED), out;

	(void)state;
	memset(m.refused.text, 0x1b, sizeof m.refused.text); /* the text has no NUL */
	assert_int_equal(gpul_ipc_wire_parse(&m, sizeof m.refused, &out, NULL), GPUL_OK);
	assert_int_equal(strlen(out.refused.text), sizeof out.refused.text - 1);
	assert_int_equal(strspn(out.refused.text, "?"), sizeof out.refused.text - 1);
}

/* Random bytes in valid messages: accepted messages have all fields in range. */
static void accepted_random_messages_have_fields_in_range(void **state)
{
	uint64_t random = 88172645463325252u;
	unsigned n_taken = 0;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		gpul_ipc_message m = good_message(WIRE_OFFER), out;

		for (unsigned k = 0; k < 1 + i % 3; k++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			((unsigned char *)&m)[random % sizeof m.offer] ^= (unsigned char)(1u << (random >> 32) % 8);
		}
		if (gpul_ipc_wire_parse(&m, sizeof m.offer, &out, NULL))
			continue;
		n_taken++;
		assert_true(out.offer.share.bytes + gpul_ipc_wire_data_offset(&out.offer.share) <= out.offer.share.mapped_bytes);
		assert_true(out.offer.share.kind > GPUL_MEM_AUTO && out.offer.share.kind < GPUL_MEM_N_KINDS);
		assert_true(out.offer.share.slot < GPUL_IPC_MAX_PEERS && out.offer.share.n_dims <= GPUL_IPC_MAX_DIMS);
		assert_non_null(memchr(out.offer.share.dtype, 0, sizeof out.offer.share.dtype));
	}
	assert_true(n_taken > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_valid_messages_unchanged),
		cmocka_unit_test(refuses_every_wrong_length),
		cmocka_unit_test(reports_another_version),
		cmocka_unit_test(refuses_inconsistent_sizes),
		cmocka_unit_test(refuses_a_shape_larger_than_the_bytes),
		cmocka_unit_test(refuses_a_method_that_does_not_fit_the_kind),
		cmocka_unit_test(refuses_fields_out_of_range),
		cmocka_unit_test(replaces_unprintable_characters_in_a_reason),
		cmocka_unit_test(accepted_random_messages_have_fields_in_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
