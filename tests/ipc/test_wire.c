/* test_wire.c — messages: what is right comes back as it was, what is wrong is refused with a
 * reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/wire_internal.h"

static const unsigned types[] = { WIRE_HELLO,   WIRE_OFFER, WIRE_READY,
				  WIRE_REFUSED, WIRE_INFO,  WIRE_BYE };
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

/* Of every type, one that is right. */
static gpul_ipc_message good(unsigned type)
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

/* The reason, or NULL: it was taken. */
static const char *reason(const void *bytes, size_t n_bytes)
{
	static gpul_error err;
	/* Exactly as long as it is said to be: the sanitizer sees a byte read too far. */
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

static void what_is_right_comes_back_as_it_was(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_TYPES; i++) {
		gpul_ipc_message m = good(types[i]), out;

		assert_int_equal(
			gpul_ipc_wire_parse(&m, gpul_ipc_wire_bytes(types[i]), &out, NULL),
			GPUL_OK);
		assert_memory_equal(&m, &out, gpul_ipc_wire_bytes(types[i]));
	}
}

static void every_other_length_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_TYPES; i++) {
		gpul_ipc_message m = good(types[i]);
		unsigned char room[sizeof m + 1] = { 0 };

		memcpy(room, &m, sizeof m);
		for (size_t n = 0; n <= sizeof room; n++)
			assert_int_equal(reason(room, n) == NULL,
					 n == gpul_ipc_wire_bytes(types[i]));
	}
}

static void another_version_is_named(void **state)
{
	gpul_ipc_message m = good(WIRE_BYE);

	(void)state;
	m.head.version = 9;
	assert_non_null(strstr(reason(&m, sizeof m.head), "speaks version 9, this one 1"));
	m = good(WIRE_BYE);
	m.head.magic++;
	assert_non_null(strstr(reason(&m, sizeof m.head), "not gpuload's"));
	for (unsigned type = 0; type < 1 << 16; type++) {
		m = good(WIRE_BYE);
		m.head.type = (uint16_t)type;
		assert_int_equal(reason(&m, sizeof m.head) == NULL, type == WIRE_BYE);
	}
}

/* Each field of a share that can be wrong, made so. */
static void sizes_that_do_not_fit_into_each_other_are_refused(void **state)
{
	static const uint64_t sizes[] = {
		0, (uint64_t)-1, (uint64_t)1 << 63, ((uint64_t)1 << 56) + 4096, 4095, 4096
	};
	gpul_ipc_message m;

	(void)state;
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		m = good(WIRE_OFFER);
		m.offer.share.mapped_bytes = sizes[i]; /* all too small for the megabyte, or too
							  large for a machine */
		assert_non_null(reason(&m, sizeof m.offer));
	}
	m = good(WIRE_OFFER);
	m.offer.share.bytes = m.offer.share.mapped_bytes - GPUL_IPC_CONTROL_BYTES;
	assert_null(reason(&m, sizeof m.offer));
	m.offer.share.bytes++;
	assert_non_null(strstr(reason(&m, sizeof m.offer), "the size"));
	m.offer.share.bytes = (uint64_t)-1;
	assert_non_null(strstr(reason(&m, sizeof m.offer), "the size"));
	m.offer.share.bytes = 0;
	assert_non_null(strstr(reason(&m, sizeof m.offer), "the size"));
	for (uint64_t grain = 0; grain < 5; grain += 1) {
		m = good(WIRE_OFFER);
		m.offer.share.granularity_bytes = grain;
		assert_int_equal(reason(&m, sizeof m.offer) == NULL,
				 grain == 1 || grain == 2 || grain == 4);
	}
}

static void a_shape_larger_than_the_bytes_is_refused(void **state)
{
	gpul_ipc_message m = good(WIRE_OFFER);
	struct wire_share *s = &m.offer.share;

	(void)state;
	assert_null(reason(&m, sizeof m.offer)); /* 512 * 512 * 4: all of them */
	s->dim[1]++;
	assert_non_null(strstr(reason(&m, sizeof m.offer), "shape"));
	s->dim[0] = s->dim[1] = (uint64_t)1 << 32; /* their product is 0 in 64 bits */
	assert_non_null(strstr(reason(&m, sizeof m.offer), "dimension"));
	s->n_dims = GPUL_IPC_MAX_DIMS + 1;
	assert_non_null(strstr(reason(&m, sizeof m.offer), "dimensions"));
	s->n_dims = 0;
	assert_null(reason(&m, sizeof m.offer)); /* says nothing */
	memset(s->dtype, 'x', sizeof s->dtype);  /* does not end */
	assert_non_null(strstr(reason(&m, sizeof m.offer), "no text"));
}

