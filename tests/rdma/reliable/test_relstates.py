#!/usr/bin/env python3
"""No state of two ends of a reliable connection breaks a rule, for small numbers of messages; and the search finds planted mistakes.

`build/tests/rdma/reliable/relstates --large` searches larger shapes.
"""
import glob, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from mistakes import ROOT, Campaign, Mistake

os.chdir(ROOT)
SOURCES = [*sorted(glob.glob("tests/rdma/reliable/relstates*.c")), *sorted(glob.glob("rdma/reliable/*.c")), "rdma/protocol/protocol_failure.c", "core/error.c",
           "core/text.c", "core/clock.c"]
MISTAKES = [Mistake(*m) for m in (
    ("a chunk is sent beyond the credit", "return rel_before(r->next_chunk, r->limit);", "return !rel_before(r->limit, r->next_chunk);"),
    ("the credit goes back", "if (rel_before(r->limit, a.limit))\n\t\tr->limit", "r->limit"),
    ("a path has two chunks in flight after a time-out", "(p->n_timeouts ? 1 : r->o.path_window)", "r->o.path_window"),
    ("the place of a message is used again too early", "r->out_next - r->out_oldest >= r->o.messages ||", "r->out_next - r->out_oldest > r->o.messages ||"),
    ("lost chunks are forgotten", "state == CHUNK_ACKED)\n\t\tr->oldest++", "state >= CHUNK_LOST)\n\t\tr->oldest++"),
    ("a message is acknowledged with its first chunk", "if (--m->n_unacked == 0)", "if (m->n_unacked-- == m->n_chunks)"),
    ("a dead path is never tried again", "if (p->probe_ns <= now_ns && needs_probe(r, p))", "if (0)"),
    ("a path that answers stays dead", "if (!p->alive) {\n\t\t\tp->alive = true;", "if (!p->alive) {"),
    ("comparisons ignore that numbers wrap around", "return (int32_t)(a - b) < 0;", "return a < b;"),
    ("a bit of an acknowledgement stands for the packet beside it", "const uint32_t before = a->largest - packet - 1;", "const uint32_t before = a->largest - packet;"),
    ("a chunk that arrives twice is written twice", "if (rel_before(d.chunk, r->in_next) || rel_has_arrived(r, d.chunk)) {", "if (rel_before(d.chunk, r->in_next) && rel_has_arrived(r, d.chunk)) {"),
    ("a message ends one chunk early", "if (m && --m->n_missing == 0)\n\t\tend", "if (m && --m->n_missing <= 1 && !(m->n_missing = 0))\n\t\tend"),
    ("a time-out does not send again", "rel_chunk_lost(r, chunk);\n\t\t}\n\t}\n}", ";\n\t\t}\n\t}\n}"),
    ("no time-out begins with the first packet", "if (p->in_flight++ == 0)\n\t\tset_deadline(r, p, now_ns);", "p->in_flight++;"),
    ("a time-out of a packet ends that of the next one", "if (--p->in_flight == 0)\n\t\tp->deadline_ns", "p->in_flight--;\n\t\tp->deadline_ns"),
    ("the last path may die", "&& count_alive(r) > 1", ""),
    ("an end without credit does not ask for it", "r->asking = true;", "return false;"),
    ("a request for credit is not answered", "if (a.flags & REL_ASK)", "if (0)"),
    ("an acknowledgement is not sent again", "rel_note_packet(r, p, d.packet, now_ns);\n\t\tr->ack_now = true;\n\t\tr->n.dup", "r->n.dup"),
)]


if __name__ == "__main__":
    sys.exit(Campaign("rdma/reliable", SOURCES, 13, "shape").main(MISTAKES, __doc__.splitlines()[0]))
