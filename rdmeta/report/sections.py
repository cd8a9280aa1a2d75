"""The sections of the report: each has a sentence made from its numbers, tables and strips."""

from __future__ import annotations

from collections.abc import Callable

from rdmeta.pipeline.days import day_at
from rdmeta.report.facts import GRAVEST, SHOWN_KINDS, Facts, Row
from rdmeta.report.section_parts import Part, cells_of, columns, strip, table
from rdmeta.report.wording import (
    HOLES,
    KINDS,
    LETTERS,
    clock,
    counted,
    duration,
    ended,
    listed,
    number,
    rounded_minutes,
    shown,
    time_text,
    was,
)

_DAY_HOURS = 24


# ---- the fleet ----------------------------------------------------------------------------------

_FLEET = columns(
    "rank:rank:rank; cluster:text:cluster; observed:share:observed;"
    " leaderless:minutes:without a leader; under_min_isr:minutes:under min ISR;"
    " under_replicated:minutes:under-replicated; incidents:count:incidents;"
    " slowest_seconds:seconds:slowest recovery; elections:count:elections;"
    " unclean:count:unclean ones; skew:share:leader skew"
)


def _fleet(facts: Facts, before: Facts | None) -> list[Part]:
    rows, hours = facts.answers["fleet"], max(_DAY_HOURS, facts.hours)
    earlier = before.answers["fleet"] if before else None
    title = "Partition-minutes at risk, by cluster"
    found = table(facts, title, _FLEET, rows, before=earlier)
    for shown_row, row in zip(found["rows"], rows, strict=False):
        shown_row["cluster_id"] = row["cluster_id"]
    days = strip(
        facts,
        "The largest of these three by day; L, M or U says which is the gravest",
        "partition-minutes",
        _lettered(facts, "day_bins", hours),
        hours=hours,
        before=_lettered(before, "day_bins", hours) if before else None,
    )
    return [found, days]


def _lettered(facts: Facts, name: str, hours: int) -> list[Row]:
    """Returns the bars of each cluster, the worst first, with a letter for the kind of a cell."""
    found, seen, bins, strips = facts.bins_of(name), facts.seen(hours), facts.bins(hours), []
    for row in facts.answers["fleet"]:
        mine = found[row["cluster_id"]]
        us = {each: cell["us"] for each, cell in mine.items()}
        kinds = [mine[each]["kind"] if each in mine else "" for each in range(bins)]
        cells = cells_of(us, seen[row["cluster_id"]], bins)
        letters = "".join(LETTERS.get(kind, " ") for kind in kinds)
        strips.append({"label": [row["name"]], "cells": cells, "letters": letters})
    return strips


def _fleet_sentence(facts: Facts) -> str:
    every, rows = len(facts.names), facts.answers["fleet"]
    if not any(row["observed"] for row in rows):
        return f"None of {counted(every, 'cluster')} was observed."
    kinds = {row["kind"]: row for row in facts.answers["incident_kinds"]}
    texts, replicas = [], ("under_replicated", "that missed a replica")
    if "under_min_isr" in kinds:
        replicas = ("under_min_isr", "under their min ISR")
    for kind, words in (("leaderless", "without a leader"), replicas):
        text = f"No cluster had partitions {words}."
        if kind in kinds:
            text = (
                f"{kinds[kind]['clusters']} of {counted(every, 'cluster')} had partitions {words};"
                f" the longest time was {duration(kinds[kind]['longest_seconds'])}."
            )
        texts.append(text)
    unranked = sum(row["rank"] is None for row in rows)
    if unranked:
        texts.append(
            f"{counted(unranked, 'cluster')} {was(unranked)} observed for less than half of the"
            f" time, and {'is' if unranked == 1 else 'are'} not ranked."
        )
    return " ".join(texts)


# ---- incidents ----------------------------------------------------------------------------------

_KIND_COUNTS = columns(
    "kind:text:kind; letter:text:letter; clusters:count:clusters; incidents:count:incidents;"
    " minutes:minutes:partition-minutes; longest_seconds:seconds:longest; censored:count:not"
    " seen whole"
)