static void each_kind_comes_by_its_own_way_only(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < GPUL_MEM_N_KINDS + 2; kind++) {
		for (unsigned via = 0; via < 5; via++) {
			bool by_fd = kind == GPUL_MEM_HOST_NUMA || kind == GPUL_MEM_MEMFD ||
				     kind == GPUL_MEM_SHM || kind == GPUL_MEM_DEVICE;
			bool fits = (via == WIRE_VIA_FD && by_fd) ||
				    (via == WIRE_VIA_FABRIC && kind == GPUL_MEM_DEVICE) ||
				    (via == WIRE_VIA_CUDA_IPC && kind == GPUL_MEM_DEVICE_IPC);
			gpul_ipc_message m = good(WIRE_OFFER);

			m.offer.share.kind = kind;
			m.offer.share.via = via;
			assert_int_equal(reason(&m, sizeof m.offer) == NULL, fits);
		}
	}
}

static void small_fields_out_of_their_range_are_refused(void **state)
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
		{ WIRE_HELLO, offsetof(struct wire_hello, driver),
		  0x41411b41 }, /* an escape character */
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
		{ WIRE_INFO, offsetof(struct wire_info, peer[3].slot), 2 }, /* peer 2's */
		{ WIRE_INFO, offsetof(struct wire_info, peer[63].slot), 64 },
		{ WIRE_INFO, offsetof(struct wire_info, peer[5].pid), (uint32_t)-1 },
		{ WIRE_INFO, offsetof(struct wire_info, share.kind), GPUL_MEM_PINNED },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		gpul_ipc_message m = good(wrong[i].type);

		assert_null(reason(&m, gpul_ipc_wire_bytes(wrong[i].type)));
		memcpy((char *)&m + wrong[i].at, &wrong[i].value, sizeof wrong[i].value);
		if (!reason(&m, gpul_ipc_wire_bytes(wrong[i].type)))
			fail_msg("case %u was taken", i);
	}
}

static void what_a_reason_says_does_nothing_to_a_terminal(void **state)
{
	gpul_ipc_message m = good(WIRE_REFUSED), out;

	(void)state;
	memset(m.refused.text, 0x1b, sizeof m.refused.text); /* and without an end */
	assert_int_equal(gpul_ipc_wire_parse(&m, sizeof m.refused, &out, NULL), GPUL_OK);
	assert_int_equal(strlen(out.refused.text), sizeof out.refused.text - 1);
	assert_int_equal(strspn(out.refused.text, "?"), sizeof out.refused.text - 1);
}

/* Bytes at random in a message that was right: whatever is taken is in range. */
static void what_is_taken_is_in_range_whatever_came(void **state)
{
	uint64_t random = 88172645463325252u;
	unsigned n_taken = 0;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		gpul_ipc_message m = good(WIRE_OFFER), out;

		for (unsigned k = 0; k < 1 + i % 3; k++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			((unsigned char *)&m)[random % sizeof m.offer] ^=
				(unsigned char)(1u << (random >> 32) % 8);
		}
		if (gpul_ipc_wire_parse(&m, sizeof m.offer, &out, NULL))
			continue;
		n_taken++;
		assert_true(out.offer.share.bytes +
				    gpul_ipc_wire_data_offset(&out.offer.share) <=
			    out.offer.share.mapped_bytes);
		assert_true(out.offer.share.kind > GPUL_MEM_AUTO &&
			    out.offer.share.kind < GPUL_MEM_N_KINDS);
		assert_true(out.offer.share.slot < GPUL_IPC_MAX_PEERS &&
			    out.offer.share.n_dims <= GPUL_IPC_MAX_DIMS);
		assert_non_null(memchr(out.offer.share.dtype, 0, sizeof out.offer.share.dtype));
	}
	assert_true(n_taken > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_right_comes_back_as_it_was),
		cmocka_unit_test(every_other_length_is_refused),
		cmocka_unit_test(another_version_is_named),
		cmocka_unit_test(sizes_that_do_not_fit_into_each_other_are_refused),
		cmocka_unit_test(a_shape_larger_than_the_bytes_is_refused),
		cmocka_unit_test(each_kind_comes_by_its_own_way_only),
		cmocka_unit_test(small_fields_out_of_their_range_are_refused),
		cmocka_unit_test(what_a_reason_says_does_nothing_to_a_terminal),
		cmocka_unit_test(what_is_taken_is_in_range_whatever_came),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
