/* hostile.c — makes netqueue entries with wrong or random members, and checks what the kernel does with them. */
#include "tests/lab/netqueue/hostile.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ENTRIES = 8192 };

/* Return a random number of up to `bits` bits, often one near the limit. */
static uint64_t near(struct rig *r, uint64_t limit, unsigned bits)
{
	const uint64_t mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;

	switch (rig_below(r, 4)) {
	case 0:
		return (limit + rig_below(r, 64) - 32) & mask;
	case 1:
		return (limit - rig_below(r, 3)) & mask;
	case 2:
		return rig_random(r) & mask >> rig_below(r, bits);
	default:
		return rig_below(r, limit);
	}
}

gpul_netqueue_entry hostile_entry(struct rig *r, uint64_t n)
{
	const uint64_t slot = r->shape.slot_bytes, all = slot * r->shape.n_slots;
	const uint32_t lap = gpul_netqueue_lap(n, r->shape.n_entries);
	uint32_t length = (uint32_t)rig_below(r, rig_below(r, 8) ? 100 : slot) + 1;
	uint64_t source = rig_below(r, r->shape.n_slots) * slot + rig_below(r, slot - length + 1);
	uint64_t destination = rig_below(r, r->destination_bytes - length + 1);
	gpul_netqueue_entry e;

	switch (rig_below(r, 8)) {
	case 0:
		length = (uint32_t)near(r, slot, GPUL_NETQUEUE_LENGTH_BITS);
		break;
	case 1:
		source = near(r, all, GPUL_NETQUEUE_LENGTH_SHIFT);
		break;
	case 2:
		source = near(r, slot * (1 + rig_below(r, r->shape.n_slots)) - length, GPUL_NETQUEUE_LENGTH_SHIFT);
		break;
	case 3:
		destination = near(r, r->destination_bytes, GPUL_NETQUEUE_LAP_SHIFT);
		break;
	case 4:
		destination = near(r, r->destination_bytes - length, GPUL_NETQUEUE_LAP_SHIFT);
		break;
	case 5:
		length = 0;
		break;
	}
	e = gpul_netqueue_pack(lap, source, length, destination);
	if (rig_below(r, 8) == 0)
		e.word[rig_below(r, 2)] ^= 1ull << rig_below(r, 64);
	if (rig_below(r, 16) == 0)
		e.word[rig_below(r, 2)] = rig_random(r);
	return e;
}

/* Check the number of reports, and that each one names an entry that breaks the reported rule. */
static bool check_reports(const struct rig *r, const gpul_netqueue_entry *entries, const gpul_netqueue_result *result, uint64_t n_refused)
{
	const uint64_t expected = n_refused < GPUL_NETQUEUE_MAX_REPORTS ? n_refused : GPUL_NETQUEUE_MAX_REPORTS;
	char text[GPUL_NETQUEUE_TEXT_BYTES];

	if (result->n_reports != expected)
		return printf("%u reports, expected %llu\n", result->n_reports, (unsigned long long)expected) < 0;
	for (uint32_t i = 0; i < result->n_reports; i++) {
		const gpul_netqueue_report *p = &result->reports[i];

		if (p->entry >= r->shape.n_entries || p->field != rig_rule(r, p->entry, &entries[p->entry]))
			return printf("wrong report: %s\n", gpul_netqueue_explain(p, text)) < 0;
	}
	return true;
}

bool hostile_round(struct rig *r, uint64_t refused[GPUL_NETQUEUE_N_FIELDS])
{
	static gpul_netqueue_entry entries[MOST_ENTRIES];
	uint64_t expected[GPUL_NETQUEUE_N_FIELDS] = { 0 }, n_refused = 0, wrong;
	gpul_netqueue_result result = { .n_reports = 0 };
	gpul_error err = { 0 };
	gpul_status st;

	rig_fill_destination(r);
	for (uint64_t n = 0; n < r->shape.n_entries; n++) {
		entries[n] = hostile_entry(r, n);
		expected[rig_rule(r, n, &entries[n])]++;
	}
	n_refused = r->shape.n_entries - expected[0];
	st = rig_run(r, entries, r->shape.n_entries, &result, &err);
	if (st != (n_refused ? GPUL_EFORMAT : GPUL_OK))
		return printf("%llu refusals expected, status %d: %s\n", (unsigned long long)n_refused, st, err.text) < 0;
	for (unsigned field = 1; field < GPUL_NETQUEUE_N_FIELDS; field++) {
		refused[field] += expected[field];
		if (result.counts.refused[field] != expected[field])
			return printf("%s: %llu entries refused, expected %llu\n", gpul_netqueue_field_name(field),
				      (unsigned long long)result.counts.refused[field], (unsigned long long)expected[field]) < 0;
	}
	if (result.counts.n_pieces != expected[0])
		return printf("%llu pieces, expected %llu\n", (unsigned long long)result.counts.n_pieces, (unsigned long long)expected[0]) <
		       0;
	wrong = rig_first_wrong(r, entries, r->shape.n_entries);
	if (wrong != UINT64_MAX)
		return printf("byte %lld of the destination is wrong\n", (long long)wrong - GUARD_BYTES) < 0;
	return check_reports(r, entries, &result, n_refused);
}