def _incidents(facts: Facts) -> list[Part]:
    hours, title = facts.hours, "Time with an incident, with a letter for its gravest kind"
    strips = [row for row in _lettered(facts, "incident_bins", hours) if row["letters"].strip()]
    found = {row["kind"]: row for row in facts.answers["incident_kinds"]}
    gravest = [_incident(facts, row) for row in facts.answers["gravest"]]
    more = sum(row["incidents"] for row in found.values() if row["kind"] in SHOWN_KINDS)
    more -= len(gravest)
    kinds = [
        {**found[kind], "kind": words, "letter": LETTERS[kind]}
        for kind, words in KINDS.items()
        if kind in found
    ]
    return [
        strip(facts, title, "minutes", strips, full=hours * 60),
        {"kind": "list", "title": "The gravest incidents", "rows": gravest, "more": more},
        table(facts, "All incidents by kind", _KIND_COUNTS, kinds),
    ]


def _incident(facts: Facts, row: Row) -> Row:
    """Returns an incident with what gold tells of its time, in words."""
    seconds = round((row["ended_us"] - row["began_us"]) / 1e6, 3)
    name, began = facts.names[row["cluster_id"]], time_text(row["began_us"])
    count, topics = row["partitions"], row["topics"]
    risky, span = row["risky"] or [], facts.span
    named = ", ".join(risky[:3])
    # Gold names topics by hour. As many as those of the incident are those of the incident.
    if len(risky) == topics and span.begin <= row["began_us"] and row["ended_us"] <= span.end:
        named += f" and {topics - 3} more" if topics > 3 else ""
    elif risky:
        named = f"at risk like this in these hours: {named}{' and more' if risky[3:] else ''}"
    words = (
        f"{name}: from {clock(began)} on, {counted(count, 'partition')} of"
        f" {counted(topics, 'topic')}{f' ({named})' if named else ''} {was(count)}"
        f" {KINDS[row['kind']]}, for {duration(seconds)} and"
        f" {number(rounded_minutes(row['us']) or 0)} partition-minutes, at most {row['most']} at"
        " once."
    )
    if row["broker"] is not None:
        words += f" Broker {row['broker']} was out of the ISR for longest."
    if row["censored"]:
        words += " Its begin or its end was not seen."
    same = ("kind", "most", "partitions", "topics", "broker", "censored")
    return {
        "cluster": name,
        **{each: row[each] for each in same},
        "began_at": began,
        "ended_at": time_text(row["ended_us"]),
        "seconds": seconds,
        "minutes": rounded_minutes(row["us"]),
        "topics_named": risky[:3],
        "text": words,
        "also": _also(facts, row),
    }


def _also(facts: Facts, row: Row) -> list[str]:
    """Returns what else gold tells of an incident's time, and of its whole days, in sentences.

    None of it is called a cause.
    """
    moments = [
        f"{counted(row[name], noun)} {words}"
        for name, noun, words in (
            ("reassignments", "reassignment", "of partitions"),
            ("controllers", "term", "of a controller that began"),
            ("configs", "configuration", "that was seen to change"),
        )
        if row[name]
    ]
    kinds = [words for kind, words in KINDS.items() if kind in (row["kinds"] or ())]
    if kinds:
        moments.insert(0, f"incidents of partitions {listed(kinds)}")
    days, broker = [], row["of_broker"]
    if (broker["away"] or 0) >= 1000:
        days.append(f"broker {row['broker']} away for {duration(broker['away'] / 1e6)}")
    if broker["restarts"]:
        days.append(f"{counted(broker['restarts'], 'restart')} of broker {row['broker']}")
    if row["unclean"]:
        days.append(f"{counted(row['unclean'], 'unclean election')} in the cluster")
    begin = max(row["began_us"], facts.span.begin)
    first = day_at(begin)
    last = day_at(max(begin, min(row["ended_us"], facts.span.end) - 1))
    whole = f"On the whole of {first}" if first == last else f"On the days {first} to {last}"
    found = [("At the same time", moments), (whole, days)]
    return [f"{when}: {listed(texts)}." for when, texts in found if texts]


def _incident_sentence(facts: Facts) -> str:
    counts = {row["kind"]: row["incidents"] for row in facts.answers["incident_kinds"]}
    found = [f"{counts[each]} {KINDS[each]}" for each in GRAVEST if each in counts]
    if not found:
        return "No partition was seen without a leader or without one of its replicas."
    first = facts.answers["gravest"][0]
    return (
        f"There were incidents of partitions: {listed(found)}. The gravest one was in"
        f" {facts.names[first['cluster_id']]}, from {clock(time_text(first['began_us']))} on:"
        f" {counted(first['partitions'], 'partition')} {KINDS[first['kind']]} for"
        f" {duration((first['ended_us'] - first['began_us']) / 1e6)}."
    )


# ---- topics -------------------------------------------------------------------------------------

