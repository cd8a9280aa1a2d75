"""The lookups, whatever it is that is read."""

from __future__ import annotations

from rdmeta._core import MetadataCache, Reading


def test_lookups_are_the_cache_s_own_methods_which_cpython_calls_at_full_speed() -> None:
    names = [name for name, made in vars(Reading).items() if type(made) is type(str.join)]
    assert "leader" in names
    owners = {name: vars(MetadataCache)[name].__objclass__ for name in names}
    assert owners == dict.fromkeys(names, MetadataCache)
