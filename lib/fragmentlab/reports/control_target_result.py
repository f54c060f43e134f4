"""The result of notebook 02: claims computed from what was played, and in words what does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fragmentlab.assembler import RuleSet
from fragmentlab.reports.captured_pairs import Pair
from fragmentlab.reports.frame.catalog import shown_rules
from fragmentlab.runtime.live import LiveRun
from fragmentlab.runtime.play import Played

_NAMED = 6
_KIND_CLAIMS = (
    (("control", "variant"), "Every control and variant ends as it should, every variant as its control"),
    (("target",), "Every target repeats its control: IDs, results, report, effects, requests"),
    (("negative",), "Every negative is refused for its reason, without a call or a file"),
    (("recovery",), "Every recovery ends as it should and uses nothing of a refused response"),
)


@dataclass(frozen=True)
class Claim:
    """One part of the result: it holds where ``held`` is ``total``."""

    text: str
    held: int
    total: int

    @property
    def holds(self) -> bool:
        return self.held == self.total


@dataclass(frozen=True)
class Judgement:
    """Everything that was played under one rule set, and what follows from it."""

    rules: RuleSet
    played: dict[str, Played]
    pairs: Sequence[Pair]
    live: LiveRun | None

    def of(self, *kinds: str) -> list[Played]:
        """The scenarios of these kinds, in order."""
        return [played for played in self.played.values() if played.scenario.kind in kinds]

    def differences(self, played: Played) -> list[str] | None:
        """In what a scenario differs from the one that it must repeat; None where it need not repeat any."""
        other = self.other(played)
        return None if other is None else played.differences(other)

    def other(self, played: Played) -> Played | None:
        """The scenario that this one must repeat."""
        return self.played.get(played.scenario.same_as or "")

    def wrong(self, played: Played) -> str | None:
        """What is wrong with one scenario, or None."""
        if unmet := played.unmet(self.rules):
            return unmet
        differences = self.differences(played)
        return f"differs in {', '.join(differences)}" if differences else None

    @cached_property
    def claims(self) -> list[Claim]:
        """Every claim that anything was played for."""
        claims = [self._of_kinds(text, *kinds) for kinds, text in _KIND_CLAIMS]
        targets = self.of("target")
        streamed = sum(played.streams_null for played in targets)
        claims.append(Claim("Every target really streamed null after an ID", streamed, len(targets)))
        same = sum(pair.is_same for pair in self.pairs)
        claims.append(
            Claim("Every recorded target has its control's outcome and arguments", same, len(self.pairs))
        )
        if self.live is not None:
            claims.append(
                Claim("The live server that was named gave evidence", int(not self.live.problem), 1)
            )
        return [claim for claim in claims if claim.total]

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.claims)

    def why(self) -> str:
        """What does not hold: scenarios by name and how, recorded pairs by number."""
        reasons = self._reasons()
        failed = sum(map(len, reasons.values()))
        told = [f"{failed} of {len(self.played)} scenarios do not hold"] if failed else []
        told += [f"{how}: {_named(names)}" for how, names in reasons.items()]
        different = [pair for pair in self.pairs if not pair.is_same]
        if different:
            ended = ", ".join(sorted({pair.target.category or pair.target.outcome for pair in different}))
            told.append(
                f"{len(different)} of {len(self.pairs)} recorded targets, unlike their controls: {ended}"
            )
        if self.live is not None and self.live.problem:
            told.append(f"live server: {self.live.problem}")
        return f"Under {shown_rules(self.rules.name)}: {'; '.join(told)}"

    def _of_kinds(self, text: str, *kinds: str) -> Claim:
        of = self.of(*kinds)
        return Claim(text, sum(self.wrong(played) is None for played in of), len(of))

    def _reasons(self) -> dict[str, list[str]]:
        reasons: dict[str, list[str]] = {}
        for played in self.played.values():
            wrong = self.wrong(played)
            if wrong is None and played.scenario.kind == "target" and not played.streams_null:
                wrong = "streamed no null after an ID"
            elif wrong and played.unmet(self.rules) and played.outcome.category:
                wrong = f"refused as {played.outcome.category}"
            if wrong:
                reasons.setdefault(wrong, []).append(played.scenario.name)
        return reasons


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