_TOPICS = columns(
    "cluster:text:cluster; topic:text:topic; "
    + "; ".join(f"{kind}:minutes:{words}" for kind, words in KINDS.items())
)


def _topics(facts: Facts) -> list[Part]:
    parts, seen, bins = [], facts.seen(facts.hours), facts.bins(facts.hours)
    for kind in GRAVEST:
        rows = [row for row in facts.answers["topic_bins"] if row["kind"] == kind]
        strips = []
        for row in rows:
            us = {each["bin"]: each["us"] for each in row["bins"]}
            label = [facts.names[row["cluster_id"]], row["topic"]]
            cells = cells_of(us, seen[row["cluster_id"]], bins)
            strips.append({"label": label, "total": rounded_minutes(row["total"]), "cells": cells})
        if strips:
            title, every = f"Topics {KINDS[kind]}, worst first", rows[0]["every"]
            parts.append(strip(facts, title, "partition-minutes", strips, every=every))
    found = facts.answers["topics"]
    title = "Partition-minutes by topic and kind"
    return [*parts, table(facts, title, _TOPICS, found, every=_every(facts, "topics"))]


def _topic_sentence(facts: Facts) -> str:
    found = facts.answers["topics"]
    if not found:
        return "No topic was seen at risk."
    texts = [
        f"{counted(found[0]['every'], 'topic')} {was(found[0]['every'])} at risk of some kind."
    ]
    for kind in GRAVEST:
        worst = next((row for row in facts.answers["topic_bins"] if row["kind"] == kind), None)
        if worst is not None:
            texts.append(
                f"{worst['topic']} in {facts.names[worst['cluster_id']]} was {KINDS[kind]} most:"
                f" {number(rounded_minutes(worst['total']) or 0)} partition-minutes."
            )
    return " ".join(texts[:3])


# ---- brokers ------------------------------------------------------------------------------------

_BROKERS = columns(
    "cluster:text:cluster; broker:count:broker; away:minutes:minutes away;"
    " fenced:minutes:minutes fenced; restarts:count:restarts; unclean_restarts:count:unclean"
    " ones; flaps:count:ISR flaps; lost:count:leaderships lost;"
    " preferred_seconds:seconds:preferred leaders back after;"
    " preferred_open:count:restarts without all of them back"
)


def _brokers(facts: Facts) -> list[Part]:
    rows = [row for row in facts.answers["brokers"] if row["is_shown"]]
    return [table(facts, "Brokers away, restarted, flapping or losing leaders", _BROKERS, rows)]


def _broker_sentence(facts: Facts) -> str:
    found = facts.answers["brokers"]
    away = [row for row in found if row["away"]]
    restarts = sum(row["restarts"] or 0 for row in found)
    unclean = sum(row["unclean_restarts"] or 0 for row in found)
    if not found:
        return "Nothing is known about brokers."
    text = f"None of {counted(len(found), 'broker')} was away"
    if away:
        worst = max(away, key=lambda row: row["away"])
        text = (
            f"{len(away)} of {counted(len(found), 'broker')} {was(len(away))} away, for longest"
            f" broker {worst['broker']} of {facts.names[worst['cluster_id']]}, for"
            f" {duration(worst['away'] / 1e6)}"
        )
    back = f"; {counted(restarts, 'restart')}" if restarts else ""
    return f"{text}{back}{f', {unclean} of them unclean' if unclean else ''}."


# ---- balance ------------------------------------------------------------------------------------

_RACKS = columns(
    "cluster:text:cluster; who:text:rack; leaders_first:number:leaders on the first day;"
    " leaders_last:number:on the last; replicas_first:number:replicas on the first day;"
    " replicas_last:number:on the last"
)
_BALANCE = columns(
    "cluster:text:cluster; who:text:broker; leaders_first:number:leaders on the first day;"
    " leaders_last:number:on the last; replicas_first:number:replicas on the first day;"
    " replicas_last:number:on the last; skew_first:share:leaders above the mean, first day;"
    " skew_last:share:last day"
)


def _balance(facts: Facts, before: Facts | None) -> list[Part]:
    parts = []
    for kind, shown_columns in (("broker", _BALANCE), ("rack", _RACKS)):
        rows, earlier = (
            [row for row in each.answers["balance"] if row["kind"] == kind] if each else None
            for each in (facts, before)
        )
        title = (
            f"Leaders and replicas by {kind} on the first and the last day, averaged over the day"
        )
        parts.append(table(facts, title, shown_columns, rows or (), before=earlier))
    title = "How far the broker with the most leaders is above the mean"
    skews, earlier = _skews(facts), _skews(before) if before else None
    return [*parts, strip(facts, title, "of the mean", skews, before=earlier)]


