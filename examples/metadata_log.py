"""The metadata log of KRaft in files: what was true at a moment, what changed, and why."""

import sys
from datetime import timedelta
from pathlib import Path

import rdmeta

# Give a directory of controllers; a source tree has a small log of three real ones.
golden = Path(__file__).resolve().parents[1] / "tests/golden/kraft/4.3.0"
path = Path(sys.argv[1]) if len(sys.argv) > 1 else golden
if not path.exists():
    print(f"{path} is not there: give the metadata.log.dir of a controller")
    sys.exit()

log = rdmeta.KraftLog(path)
print(f"offsets {log.start} to {log.end - 1}, committed up to {log.proven}: {log.proof.by}")
for epoch in log.epochs:
    print(f"epoch {epoch.epoch}: node {epoch.leader} led from {epoch.began:%H:%M:%S}")

end = log.state()
for topic in end.topics:
    for turn in log.explain(topic, 0):
        if turn.what == "isr" and turn.cause and not turn.is_inferred:
            print(f"{turn.time:%H:%M:%S} {topic} [0] ISR {turn.value}: {turn.cause}")

before = log.state(end.time - timedelta(minutes=1))
print(len(before.diff(end)), "differences to a minute before")
print(before.image().health().leaderless, "partitions had no leader then")
for finding in rdmeta.kraft.check([path]):
    print("serious:" if finding.is_serious else "harmless:", finding.text)
