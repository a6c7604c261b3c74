"""The effects of a framework's modes and settings that were measured in this run."""

from steelyard.report.model import Comparison, Contender
from steelyard.statistics.decision import Ranking
from steelyard.statistics.sentences import verdict_sentence


def sentences(comparison: Comparison, able: list[Contender]) -> list[str]:
    """Return, for every framework with several variants, their step times relative to its default, on the input that decides.

    Variants that are slower or not told apart from the default are listed together. Empty after a single round.
    """
    ranking, titles = comparison.rankings[comparison.primary], {each.case.id: each.title for each in able}
    if ranking.rounds_run < 2:
        return []
    by_framework = dict[str, list[Contender]]()
    for each in able:
        by_framework.setdefault(each.case.environment, []).append(each)
    return [found for variants in by_framework.values() if (found := _sentence(ranking, variants, titles))]


def _sentence(ranking: Ranking, variants: list[Contender], titles: dict[str, str]) -> str:
    default = next(filter(_is_default, variants), None)
    others = [each for each in variants if each is not default]
    if default is None or not others:
        return ""
    pairs = [ranking.between(each.case.id, default.case.id) for each in others]
    better = [verdict_sentence(pair, titles) for pair in pairs if pair and pair.kind == "better"]
    rest = [titles[each.case.id] for each, pair in zip(others, pairs, strict=True) if not pair or pair.kind != "better"]
    parts = [f"{'; '.join(better)}."] if better else []
    parts += [f"Not shown to be faster than {default.title}: {'; '.join(rest)}."] if rest else []
    return " ".join(parts)


def _is_default(contender: Contender) -> bool:
    facts, knobs = contender.facts, contender.case.settings.knobs
    return contender.mode == facts.default_mode and all(facts.knobs.get(name) == value for name, value in knobs.items())