def _skews(facts: Facts) -> list[Row]:
    """Returns the bars of each cluster, that with the most skew first."""
    strips = []
    for cluster, mine in facts.bins_of("skew").items():
        cells = [mine.get(each, {}).get("skew") for each in range(facts.bins(facts.hours))]
        total = next(iter(mine.values()))["total"]
        strips.append({"label": [facts.names[cluster]], "total": total, "cells": cells})
    return strips


def _balance_sentence(facts: Facts) -> str:
    found = [row for row in facts.answers["fleet"] if row["skew"] is not None]
    if not found:
        return "It is not known which broker led what."
    worst = max(found, key=lambda row: (row["skew"], row["cluster_id"]))
    return (
        f"Of {counted(len(found), 'cluster')}, {facts.names[worst['cluster_id']]} was the least"
        f" balanced: on average one broker led {shown(worst['skew'], 'share')} more partitions"
        " than the mean."
    )


# ---- recovery -----------------------------------------------------------------------------------

_RECOVERY = columns(
    "cluster:text:cluster; episodes:count:recoveries; under_minute:count:under 1 min;"
    " under_10_minutes:count:under 10 min; under_hour:count:under 1 h;"
    " under_6_hours:count:under 6 h; longer:count:longer; median:seconds:median;"
    " p95:seconds:95th percentile; slowest:seconds:slowest; censored:count:not seen whole"
)
_SLOWEST = columns(
    "cluster:text:cluster; topic:text:topic; partition:count:partition; began_at:time:began;"
    " seconds:seconds:length; brokers:list:missing brokers; ended_by:text:ended by;"
    " censored:flag:not seen whole"
)


def _recovery(facts: Facts, before: Facts | None) -> list[Part]:
    earlier = {row["cluster_id"]: row for row in before.answers["recoveries"]} if before else {}
    rows = [
        row
        for row in facts.answers["recoveries"]
        for old in [earlier.get(row["cluster_id"], {})]
        if (row["cluster_id"] or len(facts.names) > 1) and (row["episodes"] or old.get("episodes"))
    ]
    kept = [earlier[row["cluster_id"]] for row in rows] if before else None
    lengths = table(facts, "Recoveries by length", _RECOVERY, rows, before=kept)
    slowest = [_slowest(each, word) for each, word in ((facts, ""), (before, " before")) if each]
    return [lengths, *slowest]


def _slowest(facts: Facts, word: str) -> Part:
    rows = [{**row, "ended_by": ended(row["ended_by"])} for row in facts.answers["slowest"]]
    every = facts.answers["recoveries"][0]["episodes"] or 0
    return table(facts, f"The slowest recoveries{word}", _SLOWEST, rows, every=every)


def _recovery_sentence(facts: Facts) -> str:
    row = facts.answers["recoveries"][0]
    if not row["episodes"]:
        return "No recovery was seen."
    text = f"Partitions recovered a missing replica {counted(row['episodes'], 'time')}"
    if row["median"] is not None:
        text += (
            f": half of these took at most {duration(row['median'])}, 95 % at most"
            f" {duration(row['p95'])}"
        )
    rest = f" {row['censored']} {was(row['censored'])} not seen whole." if row["censored"] else ""
    return f"{text}. The slowest took {duration(row['slowest'])}.{rest}"


# ---- changes ------------------------------------------------------------------------------------

_REASSIGNMENTS = columns(
    "began_at:time:began; cluster:text:cluster; topic:text:topic;"
    " partitions:count:partitions; seconds:seconds:longest; outcome:text:outcome"
)
_TOPIC_CHANGES = columns(
    "began_at:time:when; cluster:text:cluster; topic:text:topic; partitions:count:partitions;"
    " seconds:seconds:lived; outcome:text:outcome"
)
_CONFIGS = columns(
    "began_at:time:seen; cluster:text:cluster; of:text:of; key:text:key;"
    " old_value:text:before; new_value:text:after"
)
_CONTROLLERS = columns(
    "began_at:time:began; cluster:text:cluster; broker:text:controller; epoch:count:epoch;"
    " seconds:seconds:length; censored:flag:not seen whole"
)
_CHANGES = (
    ("reassignments", "Reassignments", "reassignment", _REASSIGNMENTS),
    ("topic_changes", "Topics that came, grew and went", "change of topics", _TOPIC_CHANGES),
    ("configs", "Changes of configurations", "change of configurations", _CONFIGS),
    ("controllers", "Terms of controllers", "term of a controller", _CONTROLLERS),
)


