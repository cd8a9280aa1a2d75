"""The sections of the report: each has a sentence made from its numbers, tables and strips."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from rdmeta.pipeline.days import day_at
from rdmeta.report.facts import GRAVEST, SHOWN_KINDS, Facts
from rdmeta.report.gold_files import HOUR_US
from rdmeta.report.section_parts import (
    Part,
    Row,
    by_texts,
    cells_of,
    columns,
    picked,
    strip,
    table,
)
from rdmeta.report.wording import (
    KINDS,
    LETTERS,
    clock,
    counted,
    duration,
    ended,
    listed,
    number,
    rounded_minutes,
    rounded_seconds,
    shown,
    time_text,
    was,
)

_DAY_HOURS = 24


def sections(facts: Facts, before: Facts | None) -> list[Row]:
    """Returns the sections; some compare with the facts of an earlier span."""
    return [
        _section("fleet", "Fleet", _fleet_sentence, _fleet, facts, before),
        _section("incidents", "Incidents", _incident_sentence, _incidents, facts),
        _section("topics", "Topics", _topic_sentence, _topics, facts),
        _section("brokers", "Brokers", _broker_sentence, _brokers, facts),
        _section("balance", "Balance", _balance_sentence, _balance, facts, before),
        _section("recovery", "Recovery", _recovery_sentence, _recovery, facts, before),
        _section("changes", "Changes", _change_sentence, _changes, facts),
        _section("not_seen", "Not seen", _unseen_sentence, _unseen, facts),
    ]


def _section(
    name: str,
    title: str,
    sentence: Callable[[Facts], str],
    parts: Callable[[Facts, Facts | None], list[Part]],
    facts: Facts,
    before: Facts | None = None,
) -> Row:
    found: Row = {"name": name, "title": title, "sentence": sentence(facts)}
    if before is not None:
        found["sentence_before"] = sentence(before)
    return {**found, "parts": parts(facts, before)}


def _begins(facts: Facts, hours: int) -> Row:
    """Returns when the cells of a strip begin."""
    step = hours * HOUR_US
    moments = range(facts.span.begin, facts.span.end, step)
    return {"hours": hours, "begins": [time_text(each) for each in moments]}


# ---- the fleet ----------------------------------------------------------------------------------

_FLEET = columns(
    "rank:rank:rank; cluster:text:cluster; observed:share:observed;"
    " leaderless:minutes:without a leader; under_min_isr:minutes:under min ISR;"
    " under_replicated:minutes:under-replicated; incidents:count:incidents;"
    " slowest_seconds:seconds:slowest recovery; elections:count:elections;"
    " unclean:count:unclean ones; skew:share:leader skew"
)


def fleet_rows(facts: Facts) -> list[Row]:
    """Returns a row for each cluster, worst first; those that were hardly observed come last."""
    risks = {row["cluster_id"]: row for row in facts.answers["risk_bins"] if row["bin"] < 0}
    elections, slowest = facts.by_cluster("elections"), facts.by_cluster("recoveries")
    counts = Counter[str]()
    for row in facts.answers["incident_counts"]:
        counts[row["cluster_id"]] += row["incidents"] * (row["kind"] in GRAVEST)
    skews = {r["cluster_id"]: r["skew"] for r in facts.answers["skew"] if r["bin"] < 0}
    length = facts.span.end - facts.span.begin
    rows = []
    for cluster, name in facts.names.items():
        observed = sum(facts.observed[cluster].values())
        us = risks.get(cluster, dict.fromkeys(GRAVEST, 0 if observed else None))
        nothing = 0 if observed else None
        values: Row = {
            "cluster_id": cluster,
            "observed": observed / length,
            **{kind: us[kind] for kind in GRAVEST},
            "incidents": counts[cluster] if observed else None,
            "slowest_seconds": slowest.get(cluster, {}).get("slowest"),
            "elections": nothing,
            "unclean": None,
            "skew": skews.get(cluster),
            **elections.get(cluster, {}),
        }
        row = {**picked(facts, _FLEET, values), "cluster_id": cluster}
        worst = [-(us[kind] or 0) for kind in GRAVEST]
        rows.append(((2 * observed < length, *worst, name, cluster), row))
    rows.sort(key=lambda each: each[0])
    for place, (key, row) in enumerate(rows, 1):
        row["rank"] = None if key[0] else place
    return [row for _, row in rows]


def _fleet(facts: Facts, before: Facts | None) -> list[Part]:
    rows = fleet_rows(facts)
    earlier = by_texts(_FLEET, fleet_rows(before)) if before is not None else None
    title = "Partition-minutes at risk, by cluster"
    days = None if before is None else _fleet_days(before, fleet_rows(before))
    found = strip(
        "The largest of the three by day, with a letter for the gravest",
        "partition-minutes",
        _fleet_days(facts, rows),
        before=days,
    )
    hours = max(_DAY_HOURS, facts.hours)
    return [table(title, _FLEET, rows, before=earlier), {**found, **_begins(facts, hours)}]


def _fleet_days(facts: Facts, rows: Sequence[Row]) -> list[Row]:
    """Returns the days of each cluster, with a letter for the gravest kind of a day."""
    hours = max(_DAY_HOURS, facts.hours)
    cut = hours // facts.hours
    sums: dict[Any, Counter[int]] = defaultdict(Counter)
    for row in facts.answers["risk_bins"]:
        for kind in GRAVEST if row["bin"] >= 0 else ():
            sums[row["cluster_id"], kind][row["bin"] // cut] += row[kind] or 0
    days = -(-facts.bins // cut)
    strips = []
    for row in rows:
        cluster = row["cluster_id"]
        seen = Counter[int]()
        for each, us in facts.observed[cluster].items():
            seen[each // cut] += us
        of = {kind: sums[cluster, kind] for kind in GRAVEST}
        most = {each: max(of[kind][each] for kind in GRAVEST) for each in range(days)}
        letters = "".join(
            next((LETTERS[kind] for kind in GRAVEST if of[kind][each]), " ") for each in range(days)
        )
        cells = cells_of(most, seen, days)
        strips.append({"label": [row["cluster"]], "cells": cells, "letters": letters})
    return strips


def _longest(facts: Facts, kind: str) -> tuple[int, float]:
    """Returns how many clusters had incidents of a kind, and the seconds of the longest one."""
    rows = [row for row in facts.answers["incident_counts"] if row["kind"] == kind]
    return len(rows), max((row["longest"] for row in rows), default=0) / 1e6


def _fleet_sentence(facts: Facts) -> str:
    every = len(facts.names)
    rows = fleet_rows(facts)
    unseen = sum(row["observed"] == 0 for row in rows)
    texts = []
    for kind, words in (
        ("leaderless", "without a leader"),
        ("under_min_isr", "under their min ISR"),
        ("under_replicated", "that missed a replica"),
    ):
        count, seconds = _longest(facts, kind)
        verb = "had partitions"
        if count:
            texts.append(
                f"{count} of {counted(every, 'cluster')} {verb} {words};"
                f" the longest time was {duration(seconds)}."
            )
        elif kind != "under_min_isr":
            texts.append(f"No cluster {verb} {words}.")
        if count and kind == "under_min_isr":
            break
    unranked = sum(row["rank"] is None for row in rows)
    if unranked:
        texts.append(
            f"{counted(unranked, 'cluster')} {was(unranked)} observed for less than half of the"
            f" time, and {'is' if unranked == 1 else 'are'} not ranked."
        )
    if unseen == every:
        return f"None of {counted(every, 'cluster')} was observed."
    return " ".join(texts)


# ---- incidents ----------------------------------------------------------------------------------

_KIND_COUNTS = columns(
    "kind:text:kind; letter:text:letter; clusters:count:clusters; incidents:count:incidents;"
    " minutes:minutes:partition-minutes; longest_seconds:seconds:longest; censored:count:not"
    " seen whole"
)


def _incidents(facts: Facts, before: Facts | None) -> list[Part]:
    found = []
    for kind, words in KINDS.items():
        rows = [row for row in facts.answers["incident_counts"] if row["kind"] == kind]
        if rows:
            found.append(
                {
                    "kind": words,
                    "letter": LETTERS[kind],
                    "clusters": len(rows),
                    "incidents": sum(row["incidents"] for row in rows),
                    "minutes": rounded_minutes(sum(row["us"] for row in rows)),
                    "longest_seconds": rounded_seconds(max(row["longest"] for row in rows)),
                    "censored": sum(row["censored"] for row in rows),
                }
            )
    gravest = [_incident(facts, row) for row in facts.answers["gravest"]]
    every = sum(
        row["incidents"] for row in facts.answers["incident_counts"] if row["kind"] in SHOWN_KINDS
    )
    more = every - len(gravest)
    listing = {"kind": "list", "title": "The gravest incidents", "rows": gravest, "more": more}
    return [_incident_strip(facts), listing, table("All incidents by kind", _KIND_COUNTS, found)]


def _incident_strip(facts: Facts) -> Part:
    """Returns a strip for each cluster with incidents: the gravest kind of a cell, and its time."""
    times: dict[str, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in facts.answers["incident_bins"]:
        if row["us"]:
            times[row["cluster_id"]][row["bin"]][row["kind"]] = row["us"]
    strips = []
    for row in fleet_rows(facts):
        mine = times.get(row["cluster_id"])
        if mine is None:
            continue
        gravest = {
            each: next((kind, of[kind]) for kind in SHOWN_KINDS if kind in of)
            for each, of in mine.items()
        }
        seen = facts.observed[row["cluster_id"]]
        cells = cells_of({each: us for each, (_, us) in gravest.items()}, seen, facts.bins)
        letters = "".join(
            LETTERS[gravest[each][0]] if each in gravest else " " for each in range(facts.bins)
        )
        strips.append({"label": [row["cluster"]], "cells": cells, "letters": letters})
    full = facts.hours * 60
    title = "Time with an incident, with a letter for its gravest kind"
    return {**strip(title, "minutes", strips, full=full), **_begins(facts, facts.hours)}


def _incident(facts: Facts, row: Row) -> Row:
    """Returns an incident with what gold tells of its time, in words."""
    seconds = rounded_seconds(row["ended_us"] - row["began_us"])
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
    return {
        "cluster": name,
        "kind": row["kind"],
        "began_at": began,
        "ended_at": time_text(row["ended_us"]),
        "seconds": seconds,
        "minutes": rounded_minutes(row["us"]),
        "most": row["most"],
        "partitions": count,
        "topics": topics,
        "topics_named": risky[:3],
        "broker": row["broker"],
        "censored": row["censored"],
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
    days = []
    if (row["away"] or 0) >= 1000:
        days.append(f"broker {row['broker']} away for {duration(row['away'] / 1e6)}")
    if row["restarts"]:
        days.append(f"{counted(row['restarts'], 'return')} of broker {row['broker']}")
    if row["unclean"]:
        days.append(f"{counted(row['unclean'], 'unclean election')} in the cluster")
    begin = max(row["began_us"], facts.span.begin)
    first = day_at(begin)
    last = day_at(max(begin, min(row["ended_us"], facts.span.end) - 1))
    whole = f"On that whole day, {first}," if first == last else f"On the days {first} to {last}"
    found = [("In this time", moments), (whole, days)]
    return [f"{when} gold also has {listed(texts)}." for when, texts in found if texts]


def _incident_sentence(facts: Facts) -> str:
    counts = Counter[str]()
    for row in facts.answers["incident_counts"]:
        counts[row["kind"]] += row["incidents"]
    found = [f"{counts[each]} {KINDS[each]}" for each in GRAVEST if counts[each]]
    if not found:
        return "There was no incident: every partition had a leader and all of its replicas."
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


def _topics(facts: Facts, before: Facts | None) -> list[Part]:
    parts = []
    for kind in GRAVEST:
        rows = [row for row in facts.answers["topic_bins"] if row["kind"] == kind]
        cells: dict[int, dict[int, int | None]] = defaultdict(dict)
        for row in rows:
            cells[row["place"]][row["bin"]] = row["us"]
        strips = [
            {
                "label": [facts.names[row["cluster_id"]], row["topic"]],
                "total": rounded_minutes(row["total"]),
                "cells": cells_of(cells[place], facts.observed[row["cluster_id"]], facts.bins),
            }
            for place, row in {row["place"]: row for row in rows}.items()
        ]
        if strips:
            title = f"Topics {KINDS[kind]}, worst first"
            part = strip(title, "partition-minutes", strips, every=rows[0]["every"])
            parts.append({**part, **_begins(facts, facts.hours)})
    rows = [picked(facts, _TOPICS, row) for row in facts.answers["topics"]]
    every = _every(facts, "topics")
    return [*parts, table("Partition-minutes by topic and kind", _TOPICS, rows, every=every)]


def _topic_sentence(facts: Facts) -> str:
    found = facts.answers["topics"]
    if not found:
        return "No topic was at risk."
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
    " preferred_seconds:seconds:slowest return of preferred leaders;"
    " preferred_open:count:returns without all"
)
_TROUBLES = ("away", "unclean_restarts", "restarts", "flaps", "lost", "preferred_open")


def _brokers(facts: Facts, before: Facts | None) -> list[Part]:
    found = [row for row in facts.answers["brokers"] if any(row[each] for each in _TROUBLES)]
    found.sort(key=lambda row: [-(row[each] or 0) for each in _TROUBLES])
    rows = [picked(facts, _BROKERS, row) for row in found]
    return [table("Brokers to which something happened", _BROKERS, rows)]


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
    back = f"; {counted(restarts, 'return')}" if restarts else ""
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


def balance_rows(facts: Facts, kind: str) -> list[Row]:
    """Returns a row for each broker, or rack; the clusters with the most skew come first."""
    skews = {r["cluster_id"]: r["skew"] for r in facts.answers["skew"] if r["bin"] < 0}
    found: dict[Any, Row] = {}
    for row in facts.answers["balance"]:
        if row["kind"] != kind:
            continue
        cluster, who = row["cluster_id"], row[kind]
        key = (-(skews.get(cluster) or 0), cluster, who is None, who)
        target = found.setdefault(key, dict.fromkeys(each.name for each in _BALANCE))
        target |= {"cluster": facts.names[cluster], "who": "none" if who is None else str(who)}
        for name in ("leaders", "replicas", "skew"):
            target[f"{name}_{row['edge']}"] = row[name]
    return [found[key] for key in sorted(found)]


def _balance(facts: Facts, before: Facts | None) -> list[Part]:
    parts = []
    for kind, shown_columns in (("broker", _BALANCE), ("rack", _RACKS)):
        earlier = None
        if before is not None:
            earlier = by_texts(shown_columns, balance_rows(before, kind))
        title = (
            f"Leaders and replicas by {kind} on the first and the last day, averaged over the day"
        )
        names = [each.name for each in shown_columns]
        rows = [{name: row[name] for name in names} for row in balance_rows(facts, kind)]
        parts.append(table(title, shown_columns, rows, before=earlier))
    title = "How far the broker with the most leaders is above the mean"
    earlier_strips = None if before is None else _skew_strips(before)
    skew = strip(title, "times the mean", _skew_strips(facts), before=earlier_strips)
    return [*parts, {**skew, **_begins(facts, facts.hours)}]


def _skew_strips(facts: Facts) -> list[Row]:
    skews: dict[str, dict[int, float]] = defaultdict(dict)
    for row in facts.answers["skew"]:
        skews[row["cluster_id"]][row["bin"]] = row["skew"]
    worst = sorted(skews, key=lambda cluster: (-skews[cluster][-1], cluster))
    return [
        {
            "label": [facts.names[cluster]],
            "total": skews[cluster][-1],
            "cells": [skews[cluster].get(each) for each in range(facts.bins)],
        }
        for cluster in worst
    ]


def _balance_sentence(facts: Facts) -> str:
    found = [row for row in facts.answers["skew"] if row["bin"] < 0]
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


def recovery_rows(facts: Facts) -> list[Row]:
    """Returns the counts of all clusters, and those of each, the slowest first."""
    found = []
    for row in facts.answers["recoveries"]:
        cluster = row["cluster_id"]
        if cluster is None and len(facts.names) == 1:
            continue
        values = picked(
            facts, _RECOVERY, row, **{"cluster": "all clusters"} if cluster is None else {}
        )
        found.append(((cluster is not None, -(row["slowest"] or 0), cluster), values))
    return [values for _, values in sorted(found, key=lambda each: each[0])]


def _recovery(facts: Facts, before: Facts | None) -> list[Part]:
    earlier = by_texts(_RECOVERY, recovery_rows(before)) if before is not None else None
    lengths = table("Recoveries by length", _RECOVERY, recovery_rows(facts), before=earlier)
    slowest = [_slowest(each, word) for each, word in ((facts, ""), (before, " before")) if each]
    return [lengths, *slowest]


def _slowest(facts: Facts, word: str) -> Part:
    rows = [
        picked(facts, _SLOWEST, row, ended_by=ended(row["ended_by"]))
        for row in facts.answers["slowest"]
    ]
    every = facts.answers["recoveries"][0]["episodes"]
    return table(f"The slowest recoveries{word}", _SLOWEST, rows, every=every)


def _recovery_sentence(facts: Facts) -> str:
    row = facts.answers["recoveries"][0]
    if not row["episodes"]:
        return "No partition had to recover."
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


def _changes(facts: Facts, before: Facts | None) -> list[Part]:
    return [
        table(
            title,
            shown_columns,
            [_change(facts, row, name) for row in facts.answers[name]],
            every=_every(facts, name),
        )
        for name, title, _, shown_columns in _CHANGES
        if facts.answers[name]
    ]


def _change(facts: Facts, row: Row, name: str) -> Row:
    shown_columns = next(each[3] for each in _CHANGES if each[0] == name)
    values: Row = {}
    if name == "configs":
        kind = row["resource_type"]
        values["of"] = f"{kind} {row['resource']}" if row["resource"] else f"all {kind}s"
        values |= {n: "not set" for n in ("old_value", "new_value") if row[n] is None}
    if name == "topic_changes":
        values["outcome"] = ended(row["outcome"])
    if name == "controllers":
        values["broker"] = "none" if row["broker"] is None else f"node {row['broker']}"
    return picked(facts, shown_columns, row, **values)


def _every(facts: Facts, name: str) -> int:
    found = facts.answers[name]
    return int(found[0]["every"]) if found else 0


def _change_sentence(facts: Facts) -> str:
    found = []
    for name, _, noun, _ in _CHANGES:
        count = _every(facts, name)
        first, space, rest = noun.partition(" ")
        if count:
            found.append(f"{counted(count, first)}{space}{rest}")
    return f"There {was(2)} {listed(found)}." if found else "Nothing was changed."


# ---- what was not seen --------------------------------------------------------------------------

_UNSEEN = columns(
    "cluster:text:cluster; observed:share:observed; hole_minutes:minutes:minutes in holes;"
    " reasons:text:why; files_aside:count:files set aside; clocks_back:count:clocks set;"
    " disagreement_seconds:seconds:sources differ by;"
    " unknown_min_isr:minutes:partition-minutes without a known min ISR"
)


def _unseen(facts: Facts, before: Facts | None) -> list[Part]:
    holes = Counter[str]()
    for row in facts.answers["coverage"]:
        holes[row["cluster_id"]] += row["hole"]
    reasons: dict[str, list[str]] = defaultdict(list)
    for row in facts.answers["hole_reasons"]:
        reasons[row["cluster_id"]].append(f"{row['reason']} {duration(row['us'] / 1e6)}")
    quality = facts.by_cluster("quality")
    length, rows, strips = facts.span.end - facts.span.begin, [], []
    for cluster, name in facts.names.items():
        seen = facts.observed[cluster]
        about = {"files_aside": 0, "clocks_back": 0, **quality.get(cluster, {})}
        about |= {"cluster_id": cluster, "hole_minutes": holes[cluster]}
        about |= {"observed": sum(seen.values()) / length, "reasons": ", ".join(reasons[cluster])}
        rows.append(
            picked(facts, _UNSEEN, about, **{} if reasons[cluster] else {"reasons": "none"})
        )
        strips.append({"label": [name], "cells": cells_of(seen, seen, facts.bins)})
    order = sorted(range(len(rows)), key=lambda each: (rows[each]["observed"], each))
    full = facts.hours * 60
    seen_strip = strip("Time that was observed", "minutes", [strips[n] for n in order], full=full)
    return [
        table("What is missing, by cluster", _UNSEEN, [rows[n] for n in order]),
        {**seen_strip, **_begins(facts, facts.hours)},
    ]


def _unseen_sentence(facts: Facts) -> str:
    length = (facts.span.end - facts.span.begin) * len(facts.names)
    seen = sum(row["observed"] for row in facts.answers["coverage"])
    holes = sum(row["hole"] for row in facts.answers["coverage"])
    aside = sum(row["files_aside"] for row in facts.answers["quality"])
    text = f"{shown(round(seen / length, 4), 'share')} of the time of"
    text += f" {counted(len(facts.names), 'cluster')} was observed"
    text += f"; {duration(holes / 1e6)} lie in holes between recordings" if holes else ""
    text += f"; {counted(aside, 'file')} {was(aside)} set aside" if aside else ""
    return f"{text}."
