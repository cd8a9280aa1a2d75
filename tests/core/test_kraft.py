"""The metadata log in C: batches, records as JSON, and the replay to a state."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from rdmeta import ArgumentError, MalformedError, MetadataCache
from rdmeta._core import KraftReplay, kraft_batch, kraft_is_sensitive, kraft_records