def _changes(facts: Facts) -> list[Part]:
    return [
        table(facts, title, shown_columns, [_change(row) for row in found], every=found[0]["every"])
        for name, title, _, shown_columns in _CHANGES
        if (found := facts.answers[name])
    ]


def _change(row: Row) -> Row:
    """Returns a change with words for what is not shown as gold has it."""
    found = dict(row)
    if "outcome" in row:
        found["outcome"] = ended(row["outcome"])
    elif "key" in row:
        kind = row["resource_type"]
        found["of"] = f"{kind} {row['resource']}" if row["resource"] else f"all {kind}s"
        found |= {name: "not set" for name in ("old_value", "new_value") if row[name] is None}
    else:
        found["broker"] = "none" if row["broker"] is None else f"node {row['broker']}"
    return found


def _every(facts: Facts, name: str) -> int:
    found = facts.answers[name]
    return int(found[0]["every"]) if found else 0


def _change_sentence(facts: Facts) -> str:
    counts = [(_every(facts, name), *noun.partition(" ")) for name, _, noun, _ in _CHANGES]
    found = [f"{counted(count, noun)}{space}{rest}" for count, noun, space, rest in counts if count]
    if not found:
        return "No change was seen."
    return f"There {was(max(counts)[0] if len(found) == 1 else 2)} {listed(found)}."


# ---- what was not seen --------------------------------------------------------------------------

_UNSEEN = columns(
    "cluster:text:cluster; observed:share:observed; hole_minutes:minutes:minutes in holes;"
    " reasons:text:why; files_aside:count:files set aside; clocks_back:count:times a clock was set;"
    " disagreement_seconds:seconds:sources differ by;"
    " unknown_min_isr:minutes:partition-minutes without a known min ISR"
)


def _unseen(facts: Facts) -> list[Part]:
    hours, found = facts.hours, facts.answers["quality"]
    seen, rows, strips = facts.seen(hours), [], []
    for row in found:
        reasons = [
            (HOLES.get(each["reason"], each["reason"]), duration(each["us"] / 1e6))
            for each in row["reasons"]
        ]
        rows.append({**row, "reasons": ", ".join(map(" ".join, reasons)) or "none"})
        mine = seen[row["cluster_id"]]
        cells = cells_of(mine, mine, facts.bins(hours))
        strips.append({"label": [facts.names[row["cluster_id"]]], "cells": cells})
    return [
        table(facts, "What is missing, by cluster", _UNSEEN, rows),
        strip(facts, "Time that was observed", "minutes", strips, full=hours * 60),
    ]


def _unseen_sentence(facts: Facts) -> str:
    rows = facts.answers["quality"]
    seen = sum(row["observed"] for row in rows) / len(rows)
    holes, aside = (sum(row[name] for row in rows) for name in ("hole_minutes", "files_aside"))
    text = f"{shown(round(seen, 4), 'share')} of the time of"
    text += f" {counted(len(facts.names), 'cluster')} was observed"
    text += f"; {duration(holes / 1e6)} lie in holes between recordings" if holes else ""
    text += f"; {counted(aside, 'file')} {was(aside)} set aside" if aside else ""
    return f"{text}."


# ---- all of them --------------------------------------------------------------------------------

_COMPARED = ("Fleet", "Balance", "Recovery")
_SECTIONS: tuple[tuple[str, Callable[[Facts], str], Callable[..., list[Part]]], ...] = (
    ("Fleet", _fleet_sentence, _fleet),
    ("Incidents", _incident_sentence, _incidents),
    ("Topics", _topic_sentence, _topics),
    ("Brokers", _broker_sentence, _brokers),
    ("Balance", _balance_sentence, _balance),
    ("Recovery", _recovery_sentence, _recovery),
    ("Changes", _change_sentence, _changes),
    ("Not seen", _unseen_sentence, _unseen),
)


def sections(facts: Facts, before: Facts | None = None) -> list[Row]:
    """Returns the sections; some compare with the facts of an earlier span."""
    found = []
    for title, sentence, parts in _SECTIONS:
        name = title.lower().replace(" ", "_")
        section: Row = {"name": name, "title": title, "sentence": sentence(facts)}
        if title in _COMPARED:
            section |= {"sentence_before": sentence(before)} if before else {}
            section["parts"] = parts(facts, before)
        else:
            section["parts"] = parts(facts)
        found.append(section)
    return found
