"""Until when a client may rely on its lock, whatever network and clocks do."""

import datetime

from hypothesis import given
from hypothesis import strategies as st

from assetlock.client.session.term import Term

EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LENGTH = 60.0

latencies = st.floats(0.001, 5.0)


def shown(seconds):
    """A time by the operator's clock, as a status carries it."""
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    return f"{moment.replace(tzinfo=None, microsecond=0).isoformat()}Z"


def status(began, length=LENGTH, acquired=0.0):
    return {"acquireTime": shown(acquired), "expireTime": shown(began + length)}


class World:
    """A client and an operator whose clocks differ. ``expires`` is when the lock really does, by the client's."""

    def __init__(self, offset, latency, delay, cut=None):
        self.offset = offset
        self.cut = cut
        sent = 1000.0
        self.granted = self.operators(sent + latency)
        self.seen = sent + latency + delay
        self.until = self.end(self.granted)
        shown_status = {"acquireTime": shown(self.granted), "expireTime": shown(self.until)}
        self.term = Term(shown_status, since=sent, seen=self.seen)
        self.now = self.seen

    def operators(self, moment):
        return moment + self.offset

    @property
    def expires(self):
        return self.until - self.offset

    def end(self, began):
        end = began + LENGTH
        return end if self.cut is None else min(end, self.granted + self.cut)

    def renew(self, pause, latency, delay):
        sent = self.now + pause
        self.until = max(self.until, self.end(self.operators(sent + latency)))
        self.now = sent + latency + delay
        shown_status = {"acquireTime": shown(self.granted), "expireTime": shown(self.until)}
        self.term.renewed(shown_status, sent)


renewals = st.lists(st.tuples(st.floats(1.0, 20.0), latencies, latencies), max_size=8)
worlds = (st.floats(-3600.0, 3600.0), latencies, latencies)


@given(*worlds, renewals)
def test_a_client_never_believes_to_hold_longer_than_it_does(offset, latency, delay, renewed):
    world = World(offset, latency, delay)
    assert world.term.until <= world.expires
    for renewal in renewed:
        world.renew(*renewal)
        assert world.term.until <= world.expires


@given(*worlds, renewals)
def test_a_renewal_that_is_confirmed_counts_in_full_from_when_it_was_sent(offset, latency, delay, renewed):
    world = World(offset, latency, delay)
    for pause, *times in renewed:
        sent = world.now + pause
        world.renew(pause, *times)
        assert world.term.until == sent + LENGTH


@given(*worlds, renewals, st.floats(60.0, 120.0))
def test_a_term_that_is_cut_short_is_known_within_the_precision_of_what_is_shown(
    offset, latency, delay, renewed, cut
):
    world = World(offset, latency, delay, cut)
    for renewal in renewed:
        world.renew(*renewal)
        assert world.term.until <= world.expires + latency + delay + 2


def test_a_term_that_gets_shorter_is_shorter_at_once():
    term = Term(status(0.0), since=1000.0, seen=1000.1)
    term.renewed(status(20.0), 1020.0)
    assert term.until == 1080.0
    term.renewed(status(-10.0), 1020.0)
    assert term.until == 1049.0


def test_what_writes_is_gone_before_the_lock_is():
    for length in (10, 60, 1800):
        term = Term(status(0.0, length), since=0.0, seen=0.1)
        assert term.deadline < term.until
        assert term.renews_every + term.retries_every < term.deadline / 2
