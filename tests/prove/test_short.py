"""The proof: a sample of every layer but the interposer, and every known-bad variant; `make prove` runs everything."""

from __future__ import annotations

import pytest

from tests.prove.__main__ import problems, table
from tests.prove.jobs import caught, layers, run, short
from tests.support.systems import linux_only

pytestmark = [linux_only, pytest.mark.timeout(600)]
states_min = 10_000
variants_min = 45


def test_short_proof_holds_and_every_variant_is_caught() -> None:
    """Over 10,000 crash states break no promise, and a layer catches each known-bad variant.

    Rows J2-J9, J13, J14, C1-C7, W3, W4, W8, W9, B3, B5, A4, A5, E5, F2-F4, G4, G8, S1, S8, V2, V4; [I1] [I2] [I3] [I5]
    [I8] [I10] [I12] [I15]; cases 20, 26, 61, 98, 161, 162.
    """
    ended = list(run(short()))
    found, mutants = layers(ended), caught(ended)
    wrong = problems(found, mutants, is_short=True)
    assert not wrong, "\n".join([*wrong, table(found, mutants)])
    assert sum(tally.states for layer, tally in found.items() if layer.startswith("L1")) > states_min
    assert len(mutants) >= variants_min
