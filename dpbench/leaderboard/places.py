"""From losses to places: a score that does not depend on who else is there, nor on what was left out.

The score of a method on a problem is log10 of its mean excess loss over that of w = 0, which costs nothing and knows
nothing: 0 is no better than nothing, -1 a tenth of it. It is clipped at ±CLIP; a problem that the method's needs admit
and that has no result, or a run that failed or diverged, scores +CLIP. So leaving out problems never improves a place,
and an entrant changes the score of no other.
"""

from __future__ import annotations

import math

CLIP = 3.0  # decades


def score(excess: float, null: float) -> float:
    """log10(mean excess / excess of w = 0), within ±CLIP; CLIP for an excess that is infinite or no number."""
    if not (math.isfinite(excess) and null > 0):
        return CLIP
    return CLIP if excess / null >= 10**CLIP else math.log10(max(excess / null, 10**-CLIP))
