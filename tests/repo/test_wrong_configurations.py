"""docs/connect.md is what wrong_configurations.py makes of tests/real/connect.json."""

from __future__ import annotations

import scenarios
from wrong_configurations import CASES, GROUPS, PAGE, load, page

TEXTS = load()


def test_the_page_is_up_to_date_with_the_last_run() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(TEXTS), "tests/support/wrong_configurations.py"


def test_each_wrong_configuration_was_tried_on_both_versions_of_kafka() -> None:
    assert set(TEXTS) == {"4.3.0", "3.9.1"}
    for texts in TEXTS.values():
        assert set(texts) == {case.key for case in CASES}


def test_each_text_of_the_page_names_the_server_and_what_the_case_is_about() -> None:
    for texts in TEXTS.values():
        for case in CASES:
            text = texts[case.key]
            assert case.server in text
            assert [word for word in case.says if word not in text] == []


def test_each_case_has_a_name_of_its_own_and_a_scenario() -> None:
    assert len({case.key for case in CASES}) == sum(len(group.cases) for group in GROUPS)
    # The times of a slow token endpoint come from another test.
    assert {case.scenario for case in CASES} <= {*scenarios.KNOWN, None}


def test_a_configuration_and_its_text_are_shown_once_for_all_brokers_that_agree() -> None:
    texts = {"4.3.0": {"ca": "one text"}, "3.9.1": {"ca": "one text"}}
    assert page(texts).count("one text") == 1
    texts["3.9.1"] = {"ca": "another text"}
    assert "What 4.3.0 leads to:" in page(texts)
    assert "What 3.9.1 leads to:" in page(texts)
