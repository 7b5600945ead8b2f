"""A minute of trouble on a real control plane, and proof that the judges would notice."""

from __future__ import annotations

import asyncio
import secrets
import xml.etree.ElementTree as ET

import pytest

from tests.chaos.picture import picture
from tests.chaos.play import ASSETS, play
from tests.chaos.report import table

pytestmark = pytest.mark.timeout(600)


def test_a_minute_of_trouble_breaks_no_promise() -> None:
    seed = secrets.token_hex(4)
    outcome = asyncio.run(play(60, seed))
    print(table(outcome))
    assert outcome.complaints == [], f"seed {seed}"
    assert outcome.faults
    assert {verdict["asset"] for verdict in outcome.verdicts} == set(ASSETS)
    assert outcome.audit.by_holders > 0
    drawn = ET.fromstring(picture(outcome))
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}rect"))) > len(outcome.faults)


def test_without_the_fence_both_judges_complain() -> None:
    outcome = asyncio.run(play(20, "unfenced", troubled=False, fenced=False))
    assert any("Illegal" in complaint for complaint in outcome.complaints), "the clients' own history"
    assert any(" with token 0 changed " in complaint for complaint in outcome.complaints), "etcd's history"
